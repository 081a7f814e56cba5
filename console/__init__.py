"""lab-console: a terminal console that runs a fine-tuning lab on borrowed machines."""

__version__ = "0.1.0"

"""Record sheet and one page of an experiment: templates and writers."""

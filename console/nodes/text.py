"""The door of the nodes room: every byte from a node passes here before anything else sees it."""

from console.core.text import SafeText, clean, is_secret_name, redact

__all__ = ["SafeText", "clean", "is_secret_name", "redact"]

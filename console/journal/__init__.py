"""The experiment's memory: an append-only SQLite file, and replay from it."""

from console.journal.journal import Journal, read_journal

__all__ = ["Journal", "read_journal"]

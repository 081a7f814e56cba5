"""Programs that run on a node, read as text and sent over SSH."""

from importlib.resources import files


def source(name: str) -> str:
    """Text of one program of this folder."""
    return (files(__name__) / name).read_text("utf-8")

"""Titles and labels in the chosen language. What machines and people wrote stays as it is."""

from typing import Literal

from console.tui.catalogue import CATALOGUE

Lang = Literal["en", "zh"]


class Words:
    """The catalogue in one language."""

    def __init__(self, lang: str = "en") -> None:
        self.lang: Lang = "zh" if lang == "zh" else "en"

    def __call__(self, key: str, /, **values: object) -> str:
        """The words for `key`, with its placeholders filled. Raises `KeyError` for a key that isn't there."""
        words = CATALOGUE[key][self.lang == "zh"]
        return words.format(**values) if values else words

    def hint(self, action: str) -> str:
        """What the words of an action leave open; mostly nothing."""
        found = CATALOGUE.get(f"hint.{action}")
        return found[self.lang == "zh"] if found else ""

    def state(self, state: str) -> str:
        """The word for a state; states without an entry are shown as they are."""
        found = CATALOGUE.get(f"state.{state}")
        return found[self.lang == "zh"] if found else state

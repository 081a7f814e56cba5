"""The readings of all nodes, fetched once and kept, so that redrawing asks only for what is new."""

from collections.abc import Sequence
from datetime import datetime

from console.core.plan.custody import Sample
from console.engine.session import Session

Reading = tuple[datetime, Sample]
KEPT = 50_000


class Readings:
    """Grows with the session; begins anew when a replay goes back in time."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._kept: dict[str, list[Reading]] = {}

    def of(self, node: str) -> Sequence[Reading]:
        """All readings of a node up to the session's time, oldest first."""
        kept = self._kept.setdefault(node, [])
        if kept and kept[-1][0] > self._session.now():
            kept.clear()
        last = kept[-1][0] if kept else None
        newer = self._session.samples(node, since=last)
        kept.extend([reading for reading in newer if last is None or reading[0] > last])
        if len(kept) > KEPT:
            del kept[: KEPT // 10]
        return kept

    def latest(self, node: str) -> Reading | None:
        """The newest reading, or None."""
        found = self.of(node)
        return found[-1] if found else None

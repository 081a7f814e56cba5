"""Lines that look like metrics: those that no parser took are counted, so that nothing is lost unseen."""

import re

METRIC_MARKS = (
    b"loss'", b'loss"', b"loss:", b"loss value:", b"grad_norm", b"grad norm:", b"memory(GiB)",
    b"train_speed(", b"train_runtime", b"elapsed time per iteration", b" iteration ",
)  # fmt: skip
"""Literals, one of which is in every line that `looks_like_metrics`."""

_NUMBER = r"[-+]?(?:\d[\d.eE+-]*|nan|inf)\b"
_ENTRY = re.compile(
    r"""['"](?:\w*loss|grad_norm|train_runtime|memory\(GiB\)|train_speed\([^)]{1,20}\))['"]\s*:\s*['"]?"""
    + _NUMBER,
    re.IGNORECASE,
)
_FIELDS = re.compile(
    r"\b(?:loss|grad norm|elapsed time per iteration \(ms\)|memory\(GiB\))(?: value)?:\s*"
    rf"{_NUMBER}\s*(?:\||$)",
    re.IGNORECASE,
)
_ITERATION = re.compile(r"\biteration\s+\d{1,15}\s*/\s*\d{1,15}\s*\|", re.IGNORECASE)


def looks_like_metrics(text: str) -> bool:
    """A dict with a loss or another metric of training, `name: number |` fields, or `iteration N/ M |`."""
    return any(pattern.search(text) for pattern in (_ENTRY, _FIELDS, _ITERATION))

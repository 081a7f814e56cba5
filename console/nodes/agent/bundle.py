"""The agent program as one zip, built in memory, named by its content."""

import hashlib
import io
import zipfile
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

PACKAGE = "labguard"
_EPOCH = (2020, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Bundle:
    """The packed program. The name changes with every change of the program."""

    name: str
    data: bytes


@cache
def bundle() -> Bundle:
    """Pack the program; the same sources give the same bytes."""
    buffer = io.BytesIO()
    sources = sorted(
        (entry for entry in files("console.nodes.agent.program").iterdir() if entry.name.endswith(".py")),
        key=lambda entry: entry.name,
    )
    with zipfile.ZipFile(buffer, "w") as archive:
        for entry in sources:
            path = entry.name if entry.name == "__main__.py" else f"{PACKAGE}/{entry.name}"
            info = zipfile.ZipInfo(path, date_time=_EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, entry.read_bytes())
    data = buffer.getvalue()
    return Bundle(name=f"lab-guard-{hashlib.sha256(data).hexdigest()[:16]}", data=data)

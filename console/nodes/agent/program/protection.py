"""What may end the guard against its will, and what keeps it alive."""

from __future__ import annotations

import ctypes
import glob
import os
import pwd

from .answers import Doc
from .memory import read_text

_LOCK_ON_FAULT = 7  # MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT
_OOM_SCORE = "/proc/self/oom_score_adj"
_LOGIND = (
    "/etc/systemd/logind.conf",
    "/etc/systemd/logind.conf.d/*.conf",
    "/run/systemd/logind.conf.d/*.conf",
)


def protect() -> Doc:
    """Make this process the last to be killed and never swapped out, as far as its user may."""
    protection: Doc = {"memory_locked": False, "oom_score_adj": None}
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        protection["memory_locked"] = libc.mlockall(_LOCK_ON_FAULT) == 0
    except OSError:
        pass
    for score in (-1000, -500, 0):
        if _set_oom_score(score):
            protection["oom_score_adj"] = score
            break
    return protection


def be_ordinary() -> None:
    """Give the guard's protection up: what this process starts (a service) must not inherit it."""
    inherited = read_text(_OOM_SCORE).strip()
    if inherited.startswith("-"):
        _set_oom_score(0)


def _set_oom_score(score: int) -> bool:
    try:
        with open(_OOM_SCORE, "w", encoding="ascii") as file:
            file.write(str(score))
    except OSError:
        return False
    return True


def ending_risk() -> str:
    """Why logind would end the guard when its user logs out; empty when it would not."""
    paths = [path for pattern in _LOGIND for path in sorted(glob.glob(pattern))]
    return logout_risk([read_text(path) for path in paths], _lingers())


def logout_risk(logind_texts: list[str], lingers: bool) -> str:
    """The same from the texts of logind's configuration, later ones counting more."""
    kills = False
    for text in logind_texts:
        for line in text.splitlines():
            name, equals, value = line.partition("=")
            if equals and name.strip() == "KillUserProcesses":
                kills = value.strip().lower() in ("yes", "true", "1", "on")
    if not kills or lingers or os.getuid() == 0:
        return ""
    return "logind ends a user's processes at logout here; run `loginctl enable-linger` on the node"


def _lingers() -> bool:
    try:
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return False
    return os.path.exists(f"/var/lib/systemd/linger/{name}")

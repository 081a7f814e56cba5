"""The venv or container the training runs in, and what is installed there.

Arguments: `kind` ("venv" or "container").
A venv: `path` (none: the interpreter as it is), `create`, `requirements`. It is created once and filled again only when
the requirements change. A container: `image`, named by digest.

`isolated`: what is installed here does not belong to the system. `reproducible`: there is a list of packages with its
sha256, or the image's digest.
"""

import hashlib
import json
import os
import platform
import shutil
import sys
from typing import Any

from console.nodes.probes.kit import Failed, ask_child, answer, bounded, read_text

_INSTALL_SECONDS = 540
_LOOK = """
import importlib.metadata, json, os, platform, sys
freeze = {}
for found in importlib.metadata.distributions():
    name = found.metadata["Name"]
    if not name:
        continue
    line = name + "==" + (found.version or "?")
    try:
        url = json.loads(found.read_text("direct_url.json") or "null")
    except ValueError:
        url = None
    if url:
        commit = (url.get("vcs_info") or {}).get("commit_id")
        line += " @ " + url.get("url", "").split("@")[-1] + ("@" + commit if commit else "")
    freeze.setdefault(name.lower().replace("_", "-"), line)
said = {
    "prefix": sys.prefix,
    "base_prefix": sys.base_prefix,
    "python": platform.python_version(),
    "executable": sys.executable,
    "freeze": [freeze[name] for name in sorted(freeze)],
}
body = json.dumps(said).encode()
stream = os.fdopen(int(sys.argv[1]), "wb")
stream.write(body)
stream.close()
"""


def environment(args: dict[str, Any]) -> dict[str, Any]:
    if args.get("kind", "venv") == "container":
        return _container(str(args.get("image") or ""))
    path = args.get("path")
    if not path:
        return {"kind": "venv", "created": False, **_described(sys.executable)}
    place = os.path.expanduser(str(path))
    created = _prepared(
        place, bool(args.get("create")), [str(part) for part in args.get("requirements") or ()]
    )
    return {"kind": "venv", "path": place, "created": created, **_described(_python_of(place))}


def _described(interpreter: str) -> dict[str, Any]:
    said, ran = ask_child(_LOOK, {}, 60, interpreter=interpreter)
    if said is None:
        raise Failed("environment", f"{interpreter} does not answer: {ran.error}")
    freeze = [str(line) for line in said["freeze"]]
    listing = "\n".join(freeze) + "\n"
    return {
        "isolated": said["prefix"] != said["base_prefix"],
        "reproducible": bool(freeze),
        "prefix": said["prefix"],
        "base_prefix": said["base_prefix"],
        "python": said["python"],
        "interpreter": said["executable"],
        "packages": len(freeze),
        "freeze": freeze,
        "freeze_sha256": hashlib.sha256(listing.encode()).hexdigest(),
    }


def _prepared(place: str, create: bool, requirements: list[str]) -> bool:
    """See that the venv exists with what is required; True when something was made or installed."""
    exists = os.path.isfile(os.path.join(place, "pyvenv.cfg")) and os.path.exists(_python_of(place))
    if not exists and not create:
        raise Failed("missing", f"no venv at {place}, and the profile does not ask for one to be created")
    changed = False
    if not exists:
        _make(place)
        changed = True
    mark = os.path.join(place, ".lab-requirements.json")
    wanted = json.dumps(requirements)
    if create and requirements and read_text(mark) != wanted:
        ran = bounded(
            [
                _python_of(place),
                "-m",
                "pip",
                "install",
                "--disable-pip-version-check",
                "--no-input",
                *requirements,
            ],
            _INSTALL_SECONDS,
        )
        if not ran.ok:
            raise Failed("install", ran.error)
        with open(mark + ".new", "w", encoding="utf-8") as stream:
            stream.write(wanted)
        os.replace(mark + ".new", mark)
        changed = True
    return changed


def _make(place: str) -> None:
    """Create the venv in place, as its scripts hold the path; a half-made one is cleared first."""
    if os.path.isdir(place) and os.listdir(place) and not os.path.exists(os.path.join(place, "pyvenv.cfg")):
        raise Failed("not a venv", f"{place} exists, is not empty and is not a venv")
    os.makedirs(os.path.dirname(place) or "/", exist_ok=True)
    ran = bounded([sys.executable, "-m", "venv", "--clear", place], 180)
    if not ran.ok:
        raise Failed("create", ran.error)


def _python_of(place: str) -> str:
    return os.path.join(place, "bin", "python")


def _container(image: str) -> dict[str, Any]:
    if "@sha256:" not in image:
        raise Failed("bad arguments", f"the image {image!r} is not named by digest")
    if shutil.which("docker") is None:
        raise Failed("missing", "no docker on this machine")
    ran = bounded(["docker", "image", "inspect", image], 30)
    if not ran.ok:
        raise Failed("missing" if "No such image" in ran.err else "docker", ran.error, image=image)
    found = json.loads(ran.out)[0]
    digests = [str(digest) for digest in found.get("RepoDigests") or ()]
    wanted = image.rsplit("@", 1)[1]
    matches = any(digest.endswith(wanted) for digest in digests) or found.get("Id") == wanted
    return {
        "kind": "container",
        "isolated": True,
        "reproducible": matches,
        "image": image,
        "image_digest": wanted if matches else None,
        "image_id": found.get("Id"),
        "repo_digests": digests,
        "image_architecture": found.get("Architecture"),
        "architecture": platform.machine(),
        "image_bytes": found.get("Size"),
    }


if __name__ == "__main__":
    answer(environment)

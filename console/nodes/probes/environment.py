"""The venv or container the training runs in, and what is installed there.

Arguments: `kind` ("venv" or "container"), `python` (the training interpreter; none: the one that runs this).
A venv: `path` (none: the interpreter as it is), `create`, `requirements`. It is created once, by the
interpreter that runs this, and filled again only when the requirements change. A container: `image`, named
by digest.

`isolated`: what is installed here does not belong to the system. `reproducible`: there is a list of packages
with its sha256, or the image's digest. `run_as` is the name under which this node's docker knows the image.
"""

import hashlib
import json
import platform
import shutil
import sys
import uuid
from pathlib import Path
from typing import Any

from console.nodes.probes.kit import Failed, answer, ask_child, bounded, read_text

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
with os.fdopen(int(sys.argv[1]), "wb") as stream:
    stream.write(json.dumps(said).encode())
"""


def environment(args: dict[str, Any]) -> dict[str, Any]:
    if args.get("kind", "venv") == "container":
        return _container(str(args.get("image") or ""), str(args.get("python") or "python3"))
    if not args.get("path"):
        return {"kind": "venv", "created": False, **_venv(str(args.get("python") or sys.executable))}
    place = Path(str(args["path"])).expanduser()
    requirements = [str(part) for part in args.get("requirements") or ()]
    created = _prepared(place, bool(args.get("create")), requirements)
    return {"kind": "venv", "path": str(place), "created": created, **_venv(str(_python_of(place)))}


def _venv(interpreter: str) -> dict[str, Any]:
    said, ran = ask_child(_LOOK, {}, 60, interpreter=interpreter)
    if said is None:
        raise Failed("environment", f"{interpreter} does not answer: {ran.error}")
    return {
        "isolated": said["prefix"] != said["base_prefix"],
        "reproducible": bool(said["freeze"]),
        "prefix": said["prefix"],
        "base_prefix": said["base_prefix"],
        **_packages(said),
    }


def _packages(said: dict[str, Any]) -> dict[str, Any]:
    freeze = [str(line) for line in said["freeze"]]
    return {
        "python": said["python"],
        "interpreter": said["executable"],
        "packages": len(freeze),
        "freeze": freeze,
        "freeze_sha256": hashlib.sha256(("\n".join(freeze) + "\n").encode()).hexdigest(),
    }


def _prepared(place: Path, create: bool, requirements: list[str]) -> bool:
    """See that the venv exists with what is required; True when something was made or installed."""
    exists = (place / "pyvenv.cfg").is_file() and _python_of(place).exists()
    if not exists and not create:
        raise Failed("missing", f"no venv at {place}, and the profile does not ask for one to be created")
    if not exists:
        _make(place)
    mark = place / ".lab-requirements.json"
    wanted = json.dumps(requirements)
    if not create or not requirements or read_text(mark) == wanted:
        return not exists
    install = [str(_python_of(place)), "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    ran = bounded([*install, *requirements], _INSTALL_SECONDS)
    if not ran.ok:
        raise Failed("install", ran.error)
    part = mark.with_suffix(".new")
    part.write_text(wanted, encoding="utf-8")
    part.replace(mark)
    return True


def _make(place: Path) -> None:
    """Create the venv where it stays, as its scripts hold the path. A half-made one is completed."""
    if place.is_dir() and any(place.iterdir()) and not (place / "pyvenv.cfg").exists():
        raise Failed("not a venv", f"{place} exists, is not empty and is not a venv")
    place.parent.mkdir(parents=True, exist_ok=True)
    ran = bounded([sys.executable, "-m", "venv", str(place)], 180)
    if not ran.ok:
        raise Failed("create", ran.error)


def _python_of(place: Path) -> Path:
    return place / "bin" / "python"


def _container(image: str, interpreter: str) -> dict[str, Any]:
    if "@sha256:" not in image:
        raise Failed("bad arguments", f"the image {image!r} is not named by digest")
    if shutil.which("docker") is None:
        raise Failed("missing", "no docker on this machine")
    wanted = image.rsplit("@", 1)[1]
    # An image that was built here, not pulled, has no digest in a registry; its own id stands for one.
    reference = image
    ran = bounded(["docker", "image", "inspect", reference], 30)
    if not ran.ok and "No such image" in ran.err:
        reference = wanted
        by_id = bounded(["docker", "image", "inspect", reference], 30)
        ran = by_id if by_id.ok else ran
    if not ran.ok:
        raise Failed("missing" if "No such image" in ran.err else "docker", ran.error, image=image)
    found = json.loads(ran.out)[0]
    digests = [str(digest) for digest in found.get("RepoDigests") or ()]
    matches = any(digest.endswith(wanted) for digest in digests) or found.get("Id") == wanted
    return {
        "kind": "container",
        "isolated": True,
        "reproducible": matches,
        "image": image,
        "run_as": reference,
        "image_digest": wanted if matches else None,
        "image_id": found.get("Id"),
        "repo_digests": digests,
        "image_architecture": found.get("Architecture"),
        "architecture": platform.machine(),
        "image_bytes": found.get("Size"),
        **_packages_in(reference, interpreter),
    }


def _packages_in(image: str, interpreter: str) -> dict[str, Any]:
    """The list of packages inside the image, from a short-lived container without a network."""
    name = f"lab-probe-{uuid.uuid4().hex[:12]}"
    run = ["docker", "run", "--rm", "--name", name, "--label", "lab-console=probe", "--network", "none"]
    ran = bounded([*run, "--entrypoint", interpreter, image, "-c", _LOOK, "1"], 120)
    if ran.status is None:
        bounded(["docker", "rm", "--force", name], 20)
    try:
        return _packages(json.loads(ran.out))
    except (ValueError, KeyError, TypeError):
        return {"freeze": [], "freeze_sha256": None, "missing": {"freeze": ran.error}}


if __name__ == "__main__":
    answer(environment)

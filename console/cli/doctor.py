"""`lab doctor`: can the lab be reached, are the keys known, what is missing. Changes nothing."""

import asyncio
import json
import tempfile
from pathlib import Path

from console.cli.files import read_lab, unfilled_places
from console.cli.options import AcceptNew, Json, ProfileName
from console.engine.doctoring import Look, examine


def doctor(
    profile: ProfileName,
    accept_new: AcceptNew = False,
    as_json: Json = False,
) -> int:
    """Reach every node and look for what is missing; exit 3 when something is."""
    files = read_lab(profile)
    lab = files.profile
    with tempfile.TemporaryDirectory(prefix="lab-doctor-") as folder:
        looks = asyncio.run(examine(lab, Path(folder), accept_new=accept_new))
    looks = [*(_unfilled(place) for place in unfilled_places(files)), *looks]
    bad = [look for look in looks if not look.good]
    if as_json:
        print(json.dumps({"ok": not bad, "looks": [_plain(look) for look in looks]}, ensure_ascii=False))
        return 3 if bad else 0
    for look in looks:
        words = look.words.replace("\n", "\n" + " " * 8)
        print(f"  {'✓' if look.good else '✗'} {look.node}  {look.name}: {words}")
    known = "nothing was changed on a node; a host key was accepted"
    changed = known if any(look.changed for look in looks) else "nothing was changed"
    print(f"\n{f'{len(bad)} of {len(looks)} checks failed' if bad else 'all there'}; {changed}")
    return 3 if bad else 0


def _unfilled(place: str) -> Look:
    return Look("profile", "not filled in", False, f"{place}\nwrite your own value there, or delete the mark")


def _plain(look: object) -> dict[str, object]:
    return {name: getattr(look, name) for name in ("node", "name", "good", "words", "changed")}

"""A host key seen for the first time: how it is accepted is named, and that it was is told."""

from pathlib import Path

from console.core.plan.profile import Profile, parse_profile
from console.engine.doctoring import examine
from tests.support.hosts import Host

ROOT = Path(__file__).parents[2]


def profile_of(host: Host, known_hosts: Path) -> Profile:
    file = ROOT / "profiles" / "spark-pair.yaml"
    profile = parse_profile(file.read_text(encoding="utf-8"), file=file.name)
    target = host.target
    ssh = {
        "host": target.host,
        "port": target.port,
        "user": target.user,
        "identity_file": str(target.identity_file) if target.identity_file else None,
        "config_files": [],
        "known_hosts": [str(known_hosts)],
    }
    first = profile.nodes[0].model_dump() | {"ssh": ssh}
    matrix = {"configurations": [profile.matrix.configurations[0].model_dump()]}
    return Profile.model_validate(
        profile.model_dump() | {"nodes": [first], "matrix": matrix, "degraded_matrix": None}
    )


async def test_a_new_key_is_told_with_the_way_to_accept_it_and_once_accepted_as_a_change(
    host: Host, tmp_path: Path
) -> None:
    known_hosts = tmp_path / "known" / "hosts"
    profile = profile_of(host, known_hosts)
    (refused,) = await examine(profile, tmp_path)
    assert not refused.good
    assert not refused.changed
    assert "--accept-new" in refused.words
    assert not known_hosts.exists()
    accepted = await examine(profile, tmp_path, accept_new=True)
    assert [look.name for look in accepted if look.changed] == ["host key"]
    assert str(known_hosts) in accepted[0].words
    assert known_hosts.exists()
    assert not any(look.changed for look in await examine(profile, tmp_path, accept_new=True))

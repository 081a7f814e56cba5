"""What the lab notes of a service goes into the journal, so no key of the service may be in it."""

from collections.abc import Callable
from pathlib import Path

from support.docker_engine import Standin
from support.local_node import LocalNode
from support.window import FAST, start_by_hand

from console.core.plan.service import CommandService, SystemdService
from console.nodes.service import inspect

SECRET = "sesame-77"
SYSTEMCTL = f"""#!/bin/sh
cat <<END
LoadState=loaded
ActiveState=inactive
SubState=dead
ExecStart={{ path=/usr/bin/docker ; argv[]=docker run -e VLLM_API_KEY={SECRET} vllm --api-key {SECRET} ; }}
END
"""


def tool(path: Path, script: str) -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_text(script)
    path.chmod(0o755)
    return str(path)


async def test_a_key_in_the_command_of_a_unit(node: LocalNode, tmp_path: Path) -> None:
    systemctl = tool(tmp_path / "systemctl", SYSTEMCTL)
    told = {"kind": "systemd", "name": "vllm", "unit": "vllm", "systemctl": [systemctl]}
    record = await inspect(node, SystemdService.model_validate(told | FAST), answers=False)
    assert SECRET not in record.model_dump_json()
    assert "docker run -e VLLM_API_KEY=••• vllm --api-key •••" in record.inspect["ExecStart"]


async def test_a_key_in_a_shell_command_and_in_the_cron_entry_of_its_keepalive(
    standin: Standin, node: LocalNode, command_spec: Callable[..., CommandService], tmp_path: Path
) -> None:
    entry = f"* * * * * pgrep -f {standin.name} || API_KEY={SECRET} start --api-key {SECRET} {standin.name}"
    crontab = Path(tool(tmp_path / "tools" / "crontab", f"#!/bin/sh\necho '{entry}'\n"))
    node.environment["PATH"] = f"{crontab.parent}:/usr/local/bin:/usr/bin:/bin"
    served = " ".join(standin.process_argv())
    record = await start_by_hand(node, command_spec(start=("sh", "-c", f"{served}; : --api-key {SECRET}")))
    assert record.owner.kind == "keepalive"
    assert any(who.command.endswith("--api-key •••") for who in record.processes)
    assert SECRET not in record.model_dump_json()

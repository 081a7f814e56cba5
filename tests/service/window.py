"""Steps that the service tests share."""

import urllib.error
import urllib.request

from support.docker_engine import Standin
from support.waiting import until

from console.core.plan.custody import GuardSpec, GuardStatus
from console.core.plan.service import BorrowedService
from console.nodes.agent import Runner, start_guard

EXPERIMENT = "window"


def healthy(standin: Standin) -> bool:
    try:
        with urllib.request.urlopen(f"{standin.url}/health", timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


async def ready(standin: Standin) -> None:
    await until(lambda: healthy(standin), f"{standin.name} is ready", seconds=30)


async def guard_for(
    node: Runner, spec: BorrowedService, *, lease_seconds: float = 120, holder: str = "tests"
) -> GuardStatus:
    guard = GuardSpec(
        experiment=EXPERIMENT, holder=holder, lease_seconds=lease_seconds, job_grace_seconds=1.0
    )
    return await start_guard(node, guard, spec)

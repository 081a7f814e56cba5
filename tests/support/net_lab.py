"""A lab whose nodes are real sshds on loopback, each with a home folder of its own."""

import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import yaml

from console.cli.files import read_checklist, shipped
from console.core.record import events as ev
from console.engine.crew import Crew, assembled
from console.engine.opening import LabFiles, open_recorder
from console.engine.recorder import Recorder, utc_now
from support.hosts import SshdHost
from support.processes import end_processes_of


@dataclass(frozen=True)
class NetLab:
    """The nodes, connected, and the journal's recorder."""

    hosts: Sequence[SshdHost]
    recorder: Recorder
    crew: Crew

    def plan_run(self, run: str, config: str) -> None:
        """A run over all nodes; the last one logs, as in Megatron mode."""
        names = list(self.crew)
        self.recorder.record(
            ev.RunPlanned(
                at=self.recorder.now(),
                run=run,
                config=config,
                attempt=1,
                purpose="matrix",
                launches=tuple(
                    ev.NodeLaunch(node=name, rank=rank, argv=(), env={}) for rank, name in enumerate(names)
                ),
                log_node=names[-1],
                settings={},
            )
        )


@asynccontextmanager
async def net_lab(
    folder: Path, count: int, *, now: Callable[[], datetime] = utc_now
) -> AsyncIterator[NetLab]:
    """So many nodes under `folder`, the experiment in `folder`/experiment; `now` stamps its events."""
    async with AsyncExitStack() as stack:
        stack.callback(end_processes_of, folder)
        hosts = [SshdHost(f"node-{number:02d}", folder / f"host-{number:02d}") for number in range(count)]
        for host in hosts:
            host.root.mkdir()
            await host.start()
            stack.push_async_callback(host.stop)
        experiment = folder / "experiment"
        files = LabFiles(profile_of(hosts), "net.yaml", read_checklist("smoke"))
        recorder = open_recorder(experiment, files, now=now)
        stack.callback(recorder.journal.close)
        crew = await stack.enter_async_context(
            assembled(recorder.experiment.profile, experiment, recorder=recorder)
        )
        yield NetLab(hosts, recorder, crew)


def profile_of(hosts: Sequence[SshdHost]) -> str:
    """The embedded lab's profile, on these hosts."""
    profile = yaml.safe_load((shipped("profiles") / "embedded.yaml").read_text(encoding="utf-8"))
    profile["embedded"] = False
    profile["shared"] = "{home}/shared"
    profile["nodes"] = [
        {
            "name": host.name,
            "address": host.address,
            "python": sys.executable,
            "ssh": {
                "host": host.address,
                "port": host.port,
                "user": host.target.user,
                "identity_file": str(host.target.identity_file),
                "config_files": [],
                "known_hosts": [str(file) for file in host.target.known_hosts],
            },
        }
        for host in hosts
    ]
    return str(yaml.safe_dump(profile, sort_keys=False))

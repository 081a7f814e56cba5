"""Process trees as training makes them: a program, its torchrun, and workers in sessions of their own."""

import sys
from pathlib import Path

_SWIFT = """
import subprocess, sys
sys.exit(subprocess.run([sys.executable, sys.argv[1], *sys.argv[2:]]).returncode)
"""
_TORCHRUN = """
import signal, subprocess, sys, time
manner = sys.argv[1]
deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);" if manner == "deaf" else ""
code = deaf + "import os, time; print('worker', os.getpid(), flush=True); time.sleep(600)"
workers = [subprocess.Popen([sys.executable, "-c", code], start_new_session=True) for _ in range(2)]
def end(number, _):
    print("torchrun got signal", number, flush=True)
    if manner == "polite":
        for worker in workers:
            worker.terminate()
            worker.wait()
        sys.exit(1)
    if manner == "orphaning":
        sys.exit(1)
signal.signal(signal.SIGTERM, end)
print("up", flush=True)
while True:
    time.sleep(1)
"""


def training_argv(folder: Path, manner: str) -> tuple[str, ...]:
    """argv of a stand-in for `swift sft`.

    On TERM its torchrun ends the workers ("polite"), leaves them behind ("orphaning"), or does nothing and
    neither do they ("deaf").
    """
    swift, torchrun = folder / "swift", folder / "torchrun"
    swift.write_text(_SWIFT)
    torchrun.write_text(_TORCHRUN)
    return sys.executable, str(swift), str(torchrun), manner

"""`lab ledger`: the sums before anything is launched.

Every command answers as text or, with --json, as one JSON object. Bad input is one line on stderr (what,
why, nearest valid) and exit 2.
"""

import typer

from console.cli.ledger_cut import choose_command, topology_command
from console.cli.ledger_memory import memory_command
from console.cli.ledger_rates import cost_command, flops_command, mfu_command
from console.cli.ledger_time import time_command
from console.cli.telling import told

app = typer.Typer(
    help="Memory, compute, time and cost on paper.", no_args_is_help=True, pretty_exceptions_enable=False
)

app.command("memory")(told(memory_command))
app.command("flops")(told(flops_command))
app.command("time")(told(time_command))
app.command("mfu")(told(mfu_command))
app.command("cost")(told(cost_command))
app.command("topology")(told(topology_command))
app.command("choose")(told(choose_command))

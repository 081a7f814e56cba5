"""The watching functions by the names that the rule file uses."""

from collections.abc import Mapping

from console.core.reading import losses, machines, silence
from console.core.reading.seen import Watcher

WATCHERS: Mapping[str, Watcher] = {
    function.__name__: function
    for function in (
        losses.nan_filtered,
        losses.nan_loss,
        losses.loss_explodes,
        losses.loss_spike,
        losses.loss_flat,
        losses.validation_rises,
        losses.slower_than_predicted,
        losses.memory_climbs,
        silence.rendezvous_silent,
        silence.same_rank,
        silence.waiting_for_data,
        silence.startup_hang,
        silence.stall,
        silence.log_node_unread,
        silence.peer_ended,
        silence.no_contact,
        machines.sockets_used,
        machines.rail_missing,
        machines.slow_rank,
        machines.trains_alone,
        machines.exception,
    )
}

"""Changes of the cluster during the demo: the Streams application grows, the plug-in comes, a broker changes its rack.

The application is scaled out as soon as its standbys are close, so that its warm-ups are seen to catch up. The broker
is relabelled once a rebalance was proposed for them, or so late that what follows of it is still planned for.
Invariant: after `join` nothing here touches the cluster any more.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from agent.errors import RackwiseError
from testbed.cluster import EmbeddedCluster
from testbed.demo.console import ConsoleLine, DemoConsole
from testbed.demo.plugin_scene import PluginScene
from testbed.demo.workload import ClusterWorkload

APPLICATION = "shop"
_LOOK_EVERY_S = 0.5


class ScriptTimes(NamedTuple):
    """Seconds after the first cycle."""

    scale_out_latest: float
    relabel_earliest: float
    relabel_latest: float


def times(seconds: int) -> ScriptTimes:
    """When things happen in a demo of that many seconds."""
    return ScriptTimes(
        scale_out_latest=min(30.0, 0.25 * seconds), relabel_earliest=0.3 * seconds, relabel_latest=0.6 * seconds
    )


class ScriptContext(NamedTuple):
    """The cluster and workload to change, and the console."""

    cluster: EmbeddedCluster
    work: ClusterWorkload
    screen: DemoConsole
    plugin: PluginScene | None = None
    """None without the plug-in."""


class DemoScript:
    """A thread that changes the cluster. What goes wrong is printed and does not end the demo."""

    def __init__(self, context: ScriptContext, at: ScriptTimes, promotion_proposed: threading.Event) -> None:
        self._cluster, self._work, self._screen, self._plugin = context
        self._at = at
        self._promotion_proposed = promotion_proposed
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="demo-script", daemon=True)
        self._zero = 0.0

    def start(self) -> None:
        """Begin: the first cycle is over."""
        self._zero = time.monotonic()
        self._thread.start()

    def join(self) -> None:
        """Change nothing more; a change that is under way is waited for."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            if self._wait(lambda: not self._work.unsettled(), 0.0, self._at.scale_out_latest):
                self._scale_out()
            self._bring_plugin()
            if self._wait(self._promotion_proposed.is_set, self._at.relabel_earliest, self._at.relabel_latest):
                self._relabel()
        except RackwiseError as error:
            self._screen.tell(ConsoleLine("problem", str(error)))

    def _wait(self, true: Callable[[], bool], earliest: float, latest: float) -> bool:
        """Until it is true, but neither before the one time nor after the other; False when the demo ends meanwhile."""
        while not self._ended.is_set():
            elapsed = time.monotonic() - self._zero
            if elapsed >= latest or (elapsed >= earliest and true()):
                return True
            self._ended.wait(_LOOK_EVERY_S)
        return False

    def _scale_out(self) -> None:
        rack = _rack_without_instance(self._work)
        where = f"in rack {rack}" if rack is not None else "without a rack"
        self._screen.tell(
            ConsoleLine("scene", f"scaling {APPLICATION} out: one more instance {where}, with empty stores")
        )
        self._work.scale_out(APPLICATION, rack)

    def _bring_plugin(self) -> None:
        """The scene of the plug-in, until a look has what it brought, or the broker is to change its rack."""
        if self._plugin is not None and self._wait(self._plugin.is_ready, 0.0, self._at.relabel_earliest):
            self._plugin.begin()
            self._wait(self._plugin.is_over, 0.0, self._at.relabel_latest)

    def _relabel(self) -> None:
        broker = self._cluster.brokers[-1]
        new = next(rack for rack in self._work.facts.rack_names if rack != broker.rack)
        self._screen.tell(
            ConsoleLine("scene", f"restarting broker {broker.id} with broker.rack {new} instead of {broker.rack}")
        )
        broker.restart(new, wait=False)


def _rack_without_instance(work: ClusterWorkload) -> str | None:
    app = next(app for app in work.plan.streams if app.application == APPLICATION)
    names = work.facts.rack_names
    return next((rack for rack in names if rack not in app.racks), names[0] if names else None)

"""`rackwise cluster …`: brokers on this machine that stay after the command has returned.

Invariant: what another process left behind is cleared by `--clear` alone; no command asks about clusters that it was
not given.
Heavy imports wait until a command runs.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.cli.options import add_examples
from agent.cli.output import OutputFormat, chosen, emit, emit_line, say
from agent.values.number_format import counted
from testbed import cluster as local
from testbed.cluster.spec import ConnectionFaultKind

if TYPE_CHECKING:
    from agent.documents.cluster import LocalCluster

DEFAULT_NAME = "default"
COLUMNS = ("name", "state", "version", "racks", "brokers", "bootstrap_servers", "memory_mib", "why")
_MEMORY = "memory_mib"
_NO_RACK = "-"
_FOLLOW_PAUSE_S = 0.3

EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "cluster up": ("rackwise cluster up", "rackwise cluster up --name wide --racks a,a,b,b,c,c --version 4.3.1"),
    "cluster down": ("rackwise cluster down", "rackwise cluster down --all --clear"),
    "cluster status": ("rackwise cluster status", "rackwise cluster status -o json"),
    "cluster logs": ("rackwise cluster logs --broker 1 --follow",),
    "cluster broker": ("rackwise cluster broker 1 stop", "rackwise cluster broker 1 start --rack b"),
    "cluster fault": ("rackwise cluster fault delay 1 --delay-ms 2000", "rackwise cluster fault pass"),
    "cluster tools": ("rackwise cluster tools", "rackwise cluster tools --version 4.3.1"),
}
SHORT: Mapping[str, str] = {
    "cluster up": "Start a cluster that keeps running.",
    "cluster down": "End a cluster at once and remove its data.",
    "cluster status": "Clusters on this machine, and their leftovers.",
    "cluster logs": "Print the brokers' own logs.",
    "cluster broker": "Stop, kill, freeze, thaw, start or restart a broker.",
    "cluster fault": "Harm what goes through the recording proxy.",
    "cluster tools": "Kafka's own tools as scripts, and their folder.",
}

cluster_app = typer.Typer(
    name="cluster", help="Kafka brokers on this machine, one per rack.", no_args_is_help=True, add_completion=False
)

Name = Annotated[str, typer.Option("--name", "-n", metavar="NAME", help="Name of the cluster.")]
Clear = Annotated[bool, typer.Option("--clear", help="Remove what interrupted clusters left behind, without asking.")]
Output = Annotated[OutputFormat | None, typer.Option("--output", "-o", help="Form of the answer.")]


class BrokerAction(StrEnum):
    """What can be done to one broker."""

    STOP = "stop"
    KILL = "kill"
    FREEZE = "freeze"
    THAW = "thaw"
    START = "start"
    RESTART = "restart"


@cluster_app.command()
def up(
    *,
    name: Name = DEFAULT_NAME,
    version: Annotated[str | None, typer.Option(metavar="VERSION", help="Kafka version.")] = None,
    racks: Annotated[
        str, typer.Option(metavar="RACK,...", help="One broker per rack; '-' is a broker without a rack.")
    ] = "a,b,c",
    jmx: Annotated[bool, typer.Option("--jmx", help="Serve each broker's byte counters over HTTP.")] = False,
    proxied: Annotated[bool, typer.Option("--proxied", help="Put a recording proxy before each broker.")] = False,
    clear: Clear = False,
    output: Output = None,
) -> None:
    """Start a cluster that keeps running; rackwise cluster down ends it."""
    spec = local.ClusterSpec(
        version=version or local.DEFAULT_VERSION,
        racks=tuple(None if rack == _NO_RACK else rack for rack in racks.split(",")),
        jmx=jmx,
        proxied=proxied,
    )
    _clear(_reported_left_behind(local.find_clusters()), clear=clear)
    found = local.find_cluster(name)
    if found is not None and found.state is local.ClusterState.RUNNING and found.manifest is not None:
        say(f"cluster {name} runs already" + ("" if found.manifest.spec == spec else ", with other settings"))
    else:
        local.EmbeddedCluster.start(spec, name=name, detached=True, on_progress=say)
        found = local.find_cluster(name)
    _emit((found,) if found else (), output)


@cluster_app.command()
def down(
    *,
    name: Name = DEFAULT_NAME,
    everything: Annotated[bool, typer.Option("--all", help="All clusters that no running process owns.")] = False,
    clear: Clear = False,
) -> None:
    """End a cluster at once and remove its data."""
    named = local.find_cluster(name)
    free = (one for one in local.find_clusters() if not one.held)
    targets = tuple(free) if everything else (named,) if named else ()
    for one in targets:
        local.clear_cluster(one.directory)
        say(f"cluster {one.name} is removed")
    if not targets:
        say("there is no cluster" if everything else f"there is no cluster named {name}")
    _clear(_reported_left_behind(local.find_clusters()), clear=clear)


@cluster_app.command()
def status(
    *,
    name: Annotated[str | None, typer.Option("--name", "-n", metavar="NAME", help="Only this cluster.")] = None,
    clear: Clear = False,
    output: Output = None,
) -> None:
    """Show the clusters on this machine, and those that were left behind."""
    found = local.find_clusters() if name is None else tuple(filter(None, [local.find_cluster(name)]))
    _emit(found, output, "there is no cluster on this machine" if name is None else f"there is no cluster named {name}")
    _clear(_left_behind(found), clear=clear, name=name)


@cluster_app.command()
def logs(
    *,
    name: Name = DEFAULT_NAME,
    broker: Annotated[
        list[int] | None, typer.Option("--broker", metavar="ID", help="Only this broker; repeatable.")
    ] = None,
    lines: Annotated[int, typer.Option("--lines", min=0, metavar="N", help="How many of the last lines of each.")] = 20,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow the log until Ctrl-C.")] = False,
) -> None:
    """Print the brokers' own logs."""
    cluster = local.EmbeddedCluster.open(name)
    chosen = [cluster.broker(broker_id) for broker_id in broker] if broker else cluster.brokers
    places = {one.log_path: _print_tail(one.id, one.log_path, lines) for one in chosen}
    try:
        while follow and cluster.directory.is_dir():
            for one in chosen:
                places[one.log_path] = _print_from(one.id, one.log_path, places[one.log_path])
            time.sleep(_FOLLOW_PAUSE_S)
    except KeyboardInterrupt:
        return


@cluster_app.command()
def broker(
    broker_id: Annotated[int, typer.Argument(metavar="ID", help="Broker id.")],
    action: Annotated[BrokerAction, typer.Argument(help="Action on the broker.")],
    *,
    rack: Annotated[
        str | None,
        typer.Option(metavar="RACK", help="For start and restart: the broker's new rack; '-' removes broker.rack."),
    ] = None,
    name: Name = DEFAULT_NAME,
) -> None:
    """Stop, kill, freeze, thaw, start or restart one broker."""
    if rack is not None and action not in (BrokerAction.START, BrokerAction.RESTART):
        raise typer.BadParameter("only start and restart can change a broker's rack", param_hint="--rack")
    one = local.EmbeddedCluster.open(name).broker(broker_id)
    wanted = local.KEEP if rack is None else None if rack == _NO_RACK else rack
    match action:
        case BrokerAction.STOP:
            one.stop()
        case BrokerAction.KILL:
            one.kill()
        case BrokerAction.FREEZE:
            one.freeze()
        case BrokerAction.THAW:
            one.thaw()
        case BrokerAction.START:
            one.start(wanted)
        case BrokerAction.RESTART:
            one.restart(wanted)
    say(f"broker {one.id} {'runs in rack ' + (one.rack or 'none') if one.alive else 'is down'}")


@cluster_app.command()
def fault(
    kind: Annotated[ConnectionFaultKind, typer.Argument(help="What happens to connections through the proxy.")],
    broker_id: Annotated[int | None, typer.Argument(metavar="[ID]", help="Broker id; default: all.")] = None,
    *,
    delay_ms: Annotated[
        int,
        typer.Option(
            "--delay-ms", min=0, metavar="MS", help="For delay: milliseconds by which each request is delayed."
        ),
    ] = 500,
    name: Name = DEFAULT_NAME,
) -> None:
    """Harm what goes through the recording proxy; pass lifts it."""
    cluster = local.EmbeddedCluster.open(name)
    cluster.inject(local.ConnectionFault(kind, delay_ms), broker_id)
    say(f"{'all brokers' if broker_id is None else f'broker {broker_id}'}: {kind.value}")


@cluster_app.command()
def tools(*, version: Annotated[str | None, typer.Option(metavar="VERSION", help="Kafka version.")] = None) -> None:
    """Write Kafka's own tools as scripts, and print the folder to put into PATH."""
    emit_line(str(local.kafka_tools(version or local.DEFAULT_VERSION, say)))


def _left_behind(found: Sequence[local.FoundCluster]) -> list[local.FoundCluster]:
    return [one for one in found if one.state is local.ClusterState.LEFT_BEHIND]


def _reported_left_behind(found: Sequence[local.FoundCluster]) -> list[local.FoundCluster]:
    """The same, each with why on a line: for commands whose answer does not list them."""
    left = _left_behind(found)
    for one in left:
        brokers = len(one.alive_brokers)
        say(f"cluster {one.name} was left behind, with {counted(brokers, 'broker')} still running: {one.why}")
    return left


def _clear(left: Sequence[local.FoundCluster], *, clear: bool, name: str | None = None) -> None:
    if clear:
        for one in left:
            local.clear_cluster(one.directory)
            say(f"cluster {one.name} is removed")
    elif left:
        only = "" if name is None else f"--name {shlex.quote(name)} "
        say(f"remove {'it' if len(left) == 1 else 'them'} with: rackwise cluster status {only}--clear")


def _emit(found: Sequence[local.FoundCluster], output: OutputFormat | None, empty: str = "nothing to show") -> None:
    form = chosen(output)
    rows = [_row(one) for one in found]
    shown = [_shown(row) for row in rows] if form in {OutputFormat.TABLE, OutputFormat.CSV} else rows
    columns = (
        COLUMNS if form is not OutputFormat.TABLE else tuple("memory" if name == _MEMORY else name for name in COLUMNS)
    )
    emit(shown, columns, form, empty=empty)


def _row(found: local.FoundCluster) -> LocalCluster:
    manifest = found.manifest
    row: LocalCluster = {
        "name": found.name,
        "state": found.state.value,
        "why": found.why,
        "directory": str(found.directory),
        "version": None,
        "brokers_running": None,
        "brokers": None,
        "bootstrap_servers": None,
        "memory_mib": None,
        "proxied_bootstrap_servers": None,
        "cluster_id": None,
    }
    if manifest is not None:
        row["version"] = manifest.spec.version
        row["brokers_running"] = len(found.alive_brokers)
        row["brokers"] = [
            {
                "id": one.node.id,
                "rack": one.node.rack,
                "pid": one.process.pid if one.process and one.process.alive else None,
                "jmx_port": one.node.jmx_port,
            }
            for one in manifest.members
        ]
        row["bootstrap_servers"] = manifest.bootstrap_servers
        row["memory_mib"] = sum(one.process.memory_mib for one in manifest.members if one.process)
        row["proxied_bootstrap_servers"] = manifest.proxied_bootstrap_servers
        row["cluster_id"] = manifest.cluster_id
    return row


def _shown(row: LocalCluster) -> dict[str, Any]:
    """The same for a table: brokers by their racks, and how many of them run."""
    brokers, memory = row["brokers"], row["memory_mib"]
    cells = {**row, "memory": None if memory is None else f"{memory:,} MiB"}
    if brokers is None:
        return {**cells, "racks": None}
    racks = ",".join(one["rack"] or _NO_RACK for one in brokers)
    return {**cells, "racks": racks, "brokers": f"{row['brokers_running']}/{len(brokers)}"}


def _print_tail(broker_id: int, path: Path, lines: int) -> int:
    """Print the last lines; how far the file was read."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return 0
    _print_lines(broker_id, text.decode("utf-8", "replace").splitlines()[-lines:] if lines else ())
    return len(text)


def _print_from(broker_id: int, path: Path, start: int) -> int:
    """Print what was added since; how far the file was read. A log that was rolled over begins anew."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(start if start <= size else 0)
            added = file.read()
    except FileNotFoundError:
        return 0
    whole = added[: added.rfind(b"\n") + 1]
    _print_lines(broker_id, whole.decode("utf-8", "replace").splitlines())
    return (start if start <= size else 0) + len(whole)


def _print_lines(broker_id: int, lines: Sequence[str]) -> None:
    for line in lines:
        emit_line(f"{broker_id} | {line.expandtabs()}")


add_examples(cluster_app, EXAMPLES, SHORT, "cluster ")

"""Proposals to end the wait of warm-ups (KIP-441).

The application would promote them itself, but only at its next probing rebalance, by default up to ten minutes later.
Where they have caught up, what follows is certain: a task moves to the process that has warmed up its state, nothing is
restored, and freed places for warm-ups are filled with the next tasks. Where only a rebalance can tell, the proposal
says so: it moves what has caught up, and tells how far the rest is.
"""

from __future__ import annotations

from agent.detect.assess_tasks import reads_of_tasks
from agent.detect.tally import Reads
from agent.propose.forecast import Work, forecast
from agent.propose.scene import Draft, Scene
from agent.values.finding import Evidence, Subject
from agent.values.plan import TriggerPlan
from agent.values.proposal import Move, ProposalKind, Row
from agent.values.snapshot import Role, StreamsGroup, StreamsProcess, TaskCopy
from agent.values.words import counted, records
from assignors.problem import TaskId


def promotion(plan: TriggerPlan, group: StreamsGroup, work: Work, scene: Scene) -> Draft:
    """The proposal to rebalance once so that these warm-ups take over."""
    runs = {task: process.id for process in group.processes for task in process.active}
    racks = {process.id: process.rack.name or process.rack.state.value for process in group.processes}
    before: list[Row] = []
    after: list[Row] = []
    for process_id, task in plan.promotable:
        if task in runs:
            before.append(Row(f"{runs[task]} {task} active", (racks.get(runs[task], "unknown"),)))
        before.append(Row(f"{process_id} {task} warm-up", (racks.get(process_id, "unknown"),)))
        after.append(Row(f"{process_id} {task} active", (racks.get(process_id, "unknown"),)))
    return Draft(
        kind=ProposalKind.TRIGGER,
        reason=plan.reason,
        subject=Subject("group", group.id),
        sentence=_sentence(plan, group, scene),
        before=tuple(before),
        after=tuple(after),
        moves=tuple(Move("task", str(task), runs.get(task), process_id, 0) for process_id, task in plan.promotable),
        predicted=forecast(
            work, _reads_after(plan, group, work), moves=len(plan.promotable), bytes_to_move=0, scene=scene
        ),
        evidence=_evidence(plan, group, scene),
        findings=plan.findings,
    )


def _sentence(plan: TriggerPlan, group: StreamsGroup, scene: Scene) -> str:
    waiting, verb = counted(len(plan.promotable), "warm-up"), "has" if len(plan.promotable) == 1 else "have"
    if not plan.promotable:
        return (
            f"Rebalance {group.id} once: standbys fall further behind, and the group leader may assign them to other "
            "processes"
        )
    ready = {(copy.process_id, copy.task) for copy in scene.snapshot.copies.get(group.id, ()) if copy.caught_up is True}
    if ready.issuperset(plan.promotable):
        return (
            f"Rebalance {group.id} once: {waiting} {verb} caught up and can take over now instead of at the "
            f"application's next probing rebalance"
        )
    return (
        f"Rebalance {group.id} once: {waiting} may have caught up, which is unknown until a rebalance; those that "
        f"have take over, and the others report their lag"
    )


def _reads_after(plan: TriggerPlan, group: StreamsGroup, work: Work) -> Reads:
    if group.topology is None:
        return ()
    goes: dict[TaskId, str] = {}
    for process_id, task in plan.promotable:
        goes.setdefault(task, process_id)

    def active(process: StreamsProcess) -> list[TaskId]:
        kept = [task for task in process.active if task not in goes]
        return kept + [task for task, target in goes.items() if target == process.id]

    readers = [work.ground.bits.reader(process.rack) for process in group.processes]
    return reads_of_tasks(group.topology, readers, [active(process) for process in group.processes])


def _evidence(plan: TriggerPlan, group: StreamsGroup, scene: Scene) -> Evidence:
    settings = scene.limits.group(group.id)
    wanted = set(plan.promotable)
    copies = [
        copy
        for copy in scene.snapshot.copies.get(group.id, ())
        if copy.role is Role.WARMUP and (copy.process_id, copy.task) in wanted
    ]
    return (
        ("tasks", tuple(f"{task} on {process_id}" for process_id, task in plan.promotable)),
        ("lags", tuple(_lag(copy) for copy in copies)),
        ("acceptable_recovery_lag", settings.acceptable_recovery_lag),
        ("acceptable_recovery_lag_is", "set for this application" if settings.known else "Kafka's default, assumed"),
        ("next_probing_rebalance_ms", group.next_rebalance_ms),
    )


def _lag(copy: TaskCopy) -> str:
    lag = "lag unknown" if copy.lag is None else f"{records(copy.lag)} behind"
    source = copy.lag_source.value if copy.lag_source is not None else "unknown source"
    return f"{copy.task} on {copy.process_id}: {lag} ({source})"

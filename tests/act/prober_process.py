"""A process that triggers one group and stops at a step, so that a test can kill it there.

    python -m tests.act.prober_process BOOTSTRAP GROUP STEP WAY

Prints each step; at STEP it waits for the end. On SIGTERM it ends as the agent does: by an exception, in order.
"""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path as FilePath

from agent.act.trigger import RebalanceTrigger
from agent.journal.triggers import TriggerPath, path_learned
from agent.values.clock import system_clock
from agent.values.limits import ExecuteLimits, Limits, TriggerLimits, TriState
from tests.act.triggers import MemoryJournal, a_proposal, admin_client_of
from tests.watching_agent import WatchingAgent, settings_for

_FOREVER_S = 600


def main() -> int:
    bootstrap, group, step, way = sys.argv[1:]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with WatchingAgent(settings_for(bootstrap)) as eye, admin_client_of(bootstrap) as admin_client:
        snapshot = eye.look().snapshot
        journal = MemoryJournal()
        line = admin_client.group_line(group, 10_000)
        journal.append(path_learned(line.fingerprint, TriggerPath[way], 0))
        line.close()

        def on_step(name: str) -> None:
            print(name, flush=True)
            if name == step:
                time.sleep(_FOREVER_S)

        limits = Limits(
            trigger=TriggerLimits(transactional=TriState.NO), execute=ExecuteLimits(intent_valid_ms=1_000_000)
        )
        outcome = RebalanceTrigger(admin_client, journal, system_clock, limits, on_step=on_step).carry_out(
            a_proposal(group), snapshot
        )
        print(f"outcome {outcome.sentence}", flush=True)
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(FilePath(__file__).resolve().parents[2]))
    sys.exit(main())

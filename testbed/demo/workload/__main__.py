"""The demo's workload against a cluster until SIGTERM or Ctrl-C: `python -m testbed.demo.workload`."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from dataclasses import replace

from pipeline.maven import ToolError
from testbed.cluster.errors import ClusterError
from testbed.cluster.spec import DEFAULT_VERSION
from testbed.demo.workload.errors import WorkloadError
from testbed.demo.workload.facts import ClusterFacts
from testbed.demo.workload.java_classes import compiled
from testbed.demo.workload.plan import WorkloadPlan
from testbed.demo.workload.scenes import demo_plan, parts_plan, small_plan
from testbed.demo.workload.workload import ClusterWorkload

_SCENES = {"demo": demo_plan, "parts": parts_plan, "small": small_plan}


def main(arguments: list[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT; 0 after a signal, 1 when it could not start, 2 for a wrong argument."""
    options = _options(arguments)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    try:
        if options.compile_only:
            compiled(options.version, _say)
        else:
            _run(options)
    except KeyboardInterrupt:
        _say("ended")
    except (WorkloadError, ClusterError, ToolError) as failed:
        _say(str(failed))
        return 1
    return 0


def _end(_number: int, _frame: object) -> None:
    # Once: a second signal must not interrupt the members' leaving.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _run(options: argparse.Namespace) -> None:
    settings = dict(pair.split("=", 1) for pair in options.set)

    def plan(facts: ClusterFacts) -> WorkloadPlan:
        scene: WorkloadPlan = _SCENES[options.scene](facts)
        streams = tuple(replace(app, settings={**app.settings, **settings}) for app in scene.streams)
        return replace(scene, streams=streams)

    with ClusterWorkload.start(options.bootstrap_servers, options.version, plan, on_progress=_say) as workload:
        workload.wait_ready(options.ready_within_s)
        _say("the workload runs")
        for app in workload.plan.streams:
            _say(f"lags of {app.application}: {workload.lags_url(app.application)}")
        threading.Event().wait()


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m testbed.demo.workload", description=__doc__)
    parser.add_argument("--bootstrap-servers", default="127.0.0.1:9092", metavar="HOST:PORT,…")
    version = os.environ.get("KAFKA_VERSION", DEFAULT_VERSION)
    parser.add_argument("--version", default=version, help="Kafka version of the Java clients; else $KAFKA_VERSION")
    parser.add_argument("--scene", choices=sorted(_SCENES), default="demo")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", type=_pair,
                        help="a setting of every Streams instance; may be repeated")  # fmt: skip
    parser.add_argument("--ready-within-s", type=float, default=180.0)
    parser.add_argument("--compile-only", action="store_true", help="fill the cache and end")
    return parser.parse_args(arguments)


def _pair(text: str) -> str:
    name, equals, _value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return text


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

"""``rackwise spark fleet``: plans for many clusters and all their groups in one job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.errors import BadInput
from agent.values.number_format import counted
from pipeline import options
from pipeline.options import say

if TYPE_CHECKING:
    from config.settings import Settings
    from pipeline.tables import TableStore


def fleet(
    spark: options.SparkOptions,
    kafka: options.KafkaOptions,
    cluster: Annotated[str | None, typer.Option(metavar="ID", help="Cluster id; all clusters when not given.")] = None,
    also: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH", help="Root of other clusters' tables, in the same format, to read looks from; repeatable."
        ),
    ] = None,
    days: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="Days of telemetry to read in each root, the newest ones that have any."),
    ] = 2,
    publish: Annotated[
        bool, typer.Option("--publish", help="Publish the proposals to the topic of the connected cluster.")
    ] = False,
    publish_to: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CLUSTER=FILE",
            help="Publish to the topic of that cluster, with the settings in that file; repeatable.",
        ),
    ] = None,
) -> None:
    """Plan every group of every cluster exactly, from the newest whole looks, into the table fleet.plans."""
    targets = dict(map(_target, publish_to or ()))
    loaded = options.settings(spark, kafka)
    elsewhere = {name: options.settings(options.SparkOptions(config=[path])).settings for name, path in targets.items()}
    with options.job("fleet", loaded, also=also or ()) as job:
        from pipeline.clusters import check_clusters
        from pipeline.jobs.fleet import plan_looks, run_id
        from pipeline.tables import TableStore

        run = run_id()
        others = [TableStore(job.spark, root, job.tables.format) for root in also or ()]
        check_clusters((job.tables, *others), [cluster] if cluster else [])
        done = plan_looks(job.tables, run=run, cluster=cluster, others=others, days=days)
        for line in done.messages:
            say(line)
        options.answer(f"{done.sentence} (run {run})")
        if publish:
            _publish(job.tables, run, job.settings, None)
        for name, settings in elsewhere.items():
            _publish(job.tables, run, settings, name)


def _publish(tables: TableStore, run: str, settings: Settings, cluster: str | None) -> None:
    """Publish the proposals of that cluster, else of the connected one. Raises WrongCluster and what `write` raises."""
    from pipeline.jobs.fleet import records
    from pipeline.kafka import TopicClient, missing_topic
    from pipeline.topic_writer import write

    name = settings.proposals_topic
    topic = TopicClient(settings.kafka).topic(name, cluster)
    if topic is None:
        raise missing_topic(name)
    count = write(settings.kafka, name, records(tables, run=run, cluster=topic.cluster))
    say(f"{counted(count, 'proposal')} published to {name} of cluster {topic.cluster}")


def _target(text: str) -> tuple[str, Path]:
    name, sign, path = text.partition("=")
    if not (sign and name and path):
        raise BadInput(f"--publish-to {text!r} is not CLUSTER=FILE", todo="Write CLUSTER=FILE.")
    return name, Path(path)

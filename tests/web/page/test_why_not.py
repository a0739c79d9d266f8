"""What the page says of a finding that nothing is planned for."""

from __future__ import annotations

from dataclasses import replace

from agent.values.finding import FindingReason
from agent.values.plan import Plan, Unplanned
from agent.web.page.group_page import _why_not
from agent.web.page.page_documents import FindingRemedies
from assignors.problem import TopicPartition
from tests.web.page.worlds import WORLDS


def test_a_finding_about_a_topic_says_why_a_partition_of_it_is_not_moved() -> None:
    look = WORLDS["sick"]()
    (found,) = [one for one in look.detection.findings if one.reason is FindingReason.REPLICAS_SHARE_RACK][:1]
    finding, of = replace(found, held=False), found.subject.name
    assert found.subject.kind == "topic"
    plans = {
        why: Plan(unplanned=((TopicPartition(topic, 0), why), (TopicPartition(topic, 1), Unplanned.NO_LEADER)))
        for topic, why in ((of, Unplanned.RUNNING), (f"{of}-1", Unplanned.CAPPED))
    }
    shown = {why: FindingRemedies(look._replace(plan=plan)).of(finding).why_not for why, plan in plans.items()}
    assert shown == {Unplanned.RUNNING: Unplanned.RUNNING.value, Unplanned.CAPPED: ""}


def test_a_group_says_why_its_warm_ups_do_not_take_over() -> None:
    look = WORLDS["sick"]()
    task = next(one for one in look.detection.findings if one.subject.kind == "task")
    assert task.group is not None
    plan = Plan(unplanned=((task.id, Unplanned.ROLLING),))
    assert _why_not(look._replace(plan=plan), task.group) == Unplanned.ROLLING.value
    assert _why_not(look._replace(plan=plan), "another") is None

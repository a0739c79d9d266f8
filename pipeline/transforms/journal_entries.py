"""Names and words in entries of the journal, as Spark expressions and as the agent writes them."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from agent.journal.triggers import TriggerEffect
from agent.values.proposal import PlanAttempt

NOT_ASKED = (TriggerEffect.NOT_SENT.name, TriggerEffect.REFUSED.name)
"""Effects, as they are written, of triggers that asked for no rebalance."""
_PLAN_OF_KEY = r"(?s)\A(?:plan|batch|targets)/(.+?)(?:/[0-9]+)?\z"
_NAME = r"\A([^\n]+?)(?:\.([1-9][0-9]{0,8}))?\z"


def plan_name(key: Column) -> Column:
    """The name of the plan that an entry under ``plan/``, ``batch/`` or ``targets/`` belongs to."""
    return F.regexp_extract(key, _PLAN_OF_KEY, 1)


def attempt(name: Column) -> Column:
    """The attempt that a plan of that name is, as `agent.values.reassignment.attempt` has it: of (text) and number."""
    of, number = (F.nullif(F.regexp_extract(name, _NAME, group), F.lit("")) for group in (1, 2))
    parts = (F.coalesce(of, name), F.coalesce(number.cast("int"), F.lit(1)))
    return F.struct(*(part.alias(field) for part, field in zip(parts, PlanAttempt._fields, strict=True)))

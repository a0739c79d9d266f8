"""Lines of a cloud's bill about data transfer, as CSV: what was paid on each day.

Columns are those of a FOCUS export, of AWS's Cost and Usage Report, or just ``day`` and ``usd``; others are ignored.
The file holds the lines that are about traffic between zones, and no others.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from agent.errors import ConfigError
from pipeline.csv_files import csv_rows, head_of
from pipeline.moments import moment_of

_OPTION = "--bill"


class _BillColumns(NamedTuple):
    """Names of the columns of one form of bill."""

    begin: str
    usd: str
    end: str | None = None
    currency: str | None = None


_FORMS = (
    _BillColumns("ChargePeriodStart", "EffectiveCost", "ChargePeriodEnd", "BillingCurrency"),
    _BillColumns("line_item_usage_start_date", "line_item_unblended_cost", "line_item_usage_end_date"),
    _BillColumns("lineItem/UsageStartDate", "lineItem/UnblendedCost", "lineItem/UsageEndDate"),
    _BillColumns("day", "usd"),
)
_LONGEST = timedelta(days=1)


def bill_by_day(file: str) -> dict[str, float]:
    """UTC day, yyyy-mm-dd -> dollars, in the order of days. Raises ConfigError with the line and what is wrong."""
    head = head_of(file, _OPTION)
    form = next((one for one in _FORMS if {one.begin, one.usd} <= {*head}), None)
    if form is None:
        known = "; ".join(f"{one.begin} and {one.usd}" for one in _FORMS)
        raise ConfigError(f"{file} is no bill that is known here", why=f"its first line names none of: {known}")
    optional = [name for name in (form.end, form.currency) if name in head]
    lines = csv_rows(file, _OPTION, (form.begin, form.usd, *filter(None, optional)), lambda row: _line(form, row))
    days: dict[str, float] = defaultdict(float)
    for day, usd in lines:
        days[day] += usd
    return dict(sorted(days.items()))


def _line(form: _BillColumns, row: Mapping[str, str]) -> tuple[str, float]:
    begin = _moment(form.begin, row[form.begin])
    if form.end in row and _moment(str(form.end), row[str(form.end)]) - begin > _LONGEST:
        raise ValueError("it is about more than a day: export the bill by day or by hour")
    if row.get(str(form.currency), "USD") not in {"USD", ""}:
        raise ValueError(f"its currency is {row[str(form.currency)]}, and prices here are dollars")
    try:
        usd = float(row[form.usd])
    except ValueError:
        usd = math.nan
    if not math.isfinite(usd):
        raise ValueError(f"{form.usd} {row[form.usd]!r} is no number")
    return begin.strftime("%Y-%m-%d"), usd


def _moment(name: str, text: str) -> datetime:
    try:
        return moment_of(text)
    except ValueError:
        raise ValueError(f"{name} {text!r} is no date or time of ISO 8601") from None

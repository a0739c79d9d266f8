"""The ledger in the columns of FOCUS (FinOps Open Cost and Usage Specification): a charge by day, racks and topic.

These are estimates by the prices of the settings, not an invoice: the cloud is paid for them. So BilledCost is 0, as
the specification has it for charges that a third party is paid for, and the other costs are what the ledger has.
Charges have prices: what has none is left out, and counted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from agent.values.rates import BYTES_PER_GB
from pipeline.exact_sums import BILLIONTHS, all_or_null, total_sum
from pipeline.owner_rules import OwnerBook
from pipeline.report.ledger_sums import avoidable_bytes
from pipeline.schemas.zones import CROSS_ZONE

VERSION = "1.2"
_PLACES = Decimal(1).scaleb(-12)
_SKU = "kafka-cross-rack-transfer"


class DailyTransfer(NamedTuple):
    """Bytes of one topic from rack to rack on one day, and their price."""

    day: str
    cluster: str
    path: str
    group: str
    topic: str
    source_rack: str
    target_rack: str
    bytes: float
    usd: float | None
    avoidable_usd: float | None
    """None where it is unknown."""


COLUMNS = (
    "BilledCost", "BillingAccountId", "BillingAccountName", "BillingCurrency", "BillingPeriodEnd", "BillingPeriodStart",
    "ChargeCategory", "ChargeClass", "ChargeDescription", "ChargeFrequency", "ChargePeriodEnd", "ChargePeriodStart",
    "ConsumedQuantity", "ConsumedUnit", "ContractedCost", "ContractedUnitPrice", "EffectiveCost", "InvoiceIssuerName",
    "ListCost", "ListUnitPrice", "PricingCategory", "PricingQuantity", "PricingUnit", "ProviderName", "PublisherName",
    "ResourceId", "ResourceName", "ResourceType", "ServiceCategory", "ServiceName", "ServiceSubcategory", "SkuId",
    "SkuMeter", "SkuPriceId", "Tags", "x_AvoidableCost", "x_Cluster", "x_ConsumerGroup", "x_Path", "x_SourceRack",
    "x_TargetRack",
)  # fmt: skip
"""In alphabetical order, rackwise's own after those of the specification."""
DECIMALS = frozenset(name for name in COLUMNS if name.endswith(("Cost", "Quantity", "UnitPrice")))
TIMES = frozenset(name for name in COLUMNS if "Period" in name)


def transfers(ledger: DataFrame) -> DataFrame:
    """Rows as `DailyTransfer`, of gold.ledger, in their order."""
    avoidable = F.col("usd") * avoidable_bytes() / F.col("bytes")
    key = DailyTransfer._fields[:7]
    return (
        ledger.where((F.col("zone") == CROSS_ZONE) & (F.col("bytes") > 0))
        .groupBy(*key)
        .agg(
            total_sum(F.col("bytes")).alias("bytes"),
            all_or_null(F.col("usd"), BILLIONTHS).alias("usd"),
            all_or_null(avoidable, BILLIONTHS).alias("avoidable_usd"),
        )
        .select(*DailyTransfer._fields)
        .orderBy(*key)
    )


def charges(rows: Iterable[DailyTransfer], owners: OwnerBook) -> Iterator[tuple[Any, ...]]:
    """Values in the order of `COLUMNS`: text, Decimal, an aware datetime, or None."""
    for row in rows:
        if row.usd is not None:
            values = _charge(row, owners)
            yield tuple(values.get(name) for name in COLUMNS)


def _charge(row: DailyTransfer, owners: OwnerBook) -> dict[str, Any]:
    begin = datetime.fromisoformat(row.day).replace(tzinfo=UTC)
    month = begin.replace(day=1)
    # Price times quantity is the cost in every digit: so a consumer checks it.
    quantity = _decimal(Decimal(repr(row.bytes)) / Decimal(BYTES_PER_GB))
    price = _decimal(Decimal(repr(row.usd)) / quantity) if quantity else Decimal(0)
    cost = _decimal(price * quantity)
    owner = owners.of(row.topic, row.group)
    tags = {} if owner is None else {"cost_centre": owner.cost_centre, "team": owner.team}
    what = f"group {row.group} reads topic {row.topic}" if row.group else f"{row.path} of topic {row.topic}"
    return {
        "BilledCost": Decimal(0),
        "BillingAccountId": row.cluster,
        "BillingCurrency": "USD",
        "BillingPeriodStart": month,
        "BillingPeriodEnd": (month + timedelta(days=32)).replace(day=1),
        "ChargeCategory": "Usage",
        "ChargeDescription": f"{what} from rack {row.source_rack} to {row.target_rack}",
        "ChargeFrequency": "Usage-Based",
        "ChargePeriodStart": begin,
        "ChargePeriodEnd": begin + timedelta(days=1),
        **dict.fromkeys(("ContractedCost", "EffectiveCost", "ListCost"), cost),
        **dict.fromkeys(("ContractedUnitPrice", "ListUnitPrice"), price),
        **dict.fromkeys(("ConsumedQuantity", "PricingQuantity"), quantity),
        **dict.fromkeys(("ConsumedUnit", "PricingUnit"), "GB"),
        **dict.fromkeys(("InvoiceIssuerName", "ProviderName", "PublisherName"), "rackwise"),
        "PricingCategory": "Standard",
        "ResourceId": f"{row.cluster}/topic/{row.topic}",
        "ResourceName": row.topic,
        "ResourceType": "Kafka topic",
        "ServiceCategory": "Networking",
        "ServiceName": "Kafka traffic across racks",
        "ServiceSubcategory": "Network Connectivity",
        "SkuId": _SKU,
        "SkuMeter": "Data transfer across racks",
        "SkuPriceId": f"{_SKU}/{row.source_rack}/{row.target_rack}",
        "Tags": json.dumps({name: value for name, value in tags.items() if value}, sort_keys=True),
        "x_AvoidableCost": None if row.avoidable_usd is None else _decimal(Decimal(repr(row.avoidable_usd))),
        "x_Cluster": row.cluster,
        "x_ConsumerGroup": row.group or None,
        "x_Path": row.path,
        "x_SourceRack": row.source_rack,
        "x_TargetRack": row.target_rack,
    }


def _decimal(value: Decimal) -> Decimal:
    return value.quantize(_PLACES)

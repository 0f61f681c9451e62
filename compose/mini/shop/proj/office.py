"""Makes the dashboard show the shop's own time. The orders end on a day of the fictional world, long before the real date,
so the last day is the one before the latest order, and the graph shows the twelve months before it."""

import datetime as dt
from decimal import ROUND_UP, Decimal

from django.apps import AppConfig
from django.db.models import Max, Sum
from django.db.models.functions import TruncMonth
from django.utils import timezone

MONTHS, SEGMENTS = 12, 10


class OfficeConfig(AppConfig):
    name = "office"

    def ready(self):
        from oscar.apps.dashboard import views

        views.now = present
        views.IndexView.get_hourly_report = monthly_report


def present():
    """Returns the time of the latest order."""
    from oscar.core.loading import get_model

    return get_model("order", "Order").objects.aggregate(latest=Max("date_placed"))["latest"] or timezone.now()


def monthly_report(view, orders, **_):
    """Returns the turnover of each month, in the format of Oscar's hourly report, which the page draws."""
    latest = present()
    months = [dt.date(latest.year + (latest.month - 1 - back) // 12, (latest.month - 1 - back) % 12 + 1, 1) for back in range(MONTHS)]
    totals = {row["month"].date(): row["total"] for row in
              orders.annotate(month=TruncMonth("date_placed")).order_by("month").values("month").annotate(total=Sum("total_incl_tax"))}
    turnover = [{"end_time": month, "total_incl_tax": totals.get(month, Decimal(0))} for month in reversed(months)]
    most = max(item["total_incl_tax"] for item in turnover)
    step = Decimal(10) ** max(0, most.adjusted() - 1) if most else Decimal(1)
    top = (most / step).quantize(Decimal(1), rounding=ROUND_UP) * step
    for item in turnover:
        item["percentage"] = int(item["total_incl_tax"] * 100 / top) if top else 0
    scale = [top * segment / SEGMENTS for segment in reversed(range(SEGMENTS + 1))] if top else []
    return {"order_total_hourly": turnover, "max_revenue": top, "y_range": scale}

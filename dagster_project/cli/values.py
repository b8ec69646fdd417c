"""Values as JSON has them: a number is a number however wide DuckDB made it, an interval is the text that it reads."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa

_SECOND = 1_000_000_000


def plain(value: Any) -> Any:
    """The value, and what it holds, without types that only Arrow has."""
    if isinstance(value, Decimal):
        return float(value) if value.as_tuple().exponent else int(value)
    if isinstance(value, pa.MonthDayNano):
        return _interval(*value)
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def _interval(months: int, days: int, nanoseconds: int) -> str:
    """As DuckDB writes it: ``1 year 2 months 3 days 04:05:06.789``."""
    sign = -1 if months < 0 else 1
    years, months = (sign * part for part in divmod(abs(months), 12))
    counts = {"year": years, "month": months, "day": days}
    parts = [f"{count} {unit}{'' if abs(count) == 1 else 's'}" for unit, count in counts.items() if count]
    if nanoseconds or not parts:
        seconds, rest = divmod(abs(nanoseconds), _SECOND)
        time = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        fraction = f".{rest:09}".rstrip("0") if rest else ""
        parts.append(f"{'-' if nanoseconds < 0 else ''}{time}{fraction}")
    return " ".join(parts)

"""A meter of metrics that notes what is measured."""

from typing import Any


class NotingMeter:
    """Stands for a meter of the SDK; `told` holds kind, name, description, unit, value and attributes."""

    def __init__(self) -> None:
        self.told: list[list[Any]] = []

    def with_additional_attributes(self, _: Any) -> "NotingMeter":
        """Those of the workflow or activity, which are the SDK's matter."""
        return self

    def create_counter(self, name: str, description: str | None = None, unit: str | None = None) -> "_Noted":
        return _Noted(self.told, ["counter", name, description, unit])

    def create_histogram_float(self, name: str, description: str | None = None, unit: str | None = None) -> "_Noted":
        return _Noted(self.told, ["histogram", name, description, unit])


class _Noted:
    def __init__(self, told: list[list[Any]], described: list[Any]) -> None:
        self._told = told
        self._described = described

    def add(self, value: float, additional_attributes: Any = None) -> None:
        self._told.append([*self._described, value, additional_attributes])

    record = add

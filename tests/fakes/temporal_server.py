"""How tests start the development server: with the settings of the embedded engine."""

from typing import Final

from workers.dev_server import QUICK

FAST: Final = [part for setting in QUICK for part in ("--dynamic-config-value", setting)]

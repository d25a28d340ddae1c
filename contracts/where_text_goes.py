"""The line that tells a person where text goes. Pure; workers and the command line say the same."""

from collections.abc import Iterable
from ipaddress import ip_address
from urllib.parse import urlsplit

NOTHING_LEAVES = "nothing leaves this machine"


def where_text_goes(model_host: str | None, search_hosts: Iterable[str], *, pages: bool) -> str:
    """`passages go to HOST; searches go to HOST, HOST; pages are read from the web`, as far as it is so.

    `model_host` may be several with commas between them.
    """
    models = ", ".join(_name(host) for host in (model_host or "").split(", ") if host)
    searched = list(dict.fromkeys(_name(host) for host in search_hosts))
    parts = [
        *([f"passages go to {models}"] if models else []),
        *([f"searches go to {', '.join(searched)}"] if searched else []),
        *(["pages are read from the web"] if pages else []),
    ]
    return "; ".join(parts) or NOTHING_LEAVES


def _name(host: str) -> str:
    return f"{host} (this machine)" if _is_here(host) else host


def _is_here(host: str) -> bool:
    name = urlsplit(f"//{host}").hostname or ""
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"

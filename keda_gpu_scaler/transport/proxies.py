"""The HTTP proxies that the environment names.

httpx can read these variables, but it ends the process with an error over some values and spares no
networks. So its clients are made without the environment, and their proxy comes from here.
"""

import ipaddress
import os
from collections.abc import Mapping
from urllib.parse import SplitResult, urlsplit

import httpx

_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
_SCHEMES = ("http", "https")


def mistakes(environ: Mapping[str, str]) -> list[str]:
    """Return a sentence for each variable that names a proxy that no request can go through.

    Of the proxy only the scheme is shown, and nothing before an `@`: it may be a password.
    """
    given = _given(environ)
    if "*" in _spared(given):
        return []
    return [
        f"{name}: {_scheme(text)}://…; expected an HTTP proxy such as http://proxy:3128, "
        "and SOCKS is none; NO_PROXY=* sends requests without one"
        for variable, (name, text) in given.items()
        if variable != "no_proxy" and not _is_proxy(text)
    ]


def of(url: str) -> str | None:
    """Return the proxy for requests to a URL; None: there is none for it."""
    given = _given(os.environ)
    try:
        target = urlsplit(url)
    except ValueError:  # the request fails and says why
        return None
    if any(_is_spared(target, entry) for entry in _spared(given)):
        return None
    _, proxy = given.get(f"{target.scheme}_proxy") or given.get("all_proxy") or ("", "")
    return _with_scheme(proxy) if proxy else None


def _given(environ: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return name and value of each variable that counts: one in lower case wins, even if empty."""
    given: dict[str, tuple[str, str]] = {}
    for name, value in sorted(environ.items(), key=lambda each: each[0].endswith("_proxy")):
        if name.lower() in _VARIABLES and (value or name.endswith("_proxy")):
            given[name.lower()] = name, value
    return {variable: named for variable, named in given.items() if named[1]}


def _spared(given: Mapping[str, tuple[str, str]]) -> list[str]:
    """Return the hosts and networks in NO_PROXY."""
    _, entries = given.get("no_proxy", ("", ""))
    return [entry.strip() for entry in entries.split(",")]


def _is_spared(target: SplitResult, entry: str) -> bool:
    host, server = target.hostname or "", target.netloc.rpartition("@")[2].lower()
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(entry.strip("[]"), strict=False)
    except ValueError:  # one of the two is a name
        name = entry.lower().lstrip(".")
        if name in ("", "*"):
            return name == "*"
        return any(f".{each}".endswith(f".{name}") for each in (host, server))


def _with_scheme(text: str) -> str:
    return text if "://" in text else f"http://{text}"


def _scheme(text: str) -> str:
    return _with_scheme(text).partition("://")[0].rpartition("@")[2]


def _is_proxy(text: str) -> bool:
    try:
        url = httpx.URL(_with_scheme(text))
    except httpx.InvalidURL:
        return False
    return url.scheme in _SCHEMES and bool(url.host)

"""The HTTP proxies that the environment names, as far as httpx does not follow them by itself.

httpx reads these variables for every client that is made. Over some values it raises an error, with
which the process would end: here each becomes a sentence. And it knows hosts that are spared, but
no networks.
"""

import ipaddress
import os
from collections.abc import Mapping
from urllib.parse import urlsplit

import httpx

_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
_SCHEMES = ("http", "https")


def mistakes(environ: Mapping[str, str]) -> list[str]:
    """Return a sentence for each variable that names what no request can go through.

    Of a proxy only the scheme is shown, and no text with an `@`: before it may be a password.
    """
    given = _given(environ)
    spared, hosts = given.pop("no_proxy", ("NO_PROXY", ""))
    entries = [entry.strip() for entry in hosts.split(",")]
    if "*" in entries:
        return []
    found = [
        f"{name}: {_scheme(text)}://…; expected an HTTP proxy such as http://proxy:3128, "
        "and SOCKS is none; NO_PROXY=* sends requests without one"
        for name, text in given.values()
        if not _is_proxy(text)
    ]
    return found + [
        f'{spared}: "{entry.rpartition("@")[2]}"; expected hosts such as .svc, 10.0.0.0/8 or '
        "fd00::1, IPv6 without brackets and without the length of a network"
        for entry in entries
        if not _is_host(entry)
    ]


def are_followed(url: str) -> bool:
    """Return whether requests to this URL follow the proxies that this process's environment names.

    They do not where its host is an address in a network that NO_PROXY spares.
    """
    try:
        address = ipaddress.ip_address(urlsplit(url).hostname or "")
    except ValueError:
        return True
    _, spared = _given(os.environ).get("no_proxy", ("", ""))
    return not any(_is_network_of(entry.strip(), address) for entry in spared.split(","))


def _is_network_of(entry: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    try:
        return "/" in entry and address in ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return False


def _given(environ: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return name and value of each variable that counts: one in lower case wins, even if empty."""
    given: dict[str, tuple[str, str]] = {}
    for name, value in sorted(environ.items(), key=lambda each: each[0].endswith("_proxy")):
        if name.lower() in _VARIABLES and (value or name.endswith("_proxy")):
            given[name.lower()] = name, value
    return {variable: named for variable, named in given.items() if named[1]}


def _scheme(text: str) -> str:
    scheme, mark, _ = text.partition("://")
    return scheme.rpartition("@")[2] if mark else "http"


def _is_proxy(text: str) -> bool:
    try:
        url = httpx.URL(text if "://" in text else f"http://{text}")
    except httpx.InvalidURL:
        return False
    return url.scheme in _SCHEMES and bool(url.host)


def _is_host(entry: str) -> bool:
    """Return whether httpx can read an entry of NO_PROXY, which it turns into a URL."""
    try:
        httpx.URL(entry if "://" in entry else f"all://{_bracketed(entry)}")
    except httpx.InvalidURL:
        return False
    return True


def _bracketed(entry: str) -> str:
    try:
        ipaddress.IPv6Address(entry.partition("/")[0])
    except ValueError:
        return f"*{entry}"
    return f"[{entry}]"

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
    variables = _variables(environ)
    if "*" in _exceptions(variables):
        return []
    sentences = []
    for variable, (name, value) in variables.items():
        url = _with_scheme(value)
        if variable != "no_proxy" and not _is_proxy(url):
            scheme = url.partition("://")[0].rpartition("@")[2]
            sentences.append(
                f"{name}: {scheme}://…; expected an HTTP proxy such as http://proxy:3128, "
                "and SOCKS is none; NO_PROXY=* sends requests without one"
            )
    return sentences


def of(url: str) -> str | None:
    """Return the proxy for requests to a URL; None: there is none for it."""
    variables = _variables(os.environ)
    try:
        target = urlsplit(url)
    except ValueError:  # the request fails and says why
        return None
    if any(_is_exception(target, entry) for entry in _exceptions(variables)):
        return None
    _, proxy = variables.get(f"{target.scheme}_proxy") or variables.get("all_proxy") or ("", "")
    return _with_scheme(proxy) if proxy else None


def _variables(environ: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return name and value of each variable that counts: one in lower case wins, even if empty."""
    variables: dict[str, tuple[str, str]] = {}
    for name, value in sorted(environ.items(), key=lambda item: item[0].endswith("_proxy")):
        if name.lower() in _VARIABLES and (value or name.endswith("_proxy")):
            variables[name.lower()] = name, value
    return {variable: (name, value) for variable, (name, value) in variables.items() if value}


def _exceptions(variables: Mapping[str, tuple[str, str]]) -> list[str]:
    """Return the hosts and networks in NO_PROXY."""
    _, entries = variables.get("no_proxy", ("", ""))
    return [entry.strip() for entry in entries.split(",")]


def _is_exception(target: SplitResult, entry: str) -> bool:
    host, host_and_port = target.hostname or "", target.netloc.rpartition("@")[2].lower()
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(entry.strip("[]"), strict=False)
    except ValueError:  # one of the two is a name
        name = entry.lower().lstrip(".")
        if name in ("", "*"):
            return name == "*"
        return f".{host}".endswith(f".{name}") or f".{host_and_port}".endswith(f".{name}")


def _with_scheme(text: str) -> str:
    return text if "://" in text else f"http://{text}"


def _is_proxy(text: str) -> bool:
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL:
        return False
    return url.scheme in _SCHEMES and bool(url.host)

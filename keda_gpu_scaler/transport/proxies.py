"""The HTTP proxies that the environment names, read as Python's own urllib reads them.

httpx can read these variables, but it ends the process with an error over some values and spares no
networks. So its clients are made without the environment, and their proxy comes from here.
"""

import ipaddress
import os
from urllib.parse import urlsplit
from urllib.request import getproxies_environment, proxy_bypass

import httpx


def mistakes() -> list[str]:
    """Return a sentence for each variable that names a proxy that no request can go through.

    Of the proxy only the scheme is shown, and nothing before an `@`: it may be a password.
    """
    proxies = getproxies_environment()
    if proxies.get("no") == "*":
        return []
    sentences = []
    for kind in ("all", "http", "https"):
        if kind in proxies and not _is_proxy(url := _with_scheme(proxies[kind])):
            variable = f"{kind}_proxy"
            name = variable if variable in os.environ else variable.upper()
            scheme = url.partition("://")[0].rpartition("@")[2]
            sentences.append(
                f"{name}: {scheme}://…; expected an HTTP proxy such as http://proxy:3128, "
                "and SOCKS is none; NO_PROXY=* sends requests without one"
            )
    return sentences


def of(url: str) -> str | None:
    """Return the proxy for requests to a URL; None: there is none for it."""
    proxies = getproxies_environment()
    try:
        target = urlsplit(url)
    except ValueError:  # the request fails and says why
        return None
    proxy = proxies.get(target.scheme) or proxies.get("all")
    networks = proxies.get("no", "").split(",")
    if proxy is None or any(_is_in(target.hostname or "", network) for network in networks):
        return None
    if proxy_bypass(target.netloc.rpartition("@")[2], proxies):
        return None
    return _with_scheme(proxy)


def _is_in(host: str, network: str) -> bool:
    try:
        parsed_network = ipaddress.ip_network(network.strip().strip("[]"), strict=False)
        return ipaddress.ip_address(host) in parsed_network
    except ValueError:  # one of the two is a name
        return False


def _with_scheme(text: str) -> str:
    return text if "://" in text else f"http://{text}"


def _is_proxy(text: str) -> bool:
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL:
        return False
    return url.scheme in ("http", "https") and bool(url.host)

"""What to change where a server gives no usable answer: one table, from what the client saw. Pure.

A setting is named as under `sources`; the variable of the source `default` ends with the same name.
"""

import re

_CURES = {
    r"TLS: certificate verify failed: (unable to get|self.signed)": (
        "set ca_file to the CA that issued its certificate"
    ),
    r"TLS: certificate verify failed: .* (mismatch|not valid for)": (
        "set url to a name in its certificate"
    ),
    r"(?i)TLS: .*certificate required": "set cert_file to a certificate that it accepts",
    r"(?i)TLS: .*(wrong version|record layer)": "it uses no TLS: set url to http://…",
    r"(?s)HTTP 400\b.* HTTPS (server|port)": "it uses TLS: set url to https://…",
    r"(?!HTTP).*(Name or service not|No address|nodename nor|name resolution)": (
        "set url to a name that has an address, such as SERVICE.NAMESPACE.svc"
    ),
    r"(?!HTTP).*(refused|attempts failed)$": "set url to an address and a port where it listens",
    r"no answer within": (
        "set url to an address that no NetworkPolicy and no firewall keeps from the scaler, or "
        "raise timeout if the server is slow"
    ),
    r"(?i)HTTP 401\b.*(org.?id|tenant)": (
        "set headers to the tenant, such as X-Scope-OrgID=TENANT"
    ),
    r"HTTP 400, prom-label-proxy: .* must be provided": (
        "set namespace_parameter to the parameter in which it wants the namespace"
    ),
    r"HTTP 401": "set bearer_token_file, or username and password, to what it accepts",
    r"HTTP 403": (
        "let the account of bearer_token_file, username or sigv4_region query it, or set another's"
    ),
    r"HTTP (30[1-8]|200 with text/html)": (
        "a login page or another website answers: set url to the API behind it, and "
        "bearer_token_file if that takes a token"
    ),
    r"HTTP 404": (
        "set url to all that is before /api/v1 (InfluxDB: /query), with the server's own path, "
        "such as /prometheus"
    ),
}
"""By how what was seen begins; the first one that fits counts."""
_CURES_OF_OWN_QUERIES = {
    r"no answer within": (
        "make the query cheaper, such as by a recording rule, unless the source answers no query"
    ),
    r"HTTP 403": "query what the source's account may read, or let it read this",
}
"""Of queries that users write, in place of those above."""


def with_cure(seen: str, *, is_own: bool = False) -> str:
    """Return the text of an error with what to change, if that is known.

    `is_own`: the query is a user's own, and what fails may be this query and not the source.
    """
    cures = _CURES | _CURES_OF_OWN_QUERIES if is_own else _CURES
    cure = next((cure for pattern, cure in cures.items() if re.match(pattern, seen)), None)
    return seen if cure is None else f"{seen}; {cure}"

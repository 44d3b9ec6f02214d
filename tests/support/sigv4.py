"""The receiving side of AWS Signature Version 4, written from its published description.

It shares no code with what signs: it begins from the bytes that arrived.
"""

import hashlib
import hmac
import re
from collections.abc import Mapping
from urllib.parse import quote, unquote

from tests.support.http_replies import Request

_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<key>[^/]+)/(?P<scope>[^,]+), ?"
    r"SignedHeaders=(?P<names>[^,]+), ?Signature=(?P<signature>[0-9a-f]{64})"
)


def is_signed(request: Request, secrets: Mapping[str, str], region: str, service: str) -> bool:
    """Return whether a request, as it arrived, has the signature of one of these keys.

    Args:
        request: what was received.
        secrets: secret keys by access key.
        region: the only region that it may be signed for.
        service: the only service.
    """
    found = _AUTHORIZATION.fullmatch(request.headers.get("authorization", ""))
    moment = request.headers.get("x-amz-date", "")
    scope = f"{moment[:8]}/{region}/{service}/aws4_request"
    if found is None or found["key"] not in secrets or found["scope"] != scope:
        return False
    names = found["names"].split(";")
    if not {"host", "x-amz-date"} <= set(names):
        return False
    path, _, query = request.path.partition("?")
    canonical = [
        request.method,
        quote(path, safe="/~"),  # once more, as for every service but S3
        _canonical(query),
        *(f"{name}:{' '.join(request.headers[name].split())}" for name in names),
        "",
        ";".join(names),
        hashlib.sha256(request.body).hexdigest(),
    ]
    digest = hashlib.sha256("\n".join(canonical).encode()).hexdigest()
    key = f"AWS4{secrets[found['key']]}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    text = f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{digest}"
    return hmac.compare_digest(hmac.digest(key, text.encode(), "sha256").hex(), found["signature"])


def _canonical(query: str) -> str:
    """Sort the parameters; a server reads each one, and encodes it in the one canonical way."""
    pairs = [pair.partition("=") for pair in query.split("&") if pair]
    encoded = [(_encoded(name), _encoded(value)) for name, _, value in pairs]
    return "&".join(f"{name}={value}" for name, value in sorted(encoded))


def _encoded(text: str) -> str:
    return quote(unquote(text), safe="-_.~")

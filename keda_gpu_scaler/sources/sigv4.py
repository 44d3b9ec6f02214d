"""Requests signed with AWS Signature Version 4, by botocore, which the extra `aws` installs.

botocore finds the credentials as every AWS program does: in the environment, by the web identity of
a service account, from EKS Pod Identity, from the instance. To find or to renew them can take
requests of its own, which wait in threads of this module and never in the event loop.
"""

import asyncio
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor

import httpx
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.session import Session

from keda_gpu_scaler import errors
from keda_gpu_scaler.transport.http_client import error_text

SERVICE = "aps"
"""Amazon Managed Service for Prometheus, as signatures name it."""
_THREADS = 2
"""While one of them renews credentials that still count, the other signs with those."""
_LOOKUP = Config(connect_timeout=2, read_timeout=5, retries={"total_max_attempts": 1})
"""For requests for credentials: the next query asks again, and the process has to end in time."""


class Sigv4(httpx.Auth):
    """Signs every request with the credentials of that moment."""

    def __init__(self, region: str) -> None:
        self._region = region
        self._session = Session()
        self._session.set_config_variable("region", region)
        self._session.set_default_client_config(_LOOKUP)
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="sigv4")

    async def async_auth_flow(
        self, request: httpx.Request
    ) -> AsyncGenerator[httpx.Request, httpx.Response]:
        """Add the signature of the request as it is sent, its body included."""
        body = await request.aread()
        loop = asyncio.get_running_loop()
        try:
            signed = await loop.run_in_executor(self._threads, self._sign, request, body)
        except Exception as error:  # botocore's have no base: an answer it cannot parse has its own
            message = f"no AWS credentials to sign with: {error_text(error)}"
            raise errors.SourceUnreachableError(message) from error
        request.headers.update(signed)
        yield request

    def _sign(self, request: httpx.Request, body: bytes) -> dict[str, str]:
        """Return the headers of the signature.

        Only what no proxy changes is signed: method, URL, host, content type and body.
        """
        credentials = self._session.get_credentials()
        kept = {
            name: request.headers[name]
            for name in ("host", "content-type")
            if name in request.headers
        }
        signing = AWSRequest(request.method, str(request.url), kept, body)
        frozen = None if credentials is None else credentials.get_frozen_credentials()
        SigV4Auth(frozen, SERVICE, self._region).add_auth(signing)
        return {name: str(value) for name, value in signing.headers.items() if name not in kept}

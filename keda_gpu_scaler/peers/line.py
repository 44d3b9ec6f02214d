"""One request to one replica: with the webhook's token, bounded in size and time."""

import contextlib
import ssl
from collections.abc import Callable, Sequence
from pathlib import Path

import httpx
import orjson

from keda_gpu_scaler import errors
from keda_gpu_scaler.alerts import Entry, wire
from keda_gpu_scaler.sources import client, credentials
from keda_gpu_scaler.sources.words import printable

PATH = "/alerts"
_STATUSES = {401: "it has another token", 404: "it has no webhook"}


class Line:
    """Requests to other replicas."""

    def __init__(
        self, token: Callable[[], str], timeout_seconds: float, ca_file: Path | None = None
    ) -> None:
        """Connect to nothing yet.

        Args:
            token: returns the token of this moment, or raises SettingsError.
            timeout_seconds: bounds a request from its start to the last byte of its answer.
            ca_file: PEM file with the CAs to trust instead of the system's.
        """
        self._ca_file, self._trust = ca_file, ssl.create_default_context(cafile=ca_file)
        # Nothing out of the environment: replicas are not behind a proxy.
        requests = httpx.AsyncClient(
            auth=credentials.Bearer(token),
            headers={"User-Agent": client.USER_AGENT},
            timeout=timeout_seconds,
            trust_env=False,
            verify=self._trust,
        )
        self._client = client.Client(
            requests, timeout_seconds=timeout_seconds, max_response_bytes=wire.LONGEST_BYTES
        )

    def trust_anew(self) -> None:
        """Trust the CAs that the file holds now as well: CAs rotate, if rarely.

        What it held before is trusted until the process ends: others may still use it.
        """
        if self._ca_file is not None:
            with contextlib.suppress(OSError):  # it may be half written, and is read again
                self._trust.load_verify_locations(self._ca_file)

    async def tell(self, peer: str, name: str | None, entries: Sequence[Entry]) -> None:
        """Tell a replica what is known of these alerts.

        Args:
            peer: its URL.
            name: what its certificate is for; None: the URL's host.
            entries: what is known.

        Raises:
            errors.SourceError: it was not told.
        """
        body = orjson.dumps(wire.written(entries))
        headers = {"content-type": "application/json"}
        _require_ok(await self._client.post(peer + PATH, body, headers, name))

    async def ask(self, peer: str, name: str | None) -> list[Entry]:
        """Return all that a replica knows of alerts.

        Args:
            peer: its URL.
            name: what its certificate is for; None: the URL's host.

        Raises:
            errors.SourceError: it did not say.
        """
        answer = await self._client.get(peer + PATH, name)
        _require_ok(answer)
        try:
            return wire.read(orjson.loads(answer.body))
        except (orjson.JSONDecodeError, errors.RequestError) as error:
            raise errors.SourceMalformedError(f"an answer of another kind: {error}") from error

    async def close(self) -> None:
        """Close every connection."""
        await self._client.close()


def _require_ok(answer: client.Answer) -> None:
    if not httpx.codes.is_success(answer.status):
        words = _STATUSES.get(answer.status) or printable(answer.body.decode(errors="replace"))
        raise errors.SourceRefusedError(f"{answer.status}: {words}")

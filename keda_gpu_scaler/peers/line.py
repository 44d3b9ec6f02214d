"""One request to one replica: with the webhook's token, bounded in size and time."""

from collections.abc import Callable, Sequence

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

    def __init__(self, token: Callable[[], str], timeout_seconds: float) -> None:
        """Connect to nothing yet.

        Args:
            token: returns the token of this moment, or raises SettingsError.
            timeout_seconds: bounds a request from its start to the last byte of its answer.
        """
        # Nothing out of the environment: replicas are not behind a proxy.
        requests = httpx.AsyncClient(
            auth=credentials.Bearer(token),
            headers={"User-Agent": client.USER_AGENT},
            timeout=timeout_seconds,
            trust_env=False,
        )
        self._client = client.Client(
            requests, timeout_seconds=timeout_seconds, max_response_bytes=wire.LONGEST_BYTES
        )

    async def tell(self, peer: str, entries: Sequence[Entry]) -> None:
        """Tell a replica what is known of these alerts.

        Raises:
            errors.SourceError: it was not told.
        """
        body = orjson.dumps(wire.written(entries))
        _require_ok(
            await self._client.post(peer + PATH, body, {"content-type": "application/json"})
        )

    async def ask(self, peer: str) -> list[Entry]:
        """Return all that a replica knows of alerts.

        Raises:
            errors.SourceError: it did not say.
        """
        answer = await self._client.get(peer + PATH)
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

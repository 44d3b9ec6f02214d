"""What goes wrong with an API server, in words. No I/O."""

import contextlib
from collections.abc import Iterator

import httpx2
import orjson
from lightkube.core.exceptions import ConfigError

from keda_gpu_scaler import errors

_MESSAGE_CHARACTERS = 256


class ExpiredError(errors.SourceRefusedError):
    """The API server has forgotten the version that was asked for: a new list is needed."""


def of(code: int, body: bytes) -> errors.SourceRefusedError:
    """Return the error for an answer that is none, with the API server's own words if it has."""
    try:
        said = str(orjson.loads(body)["message"])[:_MESSAGE_CHARACTERS]
    except (ValueError, LookupError, TypeError):
        said = "no reason given"
    kind = ExpiredError if code == httpx2.codes.GONE else errors.SourceRefusedError
    return kind(f"HTTP {code}, {said}")


@contextlib.contextmanager
def in_words(doing: str) -> Iterator[None]:
    """Turn what the libraries raise into errors that say what was being done."""
    try:
        yield
    except errors.SourceRefusedError as error:
        raise type(error)(f"cannot {doing}: {error}") from error
    except (TimeoutError, httpx2.TimeoutException) as error:
        raise errors.SourceTimeoutError(f"cannot {doing}: no answer in time") from error
    except (httpx2.HTTPError, OSError) as error:
        why = f"{type(error).__name__}: {error}"
        raise errors.SourceUnreachableError(f"cannot {doing}: {why}") from error
    except ConfigError as error:
        raise errors.SourceRefusedError(f"cannot {doing}: {error}") from error
    except (ValueError, LookupError, TypeError) as error:
        message = f"cannot {doing}: an answer of another shape: {type(error).__name__}"
        raise errors.SourceMalformedError(message) from error

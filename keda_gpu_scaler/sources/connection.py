"""The HTTP client of a source, with the credentials and certificates of its settings."""

import ssl

import httpx

from keda_gpu_scaler.settings import ApiSettings, PrometheusSettings, tokens
from keda_gpu_scaler.transport import proxies
from keda_gpu_scaler.transport.client import Bearer, Client


def credentials(settings: ApiSettings) -> httpx.Auth | None:
    """Return the credentials for an HTTP API; None: it needs none."""
    file = settings.bearer_token_file
    token = tokens.of(settings.bearer_token, file, f"the bearer token file {file}")
    if token is not None:
        return Bearer(token)
    if settings.username is not None:
        password = settings.password.get_secret_value() if settings.password is not None else ""
        return httpx.BasicAuth(settings.username, password)
    if isinstance(settings, PrometheusSettings) and settings.sigv4_region is not None:
        from keda_gpu_scaler.sources import sigv4  # noqa: PLC0415 - it loads an extra that few install

        return sigv4.Sigv4(settings.sigv4_region)
    return None


def create_client(settings: ApiSettings) -> Client:
    """Return a client for an HTTP API, with its authentication and its certificates."""
    return Client(
        timeout_seconds=settings.timeout_seconds,
        max_response_bytes=settings.max_response_bytes,
        headers={name: value.get_secret_value() for name, value in settings.headers.items()},
        auth=credentials(settings),
        verify=_tls(settings),
        proxy=proxies.of(settings.url),
    )


def _tls(settings: ApiSettings) -> ssl.SSLContext:
    if settings.url.startswith("http://"):
        # No request needs a CA, and the system's take a MiB: this context trusts nobody. Requests
        # follow no redirect, and httpx makes another context for a proxy.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    else:
        context = ssl.create_default_context(cafile=settings.ca_file)
    if settings.cert_file is not None:
        context.load_cert_chain(settings.cert_file, settings.key_file)
    return context

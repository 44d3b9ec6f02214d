"""How settings are called in the environment, in the file, and inside the models.

A path is where a value stands, in the names people write: `("give_up",)` for the process,
`("sources", "eu", "step")` for a source of the file. PROMETHEUS_… and SCRAPE_… say what the source
`default` is: `("prometheus", "step")`.
"""

import re
from collections.abc import Mapping

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from keda_gpu_scaler.settings.process import Settings
from keda_gpu_scaler.settings.sources import PrometheusSettings, ScrapeSettings

PREFIX = "KEDA_GPU_SCALER_"
DEFAULT = "default"
KINDS: Mapping[str, type[BaseModel]] = {"prometheus": PrometheusSettings, "scrape": ScrapeSettings}
SECRETS = frozenset({"bearer_token", "password", "headers"})

Path = tuple[str, ...]

# Kubernetes puts the addresses of Services into the environment, and those of one that is called
# keda-gpu-scaler or keda-gpu-scaler-something under our own prefix.
_SERVICE_LINK = re.compile(
    r"(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)"
)


def variable(short_name: str) -> str:
    """Return the environment variable of a setting's short name."""
    return PREFIX + short_name.upper()


def is_service_link(name: str) -> bool:
    """Tell whether Kubernetes, not the operator, set this variable."""
    return _SERVICE_LINK.fullmatch(name.removeprefix(PREFIX)) is not None


def written_fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return the fields that somebody may write, by the name they write."""
    return {
        str(field.validation_alias or name): field
        for name, field in model.model_fields.items()
        if name not in ("type", "sources")
    }


def short_fields() -> dict[str, Path]:
    """Return where each setting with a short name leads to."""
    paths: dict[str, Path] = {name: (name,) for name in written_fields(Settings)}
    for kind, model in KINDS.items():
        paths |= {f"{kind}_{name}": (kind, name) for name in written_fields(model)}
    return paths


def short_name(path: Path, kind: str | None) -> str | None:
    """Return the short name that leads to a path of the models; None when there is none."""
    if path[:2] == ("sources", DEFAULT) and kind is not None:
        return "_".join((kind, *path[2:]))
    return path[0] if len(path) == 1 and path != ("sources",) else None

"""What the API server and KEDA take for a ScaledObject, as a JSON Schema for `check`.

`make keda-schema` makes it from the sources of the KEDA and the Kubernetes that the scenarios run:
KEDA's CRD, the trigger types of its operator, and Kubernetes' metadata of objects. What Kubernetes
refuses of the HPA that KEDA writes is in no schema: it is below.
"""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import yaml

from testbed.go_modules import ROOT

FILE = ROOT / "keda_gpu_scaler/workbench/check/scaledobject.json"
_Schema = dict[str, Any]
_KEPT = ("enum", "format", "minItems", "minLength", "minimum", "pattern", "required", "type")
_DIRECTION: _Schema = {
    "selectPolicy": {"enum": ["Max", "Min", "Disabled"]},
    "stabilizationWindowSeconds": {"minimum": 0, "maximum": 3600},
}
_POLICY: _Schema = {
    "type": {"enum": ["Pods", "Percent"]},
    "value": {"minimum": 1},
    "periodSeconds": {"minimum": 1, "maximum": 1800},
}
"""Both by `pkg/apis/autoscaling/validation` of Kubernetes 1.36."""
_META = "io.k8s.apimachinery.pkg.apis.meta.v1."


def schema() -> _Schema:
    """Return the schema, in which a field that is not named is not there."""
    keda = _source("github.com/kedacore/keda/v2")
    swagger = _source("k8s.io/kubernetes") / "api/openapi-spec/swagger.json"
    paths = sorted((keda / "config/crd/bases").glob("keda.sh_*.yaml"))
    crds = {path.stem: yaml.safe_load(path.read_text())["spec"] for path in paths}
    crd = crds["keda.sh_scaledobjects"]
    (version,) = crd["versions"]
    whole = _compact(version["schema"]["openAPIV3Schema"], {})
    fields, definitions = whole["properties"], json.loads(swagger.read_text())["definitions"]
    fields["apiVersion"]["enum"] = [f"{crd['group']}/{version['name']}"]
    fields["kind"]["enum"] = [each["names"]["kind"] for each in crds.values()]
    fields["metadata"] = _compact(definitions[f"{_META}ObjectMeta"], definitions)
    advanced = fields["spec"]["properties"]["advanced"]["properties"]
    behavior = advanced["horizontalPodAutoscalerConfig"]["properties"]["behavior"]["properties"]
    for direction in (each["properties"] for each in behavior.values()):
        _limit(direction, _DIRECTION)
        _limit(direction["policies"]["items"]["properties"], _POLICY)
    fields["status"] = {}  # the API server ignores it
    builder = (keda / "pkg/scaling/scalers_builder.go").read_text()
    types = re.findall(r'^\tcase (".*"):$', builder, re.MULTILINE)
    trigger = fields["spec"]["properties"]["triggers"]["items"]["properties"]
    trigger["type"]["enum"] = sorted(name.strip('"') for line in types for name in line.split(", "))
    whole["required"].append("apiVersion")
    return whole


def _limit(fields: _Schema, limits: _Schema) -> None:
    for name, limit in limits.items():
        fields[name] |= limit


def _source(module: str) -> Path:
    """Return the folder with the locked source of a Go module."""
    folder = ROOT / "tests/e2e/tools/kube"
    command = [shutil.which("go") or "go", "mod", "download", "-json", module]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return Path(json.loads(done.stdout)["Dir"])


def _compact(given: _Schema, definitions: _Schema) -> _Schema:
    """Return the part of a schema of Kubernetes that says what is refused."""
    if "$ref" in given:
        given = definitions[given["$ref"].rpartition("/")[2]]
    compact = {key: given[key] for key in _KEPT if key in given}
    if given.get("x-kubernetes-int-or-string"):
        compact["type"] = ["integer", "string"]
    if "items" in given:
        compact["items"] = _compact(given["items"], definitions)
    if "properties" in given:
        parts = given["properties"].items()
        compact["properties"] = {name: _compact(part, definitions) for name, part in parts}
        compact["additionalProperties"] = False
    elif "additionalProperties" in given:
        compact["additionalProperties"] = _compact(given["additionalProperties"], definitions)
    return compact


def text() -> str:
    """Return the file's content."""
    return json.dumps(schema(), separators=(",", ":"), sort_keys=True) + "\n"

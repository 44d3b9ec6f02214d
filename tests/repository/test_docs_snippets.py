"""Every piece of YAML in the pages can be read, and every trigger of ours in it is taken."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from keda_gpu_scaler import trigger
from keda_gpu_scaler.query.promql import Policy
from keda_gpu_scaler.spec.spec import ScaledObject
from tests.repository.test_docs import ROOT
from tests.repository.test_examples import EXAMPLES, is_ours, read
from tests.support.triggers import access

BLOCK = re.compile(r"^( *)```yaml\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
ALLOWED = {"influxdb.md": Policy.ALLOW, "alert-webhook.md": Policy.ALLOW}
"""Pages that tell operators to let triggers read all namespaces."""
WAKES = frozenset({"demandQuery", "activationWorkload"})
EXTERNAL = frozenset({"external", "external-push"})


class Piece(NamedTuple):
    """One object in a page."""

    page: Path
    document: Any

    @property
    def name(self) -> str:
        """What tests call it."""
        return f"{self.page.relative_to(ROOT)}:{self.document['metadata']['name']}"


def pages() -> list[Path]:
    """Return every page that people read."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def pieces(page: Path) -> Iterator[Piece]:
    """Return every object of every piece of YAML in a page."""
    for _, text in BLOCK.findall(page.read_text()):
        yield from (Piece(page, document) for document in yaml.load_all(text, yaml.CSafeLoader))


PIECES = [piece for page in pages() for piece in pieces(page) if isinstance(piece.document, dict)]
SCALED_OBJECTS = [piece for piece in PIECES if piece.document.get("kind") == "ScaledObject"]
FRAGMENTS = [
    Piece(piece.page, {"metadata": {"namespace": "inference", "name": "part"}, "spec": parts})
    for piece in PIECES
    for parts in [piece.document]
    if "triggers" in parts
]
"""Snippets of triggers alone, on pages about a few of their keys."""


def triggers(piece: Piece) -> list[dict[str, Any]]:
    """Return the triggers of a ScaledObject that are for this scaler."""
    return [one for one in piece.document["spec"]["triggers"] if is_ours(one)]


def test_no_trigger_in_a_page_is_passed_over() -> None:
    seen = sum(len(piece.document["spec"]["triggers"]) for piece in SCALED_OBJECTS + FRAGMENTS)
    blocks = [text for page in pages() for _, text in BLOCK.findall(page.read_text())]
    assert sum(text.count("- type: ") for text in blocks if "triggers:" in text) == seen


def test_no_scaled_object_has_times_that_have_no_effect(subtests: pytest.Subtests) -> None:
    """KEDA 2.21 warns of them where nothing can go to zero."""
    found = [Piece(path, read(path)) for path in EXAMPLES]
    for piece in SCALED_OBJECTS + found:
        spec = piece.document["spec"]
        with subtests.test(piece.name):
            if spec.get("minReplicaCount", 0) > 0 and "idleReplicaCount" not in spec:
                assert not {"pollingInterval", "cooldownPeriod"} & spec.keys()


def test_each_trigger_of_ours_is_taken_without_a_warning(subtests: pytest.Subtests) -> None:
    for piece in SCALED_OBJECTS + FRAGMENTS:
        with subtests.test(piece.name):
            named = piece.document["metadata"]
            policy = ALLOWED.get(piece.page.name, Policy.NAMESPACED)
            terms = {"own_promql": policy, "influxql_sources": frozenset({"influxdb"})}
            allowed = access("default", "influxdb", **terms)
            for one in triggers(piece):
                found = trigger.parse(
                    ScaledObject(named["namespace"], named["name"]), one["metadata"], allowed
                )
                assert found.warnings == ()
                assert found.pods.namespace == named["namespace"]


def test_metadata_are_strings_as_kubernetes_demands(subtests: pytest.Subtests) -> None:
    for piece in SCALED_OBJECTS + FRAGMENTS:
        with subtests.test(piece.name):
            for one in piece.document["spec"]["triggers"]:
                assert {type(value) for value in one["metadata"].values()} == {str}


def test_what_may_go_to_zero_has_something_to_wake_it(subtests: pytest.Subtests) -> None:
    for piece in SCALED_OBJECTS + FRAGMENTS:
        with subtests.test(piece.name):
            spec = piece.document["spec"]
            if "scaleTargetRef" in spec and triggers(piece) and spec.get("minReplicaCount", 0) == 0:
                keys = {key for one in triggers(piece) for key in one["metadata"]}
                types = {one["type"] for one in triggers(piece)}
                by_an_alert = types == {"external-push"}
                assert by_an_alert or keys & WAKES or len(spec["triggers"]) > 1


def test_a_fallback_goes_with_errors_to_fall_back_from(subtests: pytest.Subtests) -> None:
    for piece in SCALED_OBJECTS + FRAGMENTS:
        with subtests.test(piece.name):
            if triggers(piece) and "fallback" in piece.document["spec"]:
                for one in triggers(piece):
                    assert one["metadata"]["onUnknown"] == "error"


def test_only_the_page_about_another_scaler_shows_a_trigger_that_is_not_for_this_one() -> None:
    foreign = {
        piece.page.name
        for piece in SCALED_OBJECTS
        for one in piece.document["spec"]["triggers"]
        if one["type"] in EXTERNAL and not is_ours(one)
    }
    assert foreign == {"pmady-keda-gpu-scaler.md"}


def test_what_is_to_be_typed_has_a_prompt_only_where_its_output_follows() -> None:
    blocks = re.compile(r"^ *```(console|sh)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
    for page in pages():
        for language, text in blocks.findall(page.read_text()):
            assert text.lstrip().startswith("$ ") == (language == "console"), (page.name, text)
            assert language == "sh" or len(text.splitlines()) > 1, (page.name, text)

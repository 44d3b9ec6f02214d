"""The first screen: short, and each of its numbers and names is proved somewhere else."""

import re
import tomllib

import pytest
import yaml

from keda_gpu_scaler import trigger
from keda_gpu_scaler.spec.spec import ScaledObject
from tests.repository.test_docs import README, ROOT
from tests.support.triggers import access

MOST_BYTES = 6_000
TEXT = README.read_text(encoding="utf-8")
PRODUCTS = [
    "this",
    "KEDA's prometheus trigger",
    "prometheus-adapter",
    "otel-add-on",
    "http-add-on",
    "pmady/ keda-gpu-scaler",
    "native HPA",
    "llm-d with KEDA",
]


def part(heading: str) -> str:
    """Return what stands below a heading."""
    return TEXT.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def rows(page: str, begin: str) -> list[list[str]]:
    """Return the cells of each row of a page that begins so."""
    lines = (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines()
    found = [line for line in lines if line.startswith(f"| {begin}")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in found]


def test_it_is_short_and_has_its_parts_in_order() -> None:
    assert len(TEXT.encode()) <= MOST_BYTES
    headings = ["Why", "How", "Try it", "Install", "Beside others", "What it costs", "More"]
    assert re.findall(r"^## (.+)$", TEXT, re.MULTILINE) == headings


def test_it_gives_four_reasons_with_one_number_each() -> None:
    reasons = re.split(r"^- ", part("Why"), flags=re.MULTILINE)[1:]
    assert len(reasons) == 4
    numbers = [re.findall(r"\*\*([\d.]+(?: s)?)\*\*", reason) for reason in reasons]
    assert [len(found) for found in numbers] == [1, 1, 1, 1]


def test_a_plain_query_removes_the_replica_that_this_scaler_keeps() -> None:
    begin = "the exporter of the only, busy replica is away for 15 minutes: fewest replicas"
    (row,) = rows("expectations.md", begin)
    assert row[1:] == ["1", "1", "1", "0", "0", "0"]
    assert "keeps **1**" in part("Why").replace("\n  ", " ")


def test_the_scaled_object_has_ten_lines_and_a_right_trigger() -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
    assert len(text.splitlines()) == 10
    document = yaml.safe_load(text)
    (external,) = document["spec"]["triggers"]
    named = ScaledObject(document["metadata"]["namespace"], document["metadata"]["name"])
    spec = trigger.parse(named, external["metadata"], access())
    assert spec.workload == f"deployment/{document['spec']['scaleTargetRef']['name']}"
    assert not spec.warnings


def test_it_is_tried_by_two_commands_behind_the_clone() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    commands = re.findall(r"^ {4}(\S.*)$", part("Try it"), re.MULTILINE)
    assert commands == [
        f"git clone {project['urls']['Source']} && cd keda-gpu-scaler",
        "make demo",
        "make test",
    ]
    assert f"Python {project['requires-python'].removeprefix('>=')} or newer" in part("Try it")


def test_the_tests_take_as_long_as_they_do_for_contributors() -> None:
    lines = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines()
    (row,) = [line for line in lines if line.startswith("| `make test` | what needs")]
    _, _, set_up, time, _ = [cell.strip() for cell in row.strip("|").split("|")]
    assert f"in {set_up}. On 2 cores" in part("Try it")
    assert f"each takes {time}." in " ".join(part("Try it").split())
    assert f"only Python: {time} (" in (ROOT / "Makefile").read_text(encoding="utf-8")


def test_it_is_installed_by_two_commands() -> None:
    install = part("Install").partition("```yaml")[0]
    commands = re.findall(r"^ {4}(\S.*)$", install, re.MULTILINE)
    assert commands[0] == "make image"
    assert commands[1].startswith("helm install keda-gpu-scaler deploy/helm/keda-gpu-scaler ")
    assert len(commands) == 2


def test_it_is_compared_with_seven_others_in_eight_rows_and_not_always_better() -> None:
    lines = [line for line in part("Beside others").splitlines() if line.startswith("|")]
    head, _, *body = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert head == ["", *PRODUCTS]
    assert len(body) == 8
    assert {len(row) for row in body} == {len(head)}
    worse = [row[0] for row in body if row[1] == "no" and "**yes**" in row]
    assert worse == ["holds requests while it wakes", "nothing more to run"]


def test_it_ends_with_eight_links() -> None:
    links = re.findall(r"^- .*\]\([\w./#-]+\)", part("More"), re.MULTILINE)
    assert len(links) == 8
    pages = {link.rpartition("(")[2].partition("#")[0].rstrip(")") for link in links}
    first = ["docs/quickstart.md", "docs/trigger.md", "docs/troubleshooting.md"]
    assert set(first) <= pages


@pytest.mark.parametrize("page", ["replicas.svg", "parts.svg", "demo.svg"])
def test_each_picture_is_described_for_those_who_do_not_see_it(page: str) -> None:
    (words,) = re.findall(rf"!\[([^\]]+)\]\(docs/images/{page}\)", TEXT)
    assert len(words.split()) > 4

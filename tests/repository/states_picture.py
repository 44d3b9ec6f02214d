"""`make schema`: draw docs/images/states.svg, the states of a load and what changes them.

What an arrow claims is in ARROWS; `tests/decision/test_states_picture.py` walks each of them
through `decide`, and compares what a box says with the decision.
"""

from html import escape
from typing import NamedTuple

from keda_gpu_scaler.decision.decision import State
from tests.support.go_modules import ROOT

FILE = ROOT / "docs" / "images" / "states.svg"
TITLE = "The states of a workload's load, and what changes them"
NOTE = (
    "hold: an answer without a value, on which the HPA keeps the replicas. starting and partial"
    " answer with a value where the measured pods alone ask for more replicas."
)
_WIDTH, _HEIGHT = 1180, 640
_BOX_WIDTH, _BOX_HEIGHT = 210, 92
_HALF_WIDTH, _HALF_HEIGHT = _BOX_WIDTH / 2, _BOX_HEIGHT / 2


class Box(NamedTuple):
    """One state in the picture: its middle, and what is answered in it."""

    x: int
    y: int
    value: str
    """What GetMetrics returns: `hold`, `0` or `the load`."""
    active: str
    """What IsActive returns."""


BOXES = {
    State.EMPTY: Box(175, 90, "0", "inactive"),
    State.STARTING: Box(600, 90, "hold", "active"),
    State.ENDED: Box(175, 300, "hold", "inactive"),
    State.MEASURED: Box(600, 300, "the load", "active while busy"),
    State.PARTIAL: Box(1025, 300, "hold", "active"),
    State.UNKNOWN: Box(600, 510, "hold", "as it was before"),
}


class Arrow(NamedTuple):
    """One change of state, and what has happened."""

    before: State
    after: State
    event: str
    begin: tuple[float, float]
    end: tuple[float, float]
    """Points on the edges of the two boxes, as shares of half a box from its middle."""
    label: tuple[int, int] = (0, 0)
    """How far the words are from the arrow's middle."""
    anchor: str = "middle"


_LEFT, _RIGHT, _UP, _DOWN = (-1.0, 0.0), (1.0, 0.0), (0.0, -1.0), (0.0, 1.0)
ARROWS = (
    Arrow(State.EMPTY, State.STARTING, "a pod is created", _RIGHT, _LEFT, (0, -10)),
    Arrow(
        State.ENDED, State.STARTING, "a pod is created", (1.0, -0.5), (-1.0, 0.7), (-22, -2), "end"
    ),
    Arrow(
        State.STARTING,
        State.MEASURED,
        "Ready, and measured",
        (-0.15, 1.0),
        (-0.15, -1.0),
        (-12, 26),
        "end",
    ),
    Arrow(
        State.MEASURED,
        State.STARTING,
        "a new pod is too young to be measured",
        (0.15, -1.0),
        (0.15, 1.0),
        (12, 0),
        "start",
    ),
    Arrow(State.MEASURED, State.ENDED, "its last pod ends", _LEFT, _RIGHT, (0, -10)),
    Arrow(State.ENDED, State.EMPTY, "the owner counts 0", _UP, _DOWN, (-12, 4), "end"),
    Arrow(
        State.MEASURED, State.PARTIAL, "a pod does not report", (1.0, -0.3), (-1.0, -0.3), (0, -10)
    ),
    Arrow(State.PARTIAL, State.MEASURED, "it reports again", (-1.0, 0.3), (1.0, 0.3), (0, 22)),
    Arrow(
        State.MEASURED,
        State.UNKNOWN,
        "no sample for maxAge",
        (-0.15, 1.0),
        (-0.15, -1.0),
        (-12, 4),
        "end",
    ),
    Arrow(
        State.UNKNOWN,
        State.MEASURED,
        "samples are back",
        (0.15, -1.0),
        (0.15, 1.0),
        (12, 4),
        "start",
    ),
    Arrow(
        State.PARTIAL,
        State.UNKNOWN,
        "no pod reports any more",
        (0.0, 1.0),
        (1.0, 0.0),
        (20, 20),
        "start",
    ),
    Arrow(
        State.UNKNOWN,
        State.ENDED,
        "the cluster lists no pod",
        (-1.0, 0.0),
        (0.0, 1.0),
        (-20, 20),
        "end",
    ),
)
_STYLE = """
  text { font-family: Roboto, Helvetica, Arial, sans-serif; fill: #1d2733 }
  .paper { fill: #ffffff }
  .box { fill: #eef3fb; stroke: #2b5797; stroke-width: 2 }
  .name { font-size: 20px; font-weight: bold; text-anchor: middle }
  .says { font-size: 14px; text-anchor: middle }
  .event { font-size: 14px }
  .arrow { fill: none; stroke: #44546a; stroke-width: 2; marker-end: url(#head) }
  .note { font-size: 13px; text-anchor: middle }
"""


def _point(state: State, share: tuple[float, float]) -> tuple[float, float]:
    box = BOXES[state]
    return box.x + share[0] * _HALF_WIDTH, box.y + share[1] * _HALF_HEIGHT


def _box(state: State, box: Box) -> str:
    left, top = box.x - _HALF_WIDTH, box.y - _HALF_HEIGHT
    return (
        f'<rect class="box" x="{left:g}" y="{top:g}" width="{_BOX_WIDTH}" height="{_BOX_HEIGHT}"'
        ' rx="10"/>\n'
        f'<text class="name" x="{box.x}" y="{box.y - 14}">{state}</text>\n'
        f'<text class="says" x="{box.x}" y="{box.y + 11}">GetMetrics: {escape(box.value)}</text>\n'
        f'<text class="says" x="{box.x}" y="{box.y + 32}">IsActive: {escape(box.active)}</text>\n'
    )


def _arrow(arrow: Arrow) -> str:
    (x1, y1), (x2, y2) = _point(arrow.before, arrow.begin), _point(arrow.after, arrow.end)
    x, y = (x1 + x2) / 2 + arrow.label[0], (y1 + y2) / 2 + arrow.label[1]
    return (
        f'<path class="arrow" d="M {x1:g} {y1:g} L {x2:g} {y2:g}"/>\n'
        f'<text class="event" text-anchor="{arrow.anchor}" x="{x:g}" y="{y:g}">'
        f"{escape(arrow.event)}</text>\n"
    )


def text() -> str:
    """Return the picture."""
    body = "".join([*map(_arrow, ARROWS), *(_box(*each) for each in BOXES.items())])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img"'
        ' aria-labelledby="title">\n'
        f'<title id="title">{escape(TITLE)}</title>\n'
        f"<style>{_STYLE}</style>\n"
        '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7"'
        ' markerHeight="7" orient="auto"><path d="M 0 0 L 10 5 L 0 10 z" fill="#44546a"/>'
        "</marker></defs>\n"
        f'<rect class="paper" width="{_WIDTH}" height="{_HEIGHT}" rx="8"/>\n'
        f"{body}"
        f'<text class="note" x="{_WIDTH // 2}" y="{_HEIGHT - 22}">{escape(NOTE)}</text>\n'
        "</svg>\n"
    )


def write() -> None:
    """Write the picture."""
    FILE.write_text(text())


if __name__ == "__main__":
    write()

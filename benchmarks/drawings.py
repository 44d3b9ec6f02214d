"""Plain pictures as SVG, for light and for dark pages: curves over time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from xml.sax.saxutils import escape

FONT = "-apple-system,'Segoe UI',Helvetica,Arial,'DejaVu Sans',sans-serif"
_STYLE = f"""<style>
.p{{fill:#fff}}
text{{font:13px {FONT};fill:#57606a}}.t{{font-weight:600;fill:#1f2328}}.q{{font-size:12px}}
.e{{text-anchor:end}}.m{{text-anchor:middle}}.n{{font-weight:700}}
.a{{stroke:#d0d7de;fill:none}}.o{{stroke:#1a7f37;fill:#1a7f37}}.u{{stroke:#bc4c00;fill:#bc4c00}}
.l{{stroke:#0969da;fill:#0969da}}.c{{fill:none;stroke-width:2.5;stroke-linejoin:round}}
.b{{fill:#f6f8fa;stroke:#8c959f}}.g{{fill:#dafbe1;stroke:#1a7f37;stroke-width:1.5}}
.w{{stroke:#57606a;fill:none;stroke-width:1.5}}.h{{fill:#57606a}}text.o,text.u,text.l{{stroke:none}}
@media(prefers-color-scheme:dark){{
.p{{fill:#0d1117}}text{{fill:#9198a1}}.t{{fill:#f0f6fc}}.a{{stroke:#3d444d}}.o{{stroke:#3fb950;fill:#3fb950}}
.u{{stroke:#f0883e;fill:#f0883e}}.l{{stroke:#58a6ff;fill:#58a6ff}}.c{{fill:none}}
.b{{fill:#151b23;stroke:#656c76}}.g{{fill:#12261e;stroke:#3fb950}}.w{{stroke:#9198a1}}.h{{fill:#9198a1}}}}
</style>"""
"""For both kinds of page, with a background of its own: a site may be dark for a light reader."""


def picture(width: int, height: int, title: str, *parts: str) -> str:
    """Return a picture; the title says the same in words."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">'
    page = f'<rect class="p" width="{width}" height="{height}" rx="8"/>'
    return "\n".join([head, f"<title>{escape(title)}</title>", _STYLE, page, *parts, "</svg>", ""])


class Curve(NamedTuple):
    """Values, one for each step of time, with the class that gives the color."""

    name: str
    kind: str
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class Panel:
    """Curves in one frame, which share an axis of time with the panels above and below."""

    left: int
    top: int
    width: int
    height: int
    highest: float

    def y(self, value: float) -> float:
        return self.top + self.height * (1 - value / self.highest)

    def axis(self, marks: Sequence[float], unit: str = "") -> str:
        return "".join(
            f'<path class="a" d="M{self.left} {self.y(mark):.1f}h{self.width}"/>'
            f'<text class="q e" x="{self.left - 8}" y="{self.y(mark) + 4:.1f}">'
            f"{mark:g}{unit}</text>"
            for mark in marks
        )

    def steps(self, curve: Curve) -> str:
        """Return a curve that keeps each value until the next one."""
        wide = self.width / len(curve.values)
        path, last = f"M{self.left} {self.y(curve.values[0]):.1f}", curve.values[0]
        for number, value in enumerate(curve.values):
            if value != last:
                path += f"H{self.left + number * wide:.1f}V{self.y(value):.1f}"
                last = value
        return f'<path class="{curve.kind} c" d="{path}H{self.left + self.width}"/>'

    def label(self, curve: Curve, at: int, below: int = -8) -> str:
        x = self.left + self.width * at / len(curve.values)
        y = self.y(curve.values[at]) + below
        return f'<text class="{curve.kind} n" x="{x:.1f}" y="{y:.1f}">{escape(curve.name)}</text>'


def times(panel: Panel, minutes: Sequence[int], last: float) -> str:
    return "".join(
        f'<text class="q m" x="{panel.left + panel.width * each / last:.1f}" '
        f'y="{panel.top + panel.height + 18}">{each} min</text>'
        for each in minutes
    )


def words(x: int, y: int, text: str, kind: str = "q") -> str:
    return f'<text class="{kind}" x="{x}" y="{y}">{escape(text)}</text>'

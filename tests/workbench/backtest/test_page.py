"""The page with plots: one file that loads nothing, and shows each step."""

import re

from keda_gpu_scaler.workbench.backtest.output import ticks
from keda_gpu_scaler.workbench.backtest.page import COLUMNS, Section, page
from keda_gpu_scaler.workbench.backtest.replay import fixed
from keda_gpu_scaler.workbench.backtest.work import Work


def paths(html: str) -> list[str]:
    return re.findall(r'<path d="([^"]+)" stroke', html)


def test_three_plots_show_work_replicas_and_overload() -> None:
    work = Work(0.0, [50.0, 200.0, None, 100.0])
    outcomes = {"<one>": fixed(work, 1), "two": fixed(work, 2)}
    rows = [["<one>", "1"], ["two", "2"]]
    html = page(
        [
            Section(
                "ml/bert & co",
                work,
                outcomes,
                ["alternative", "hours"],
                rows,
                ["a note"],
                [(0.5, "12:00")],
            )
        ]
    )
    # Steps are 225 wide, and 162 is the whole height.
    assert paths(html) == [
        "M60.0 129.5H285.0V8.0M735.0 89.0",
        "M60.0 89.0H285.0V89.0M735.0 89.0",
        "M60.0 8.0H285.0V8.0M735.0 8.0",
        "M60.0 170.0H285.0V8.0H510.0V8.0H735.0V8.0",
        "M60.0 170.0H285.0V170.0H510.0V170.0H735.0V170.0",
    ]
    assert "ml/bert &amp; co" in html
    assert html.index("a note") < html.index("<table>")
    assert "<td>&lt;one&gt;</td>" in html
    assert html.count('<text x="510.0" y="188">12:00</text>') == 3
    assert not re.search(r"<script|<link|src=|https?:", html)


def test_a_week_is_drawn_in_as_many_columns_as_there_are_and_keeps_its_peaks() -> None:
    loads: list[float | None] = [10.0] * 40_320
    loads[7] = 500.0
    work = Work(0.0, loads)
    first, *_ = paths(page([Section("", work, {"one": fixed(work, 1)}, [], [], ["a note"], [])]))
    assert first.count("H") == COLUMNS - 1
    assert first.startswith("M60.0 8.0H")


def test_the_axis_shows_the_hours_of_the_day_and_of_many_days_the_dates() -> None:
    def labels(hours: int) -> list[str]:
        return [label for _, label in ticks(1_795_345_200.0, 3600.0 * hours)]

    assert labels(8) == [f"{hour}:00" for hour in range(11, 19)]
    assert labels(72) == ["12:00", "00:00"] * 3
    assert labels(168) == [f"Nov {day}" for day in range(23, 30)]

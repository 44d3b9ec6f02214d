"""The pictures of README.md and the documentation that show the product at work, drawn anew.

    make pictures

Those of a run depend on no clock, machine or terminal; those of the status page are Chromium's.
"""

from pathlib import Path

from tools.pictures import backtest, demo, replicas, status

IMAGES = Path(__file__).parents[2] / "docs" / "images"

if __name__ == "__main__":
    (IMAGES / "demo.svg").write_text(demo.picture(), encoding="utf-8")
    (IMAGES / "replicas.svg").write_text(replicas.replicas(), encoding="utf-8")
    for name, trace in {"hour": backtest.azure(), "week": backtest.servegen()}.items():
        (IMAGES / f"backtest-{name}.svg").write_text(backtest.replayed(trace), encoding="utf-8")
    for name, image in status.pictures():
        (IMAGES / f"{name}.png").write_bytes(image)

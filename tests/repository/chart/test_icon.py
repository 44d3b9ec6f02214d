"""The chart's icon is the drawing of the status page, within Chart.yaml itself."""

import base64

import yaml

from tests.repository.chart import charts


def test_the_icon_is_the_one_of_the_status_page() -> None:
    drawing = (charts.ROOT / "keda_gpu_scaler" / "web" / "static" / "icon.svg").read_bytes()
    chart = yaml.safe_load((charts.CHART / "Chart.yaml").read_text())
    kind, _, text = chart["icon"].partition(";base64,")
    assert kind == "data:image/svg+xml"
    assert base64.b64decode(text) == drawing

"""What a process that serves asks of its interpreter."""

import subprocess
import sys

SAID = """
import gc, sys
from keda_gpu_scaler.cli import serve

serve.share_interpreter()
serve.keep_modules()
print(round(sys.getswitchinterval(), 6), *gc.get_threshold())
print(gc.get_freeze_count() > len(sys.modules))
"""


def test_threads_take_short_turns_and_collections_are_few_and_leave_out_the_modules() -> None:
    said = subprocess.run([sys.executable, "-c", SAID], check=True, capture_output=True, text=True)
    assert said.stdout.split() == ["0.0001", "1000", "2000", "20", "True"]

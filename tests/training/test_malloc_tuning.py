"""The thresholds of malloc, in a process of their own."""

import subprocess
import sys

import pytest

SCRIPT = """
import ctypes, resource, torch
ctypes.CDLL(None).prctl(41, 1, 0, 0, 0)  # no huge pages: one fault would fill hundreds of small ones
from regard.training.malloc_tuning import raise_malloc_thresholds
if {enabled}:
    assert raise_malloc_thresholds()
def work():  # tensors of a step's sizes, all held and then freed: below the largest threshold glibc takes
    held = [torch.zeros(6 << 20).add_(1) for _ in range(4)]
for _ in range(3):
    work()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    work()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's own")
def test_freed_pages_are_reused_without_page_faults() -> None:
    faults = [
        int(
            subprocess.run(
                [sys.executable, "-c", SCRIPT.format(enabled=enabled)], capture_output=True, check=True
            ).stdout
        )
        for enabled in (False, True)
    ]
    if not faults[0]:
        pytest.skip("the C library keeps its pages here without being told")
    assert faults[1] * 5 < faults[0]

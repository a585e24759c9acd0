"""The lock of a run."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from regard.training.run_lock import lock_run

SCRIPT = """
import sys, time
from pathlib import Path
from regard.training.run_lock import lock_run
with lock_run(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_run_is_locked_until_the_process_that_trains_it_ends(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", SCRIPT, str(tmp_path)], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(ValueError, match="another process is training in it"), lock_run(tmp_path):
            pass
        os.kill(other.pid, signal.SIGKILL)
        other.wait()
    with lock_run(tmp_path):
        pass
    with lock_run(tmp_path):
        pass

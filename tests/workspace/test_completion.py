"""A shell completes verbs, options and their values, by the real bash, once a command has installed that."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from commands import environment

COMPLETE = """
set -e
pluralbench --install-completion bash >/dev/null
source ~/.bashrc
COMP_WORDS=(pluralbench score --on-overflow d) COMP_CWORD=3
_pluralbench_completion pluralbench
echo "${COMPREPLY[@]}"
"""


@pytest.mark.heavy
@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_bash_completes_the_value_of_an_option(tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    done = subprocess.run(
        ["bash", "-c", COMPLETE],
        env=environment({"HOME": str(tmp_path), "PATH": path}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "drop\n"), done.stderr

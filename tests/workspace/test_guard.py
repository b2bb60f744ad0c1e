"""Every command of every member ends by the one guard: no traceback leaves any."""

import importlib
import sys

import pytest
from command_options import COMMANDS
from pluralbench_runs import command


@pytest.mark.parametrize("name", COMMANDS)
def test_a_fault_of_any_command_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    def broken(**_: object) -> None:
        raise KeyError("ours")

    monkeypatch.setattr(command, "command_of", lambda *_: broken)
    monkeypatch.delenv("PLURALBENCH_DEBUG", raising=False)
    monkeypatch.setattr(sys, "argv", [name])
    module, function = COMMANDS[name].split(":")
    with pytest.raises(SystemExit) as exit_:
        getattr(importlib.import_module(module), function)()
    assert exit_.value.code == 70
    said = capsys.readouterr()
    assert said.err.startswith(f"Error: Internal error in {name} (KeyError: 'ours')")
    assert "Traceback" not in said.out + said.err

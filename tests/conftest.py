"""What holds for every test: a property is tried without a deadline, and one that fails says how to see it again."""

import atexit
import gc
import os
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any

import pytest
from _pytest.mark.expression import Expression
from case_seconds import CALL, cpu_seconds, record
from hypothesis import settings
from printed_tables import print_tables
from session_folder import make_session_folder, one_certificate

# How long an example takes says how busy the machine is. CI draws the same examples in every run.
settings.register_profile(
    "pluralbench", deadline=None, print_blob=True, max_examples=25, derandomize="CI" in os.environ
)
settings.load_profile("pluralbench")
# What the Hub's, torch's, a provider's and our own libraries read, most of them when they are imported.
READ = (
    "HF_",
    "HUGGING",
    "TRANSFORMERS_",
    "TORCH",
    "PYTORCH",
    "CUDA_VISIBLE",
    "OPENAI_",
    "GOOGLE_",
    "RAY_",
    "PLURALBENCH_",
)
WHOLE = {"cuda": "heavy", "engines": "engines", "faults": "faults"}
"""Folders all of whose cases have a mark."""
OWN = ("PLURALBENCH_TEST_SESSION", "PLURALBENCH_ENGINES")  # what the tests themselves say to their processes
for name in [*os.environ]:
    if name.startswith(READ) and name not in OWN:
        del os.environ[name]
# Some hundred processes start: without bytecode on disk each would compile all that it imports, for seconds.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# Each of the processes that share the cores computes with one thread: more would wait for each other.
os.environ["OMP_NUM_THREADS"] = os.environ["POLARS_MAX_THREADS"] = "1"
os.environ["no_proxy"] = os.environ["NO_PROXY"] = "127.0.0.1,::1,localhost"
# Ray reads this when it is imported, by whichever test comes first: else it looks for a cluster on loopback at the
# machine's other address.
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"


def pytest_configure() -> None:
    """What is dear to make is made once for all processes of the session."""
    make_session_folder()
    if find_spec("certifi"):  # not with the members that ask no server
        os.environ["SSL_CERT_FILE"] = one_certificate()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import nothing of a folder none of whose cases is asked for; what the caller names is collected anyway."""
    mark, asked = WHOLE.get(collection_path.name), config.option.markexpr
    if mark and asked and not Expression.compile(asked).evaluate(lambda name, /, **_: name == mark):
        return True
    return None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is imported stays: looking through it for garbage again and again was a tenth of the session."""
    gc.disable()
    yield
    gc.freeze()
    gc.enable()
    # What is made later is looked through less often than by default, which was another twentieth.
    gc.set_threshold(10_000, 20, 20)
    # At its end Python takes apart what it is told of, and libraries complain of the rest.
    atexit.register(gc.unfreeze)


@pytest.fixture(scope="session", autouse=True)
def _commands_are_made_once() -> Iterator[None]:
    """A command is made in 50 ms with all its verbs; a process of its own does so once, this one a thousand times."""
    if not find_spec("pluralbench_runs"):
        yield
        return
    from pluralbench_runs import command

    make, made = command.command_of, dict[Any, Any]()

    def once(program: Any) -> Any:
        key = program.name, *(verb for listed in program.verbs.values() for verb in listed)
        if key not in made:
            made[key] = make(program)
        return made[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "command_of", once)
        yield


@pytest.fixture
def run(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """Run the command of the builder in whose folder the test is; gives its exit status and what it wrote."""
    from commands import in_process

    folder = request.path.parent.name
    return in_process(folder.replace("_", "-"), import_module(f"{folder}.cli").main, monkeypatch, capsys)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A Hub that the clients of this process ask, as somebody who may write to `org`."""
    from live_hub import live_hub, point_clients

    with live_hub() as server:
        point_clients(monkeypatch, server, tmp_path / "home")
        yield server


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, where this machine has it; the one without windows computes half as much."""
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    chromium = next(filter(None, map(which, names)), None)
    if chromium is None:
        pytest.skip("there is no Chromium here")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=60_000)  # 5 s by default, which a busy machine may need
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield opened
        opened.close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The dearest come first, so that none begins when the other processes have nothing left."""
    items.sort(key=lambda item: [not item.get_closest_marker(name) for name in ("learning", "heavy")])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    before = cpu_seconds()
    try:
        return (yield)
    finally:
        item.stash[CALL] = cpu_seconds() - before


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    before = cpu_seconds()
    result = yield
    if file := item.config.getoption("case_seconds", None):
        record(item, nextitem, cpu_seconds() - before, file)
    return result


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options, those of `tests/faults` too, whose own conftest pytest reads too late, or with several processes not."""
    parser.addoption("--case-seconds", type=Path, help="Append the CPU seconds of each case to this file.")
    group = parser.getgroup("faults")
    group.addoption("--faults-share", type=float, default=1.0, help="How much of the full run is tried, such as 0.05.")
    group.addoption("--faults-seed", default="0", help="Other cases for each seed.")
    group.addoption("--faults-case", type=int, default=None, help="Only this case of the chosen test.")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The tables of `tests/faults` and of the tests marked `learning`, where they ran."""
    reports = [report for found in terminalreporter.stats.values() for report in found]
    print_tables(reports, terminalreporter._tw._file)

"""The directory a command writes: atomically, resumable, never under two recipes at once."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import ClassVar

import pytest
from commands import environment
from full_disk import no_file_beyond
from killing import killed_at
from pluralbench_runs import (
    FrozenModel,
    Output,
    OutputError,
    Recipe,
    RecipeError,
    open_file,
    output_directory,
    rng_for,
    write_recipe,
)
from pluralbench_runs.regular_files import noted_inputs

RECIPE_FILE = "provenance/recipe.toml"
HOLD = """
import sys
from pathlib import Path
from pluralbench_runs import Recipe, output_directory
with output_directory(Path(sys.argv[1]), Recipe(), recipe_file="recipe.toml") as output:
    (output.work / "calls").write_text("one", encoding="utf-8")
    print("open", flush=True)
    sys.stdin.read()
"""


class Connection(FrozenModel):
    """An runtime_only table."""

    concurrency: int = 8


class Build(Recipe):
    """A small recipe."""

    runtime_only: ClassVar[frozenset[str]] = frozenset({"connection"})

    extendable: ClassVar[frozenset[str]] = frozenset({"limit", "languages", "decisions"})

    seed: int
    retriever: str = "bm25"
    limit: int | None = None
    languages: tuple[str, ...] = ()
    decisions: str | None = None
    connection: Connection = Connection()


ONE, TWO = Build(seed=1), Build(seed=2, retriever="tfidf")


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "out"


def work_of(target: Path) -> Path:
    return target.with_name("out.work")


def opened(target: Path, recipe: Recipe = ONE, *, fresh: bool = False) -> AbstractContextManager[Output]:
    return output_directory(target, recipe, recipe_file=RECIPE_FILE, fresh=fresh)


def build(target: Path, recipe: Build = ONE, text: str = "data", *, fresh: bool = False) -> None:
    """A whole run."""
    with opened(target, recipe, fresh=fresh) as output:
        staged = output.staging()
        (staged / RECIPE_FILE).parent.mkdir()
        write_recipe(recipe, staged / RECIPE_FILE)
        (staged / "data.txt").write_text(text, encoding="utf-8")
        output.publish(staged)


def interrupted(target: Path, recipe: Recipe = ONE) -> None:
    """A run that recorded something and was then interrupted."""
    with suppress(KeyboardInterrupt), opened(target, recipe) as output:
        (output.work / "calls").write_text("one", encoding="utf-8")
        raise KeyboardInterrupt


def data(target: Path) -> str:
    return (target / "data.txt").read_text(encoding="utf-8")


def refusal(target: Path, recipe: Recipe = ONE, *, fresh: bool = False) -> str:
    """Why `target` is not opened."""
    with pytest.raises(OutputError) as caught, opened(target, recipe, fresh=fresh):
        pass
    return str(caught.value)


@contextmanager
def other_process(target: Path) -> Iterator["subprocess.Popen[str]"]:
    """Another process that has `target` open."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(target)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env=environment(),
    ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "open\n"
            yield process
        finally:
            process.kill()


@pytest.mark.smoke
def test_a_run_publishes_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    target = tmp_path / "new" / "日本語 😀" / "out"
    build(target)
    assert data(target) == "data"
    assert [path.name for path in target.parent.iterdir()] == ["out"]


def test_the_same_recipe_goes_on_and_replaces(target: Path) -> None:
    interrupted(target)
    with opened(target, Build(seed=1, connection=Connection(concurrency=1))) as output:
        assert (output.work / "calls").read_text(encoding="utf-8") == "one"
    build(target, text="first")
    build(target, text="second")
    assert data(target) == "second"


def test_other_settings_are_refused_and_said_in_plain_words(target: Path) -> None:
    interrupted(target)
    mend = "use the same settings to resume, choose another output directory, or start over with `fresh=True`."
    assert refusal(target, TWO) == (
        f"An unfinished run in {target} was made with other settings (retriever bm25, now tfidf; seed 1, now 2); {mend}"
    )
    assert (work_of(target) / "calls").exists()
    build(target)
    assert refusal(target, Build(seed=3)) == f"{target} was made with other settings (seed 1, now 3); {mend}"
    assert not work_of(target).exists()
    assert data(target) == "data"


def test_settings_that_only_grow_continue_and_replace(target: Path) -> None:
    few = Build(seed=1, limit=5, languages=("spa",))
    interrupted(target, few)
    more = Build(seed=1, limit=7, languages=("deu", "spa"), decisions="a")
    with opened(target, more) as output:
        assert (output.work / "calls").read_text(encoding="utf-8") == "one"
    build(target, more)
    everything = Build(seed=1, languages=("deu", "spa"), decisions="b")
    build(target, everything, "all")
    assert data(target) == "all"
    for fewer, difference in (
        ({"limit": 9}, "limit none, now 9"),
        ({"languages": ("deu",)}, 'languages ["deu", "spa"], now ["deu"]'),
        ({"decisions": None}, "decisions b, now none"),
        ({"seed": 2, "decisions": "c"}, "decisions b, now c; seed 1, now 2"),
    ):
        assert f"({difference})" in refusal(target, everything.model_copy(update=fewer))


def test_other_settings_name_the_way_that_repeats_no_recorded_call(target: Path) -> None:
    with suppress(KeyboardInterrupt), opened(target) as output:
        (output.work / "ledger.sqlite").write_text("paid", encoding="utf-8")
        raise KeyboardInterrupt
    ways = "use the same settings to resume, or build into another directory with `reuse='{}'`, which repeats no"
    assert ways.format(work_of(target) / "ledger.sqlite") in refusal(target, TWO)
    with opened(target) as output:
        output.publish(staged_with_calls(output, ONE, "first"))
    assert ways.format(target) in refusal(target, TWO)


def staged_with_calls(output: Output, recipe: Recipe, calls: str) -> Path:
    staged = output.staging()
    (staged / "provenance").mkdir()
    write_recipe(recipe, staged / RECIPE_FILE)
    (staged / "provenance" / "ledger.parquet").write_text(calls, encoding="utf-8")
    return staged


def test_a_fresh_start_keeps_the_recorded_calls_beside_the_directory(target: Path) -> None:
    def kept() -> dict[str, str]:
        folders = target.parent.glob("out.kept-*")
        return {path.name: path.read_text(encoding="utf-8") for folder in folders for path in folder.iterdir()}

    for calls in ("first", "first"):
        with opened(target, fresh=True) as output:
            output.publish(staged_with_calls(output, ONE, calls))
    assert kept() == {}, "the same calls are in the new directory"
    with suppress(KeyboardInterrupt), opened(target) as output:
        for name in ("ledger.sqlite", "ledger.sqlite-wal", "other"):
            (output.work / name).write_text("begun", encoding="utf-8")
        raise KeyboardInterrupt
    with opened(target, TWO, fresh=True) as output:
        output.publish(staged_with_calls(output, TWO, "second"))
    assert kept() == {"ledger.parquet": "first", "ledger.sqlite": "begun", "ledger.sqlite-wal": "begun"}
    assert (target / "provenance" / "ledger.parquet").read_text(encoding="utf-8") == "second"
    assert not work_of(target).exists()


def test_a_fresh_start_that_fails_before_any_work_leaves_the_interrupted_run(target: Path) -> None:
    interrupted(target)
    for _ in range(2):
        with suppress(OutputError), opened(target, TWO, fresh=True) as output:
            assert not (output.work / "calls").exists()
            raise OutputError("a mistake in the sources")
    with opened(target) as output:
        assert (output.work / "calls").read_text(encoding="utf-8") == "one"
    with suppress(KeyboardInterrupt), opened(target, TWO, fresh=True) as output:
        (output.work / "calls").write_text("two", encoding="utf-8")
        raise KeyboardInterrupt
    with opened(target, TWO) as output:
        assert (output.work / "calls").read_text(encoding="utf-8") == "two"


@pytest.mark.parametrize("late", [False, True])
def test_an_input_is_not_replaced_by_a_fresh_start(target: Path, late: bool) -> None:
    build(target)

    def replace() -> None:
        with opened(target, ONE, fresh=True) as output:
            open_file(target / "data.txt").close()
            output.publish(output.staging())

    with noted_inputs():
        open_file(target / RECIPE_FILE).close()
        build(target, TWO, "second", fresh=True)  # a run looks at the recipe of the old one
        if not late:
            open_file(target / "data.txt").close()
            build(target, TWO, "second")  # a run that does not start over may read what is in place
        with pytest.raises(OutputError, match=r"has an input of this command \(data\.txt\)"):
            replace()
    assert data(target) == "second"


@pytest.mark.parametrize("fresh", [False, True])
def test_what_no_build_wrote_is_never_replaced(target: Path, fresh: bool) -> None:
    target.write_text("mine", encoding="utf-8")
    assert refusal(target, fresh=fresh) == f"{target} is a file; choose another output directory."
    assert refusal(target / "deeper", fresh=fresh).startswith(f"Cannot write next to {target / 'deeper'}: ")
    target.unlink()
    target.mkdir()
    (target / "thesis.txt").write_text("mine", encoding="utf-8")
    assert refusal(target, fresh=fresh) == f"{target} has files that no build wrote; choose another output directory."
    assert [path.name for path in target.parent.iterdir()] == ["out"]


def test_two_processes_do_not_write_at_once_and_a_killed_one_leaves_its_work(target: Path) -> None:
    with other_process(target) as process:
        sentence = f"Another process is writing {target}; wait for it or choose another output directory."
        assert refusal(target, Recipe()) == sentence
        assert refusal(target, Recipe(), fresh=True) == sentence
        process.kill()
        process.wait()
        with opened(target, Recipe()) as output:
            assert (output.work / "calls").read_text(encoding="utf-8") == "one"


def test_a_recipe_of_another_version_is_refused_by_name_with_the_mend(target: Path) -> None:
    build(target)
    (target / RECIPE_FILE).write_text("seed = 1\nretired = 2\n", encoding="utf-8")
    with pytest.raises(RecipeError, match=r"unknown key `retired`.* start over with `fresh=True`"), opened(target):
        pass
    build(target, text="fresh", fresh=True)
    assert data(target) == "fresh"


def test_a_full_disk_at_the_start_does_not_unbind_the_work(target: Path) -> None:
    interrupted(target)
    with no_file_beyond(0), pytest.raises(OSError, match="File too large"), opened(target):
        pass
    with opened(target) as output:
        assert (output.work / "calls").read_text(encoding="utf-8") == "one"


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("name", [".", "./.", "..", "../..", "../here", "/"])
def test_the_current_directory_and_what_holds_it_are_refused(
    target: Path, monkeypatch: pytest.MonkeyPatch, name: str, fresh: bool
) -> None:
    here = target / "here"
    here.mkdir(parents=True)
    monkeypatch.chdir(here)
    assert refusal(Path(name), fresh=fresh) == (
        f"{Path(name)} is or contains the current directory, and an output directory is replaced as a whole; "
        "choose another output directory."
    )
    assert not list(here.iterdir())
    assert [path.name for path in target.parent.iterdir()] == ["out"]


def recorded(target: Path, asked: list[str], *, fresh: bool = False) -> str:
    """A command that returns what is finished, and otherwise asks for what is not yet recorded."""
    with opened(target, fresh=fresh) as output:
        if (target / RECIPE_FILE).exists() and not fresh:
            return data(target)
        calls = output.work / "calls" / "ledger"
        if not calls.exists():
            calls.parent.mkdir(exist_ok=True)
            calls.write_text(f"answer {len(asked)}", encoding="utf-8")
            asked.append("a question")
        staged = output.staging()
        (staged / RECIPE_FILE).parent.mkdir()
        write_recipe(ONE, staged / RECIPE_FILE)
        (staged / "data.txt").write_text(calls.read_text(encoding="utf-8"), encoding="utf-8")
        output.publish(staged)
    return data(target)


@pytest.mark.parametrize("again", [False, True], ids=["first", "replacing"])
def test_a_kill_at_any_operation_loses_nothing_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, again: bool
) -> None:
    for number in range(100):
        target = tmp_path / str(number) / "out"
        asked: list[str] = []
        if again:
            recorded(target, asked)
            (target / "notes.md").write_text("mine", encoding="utf-8")
        with killed_at(number, monkeypatch) as killed:
            recorded(target, asked, fresh=again)
        before = len(asked)
        newest = recorded(target, asked) == f"answer {int(again)}"
        assert newest or again, "the old result stays until the new one is in its place"
        assert len(asked) == max(before, 1), f"asked again after a kill at operation {number}"
        if newest:
            left = sorted({path.name.partition("kept-")[0] for path in target.parent.iterdir()})
            assert left == ["out", "out."][: 1 + again], f"left by a kill at operation {number}"
        assert [path.read_text("utf-8") for path in target.parent.rglob("notes.md")] == ["mine"] * again
        if not killed():
            break
    assert number > 10


def test_what_others_put_into_a_directory_is_kept_beside_its_new_version(
    target: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    build(target)
    (target / ".git").mkdir()
    (target / ".git" / "config").write_text("mine", encoding="utf-8")
    build(target, TWO, fresh=True)
    [kept] = target.parent.glob("out.kept-*")
    assert (kept / ".git" / "config").read_text(encoding="utf-8") == "mine"
    message = " ".join(capsys.readouterr().err.split())
    assert f"The old {target} had files that the new one has not (.git); they are in {kept} now." in message
    build(target, ONE, fresh=True)
    assert [*target.parent.glob("out.kept-*")] == [kept]


def test_a_number_that_is_not_kept_exactly_is_refused_before_any_work(tmp_path: Path) -> None:
    for seed in (2**53, 10**25):
        with (
            pytest.raises(RecipeError, match=r"out: `seed` is an integer beyond 2\*\*53\.$"),
            opened(tmp_path / "out", Build(seed=seed)),
        ):
            pass
        with pytest.raises(
            RecipeError, match=rf"^{seed} exceeds .*: a number beyond 2\*\*53 cannot be stored exactly; use"
        ):
            rng_for(seed, "name")
    with opened(tmp_path / "out", Build(seed=2**53 - 1)):
        rng_for(2**53 - 1, "name")


def test_the_finished_directory_is_not_touched_before_publish(target: Path) -> None:
    build(target)
    with opened(target) as output:
        staged = output.staging()
        (staged / "data.txt").write_text("new", encoding="utf-8")
        assert data(target) == "data"
        (output.staging() / RECIPE_FILE).parent.mkdir()  # a second staging is empty again
        assert not (staged / "data.txt").exists()
    assert data(target) == "data"


def test_fresh_forgets_and_replaces(target: Path) -> None:
    build(target)
    interrupted(target)
    build(target, TWO, "fresh", fresh=True)
    assert data(target) == "fresh"
    assert not work_of(target).exists()


def test_failing_before_anything_was_done_binds_nothing(target: Path) -> None:
    with pytest.raises(RuntimeError, match="no key"), opened(target):
        raise RuntimeError("no key")
    assert not work_of(target).exists()
    build(target, TWO)


def test_a_run_that_begins_after_a_publish_keeps_its_work(target: Path) -> None:
    with ExitStack() as stack:
        with opened(target) as output:
            staged = output.staging()
            (staged / RECIPE_FILE).parent.mkdir()
            write_recipe(ONE, staged / RECIPE_FILE)
            output.publish(staged)
            second = stack.enter_context(opened(target))
        assert second.work.is_dir()


def test_the_work_of_a_fresh_start_survives_a_call_that_returns_the_old_result(target: Path) -> None:
    """What is recorded is no remainder of what is in place."""
    asked: list[str] = []
    recorded(target, asked)
    with suppress(KeyboardInterrupt), opened(target, fresh=True) as output:
        (output.work / "calls").write_text("one", encoding="utf-8")
        raise KeyboardInterrupt
    assert recorded(target, asked) == "answer 0"
    assert (work_of(target) / "calls").exists()


def test_what_was_only_begun_binds_no_other_recipe(target: Path) -> None:
    work_of(target).mkdir()
    write_recipe(TWO, work_of(target) / "recipe.toml")
    build(target)
    assert data(target) == "data"
    assert not work_of(target).exists()


@pytest.mark.parametrize("fresh", [False, True])
def test_a_link_to_a_directory_stays_and_the_directory_is_replaced(target: Path, fresh: bool) -> None:
    folder = target.with_name("elsewhere")
    target.symlink_to(folder)
    for text in ("first", "second"):
        build(target, text=text, fresh=fresh)
        assert target.is_symlink()
        assert data(folder) == text


def test_a_link_to_itself_is_refused(target: Path) -> None:
    target.symlink_to(target.name)
    assert str(target) in refusal(target)

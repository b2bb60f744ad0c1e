"""`judge-metrics` as a command: tables that fit a terminal, Markdown, JSON, figures, and errors of one sentence."""

import json
import random
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import without_status
from pluralbench.commands import printing
from pluralbench.commands.app import main
from pluralbench.data.verdict_tables import read_verdicts
from pluralbench.reports.verdicts import verdict_rows
from written_verdicts import LABELS, NAMES, SAMPLE, written

Command = Callable[..., tuple[int, str, str]]
RECORDED = Path(__file__).parents[2].parent / "shared" / "data" / "persona_judge" / "recorded_verdicts.csv"
needs_shared = pytest.mark.skipif(not RECORDED.is_file(), reason=f"the recorded verdicts are not at {RECORDED}")
PROMISED = ("task", "judge", "setting", "persona_variables", "n", "correct", "invalid", "accuracy", "high", "low")


@pytest.fixture
def metrics(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run `judge-metrics` with these words in this process: its exit status, output and errors."""
    for console in (printing.console, printing.errors):
        monkeypatch.setattr(console, "width", 100)

    def words_to_result(*words: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["pluralbench", "judge-metrics", *map(str, words)])
        with pytest.raises(SystemExit) as exit_:
            main()
        out = capsys.readouterr()
        return int(exit_.value.code or 0), out.out, without_status(out.err)

    return words_to_result


def grid_lines(out: str) -> list[str]:
    """The lines of the tables, without the notes below them."""
    return out.partition("Invalid answers count")[0].splitlines()


def test_json_has_a_row_for_each_group_with_the_promised_names(metrics: Command, tmp_path: Path) -> None:
    path = written(tmp_path)
    status, out, err = metrics(path, "--format", "json")
    assert (status, err) == (0, "")
    rows = json.loads(out)
    assert rows == verdict_rows(read_verdicts(path))
    for row in rows:
        assert set(PROMISED) <= set(row)
        assert list(row["high"]) == list(row["low"]) == ["correct", "total"]
        assert row["human"] is None
    assert [row["against_none"] is not None for row in rows] == [True, False, False, False]


def test_the_table_fits_a_terminal_and_says_what_its_numbers_are(metrics: Command, tmp_path: Path) -> None:
    labels = written(tmp_path, LABELS, "labels.csv")
    status, out, _ = metrics(written(tmp_path), "--labels", labels, "--threshold", "75")
    assert status == 0
    assert max(map(len, grid_lines(out))) <= 100
    people = out.partition("Judges and human annotators on the same items")[2].partition("Invalid answers count")[0]
    assert (people.count("ada-1 "), people.count("ben-2 ")) == (2, 1)
    out = " ".join(out.split())
    for part in (
        *("≥ 75", "< 75", "> 75", "ECE", "AURC", "share of A", "difference", "majority"),
        "95% intervals over `user`.",
        "Certainties that are not a number from 1 to 100: drinks, ada-1, certainty, all (3).",
        "Valid answers without a certainty: drinks, ada-1, certainty, all (4).",
        "Excluded rows, which exist only with or only without a persona: drinks, ada-1, certainty, all (8).",
        "Single labels are correct in 7 of 10, two annotators agree in ",
        " over draws of 4 items), 1 open (excluded, no majority), 1 labeled items without a verdict: ",
    ):
        assert part in out, part
    assert out.endswith("drinks, ben-2, certainty, all; drinks, ada-1, certainty, none.")


def test_several_files_are_one_table_of_the_sets_of_variables_at_high_and_low_certainty(
    metrics: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(printing.console, "width", 80)
    draw, paths, expected = random.Random(3), [], {}
    for variables, count in (("all", 30), ("key", 30), ("least", 21)):
        rows = [
            {"task": "prism", "setting": "certainty", "judge": judge, "persona_variables": variables, "row": str(row)}
            | {"answer": draw.choice("AB"), "certainty": str(draw.choice((60, 79, 80, 95))), "truth": draw.choice("AB")}
            for judge in ("ada-1", "ben-2")
            for row in range(count)
        ]
        for judge in ("ada-1", "ben-2"):
            high = [row for row in rows if row["judge"] == judge and int(row["certainty"]) >= 80]
            low = [row for row in rows if row["judge"] == judge and int(row["certainty"]) < 80]
            cells = [(sum(row["answer"] == row["truth"] for row in part), len(part)) for part in (high, low)]
            expected[variables, judge] = [f"{n}/{of}" for n, of in cells], [f"{100 * n / of:.1f}" for n, of in cells]
        text = "\n".join([",".join(rows[0]), *(",".join(row.values()) for row in rows)])
        paths.append(written(tmp_path, text + "\n", f"{variables}.csv"))
    status, out, _ = metrics(*paths)
    assert status == 0
    assert max(map(len, out.splitlines())) <= 80
    table, variables = out.partition("Certainty: high is at least 80")[2], ""
    found: dict[tuple[str, str], tuple[list[str], list[str]]] = {}
    for words in map(str.split, table.partition("Invalid answers")[0].splitlines()):
        if words[:2] == ["prism,", "certainty,"]:
            variables = words[2]
        elif words and words[0] in {"ada-1", "ben-2"}:
            counts = [word for word in words if "/" in word][:2]
            found.setdefault((variables, words[0]), (counts, [words[words.index(count) + 1] for count in counts]))
    assert found == expected
    status, _, err = metrics(paths[0], paths[0])
    assert (status, f"{paths[0]} and {paths[0]} has 2 rows with the task prism, row 0" in err) == (2, True)


def test_labels_that_never_agree_leave_the_table_empty_but_for_their_count(metrics: Command, tmp_path: Path) -> None:
    torn = "task,row,annotator,answer,certainty\ndrinks,0,p1,A,90\ndrinks,0,p2,B,90\n"
    _, out, _ = metrics(written(tmp_path), "--labels", written(tmp_path, torn, "labels.csv"))
    people = out.partition("Judges and human annotators on the same items")[2].partition("Invalid answers count")[0]
    [row] = {tuple(line.split()[1:]) for line in people.splitlines() if line.strip().startswith("ada-1")}
    assert row == ("1", "0", "–", "–", "–", "–", "–")
    assert "1 open (excluded, no majority)" in " ".join(out.split())


def test_without_a_user_the_report_says_that_rows_are_drawn(metrics: Command, tmp_path: Path) -> None:
    text = "\n".join(line.rpartition(",")[0] for line in SAMPLE.splitlines())
    out = " ".join(metrics(written(tmp_path, text))[1].split())
    assert "intervals over rows, since there is no column `user`." in out


def test_markdown_has_the_same_numbers_in_whole_tables(metrics: Command, tmp_path: Path) -> None:
    status, out, _ = metrics(written(tmp_path), "--format", "markdown")
    assert status == 0
    assert "| drinks, certainty, all | ada-1 | 12 | 3 | 50.0 [" in " ".join(out.split())
    assert "2/3 66.7" in out
    assert out.count("|---") >= 3
    assert "\n- Invalid answers count as wrong." in out


def test_many_judges_of_long_names_still_fit(metrics: Command, tmp_path: Path) -> None:
    row = "drinks,{},certainty,all,{},A,{},A\n"
    judges = [f"organisation-{number}/a-model-with-a-very-long-name-indeed-v{number}" for number in range(9)]
    text = SAMPLE.splitlines()[0].removesuffix(",user") + "\n"
    text += "".join(row.format(judge, item, 60 + item) for judge in judges for item in range(40))
    text += "".join(row.replace("all", "none").format(judge, item, 101) for judge in judges for item in range(40))
    status, out, _ = metrics(written(tmp_path, text))
    assert status == 0
    assert max(map(len, grid_lines(out))) <= 100
    assert "(40); and 4 more." in out


@pytest.mark.heavy
def test_figures_are_named_where_they_do_not_disturb(
    metrics: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, folder = written(tmp_path), tmp_path / "figures"
    status, out, err = metrics(path, "--format", "json", "--plots", folder)
    assert status == 0
    json.loads(out)
    written_ = sorted(place.name for place in folder.iterdir())
    assert sorted(Path(line.removeprefix("Wrote ")).name for line in err.splitlines()) == written_
    assert {"certainty_certainty_all.png", "risk_coverage_certainty_none.svg"} <= {*written_}
    monkeypatch.setattr("pluralbench.reports.figures.files._save", lambda _, *paths: [*paths])  # they are there
    _, out, err = metrics(path, "--plots", folder)
    assert out.count("Wrote ") == len(written_)
    assert err == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("verdicts.csv", "--labels", "labels.csv"), "labels.csv has no column `annotator`; it has task, judge"),
        (("tie.csv", "--plots", "figures"), "There is nothing to draw: no verdict has a certainty"),
    ],
)
def test_what_cannot_be_measured_is_one_sentence(
    metrics: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], said: str
) -> None:
    written(tmp_path)
    written(tmp_path, name="labels.csv")
    lines = SAMPLE.splitlines()
    written(tmp_path, "\n".join([lines[0], *(line for line in lines if line.startswith("letters"))]), "tie.csv")
    monkeypatch.chdir(tmp_path)
    status, _, err = metrics(*words)
    assert status == 2
    assert err.startswith(f"Error: {said}")
    assert err.count("\n") == 1


def test_a_threshold_off_the_scale_is_refused(metrics: Command, tmp_path: Path) -> None:
    assert metrics(written(tmp_path), "--threshold", "0")[0] == 2
    assert metrics(written(tmp_path), "--threshold", "101")[0] == 2


@needs_shared
def test_the_recorded_verdicts_through_the_command(metrics: Command) -> None:
    status, out, _ = metrics(RECORDED, "--format", "json")
    assert status == 0
    found = {(row["task"], row["judge"]): row for row in json.loads(out) if row["setting"] == "certainty"}
    assert found["personal_reddit", "gpt-4o-2024-05-13"]["high"] == {"correct": 229, "total": 243}
    assert found["personal_reddit", "command-r-plus"]["high"] == {"correct": 346, "total": 361}
    status, out, _ = metrics(RECORDED)
    lines = grid_lines(out)
    assert max(map(len, lines)) <= 100
    assert "229/243 94.2" in out


def test_answers_in_other_words_are_told_where_they_do_not_disturb(metrics: Command, tmp_path: Path) -> None:
    head = ",".join(NAMES)
    rows = [f"t,j,certainty,all,{n},{'a' if n % 2 else '[[B]]'},80,A" for n in range(6)]
    status, out, err = metrics(written(tmp_path, "\n".join([head, *rows])), "--format", "json")
    assert (status, json.loads(out)[0]["accuracy"]) == (0, 0.5)
    assert err == "Read as A, B, C: 6 answers written as '[[B]]', 'a'.\n"
    rows = [f"t,j,certainty,all,{n},Response {n % 2 + 1},80,A" for n in range(6)]
    status, out, _ = metrics(written(tmp_path, "\n".join([head, *rows]), "words.csv"))
    told = "6 of 6 answers are invalid: 'Response 1', 'Response 2'. Valid answers are A, B and, if ties are possible, C"
    assert status == 0
    assert told in " ".join(out.split())

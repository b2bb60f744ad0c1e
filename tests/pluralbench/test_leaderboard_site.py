"""`leaderboard --site`: its page holds what the runs found and their checks, and escapes what others wrote."""

import json
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from html_runs import Read
from live_hub import Hub
from made_runs import changed, keep, scored
from pluralbench.errors import RunError
from pluralbench.leaderboard.checks import check_summary, read_check_results
from pluralbench.leaderboard.site import INDEX, write_site
from pluralbench.publishing import push_results
from pluralbench.results.checks import CheckResult
from pluralbench.results.finding import find_runs
from pluralbench.results.run_files import METRICS_FILE, RUN_FILE
from pluralbench.results.runs import Run
from pluralbench_runs import OutputError
from written_tables import write

Command = Callable[..., tuple[int, str, str]]

HOSTILE = "<script>alert(1)</script>"
SCORES = {"org/good": (1.0, 0.5), "ORG/good": (-1.0, 0.5), HOSTILE: (0.0, 0.0)}
"""By a model's name what it thinks of the length of an answer, and what it adds by chance."""


def kept(folder: Path, name: str, model: str, benchmark: str, likes: float, chance: float, **changes: Any) -> Run:
    """The run of a model that goes by length and by chance."""

    def scores(prompt: str, responses: Sequence[str]) -> list[float]:
        return [likes * len(one) + 20 * chance * random.Random(prompt + one).gauss(0, 1) for one in responses]

    run = scored(benchmark, folder.parent / f"{benchmark}.jsonl", folder / name, scores, model=model)
    return keep(changed(run, **changes))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three models on two benchmarks, one of them told of the person, and a run whose numbers are not its items'."""
    folder = tmp_path_factory.mktemp("submissions") / "runs"
    rows = [{"id": f"q{n}", "chosen": f"Yes, {'very ' * (n % 5)}", "rejected": f"No {n * 7}."} for n in range(12)]
    write(folder.parent / "pairs.jsonl", [row | {"prompt": f"Question {row['id']}?"} for row in rows])
    write(folder.parent / "rankings.jsonl", [ranking(row) for row in rows])
    for place, (model, likes) in enumerate(SCORES.items()):
        kind = ("classifier", "generative", "classifier")[place]
        size: dict[str, Any] = {"model__parameters": 3 * 10**9 if place else None}
        kept(folder, f"pairs-{place}", model, "pairs", *likes, model__kind=kind, **size)
    kept(folder, "deep/rankings-0", "org/good", "rankings", 1.0, 0.5, model__kind="classifier")
    context = {"prompt__profile": "raw", "prompt__plans_digest": "d" * 64}
    kept(folder, "pairs-told", "org/good", "pairs", -1.0, 0.9, model__kind="classifier", **context)
    forged = kept(folder, "forged", "org/forger", "pairs", -1.0, 0.0)
    metrics = json.loads((forged.path / METRICS_FILE).read_text(encoding="utf-8"))
    metrics["rows"][0]["value"] = 0.99
    (forged.path / METRICS_FILE).write_text(json.dumps(metrics), encoding="utf-8")
    where = {"data__location": "nowhere.jsonl", "benchmark__title": "Pairs (nowhere.jsonl)"}
    kept(folder, "unread", "org/unread", "pairs", 1.0, 0.1, **where)
    return folder


def ranking(row: dict[str, str]) -> dict[str, object]:
    return {"id": row["id"], "prompt": row["id"], "responses": [row["chosen"], row["rejected"]], "rank": [1, 2]}


@pytest.fixture(scope="module")
def site(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("sites") / "site"
    write_site(folder, out, any_data=True)
    return out


@pytest.fixture(scope="module")
def page(site: Path) -> Read:
    return Read((site / INDEX).read_text(encoding="utf-8"))


def test_links_lead_to_runs_and_tables_of_the_page(page: Read) -> None:
    ids = page.values("id")
    assert len(ids) == len({*ids})
    assert {"standings", "runs", "consistent", "refused"} <= {*ids}
    led = {*page.values("href")}
    assert {f"#run-{n}" for n in range(1, 6)} | {"#table-0"} <= led
    assert {link.removeprefix("#") for link in led} <= {*ids}
    assert [page.values(name) for name in ("src", "srcset", "action")] == [[], [], []]
    assert HOSTILE in page.text, "names of others are text"


def test_a_run_that_is_refused_is_named_with_the_reason_and_in_no_table(page: Read) -> None:
    assert "metrics.json has 1 row with a number or interval that does not follow from items.parquet" in page.text
    assert [page.words.count(model) for model in ("org/forger", "org/unread")] == [1, 1]
    assert "Not checked against their data" in page.text
    assert "contains no texts, and its data cannot be read" in page.text
    assert "5 runs, 3 models, 2 benchmarks." in page.text


def test_runs_have_their_numbers_ranks_checks_and_origin(page: Read) -> None:
    assert "deep/rankings-0" in page.text
    assert "org/good (profile raw)" in page.text
    assert "Checked: items, outcomes, metrics and intervals were recomputed from its data, scores" in page.text
    assert "Data digest" in page.text
    assert not [attributes for attributes, _ in page.scripts if "type" in attributes], "no text of any item"


@pytest.mark.heavy
def test_the_same_runs_give_the_same_bytes_in_place_of_the_older_site(site: Path, folder: Path) -> None:
    before = (site / INDEX).read_bytes()
    assert not [text for text in (str(folder), HOSTILE) if text.encode() in before]
    write_site(folder, site, any_data=True)
    assert (site / INDEX).read_bytes() == before
    assert {path.name for path in site.iterdir()} == {INDEX, "site.toml"}


def test_a_folder_that_is_no_site_stays_as_it_is(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(OutputError, match=r"has files that no build wrote; choose another output directory\.$"):
        write_site(folder, tmp_path, any_data=True)
    with pytest.raises(OutputError):
        write_site(folder, folder / "forged", any_data=True)
    assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == "mine"
    assert (folder / "forged" / RUN_FILE).is_file()


def test_the_command_names_what_is_refused_and_where_the_site_is(run: Command, folder: Path, tmp_path: Path) -> None:
    (alone := tmp_path / "runs").mkdir()
    (alone / "forged").symlink_to(folder / "forged")
    status, out, _ = run("leaderboard", alone, "--any-data", "--site", tmp_path / "site")
    assert status == 0
    said = " ".join(out.split())
    assert "forged: org/forger on" in said
    assert "cannot be accepted" in said
    assert f"Wrote {tmp_path / 'site' / INDEX}" in out.replace("\n", "")
    assert "No runs were accepted." in (tmp_path / "site" / INDEX).read_text(encoding="utf-8")


def test_results_on_the_hub_are_a_folder_like_any_other(run: Command, folder: Path, tmp_path: Path, hub: Hub) -> None:
    push_results([folder / "forged"], "org/our-results", create=True)
    _, out, _ = run("leaderboard", "org/our-results", "--any-data", "--site", tmp_path / "site")
    status, _, error = run("leaderboard", "org/none", "--any-data", "--site", tmp_path / "none")
    assert "org/forger on" in " ".join(out.split())
    assert "forged" in (tmp_path / "site" / INDEX).read_text(encoding="utf-8")
    assert (status, error.count("\n")) == (2, 1)
    assert not (tmp_path / "none").exists()


def test_a_run_is_verified_while_its_files_are_those_that_were_scored_again(
    run: Command, folder: Path, tmp_path: Path
) -> None:
    runs, checked = tmp_path / "runs", tmp_path / "checked.json"
    for name in ("pairs-0", "unread"):
        shutil.copytree(folder / name, runs / name)
    verified = CheckResult("verified", [], "5 of 12 items were scored again (seed 1)")
    checked.write_text(json.dumps([check_summary(one, verified) for one in find_runs([runs]).runs]), encoding="utf-8")

    def index() -> str:
        words = ["leaderboard", runs, "--site", tmp_path / "site", "--checked", checked, "--any-data"]
        status, out, _ = run(*words)
        assert status == 0, out
        return Read((tmp_path / "site" / INDEX).read_text(encoding="utf-8")).text

    text = index()
    assert text.count("Verified: checked as above") == 2
    assert verified.rescored in text
    for name in ("pairs-0", "unread"):
        with (runs / name / RUN_FILE).open("a", encoding="utf-8") as file:
            file.write(" ")
    text = index()
    assert "Verified: checked as above" not in text
    assert "Not checked against their data" in text


@pytest.mark.parametrize("text", ["{}", "[{}]", '[{"digest": "d", "state": "sure", "rescored": ""}]'])
def test_what_is_not_of_check_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "checked.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RunError) as error:
        read_check_results(path)
    assert str(error.value) == f"{path} is not the JSON output of `pluralbench check`."


def test_facets_say_what_a_row_can_be_filtered_by(page: Read) -> None:
    found = [json.loads(one) for one in page.values("data-facets")]
    assert ["Classifiers"] in [one["kind"] for one in found if one["context"] == ["posts"]]
    assert {one["size"][0] for one in found} == {"unknown", "1B to 4B"}
    assert all({*one} == {"kind", "size", "benchmark", "context", "state"} for one in found)

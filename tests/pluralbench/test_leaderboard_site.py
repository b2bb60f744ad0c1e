"""`leaderboard --site`: its pages hold what the runs found, lead to each other, and escape what others wrote."""

import json
import re
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from live_hub import live_hub, point_clients
from made_runs import Row, decision, keep, run_of
from pluralbench import EvaluationError, RunError
from pluralbench.commands.app import app
from pluralbench.leaderboard.pages import file_names
from pluralbench.leaderboard.site import write_site
from pluralbench.leaderboard.submissions import facets_of
from pluralbench.publishing import push_results
from pluralbench.results.runs import METRICS_FILE, RUN_FILE, Run
from pluralbench_runs import OutputError, UserError
from typer.testing import CliRunner

HOSTILE = "<script>alert(1)</script>"
OUTCOMES = {"org/good": "win", "ORG/good": "loss", HOSTILE: "tie"}


def rows(outcome: str) -> list[Row]:
    return [decision(number, outcome if number % 4 else "win") for number in range(12)]


def kept(folder: Path, name: str, model: str, benchmark: str, outcome: str, **changes: object) -> Run:
    run = keep(run_of(rows(outcome), benchmark, model=model, path=folder / name))
    values = json.loads((run.path / RUN_FILE).read_text(encoding="utf-8"))
    values["model"] |= changes
    (run.path / RUN_FILE).write_text(json.dumps(values), encoding="utf-8")
    return run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three models on two benchmarks, one of them told of the person, and a run whose numbers are not its items'."""
    folder = tmp_path_factory.mktemp("submissions")
    for place, (model, outcome) in enumerate(OUTCOMES.items()):
        kind = ("classifier", "generative", "classifier")[place]
        kept(folder, f"pairs-{place}", model, "pairs", outcome, kind=kind, parameters=3 * 10**9 if place else None)
    kept(folder, "deep/pandalm-0", "org/good", "pandalm", "win", kind="classifier")
    told = kept(folder, "pairs-told", "org/good", "pairs", "loss", kind="classifier")
    values = json.loads((told.path / RUN_FILE).read_text(encoding="utf-8"))
    values["prompt"]["profile"] = "raw"
    (told.path / RUN_FILE).write_text(json.dumps(values), encoding="utf-8")
    forged = kept(folder, "forged", "org/forger", "pairs", "loss")
    metrics = json.loads((forged.path / METRICS_FILE).read_text(encoding="utf-8"))
    metrics["rows"][0]["value"] = 0.99
    (forged.path / METRICS_FILE).write_text(json.dumps(metrics), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def site(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("sites") / "site"
    write_site(folder, out)
    return out


class Page(HTMLParser):
    """What a page leads to, its ids, what it loads, and its words."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.loads: list[str] = []
        self.words: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            elif tag == "a" and name == "href":
                self.links.append(value or "")
            elif name in {"src", "srcset", "action"} or (tag == "link" and name == "href"):
                self.loads.append(value or "")

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def pages(site: Path) -> dict[str, Page]:
    return {path.relative_to(site).as_posix(): Page(path) for path in sorted(site.rglob("*.html"))}


def contents(site: Path) -> dict[str, bytes]:
    return {path.relative_to(site).as_posix(): path.read_bytes() for path in site.rglob("*") if path.is_file()}


def test_there_is_a_page_for_each_model_and_benchmark_and_all_links_lead_somewhere(site: Path) -> None:
    found = pages(site)
    models = {name for name in found if name.startswith("models/")}
    assert {*found} - models == {"index.html", "benchmarks/pairs.html", "benchmarks/pandalm.html"}
    assert len({name.casefold() for name in models}) == 3, "also where capitals are all alike"
    reached = set()
    for name, page in found.items():
        assert len(page.ids) == len({*page.ids}), name
        assert page.loads == []
        for link in page.links:
            assert not re.match(r"[a-z]+:|/", link), link
            to, _, place = link.partition("#")
            target = (site / name).parent / unquote(to) if to else site / name
            reached.add(target.resolve().relative_to(site.resolve()).as_posix())
            assert not place or place in found[target.resolve().relative_to(site.resolve()).as_posix()].ids, link
    assert reached == {*found}


def test_what_others_wrote_is_text(site: Path) -> None:
    for path in site.rglob("*.html"):
        assert HOSTILE not in path.read_text(encoding="utf-8")
    assert HOSTILE in pages(site)["index.html"].text


def test_a_run_that_is_refused_is_named_with_the_reason_and_in_no_table(site: Path) -> None:
    found = pages(site)
    assert "metrics.json has 1 numbers that items.parquet does not give" in found["index.html"].text
    for name, page in found.items():
        assert ("org/forger" in page.text) == (name == "index.html")
    assert "5 runs of 3 models on 2 benchmarks." in found["index.html"].text


def test_runs_have_their_numbers_ranks_checks_and_origin(site: Path) -> None:
    found = pages(site)
    assert "deep/pandalm-0" in found["index.html"].text
    assert "valid, with" in found["index.html"].text
    good = next(page for name, page in found.items() if name.startswith("models/") and "told posts" in page.text)
    assert "settings.toml does not say what bound the run." in good.text
    assert "100.0" in good.text
    assert "Digest of the data" in good.text


def test_no_page_tells_where_the_runs_lay(site: Path, folder: Path) -> None:
    assert not [name for name, text in contents(site).items() if str(folder).encode() in text]


def test_the_same_runs_give_the_same_bytes_in_place_of_the_older_site(site: Path, folder: Path) -> None:
    before = contents(site)
    write_site(folder, site)
    assert contents(site) == before


def test_a_folder_that_is_no_site_stays_as_it_is(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(OutputError, match=r"holds files that no build wrote; choose another output directory\.$"):
        write_site(folder, tmp_path)
    with pytest.raises(OutputError):
        write_site(folder, folder / "forged")
    assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == "mine"
    assert (folder / "forged" / RUN_FILE).is_file()


def test_a_folder_without_runs_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"has no run in it\.$"):
        write_site(tmp_path, tmp_path / "site")
    assert not (tmp_path / "site").exists()
    assert issubclass(RunError, EvaluationError)


def test_the_command_names_what_is_refused_and_where_the_site_is(folder: Path, tmp_path: Path) -> None:
    alone = tmp_path / "runs"
    alone.mkdir()
    (alone / "forged").symlink_to(folder / "forged")
    done = CliRunner().invoke(app, ["leaderboard", str(alone), "--site", str(tmp_path / "site")])
    assert done.exit_code == 0
    said = " ".join(done.output.split())
    assert "forged: org/forger on" in said
    assert "cannot be accepted" in said
    assert "Wrote 1 pages; open" in said
    (page,) = pages(tmp_path / "site").values()
    assert "0 runs of 0 models on 0 benchmarks." in page.text


def test_results_on_the_hub_are_a_folder_like_any_other(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with live_hub(tmp_path / "hub") as server:
        point_clients(monkeypatch, server, tmp_path / "home")
        push_results([folder / "forged"], "org/our-results", create=True)
        done = CliRunner().invoke(app, ["leaderboard", "org/our-results", "--site", str(tmp_path / "site")])
        missing = CliRunner().invoke(app, ["leaderboard", "org/none", "--site", str(tmp_path / "none")])
    assert "org/forger on" in " ".join(done.output.split())
    assert "forged" in pages(tmp_path / "site")["index.html"].text
    assert isinstance(missing.exception, UserError)
    assert not (tmp_path / "none").exists()


def test_facets_say_what_a_row_can_be_filtered_by(site: Path) -> None:
    text = (site / "index.html").read_text(encoding="utf-8")
    found = [json.loads(one.replace("&#34;", '"')) for one in re.findall(r'data-facets="([^"]+)"', text)]
    assert {"kind": ["Classifiers"], "told": ["posts"]}.items() <= next(
        one for one in found if one["told"] == ["posts"]
    ).items()
    assert {one["size"][0] for one in found} == {"not known", "1B to 4B"}
    assert facets_of([]) == {name: [] for name in ("kind", "size", "benchmark", "told", "checks")}


@given(st.lists(st.text(max_size=12) | st.just("a" * 90), unique=True, max_size=4))
def test_every_name_has_a_file_of_its_own(names: Sequence[str]) -> None:
    found = file_names(names, "models")
    assert {*found} == {*names}
    assert len({path.casefold() for path in found.values()}) == len(names)
    assert all(re.fullmatch(r"models/[A-Za-z0-9_][A-Za-z0-9._-]*\.html", path) for path in found.values())

"""The command `build-persona-judge`: the sample, and sources of one's own."""

import json
import tomllib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import persona_sources as files
import polars as pl
import pytest
import samples
from build_persona_judge.sources.loaded import FOLDER
from pluralbench_calls import read_ledger
from pluralbench_release import (
    LEDGER,
    RECIPE,
    ReleaseError,
    check_publishable,
    read_card,
    read_manifest,
    rebuild,
    verify,
)
from pluralbench_schemas import PERSONA_ITEMS, validate
from releases import digests_of, rows_of
from samples import Sample
from written_tables import write

Run = Callable[..., tuple[int, str]]

# What the sample is, for good: change a text, a sentence of a persona or a draw, and these change with it.
DIGESTS = {
    "prism": "816d55477dcb27825234f57c4bdddd31ad4f93962143b7e2416f130928462a67",
    "opinion_qa": "1b76a9fa6b41c07e2646af54061e1966a2214c53643888ddce48e4b0c234659e",
    "empathic_conversations": "77fbe69a2955261a051708345a804bb26cdf576c82956681498fd73c44a792c1",
    "personal_reddit": "af17f07e988b1883f924b47121d0eb3aa8dfd7de72e6eca888b27ba3d24796cb",
}


@pytest.fixture(scope="module")
def sample() -> Sample:
    """The sample, which the command makes where there is no torch."""
    return samples.sample("build-persona-judge")


@pytest.mark.smoke
def test_it_says_what_it_made(sample: Sample) -> None:
    release, said = sample
    for part in ("17 recorded calls, 0 of them new", "taken for a refusal", "answered no question"):
        assert part in said
    assert [path.name for path in release.parent.iterdir()] == ["persona-judge"]
    records = ("dropped", "ledger", "row_digests")
    assert {path.relative_to(release).as_posix() for path in release.rglob("*") if path.is_file()} == {
        *("README.md", "SHA256SUMS", "eval.yaml"),
        *(f"data/{config}/test.parquet" for config in DIGESTS),
        *(f"provenance/{name}" for name in ("manifest.json", "recipe.toml", "statistics.json")),
        *(f"provenance/{name}.parquet" for name in records),
    }


def test_its_digests_repeat(sample: Sample) -> None:
    assert digests_of(sample[0]) == DIGESTS


@pytest.mark.parametrize("config", DIGESTS)
def test_a_task_has_thirty_items_that_are_no_tie(sample: Sample, config: str) -> None:
    frame = validate(rows_of(sample[0], config), PERSONA_ITEMS, file=config)
    truths = Counter(frame["truth"])
    assert truths["A"] + truths["B"] == 30
    assert 10 <= truths["A"] <= 20
    assert bool(truths["tie"]) == (config in {"prism", "empathic_conversations"})
    known = frame.select(pl.col("persona").list.eval(pl.element().struct.field("sentence").is_not_null()).list.any())
    assert known.to_series().all()
    by_user = frame.group_by("user").agg(pl.col("persona").n_unique())
    assert by_user["persona"].max() == 1


def test_other_people_are_the_most_alike_by_the_recorded_rankings(sample: Sample) -> None:
    frame, ledger = rows_of(sample[0], "personal_reddit"), read_ledger(sample[0] / LEDGER)
    assert {*frame["rank_calls"].explode()} <= {*ledger["key"]}
    assert ledger.select(pl.col("kind", "provider", "model").unique()).rows() == [
        ("rank", "sentence-transformers", "sentence-transformers/all-MiniLM-L6-v2")
    ]
    scores = {key: json.loads(text) for key, text in ledger.select("key", "text").iter_rows()}
    for row in frame.iter_rows(named=True):
        other = row["origin_b"] if row["truth"] == "A" else row["origin_a"]
        near = sorted(scores[row["rank_calls"][0]], reverse=True)[:4]  # those before may have the same question only
        assert other.rpartition(" ")[2] in {f"{score:.4f}" for score in near}
        assert row["user"] not in other


def test_the_card_says_where_all_comes_from(sample: Sample) -> None:
    card = (sample[0] / "README.md").read_text(encoding="utf-8")
    assert read_card(sample[0])["license"] == "apache-2.0"
    assert [source.redistribution for source in read_manifest(sample[0]).sources] == [None] * 4
    assert "Not to be redistributed" not in card
    assert "This is the sample" in card
    check_publishable(read_manifest(sample[0]))


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """Own files of all four sources, small."""
    responses = [
        files.utterance(f"int{n}", f"model{m}", 90 - 30 * m, user_id=f"user{n % 2}") for n in range(6) for m in range(3)
    ]
    files.prism(tmp_path / "prism", responses, [{"user_id": f"user{n}"} | files.PERSON for n in range(2)])
    answers = [{"QKEY": n, "Q1": ["Yes", "No"][n % 2]} for n in range(8)]
    files.wave(tmp_path / "waves/W1", {"Q1": ["Yes", "No", "Refused"]}, answers)
    files.empathic(tmp_path / "wassa", [(a, p, n * 2, n * 2) for a in (1, 2) for n, p in enumerate("pqr")])
    posts = [files.post(who, question) for who in ("cook", "nurse", "pilot") for question in ("q1", "q2")]
    write(tmp_path / "pr.jsonl", posts)
    files.people_csv(tmp_path / "drinks")
    return tmp_path


@pytest.mark.heavy
def test_own_sources_are_built_rebuilt_and_rebuilt_from_elsewhere(
    run: Run, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And terms that nobody read forbid publishing."""
    monkeypatch.chdir(own)
    words: list[object] = [
        *("--prism", "prism", "--opinion-qa", "waves", "--empathic-conversations", "wassa"),
        *("--personal-reddit", "pr.jsonl", "--people-csv", "drinks"),
        *("--size", 2, "--respondents", 4, "--retriever", "bm25"),
    ]
    status, said = run(*words, "--out", own / "dist")
    assert status == 0, said
    assert list(digests_of(own / "dist")) == [*DIGESTS, "drinks"]
    assert all(sum(t != "tie" for t in rows_of(own / "dist", name)["truth"]) == 2 for name in digests_of(own / "dist"))
    assert tomllib.loads((own / "dist" / RECIPE).read_text(encoding="utf-8"))["opinion_qa"]["respondents"] == 4
    assert verify(own / "dist") == []
    manifest = read_manifest(own / "dist")
    assert [source.redistribution is not None for source in manifest.sources] == [False, True, True, False, False]
    assert {source.license for source in manifest.sources} == {"unknown"}
    card = (own / "dist/README.md").read_text(encoding="utf-8")
    assert (card.count("**Not to be redistributed: "), "read the owner's terms" in card) == (2, True)
    with pytest.raises(ReleaseError, match="OpinionQA"):
        check_publishable(manifest)
    assert not any(rebuild(own / "dist", own / "again"))
    moved = [(own / name).rename(own / f"new-{name}") for name in ("prism", "waves", "wassa", "pr.jsonl", "drinks")]
    assert not any(rebuild(own / "dist", own / "moved", sources=[str(path) for path in moved]))


def test_a_recipe_may_say_that_the_terms_were_read(run: Run, own: Path) -> None:
    recipe = own / "own.toml"
    recipe.write_text(
        f'[opinion_qa]\nlocation = "{own / "waves"}"\nrespondents = 4\nredistribution = ""\nlicense = "cc-by-4.0"\n'
        f'[prism]\nlocation = "{own / "prism"}"\nredistribution = "Ours alone."\n',
        encoding="utf-8",
    )
    assert run("--recipe", recipe, "--out", own / "dist")[0] == 0
    sources = {source.name: source for source in read_manifest(own / "dist").sources}
    assert (sources["OpinionQA"].license, sources["OpinionQA"].redistribution) == ("cc-by-4.0", None)
    with pytest.raises(ReleaseError, match="PRISM: Ours alone"):
        check_publishable(read_manifest(own / "dist"))


def test_the_paper_recipe_asks_for_what_the_paper_says(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = tomllib.loads((FOLDER.parent / "recipes/paper.toml").read_text(encoding="utf-8"))
    assert (recipe["prism"]["size"], recipe["prism"]["tie_gap"]) == (1000, 10)
    essays = recipe["empathic_conversations"]
    assert (recipe["opinion_qa"]["respondents"], essays["tie_gap"], essays["pairs_per_article"]) == (200, 2, 5)
    assert recipe["retriever"].endswith("all-MiniLM-L6-v2")
    monkeypatch.chdir(tmp_path)
    status, said = run("--recipe", "paper", "--prism", FOLDER / "prism", "--out", "dist")
    assert (status, "17 pairs that are not ties, fewer than `--size 1000`" in said) == (2, True), said


def test_ties_follow_the_gaps(sample: Sample) -> None:
    prism, essays = rows_of(sample[0], "prism"), rows_of(sample[0], "empathic_conversations")
    assert prism.select(((pl.col("gap") <= 10) == (pl.col("truth") == "tie")).all()).item()
    assert sorted(prism.filter(truth="tie")["id"]) == ["int18", "int26", "int32", "int4"]
    assert essays.select(((pl.col("gap") < 2) == (pl.col("truth") == "tie")).all()).item()
    assert essays["truth"].to_list().count("tie") <= 0.2 * essays.height

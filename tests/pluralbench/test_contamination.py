"""`contamination`: which items of benchmarks are in a training set, as a table, as rows and as a file."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pluralbench.commands.printing import console
from pluralbench.data.benchmark_entries import known_benchmarks
from pluralbench.data.overlap import KINDS
from pluralbench.errors import BenchmarkError
from pluralbench.evaluation.contamination import CONTAMINATED, Contamination, contamination, write_contaminated
from pluralbench.evaluation.without import read_item_list
from pluralbench.reports.contamination import report_contamination
from pluralbench_release import Tables, TablesError, read_tables
from written_tables import write

Command = Callable[..., tuple[int, str, str]]
SUITE = Path(__file__).parents[2].parent / "shared" / "data" / "suite"
LONG = "Steep the green leaves for two minutes in water that has cooled down a little after it boiled once"
OTHER = "Pour boiling water over black leaves, wait for four minutes, then add milk and sugar as you like them best"
PAIRS = [
    {"id": "copied", "prompt": "How do I steep green tea?", "chosen": LONG, "rejected": "No."},
    {"id": "near", "prompt": "Which tea?", "chosen": OTHER, "rejected": LONG.replace("two", "six")},
    {"id": "clean", "prompt": "What is a samovar?", "chosen": "An urn.", "rejected": "A bird."},
]
TRAINING = [
    {"prompt": "Something else?", "response": "Nothing."},
    {"prompt": "HOW do I steep green tea", "response": f"Well: {OTHER.replace('four', 'five')}"},
    {"prompt": "x", "response": f"First... {LONG.upper()}! And {LONG}."},
]


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    return write(tmp_path / "p.jsonl", PAIRS)


@pytest.fixture
def training(tmp_path: Path) -> Path:
    return write(tmp_path / "training.parquet", TRAINING)


@pytest.fixture
def result(training: Path, pairs: Path) -> Contamination:
    return contamination(training, ["pairs"], data={"": str(pairs)})


def test_items_have_their_part_kind_and_place(result: Contamination) -> None:
    assert dict(result.items.schema) == dict(CONTAMINATED)
    shown = result.items.select("id", "part", "response", "kind", "table", "row", "column").rows()
    assert shown == [
        ("copied", "prompt", None, "equal", "training", 1, "prompt"),
        ("copied", "response", "chosen", "near", "training", 2, "response"),
        ("copied", "response", "chosen", "ngram", "training", 2, "response"),
        ("near", "response", "rejected", "ngram", "training", 2, "response"),
    ]
    assert result.items["overlap"].to_list() == pytest.approx([1, 17 / 21, 1, 13 / 19])
    assert result.items["excerpt"].to_list()[-1] == " ".join(LONG.lower().split()[6:])
    assert [[result.count("pairs", part, kind) for kind in KINDS] for part in ("prompt", "response")] == [
        [1, 0, 0],
        [0, 1, 2],
    ]
    assert result.count("pairs") == 2
    assert (result.rows, result.rows_without_text, result.texts) == (3, 0, {"prompt": 3, "response": 3})
    [own] = result.benchmarks
    assert (own.name, own.items, own.with_responses, own.short_responses) == ("pairs", 3, 2, 3)


def test_only_columns_with_texts_need_values_of_one_type(pairs: Path, tmp_path: Path) -> None:
    rows = [row | {"tags": [1, [2]]} for row in TRAINING]
    found = contamination(write(tmp_path / "t.jsonl", rows), ["pairs"], data={"": str(pairs)})
    assert found.items.height > 0
    mixed = write(tmp_path / "m.jsonl", [row | {"messages": [{"content": c} for c in ("a", ["b"])]} for row in rows])
    with pytest.raises(TablesError, match=r"m\.jsonl, row 1: `messages\[1\]\.content` is a list, but text before"):
        contamination(mixed, ["pairs"], data={"": str(pairs)})


def test_the_length_of_an_ngram_is_an_option(training: Path, pairs: Path) -> None:
    longer = contamination(training, ["pairs"], data={"": str(pairs)}, ngram=19)
    assert longer.items.filter(pl.col("kind") == "ngram")["id"].to_list() == ["copied"]
    assert longer.benchmarks[0].short_responses == 3


def test_a_ranking_has_the_response_with_the_largest_overlap(training: Path, tmp_path: Path) -> None:
    row = {"prompt": "?", "responses": ["short", f"{LONG} and more of it", LONG], "rank": [1, 2, 3]}
    own = contamination(training, ["rankings"], data={"rankings": str(write(tmp_path / "r.jsonl", [row]))})
    assert own.items.select("response", "kind").rows() == [("2", "near"), ("2", "ngram")]
    assert own.items["overlap"].to_list() == pytest.approx([17 / 21, 1])


def test_a_benchmark_can_be_the_dataset(pairs: Path, tmp_path: Path) -> None:
    own = tmp_path / "mine.toml"
    rows = write(tmp_path / "mine.jsonl", [PAIRS[2] | {"question": PAIRS[0]["prompt"]}])
    own.write_text(f'title = "Mine"\ndata = "{rows}"\n[columns]\nprompt = ["question"]\n', encoding="utf-8")
    as_dataset = contamination(own, ["pairs"], data={"pairs": str(pairs)})
    assert as_dataset.items.select("benchmark", "id", "kind").rows() == [("pairs", "copied", "equal")]
    other_way = contamination("pairs", [str(own)], data={"pairs": str(pairs)})
    assert other_way.items.select("benchmark", "id", "kind").rows() == [("mine", "clean", "equal")]
    with pytest.raises(BenchmarkError, match="is the dataset and one of the benchmarks; compare it with others"):
        contamination("pairs", ["pairs"], data={"pairs": str(pairs)})


def test_the_report_has_counts_shares_and_examples(result: Contamination) -> None:
    report = report_contamination(result, examples=1)
    columns = ["part", "items", *KINDS, "any", "share"]
    assert report.frame.select(columns).rows() == [
        ("prompt", 3, 1, 0, 0, 1, pytest.approx(1 / 3)),
        ("response", 2, 0, 1, 2, 2, 1.0),
        (None, 3, 1, 1, 2, 2, pytest.approx(2 / 3)),
    ]
    assert "pairs: 3 responses of fewer than 13 words were not compared." in report.notes
    assert report.notes[-1] == (
        "pairs p/copied, prompt: equal (1.00) in row 1 of training, prompt: “how do i steep green tea”"
    )
    assert report.rows is not None
    assert report.rows[0]["responses"] == {"equal": 0, "near": 1, "ngram": 2, "any": 2, "share": 1.0}
    assert [row["id"] for row in report.rows[0]["examples"]] == ["copied"]


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_the_file_lists_the_items(run: Command, training: Path, pairs: Path, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"items{suffix}"
    words = ("contamination", training, "--benchmark", "pairs", "--data", pairs, "--out", out)
    status, shown, error = run(*words, "--format", "json")
    assert (status, error) == (0, f"Wrote {out}\n")
    assert json.loads(shown)[0]["any"] == 2
    read = pl.read_parquet(out) if suffix == ".parquet" else pl.read_ndjson(out)
    assert read.columns == list(CONTAMINATED)
    assert read["kind"].to_list() == ["equal", "near", "ngram", "ngram"]
    assert read_item_list(out).items.rows() == [("pairs", "p", "copied"), ("pairs", "p", "near")]


def test_a_clean_dataset_gives_an_empty_list(pairs: Path, tmp_path: Path) -> None:
    clean = contamination(write(tmp_path / "t.jsonl", [TRAINING[0]]), ["pairs"], data={"": str(pairs)})
    for name in ("items.jsonl", "items.parquet"):
        write_contaminated(clean, tmp_path / name)
        assert read_item_list(tmp_path / name).items.is_empty()


def test_benchmarks_that_cannot_be_read_are_skipped(
    run: Command, training: Path, pairs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def offline(location: str, **options: Any) -> Tables:
        if not Path(location).exists():
            raise TablesError(f"{location} cannot be reached.")
        return read_tables(location, **options)

    monkeypatch.setattr("pluralbench.data.samples.read_tables", offline)
    monkeypatch.setattr(console, "width", 80)
    status, shown, error = run("contamination", training, "--data", f"pairs={pairs}", "--data", "reward-bench=sample")
    assert (status, error) == (0, "")
    assert max(map(len, shown.splitlines())) <= 80
    location = known_benchmarks()["multilingual"].data
    assert f"Notcompared:multilingual.{location}cannotbereached." in "".join(shown.split())
    assert ["pairs", "3", "1", "1", "2", "2", "66.7"] in [line.split() for line in shown.splitlines()]
    status, shown, error = run("contamination", training, "--benchmark", "multilingual")
    assert (status, shown) == (2, "")
    assert "cannot be reached" in error


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--benchmark", "pear"], "Unknown benchmark 'pear'; did you mean `pairs`? choose "),
        (["--data", "x.jsonl", "--benchmark", "pandalm"], "`--data x.jsonl` does not say whose data it is; write "),
        (["--data", "pandalm=x.jsonl"], "`--data pandalm=x.jsonl` is the data of a benchmark that is not compared; "),
        (["--out", "items.csv"], "`--out items.csv` ends in neither .jsonl nor .parquet; name the file "),
        (["--column", "prompt=body"], "training.parquet (training) has no column `body`; it has prompt, response."),
        (["--ngram", "1"], "--ngram 1 is less than 2."),
    ],
)
def test_bad_input_is_one_sentence(
    run: Command, training: Path, options: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(training.parent)
    status, shown, error = run("contamination", "training.parquet", "--benchmark", "pairs", *options)
    assert (status, shown) == (2, "")
    assert message in error
    assert not (training.parent / "items.csv").exists()


def suite_file(name: str) -> Path:
    path = SUITE / name
    if not path.exists():
        pytest.skip("the rows of published benchmarks are not here")
    return path


@pytest.mark.heavy
def test_the_recorded_overlaps_of_published_benchmarks_come_out() -> None:
    recorded = json.loads(suite_file("contamination/overlaps.json").read_text())["on_the_files_of_this_folder"]
    data = {"rm-bench": "rm_bench/sample.jsonl", "llmbar": "llmbar/test.jsonl"}
    places = {name: str(suite_file(file)) for name, file in data.items()}
    result = contamination(suite_file("rewardbench/prompts.jsonl"), [*data], data=places)
    equal = result.items.filter(pl.col("part") == "prompt", pl.col("kind") == "equal")
    every = contamination(places["rm-bench"], ["rm-bench"], data={"": places["rm-bench"]}).items
    ours, total = (
        Counter(
            item.partition("/")[0] for item in frame.filter(benchmark="rm-bench", part="prompt", kind="equal")["id"]
        )
        for frame in (equal, every)
    )
    expected = recorded["rm_bench/sample.jsonl in rewardbench/prompts.jsonl"]
    assert {name: [ours[name], count] for name, count in total.items()} == expected
    expected = recorded["llmbar/test.jsonl in rewardbench/prompts.jsonl"]
    assert [result.count("llmbar", "prompt", "equal"), result.benchmarks[1].items] == expected


@pytest.mark.parametrize(("ngram", "name"), [(13, "gram13"), (8, "gram8")])
def test_the_recorded_ngrams_come_out(tmp_path: Path, ngram: int, name: str) -> None:
    """Those of LLMBar and RewardBench, whose cut prompts were left out there."""
    read = pl.read_ndjson(suite_file("rewardbench/prompts.jsonl")).filter(~pl.col("truncated"))
    whole = tmp_path / "whole.jsonl"
    read.with_columns(words=pl.col("prompt")).unique("prompt", maintain_order=True).write_ndjson(whole)
    pairs = json.loads(suite_file("contamination/overlaps.json").read_text())["pairs"]
    recorded = {(pair["benchmark"], pair["against"]): pair for pair in pairs}
    result = contamination(
        suite_file("llmbar/test.jsonl"),
        ["prompts"],
        data={"": str(whole)},
        columns=["prompt=input"],
        ngram=ngram,
    )
    assert result.count("prompts", "prompt", "equal") == recorded["RewardBench", "LLMBar"]["exact"]
    assert result.count("prompts", "prompt", "ngram") == recorded["RewardBench", "LLMBar"][name]


def prompts_in(dataset: Path, columns: list[str], *, ngram: int = 13) -> Contamination:
    """Prompts of RewardBench in a dataset, of which only these columns are read."""
    return contamination(
        dataset, ["prompts"], data={"": str(suite_file("rewardbench/prompts.jsonl"))}, columns=columns, ngram=ngram
    )


def test_the_recorded_prompt_of_a_training_set_of_transcripts_comes_out() -> None:
    transcripts = suite_file("contamination/hh_rlhf_harmless_test_sample.jsonl")
    result = prompts_in(transcripts, [])
    equal = result.items.filter(pl.col("kind") == "equal")
    assert (equal["row"].n_unique(), result.rows) == (1, 121)
    assert result.texts["response"] > 2 * result.rows

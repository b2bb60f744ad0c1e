"""Any table of pairs or rankings: formats, columns, conversations, labels, a benchmark of one's own, the Hub."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from live_hub import Hub
from pluralbench import find_benchmark
from pluralbench.data.labels import FIRST, SECOND, TIE, Labels, label_key
from pluralbench.results import Run
from verbs import load_items, value
from written_tables import SUFFIXES, TEXTS, write

Rows = list[dict[str, Any]]
PANDALM = Path(__file__).parents[3] / "shared" / "data" / "multilingual" / "pandalm_testset-v1.json"


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_table_of_any_format_and_any_names_is_the_same_benchmark(tmp_path: Path, suffix: str) -> None:
    rows: Rows = [
        {
            "n": str(100 - n),
            "text": f"{text}?",
            "good": f"yes {text}",
            "bad": f"no {text}",
            "who": f"u{n % 2}",
            "x": "1",
        }
        for n, text in enumerate(TEXTS)
    ]
    columns = ["id=n", "prompt=text", "chosen=good", "rejected=bad", "cluster=who"]
    items = load_items(find_benchmark("pairs", columns), str(write(tmp_path / f"mine{suffix}", rows)))
    assert items.frame["id"].to_list() == ["100", "99", "98", "97", "96"]
    assert items.frame["cluster"].to_list() == ["u0", "u1", "u0", "u1", "u0"]
    assert items.frame["responses"].to_list() == [[row["good"], row["bad"]] for row in rows]
    assert [prompt[0] for prompt in items.frame["prompt"].to_list()] == [
        {"role": "user", "content": row["text"]} for row in rows
    ]
    assert set(items.frame["config"]) == {"mine"}
    assert items.source["ignored_columns"] == ["x"]
    other = load_items(find_benchmark("pairs", columns), str(write(tmp_path / "other" / "mine.parquet", rows)))
    assert other.digest == items.digest
    assert (
        load_items(find_benchmark("pairs", columns), str(tmp_path / "other" / "mine.parquet"), limit=4).digest
        != items.digest
    )


def test_the_digest_of_an_item_is_of_messages_responses_and_ranks(tmp_path: Path) -> None:
    def item(*prompt: str, roles: Sequence[str] = ("user", "assistant", "user"), **own: object) -> dict[str, object]:
        messages = [{"role": role, "content": text} for role, text in zip(roles, prompt, strict=False)]
        responses = [{"id": "a", "content": "yes"}, {"id": "b", "content": "no"}]
        return {"prompt": messages, "responses": responses, "rank": [1, 2], "subset": "s"} | own

    def responses(**contents: str) -> list[dict[str, str]]:
        return [{"id": name, "content": text} for name, text in contents.items()]

    rows = [
        item("a"),
        item("a", rank=[2, 1]),
        item("a", rank=[1, 3]),
        item("a", responses=responses(a="no", b="yes")),
        item("a", responses=responses(a="yes", c="no")),
        item("a", responses=responses(a="yes", b="no", c="no"), rank=[1, 2, 2]),
        item("a", responses=responses(a="yes\n2 no", b="no")),
        item("a", roles=["system"]),
        item("a", "b", "c"),
        item("a\nassistant 1 b", "", "c"),
        item("a\nassistant 1 b\nuser 1 c"),
        item("a\n\n1 a\n1 b"),
    ]
    load = partial(load_items, find_benchmark("rankings", ["subset=subset"]), on_empty="keep")
    path = write(tmp_path / "p.jsonl", [row | {"id": number} for number, row in enumerate(rows)])
    items = load(str(path))
    digests = items.frame["digest"]
    assert digests.n_unique() == len(rows)
    assert digests.str.contains("^[0-9a-f]{16}$").all()
    other = [row | {"id": f"x{number}", "subset": "t"} for number, row in enumerate(rows)]
    path = write(tmp_path / "other" / "p.parquet", other[::-1])
    again = load(str(path))
    assert again.frame["digest"].to_list() == digests.to_list()[::-1], "neither of ids, nor of places, nor of context"
    assert again.digest != items.digest
    in_order = load(str(write(tmp_path / "in order" / "p.jsonl", other)))
    assert in_order.digest == again.digest


def test_rows_without_ids_are_numbered_and_whole_numbers_are_ids(pairs: Callable[..., Rows], tmp_path: Path) -> None:
    rows = pairs(3)
    for row in rows:
        del row["id"]
    items = load_items(find_benchmark("pairs"), str(write(tmp_path / "a.jsonl", rows)))
    assert items.frame["id"].to_list() == ["0", "1", "2"]
    assert items.frame["cluster"].n_unique() == 3
    write(tmp_path / "d/fr.jsonl", rows)
    write(tmp_path / "d/zh.jsonl", [row | {"prompt": f"{row['prompt']} zh"} for row in rows])
    both = load_items(find_benchmark("pairs"), str(tmp_path / "d"))
    assert both.frame["cluster"].n_unique() == 6, "rows of the same number have nothing to do with each other"
    numbered = load_items(find_benchmark("pairs"), str(write(tmp_path / "b.jsonl", pairs(2, id=7)[:1])))
    assert numbered.frame["id"].to_list() == ["7"]
    by_place = load_items(find_benchmark("pairs", ["id=#"]), str(write(tmp_path / "c.jsonl", pairs(2, id=7))))
    assert by_place.frame["id"].to_list() == ["0", "1"]


def test_a_conversation_keeps_its_roles_and_a_response_may_be_one(tmp_path: Path) -> None:
    turns = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "Yes?"},
        {"role": "user", "content": "推荐一本书"},
    ]
    row = {"id": "1", "prompt": turns, "chosen": [*turns, {"role": "assistant", "content": "书"}], "rejected": "no"}
    row["rejected"] = [*turns, {"role": "assistant", "content": "no"}]
    items = load_items(find_benchmark("pairs"), str(write(tmp_path / "talk.jsonl", [row])))
    assert items.frame["prompt"].to_list() == [turns]
    assert items.frame["responses"].to_list() == [["书", "no"]]


def test_several_prompt_columns_are_joined_and_empty_ones_leave_no_gap(tmp_path: Path) -> None:
    rows = [
        {"id": "1", "instruction": "Translate.", "input": "tea", "chosen": "茶", "rejected": "x"},
        {"id": "2", "instruction": "Name a tea.", "input": "", "chosen": "龙井", "rejected": "x"},
    ]
    items = load_items(find_benchmark("pairs", ["prompt=instruction,input"]), str(write(tmp_path / "a.jsonl", rows)))
    assert [prompt[0]["content"] for prompt in items.frame["prompt"]] == ["Translate.\n\ntea", "Name a tea."]


def test_rankings_may_be_lists_of_texts_and_of_ranks(score: Callable[..., Run], tmp_path: Path) -> None:
    rows = [
        {"id": "a", "prompt": "a quiet hobby", "responses": ["origami", "drumming", "tools"], "rank": [2, 1, 2]},
        {"id": "b", "prompt": "by the sea", "responses": ["walking", "baking bread"], "rank": [1, 2]},
    ]
    run = score("rankings", write(tmp_path / "r.jsonl", rows))
    assert run.items["response"].to_list() == ["0", "1", "2", "0", "1"]
    assert run.items["rank"].to_list() == [2, 1, 2, 1, 2]
    assert run.estimate("pooled_accuracy").n == 2 + 1
    scores = run.items["score"].to_list()
    won = [scores[1] > scores[0], scores[1] > scores[2], scores[3] > scores[4]]
    assert run.count("wins") == sum(won)
    assert run.headline.value == sum(won) / 3
    assert run.config.benchmark.rule == "mean over all pairs of responses"


@pytest.mark.parametrize(
    ("labels", "better"),
    [
        ((1, 1, 2), "first"),
        ((2, 0, 2), "second"),
        ((1, 2, 0), None),
        ((None, 2, None), "second"),
        ((1, 2, None), None),
    ],
)
def test_the_majority_of_the_annotators_decides_and_nothing_else(
    tmp_path: Path, labels: tuple[int | None, ...], better: str | None
) -> None:
    names = [f"annotator{number}" for number in range(len(labels))]
    row = {"id": "1", "prompt": "?", "a": "first", "b": "second"} | dict(zip(names, labels, strict=True))
    columns = ["first=a", "second=b", f"labels={','.join(names)}"]
    for suffix in SUFFIXES:
        items = load_items(find_benchmark("pairs", columns, ["tie=0"]), str(write(tmp_path / f"t{suffix}", [row])))
        [responses], [rank] = items.frame["responses"].to_list(), items.frame["rank"].to_list()
        assert rank == ([1, 2] if better else [1, 1])
        assert responses[0] == (better or "first")
        assert sorted(responses) == ["first", "second"]


def better_responses(tmp_path: Path, labels: Sequence[Any], meanings: Sequence[str], suffix: str = ".jsonl") -> str:
    """A letter for each pair of one label: a or b for the better response, = for a tie."""
    rows = [{"id": str(n), "prompt": "?", "a": "a", "b": "b", "label": one} for n, one in enumerate(labels)]
    given = ["first=a", "second=b", "labels=label"]
    frame = load_items(find_benchmark("pairs", given, meanings), str(write(tmp_path / f"t{suffix}", rows))).frame
    pairs = zip(frame["responses"].to_list(), frame["rank"].to_list(), strict=True)
    return "".join(responses[0] if rank == [1, 2] else "=" for responses, rank in pairs)


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
@pytest.mark.parametrize(
    ("labels", "meanings", "better"),
    [
        ([1, 2, 1], [], "aba"),
        ([0, 1, 1], ["first=0", "second=1"], "abb"),
        (["A>B", "B>A", "A=B"], ["first=A>B", "second=B>A", "tie=A=B"], "ab="),
        (["model_a", "tie (bothbad)", "tie"], ["first=model_a", "tie=tie", "tie=tie (bothbad)"], "a=="),
        ([True, False, True], ["first=true", "second=false"], "aba"),
        ([-3, 1, 0], ["scale=-3,3"], "ab="),
        ([3, -1, 0], ["scale=3,-3"], "ab="),
        ([1.0000211, 1.7, 1.5], ["scale=1,2"], "ab="),
        ([1.2, 1.7, 1.1], ["scale=1,2", "threshold=1.2"], "=ba"),
    ],
)
def test_an_entry_says_what_labels_mean(
    tmp_path: Path, suffix: str, labels: list[Any], meanings: list[str], better: str
) -> None:
    assert better_responses(tmp_path, labels, meanings, suffix) == better


def test_a_label_may_be_no_number_and_columns_may_have_any_name(tmp_path: Path) -> None:
    table = {"id": ["x", "y"], "prompt": "?", "better": ["a", "c"], "#place": ["b", "d"], "label": [2.0, float("nan")]}
    pl.DataFrame(table).write_parquet(tmp_path / "t.parquet")
    benchmark = find_benchmark("pairs", ["first=better", "second=#place", "labels=label"], ["second=2", "tie=nan"])
    frame = load_items(benchmark, str(tmp_path / "t.parquet")).frame
    assert frame["responses"].to_list() == [["b", "a"], ["c", "d"]]
    assert frame["rank"].to_list() == [[1, 2], [1, 1]]


LABEL = st.one_of(
    st.integers(-9, 9), st.floats(-9, 9).map(lambda x: round(x, 3)), st.text("abAB><= ", max_size=3), st.none()
)


@given(
    meanings=st.dictionaries(LABEL.map(label_key).filter(bool), st.sampled_from([TIE, FIRST, SECOND]), min_size=1),
    row=st.lists(LABEL, max_size=5),
)
def test_each_label_has_the_one_meaning_that_was_said(meanings: dict[str, int], row: list[Any]) -> None:
    said: dict[int, list[str]] = {TIE: [], FIRST: [], SECOND: []}
    for label, side in meanings.items():
        said[side].append(label)
    if not said[FIRST] and not said[SECOND]:  # 1 and 2 mean these, and no tie
        assume(not {"1", "2"} & {*said[TIE]})
        meanings = {**meanings, "1": FIRST, "2": SECOND}
    labels = Labels.model_validate({"first": said[FIRST], "second": said[SECOND], "tie": said[TIE]})
    keys = [label_key(label) for label in row]
    assert [labels.meaning(label) for label in row] == [meanings.get(str(key)) for key in keys]
    votes = [meanings.get(key) for key in keys if key is not None]
    most = [side for side in (FIRST, SECOND) if votes.count(side) > len(votes) - votes.count(side)]
    assert labels.majority(row) == (most[0] if most else TIE)
    assert Labels.model_validate(labels.model_dump(mode="json")) == labels


@given(st.integers(-50, 50), st.integers(-50, 50), st.integers(-60, 60))
def test_a_scale_turned_round_exchanges_the_responses(one: int, other: int, label: int) -> None:
    assume(one != other)
    there, back = (Labels(scale=ends).meaning(label) for ends in ((one, other), (other, one)))
    if not min(one, other) <= label <= max(one, other):
        assert there is back is None
    elif 2 * label == one + other:
        assert there == back == TIE
    else:
        assert {there, back} == {FIRST, SECOND}
        assert there == (FIRST if abs(label - one) < abs(label - other) else SECOND)


def as_message(response: str | dict[str, str]) -> dict[str, str]:
    return {"content": response} if isinstance(response, str) else response


SEVERAL = 'title = "Styles"\nmultiple_responses = true\n[columns]\nid = "#"\n'


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet", ".csv"])
def test_several_responses_are_a_ranking_of_two_ranks(score: Callable[..., Run], tmp_path: Path, suffix: str) -> None:
    rows: Rows = [
        {"prompt": "a quiet hobby", "chosen": ["origami", "walking"], "rejected": ["drumming", "tools", "x"]},
        {"prompt": "by the sea", "chosen": [{"content": "walking"}], "rejected": [{"content": "baking bread"}]},
    ]
    if suffix == ".csv":
        rows = [{name: one if name == "prompt" else json.dumps(one) for name, one in row.items()} for row in rows]
    elif suffix == ".jsonl":
        rows = [
            {name: one if name == "prompt" else [*map(as_message, one)] for name, one in row.items()} for row in rows
        ]
    else:
        rows = rows[:1]
    (tmp_path / "styles.toml").write_text(SEVERAL, encoding="utf-8")
    run = score(str(tmp_path / "styles.toml"), write(tmp_path / f"r{suffix}", rows))
    names = ["chosen 0", "chosen 1", "rejected 0", "rejected 1", "rejected 2"]
    assert run.items.filter(id="0").select("response", "rank").rows() == list(zip(names, [1, 1, 2, 2, 2], strict=True))
    assert run.estimate("pooled_accuracy").n == sum([6, 1][: len(rows)])


def test_equal_pairs_are_left_out_and_counted(score: Callable[..., Run], tmp_path: Path) -> None:
    rows = [
        {
            "idx": place,
            "motivation_app": f"app{place % 2}",
            "instruction": f"a quiet hobby {place}",
            "input": "by the sea" if place % 2 else "",
            "response1": f"origami {place}",
            "response2": f"drumming {place}",
            "annotator1": place % 3,
            "annotator2": place % 3,
            "annotator3": 1,
        }
        for place in range(9)
    ]
    run = score("pandalm", write(tmp_path / "pandalm.json", rows))
    assert run.items.height == 9
    assert run.items.filter(outcome="equal")["id"].to_list() == ["0", "3", "6"]
    assert (run.estimate("pooled_accuracy").n, run.count("equal")) == (6, 3)
    scored = run.items.filter(pl.col("outcome") != "equal")
    wins = scored.filter(pl.col("score_chosen") > pl.col("score_rejected")).height
    assert run.headline.value == pytest.approx(wins / 6)


@pytest.mark.skipif(not PANDALM.exists(), reason="the PandaLM test set is not here")
def test_the_real_pandalm_test_set_is_read_whole() -> None:
    rows = json.loads(PANDALM.read_text(encoding="utf-8"))
    read = load_items(find_benchmark("pandalm"), str(PANDALM))
    items = read.frame
    assert items.height == len(rows) == 999
    assert read.source["empty"] == [
        str(r["idx"]) for r in rows if not all(str(r[f"response{n}"]).strip() for n in (1, 2))
    ]
    assert items["id"].to_list() == [str(row["idx"]) for row in rows]
    for row, item in zip(rows, items.iter_rows(named=True), strict=True):
        votes = [row[f"annotator{number}"] for number in (1, 2, 3)]
        chosen = next((side for side in (1, 2) if votes.count(side) >= 2), None)
        assert item["rank"] == ([1, 1] if chosen is None else [1, 2])
        response = row[f"response{chosen or 1}"]
        assert item["responses"][0] == response or not isinstance(response, str), "six are a plain `true`"
        parts = [part for part in (row["instruction"], row["input"]) if part.strip()]
        assert item["prompt"] == [{"role": "user", "content": "\n\n".join(parts)}]


def test_a_benchmark_of_ones_own_is_a_file(
    score: Callable[..., Run], pairs: Callable[..., Rows], tmp_path: Path
) -> None:
    (tmp_path / "teas.toml").write_text(
        'title = "Teas"\nsplit = "dev"\noverall = "configs"\n'
        '[columns]\nprompt = ["ask"]\ncluster = "user"\nsubset = "kind"\n'
        "[sections.All]\ngreen = 3\nblack = 1\n",
        encoding="utf-8",
    )
    for config in ("a", "b"):
        rows = pairs(12, seed=len(config))
        for place, row in enumerate(rows):
            row |= {"ask": row.pop("prompt"), "user": f"u{place // 4}", "kind": "black" if place % 3 else "green"}
        write(tmp_path / "data" / f"{config}_dev.jsonl", rows)
    run = score(str(tmp_path / "teas.toml"), tmp_path / "data")
    assert run.config.benchmark.name == "teas"
    assert run.headline.clusters == 3
    green, black = (value(run, "accuracy", config="a", section="All", subset=k) for k in ("green", "black"))
    assert value(run, "accuracy", config="a", section="All") == pytest.approx((3 * green + black) / 4)


def test_a_dataset_on_the_hub_is_pinned_to_its_commit(score: Callable[..., Run], hub: Hub) -> None:
    row = {"chosen": "+", "rejected": "-", "source": "hep-go"}
    rows = [row | {"id": 90 - n, "prompt": f"{text}?"} for n, text in enumerate(TEXTS)]
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    splits = {"zho_Hans": "test", "arb_Arab": "test", "preference": "train"}
    files = {config: {"split": split, "path": f"{config}/{split}.jsonl"} for config, split in splits.items()}
    configs = [{"config_name": config, "data_files": [file]} for config, file in files.items()]
    card = f"---\n{json.dumps({'license': 'odc-by', 'configs': configs})}\n---\n".encode()
    commit = hub.create("acme/tea").commit({"README.md": card} | {file["path"]: lines for file in files.values()})
    run = score("multilingual", "acme/tea")
    data = run.config.data
    assert (data.location, data.revision, data.license) == ("acme/tea", commit, "odc-by")
    assert data.rows == {"arb_Arab": 5, "zho_Hans": 5}, "what has training data alone stays out"
    assert run.items.filter(config="arb_Arab")["id"].to_list() == ["90", "89", "88", "87", "86"]

"""Conversations, lists written as text, and rows that are merged: what each published form is read as, or refused."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pluralbench import DataConfig, find_benchmark
from pluralbench.data.fields import Columns
from pluralbench.data.items import load_items
from pluralbench.data.texts import MESSAGE_KEYS, ROLES, parse_messages
from pluralbench.errors import DataError
from written_tables import write

Command = Callable[..., tuple[int, str, str]]
Rows = list[dict[str, Any]]
SHAREGPT = [
    {"from": "system", "value": "Be brief."},
    {"from": "human", "value": "hi"},
    {"from": "gpt", "value": "Yes?"},
    {"from": "human", "value": "推荐一本书"},
]
READ = [("system", "Be brief."), ("user", "hi"), ("assistant", "Yes?"), ("user", "推荐一本书")]
OPENAI = [{"role": role, "content": text} for role, text in READ]
TURNS = ["Name a river.", "And another."]
ARENA = {"first": "response_a", "second": "response_b", "labels": "winner"}


def messages(items: Any) -> list[tuple[str, str]]:
    return [(message["role"], message["content"]) for message in items.frame["prompt"][0]]


def written(path: Path, row: dict[str, Any]) -> Path:
    """Write a row as a table whose CSV cells are JSON."""
    if path.suffix != ".csv":
        return write(path, [row])
    as_json = {name: value if isinstance(value, str) else json.dumps(value) for name, value in row.items()}
    return write(path, [as_json])


def refused(path: Path, benchmark: str = "pairs", **options: Any) -> str:
    with pytest.raises(DataError) as caught:
        load_items(benchmark, DataConfig(location=str(path), **options))
    return str(caught.value)


@pytest.mark.heavy
@given(
    turns=st.lists(st.tuples(st.sampled_from(sorted(ROLES)), st.text(min_size=1)), min_size=1),
    keys=st.sampled_from(MESSAGE_KEYS),
    style=st.sampled_from([str.lower, str.upper, str.title]),
)
def test_each_message_keeps_its_text_and_its_role(
    turns: list[tuple[str, str]], keys: tuple[str, str], style: Callable[[str], str]
) -> None:
    # Rows of a frame have every key that any message has, with null where it is missing.
    missing: dict[str, str | None] = dict.fromkeys(key for pair in MESSAGE_KEYS for key in pair)
    prompt = [missing | dict(zip(keys, (style(role), text), strict=True)) for role, text in turns]
    if ROLES[turns[-1][0]] == "assistant":
        prompt.append(missing | dict(zip(keys, (style("user"), "And?"), strict=True)))
        turns = [*turns, ("user", "And?")]
    read = parse_messages({"prompt": prompt}, Columns())
    assert read == [{"role": ROLES[role], "content": text} for role, text in turns]
    assert {message["role"] for message in read} <= {"system", "user", "assistant"}


@given(name=st.text().filter(lambda name: name.lower() not in ROLES))
def test_an_unknown_role_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="in `prompt` is none of system, developer, user"):
        parse_messages({"prompt": [{"from": name, "value": "x"}]}, Columns())


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
@pytest.mark.parametrize(("name", "conversation"), [("conversations", SHAREGPT), ("messages", OPENAI)])
def test_sharegpt_and_openai_are_read_with_their_roles(
    tmp_path: Path, name: str, conversation: Rows, suffix: str
) -> None:
    answer = {"from": "gpt", "value": "A good one."}
    path = write(tmp_path / f"p{suffix}", [{"id": "1", name: conversation, "chosen": answer, "rejected": "No."}])
    items = load_items("pairs", DataConfig(location=str(path), columns={"prompt": name}))
    assert messages(items) == READ
    assert items.frame["responses"].to_list() == [["A good one.", "No."]]


@pytest.mark.parametrize("benchmark", ["pairs", "prompts"])
@pytest.mark.parametrize("as_text", [False, True])
@pytest.mark.parametrize(
    ("name", "key", "conversation"), [("conversations", "value", SHAREGPT), ("messages", "content", OPENAI)]
)
def test_a_key_of_each_message_is_refused_since_it_loses_the_roles(
    tmp_path: Path, benchmark: str, name: str, key: str, conversation: Rows, as_text: bool
) -> None:
    cell = json.dumps(conversation) if as_text else conversation
    path = write(tmp_path / "p.jsonl", [{"id": "1", name: cell, "chosen": "yes", "rejected": "no"}])
    said = refused(path, benchmark, columns=[f"prompt={name}.{key}"])
    assert f"`{name}`" in said
    assert "is a list of messages, whose roles" in said


def test_a_response_that_is_a_conversation_of_sharegpt_ends_with_an_answer(tmp_path: Path) -> None:
    row = {"id": "1", "chosen": [*SHAREGPT[:2], {"from": "gpt", "value": "Yes?"}], "rejected": "no"}
    path = write(tmp_path / "p.jsonl", [row | {"prompt": SHAREGPT[:2]}])
    assert load_items("pairs", DataConfig(location=str(path))).frame["responses"].to_list() == [["Yes?", "no"]]
    said = refused(write(tmp_path / "q.jsonl", [row | {"prompt": "hi"}]))
    assert "`chosen` has 1 turn before the response that the prompt lacks ('Be brief.')" in said


def test_a_list_of_texts_is_turns_of_the_user_only_where_the_entry_says_so(tmp_path: Path) -> None:
    rows = [{"id": "1", "prompt": TURNS, "chosen": "The Po.", "rejected": "No."}]
    path = write(tmp_path / "p.jsonl", rows)
    assert "set `user_turns = true` in the benchmark's file" in refused(path)
    (tmp_path / "t.toml").write_text('title = "T"\nuser_turns = true\n', encoding="utf-8")
    for benchmark in (str(tmp_path / "t.toml"), "prompts"):
        read = load_items(find_benchmark(benchmark), DataConfig(location=str(path)))
        assert messages(read) == [("user", text) for text in TURNS]
    single = write(tmp_path / "q.jsonl", [row | {"prompt": TURNS[:1]} for row in rows])
    assert messages(load_items("pairs", DataConfig(location=str(single)))) == [("user", TURNS[0])]


def kaggle(path: Path, prompts: Rows | list[Any]) -> Path:
    """Write pairs as the files of LMSYS on Kaggle have them: each cell is a list of texts, as JSON."""
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["id", "prompt", "response_a", "response_b", "winner"])
        for number, prompt in enumerate(prompts):
            table.writerow([number, json.dumps(prompt), json.dumps(["Ash."]), json.dumps(['A "cat".']), "1"])
    return path


def test_a_list_written_as_text_is_refused_until_the_entry_says_what_it_is(tmp_path: Path) -> None:
    path = kaggle(tmp_path / "lmsys.csv", [["Name a cat."], ["Name two."]])
    every = "json_texts=prompt,response_a,response_b"
    said = refused(path, columns=ARENA)
    assert "`prompt` and `response_a` and `response_b` has lists written as text" in said
    assert f'`columns=["{every}"]`' in said
    assert f'`columns=["{every}"]`' in refused(path, columns=ARENA | {"json_texts": ["prompt"]})
    items = load_items("pairs", DataConfig(location=str(path), columns=ARENA | {"json_texts": every[11:].split(",")}))
    assert messages(items) == [("user", "Name a cat.")]
    assert items.frame["responses"][0].to_list() == ["Ash.", 'A "cat".']
    entry = tmp_path / "k.toml"
    names = "\n".join(f"{field} = {[name] if field == 'labels' else name!r}" for field, name in ARENA.items())
    entry.write_text(f'title = "K"\n[columns]\n{names}\njson_texts = []\n', encoding="utf-8")
    items = load_items(find_benchmark(str(entry)), DataConfig(location=str(path)))
    assert messages(items) == [("user", '["Name a cat."]')]


def test_a_table_with_one_plain_text_is_no_table_of_lists(tmp_path: Path) -> None:
    rows = [{"id": n, "prompt": "As JSON?", "chosen": text, "rejected": "no"} for n, text in enumerate(('["a"]', "b"))]
    items = load_items("pairs", DataConfig(location=str(write(tmp_path / "p.csv", rows))))
    assert items.frame["responses"].to_list() == [['["a"]', "no"], ["b", "no"]]


def test_a_column_of_json_that_has_other_text_names_the_row(tmp_path: Path) -> None:
    path = kaggle(tmp_path / "lmsys.csv", [["Name a cat."], ["Name", "two."]])
    names = ["prompt", "response_a", "response_b"]
    assert "at id 1: `prompt` is a list of 2 texts" in refused(path, columns=ARENA | {"json_texts": names})
    assert "no column `nope`" in refused(path, columns=ARENA | {"json_texts": [*names, "nope"]})


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_rows_of_one_response_with_its_rank_are_merged_to_rankings(tmp_path: Path, suffix: str) -> None:
    rows = [
        {"id": f"r{n}", "q": n // 2, "prompt": f"Q{n // 2}?", "responses": f"a{n}", "rank": 2 - n % 2} for n in range(4)
    ]
    path = write(tmp_path / f"r{suffix}", rows)
    columns = {"group": "q", "id": "q"}
    items = load_items("rankings", DataConfig(location=str(path), columns=columns))
    assert items.frame["responses"].to_list() == [["a0", "a1"], ["a2", "a3"]]
    assert items.frame["rank"].to_list() == [[2, 1], [2, 1]]


def test_a_mapping_of_columns_and_labels_is_that_of_the_options() -> None:
    columns = {"prompt": ["instruction", "input"], "first": "a", "second": "b", "labels": "winner"}
    data = DataConfig(columns=columns, labels={"first": ["A>B", 1], "scale": [-3, 3], "tie": "x"})
    assert data.columns == ("prompt=instruction,input", "first=a", "second=b", "labels=winner")
    assert data.labels == ("first=A>B,1", "scale=-3,3", "tie=x")
    assert DataConfig(columns=("prompt=text",)).columns == ("prompt=text",)


def test_a_table_that_never_quotes_is_read_by_an_option_or_an_entry(run: Command, tmp_path: Path) -> None:
    path = tmp_path / "p.tsv"
    path.write_text('id\tprompt\tchosen\trejected\n1\t"Hm" she said\tSo.\t"\n', encoding="utf-8")
    words = ["score", tmp_path / "no-model", "--benchmark", "pairs", "--data", path]
    status, _, said = run(*words)
    assert (status, "set `--quoting` (doubled, backslash, none)" in " ".join(said.split())) == (2, True)
    assert "no-model" in run(*words, "--quoting", "none")[2]
    (tmp_path / "t.toml").write_text('title = "T"\nquoting = "none"\nseparator = "tab"\n', encoding="utf-8")
    for benchmark, data in (
        ("pairs", DataConfig(location=str(path), quoting="none")),
        (str(tmp_path / "t.toml"), DataConfig(location=str(path))),
        (str(tmp_path / "t.toml"), DataConfig(location=str(path), separator="tab")),
    ):
        items = load_items(benchmark, data)
        assert messages(items) == [("user", '"Hm" she said')]
        assert items.frame["responses"].to_list() == [["So.", '"']]


def test_texts_beside_lists_are_refused_and_read_as_json(tmp_path: Path) -> None:
    rows = [
        {
            "id": n,
            "prompt": "?",
            "chosen": "good" if n else [{"role": "assistant", "content": "good"}],
            "rejected": "no",
        }
        for n in range(3)
    ]
    path = str(write(tmp_path / "mixed.jsonl", rows))
    with pytest.raises(
        DataError, match=r"`chosen` has lists .*, or lists in some rows and texts in others.*json_texts=chosen"
    ):
        load_items(find_benchmark("pairs"), path)
    read = load_items(find_benchmark("pairs", ["json_texts=chosen"]), path)
    assert read.frame["responses"].to_list() == [["good", "no"]] * 3


def test_a_profile_of_lists_beside_texts_is_refused_and_read_as_json(
    pairs: Callable[..., Rows], tmp_path: Path
) -> None:
    profiles = ["I row.", ["I row.", "I sing."], [{"text": "I row.", "id": 7}]]
    rows = [row | {"posts": posts} for row, posts in zip(pairs(3), profiles, strict=True)]
    path = str(write(tmp_path / "p.jsonl", rows))
    with pytest.raises(DataError, match=r"`posts` has lists .*json_texts=posts"):
        load_items(find_benchmark("pairs", ["profile=posts"]), path)
    read = load_items(find_benchmark("pairs", ["profile=posts", "json_texts=posts"]), path)
    texts = [[post["text"] for post in posts] for posts in read.frame["profile"].to_list()]
    assert texts == [["I row."], ["I row.", "I sing."], ["I row."]]
    odd = [row | {"posts": [{"text": "I row.", "id": [7]}]} for row in pairs(2)]
    with pytest.raises(DataError, match=r"at id q0: \[7\] as `id` in `posts` is not text"):
        load_items(find_benchmark("pairs", ["profile=posts"]), str(write(tmp_path / "q.jsonl", odd)))


def test_turns_before_a_response_that_the_prompt_lacks_are_refused(tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "a hobby?"}, {"role": "assistant", "content": "Which?"}]
    turns.append({"role": "user", "content": "A quiet one."})
    sides = {side: [*turns, {"role": "assistant", "content": side}] for side in ("chosen", "rejected")}
    with pytest.raises(DataError, match=r"id 0: `chosen` has 2 turns before .* \('Which\?', 'A quiet one.'\)"):
        load_items(find_benchmark("pairs"), str(write(tmp_path / "a.jsonl", [{"prompt": "a hobby?", **sides}])))
    whole = load_items(find_benchmark("pairs"), str(write(tmp_path / "b.jsonl", [{"prompt": turns, **sides}])))
    assert whole.frame["responses"].to_list() == [["chosen", "rejected"]]


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
@pytest.mark.parametrize("calls", ["tool_calls", "function_call"])
def test_a_call_in_a_message_is_refused(tmp_path: Path, suffix: str, calls: str) -> None:
    call = {"role": "assistant", "content": "", calls: [{"name": "add"}]}
    options: dict[str, Any] = {} if suffix == ".jsonl" else {"columns": {"json_texts": ["prompt", "chosen"]}}
    for row in ({"prompt": [*OPENAI, call, *OPENAI[1:2]], "chosen": "a"}, {"prompt": OPENAI, "chosen": [call]}):
        path = written(tmp_path / f"p{suffix}", {"id": "1", "rejected": "b"} | row)
        assert f"at id 1: a message in `{'chosen' if row['chosen'] != 'a' else 'prompt'}` has `{calls}`" in refused(
            path, **options
        )


def test_further_keys_of_messages_are_named_unless_none_has_a_value(tmp_path: Path) -> None:
    thought = {"role": "assistant", "content": "Yes?", "reasoning_content": "Which?", "name": "", "tool_calls": []}
    prompt = [OPENAI[1] | {"reasoning_content": None, "name": None}, thought, OPENAI[3]]
    rows = [{"id": "1", "prompt": prompt, "chosen": [thought | {"weight": 1}], "rejected": "b", "tools": "t"}]
    named = ["chosen.reasoning_content", "chosen.weight", "prompt.reasoning_content", "tools"]
    for suffix in (".jsonl", ".parquet"):
        assert (
            load_items("pairs", DataConfig(location=str(write(tmp_path / f"p{suffix}", rows)))).source[
                "ignored_columns"
            ]
            == named
        )
    texts = [row | {name: json.dumps(row[name]) for name in ("prompt", "chosen")} for row in rows]
    path = write(tmp_path / "texts.jsonl", texts)
    options: dict[str, Any] = {"columns": {"json_texts": ["prompt", "chosen"]}}
    assert load_items("pairs", DataConfig(location=str(path), **options)).source["ignored_columns"] == named


def test_a_prompt_that_ends_with_the_assistant_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "p.jsonl", [{"id": "1", "prompt": OPENAI[:3], "chosen": "a", "rejected": "b"}])
    assert refused(path).endswith(
        "at id 1: `prompt` ends with a message of the assistant; end it with the user's, and begin each response with "
        "that text."
    )


def test_an_empty_turn_of_the_assistant_makes_a_prompt_empty(tmp_path: Path) -> None:
    prompt = [OPENAI[1], {"role": "assistant", "content": " "}, OPENAI[3]]
    path = write(tmp_path / "p.jsonl", [{"id": "1", "prompt": prompt, "chosen": "a", "rejected": "b"}])
    assert "has 1 item with an empty prompt or response (ids 1)" in refused(path)

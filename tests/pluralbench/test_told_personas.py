"""`--profile persona`: whose persona an item gets, what a model and a judge are told, and what is refused."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import verbs
from chat_server import Reply, serve
from pluralbench import DataConfig, PromptConfig
from pluralbench.contract import Group
from pluralbench.data.prompts import WORDINGS, prompts_digest
from pluralbench.errors import DataError
from pluralbench.evaluation.loading import load_benchmark
from pluralbench.results import Run
from pluralbench.results.examples import examples, read_texts
from pluralbench_runs import OutputError, digest
from written_tables import write

Rows = list[dict[str, Any]]
SHOWN = {"prompt": "Tea or coffee?", "chosen": "Tea, since you sleep badly.", "rejected": "Coffee."}


def groups(data: Path, benchmark: str = "personalized", **options: Any) -> Sequence[Group]:
    return load_benchmark(benchmark, str(data), PromptConfig(profile="persona", **options)).groups()


def test_a_persona_may_stand_in_the_data(pairs: Callable[..., Rows], tmp_path: Path) -> None:
    def of(about: Any) -> Group:
        data = write(tmp_path / "p.jsonl", pairs(1, about=about))
        columns = DataConfig(location=str(data), columns={"persona": "about"})
        assert columns.columns == ("persona=about",)
        [group] = load_benchmark("pairs", columns, PromptConfig(profile="persona")).groups()
        return group

    text = of("I keep bees.").messages[-1]["content"]
    assert text.startswith("Who I am, and how I like to be answered:\nI keep bees.\n\nMy question:")
    several = of(["I keep bees.", " ", "I am brief."])
    assert several.person is not None
    assert several.person.persona == ("I keep bees.", "I am brief.")
    assert "answered:\nI keep bees.\nI am brief.\n" in several.messages[-1]["content"]
    with pytest.raises(
        DataError, match=r"The item q0 \(person q0\) has no persona; pass a file with `personas=...`, name"
    ):
        of(None)
    with pytest.raises(DataError, match="at id q0: `about` is not a text or a list of texts"):
        of(7)


def test_a_file_has_them_by_item_or_by_person(pairs: Callable[..., Rows], tmp_path: Path) -> None:
    rows = [row | {"user": "u1"} for row in pairs(3)]

    data = DataConfig(location=str(write(tmp_path / "p.jsonl", rows)), columns=("cluster=user",))
    personas = write(
        tmp_path / "personas.jsonl",
        [{"id": "u1", "persona": "I am u1."}, {"id": "q1", "persona": ["Just q1."], "from": "posts"}],
    )
    told = load_benchmark("pairs", data, PromptConfig(profile="persona", personas=personas)).groups()
    assert [group.context[0].splitlines()[1] for group in told] == ["I am u1.", "Just q1.", "I am u1."]


def test_a_judge_is_told_the_demonstrations_and_a_reward_model_is_not(
    people: Callable[..., Rows], tmp_path: Path
) -> None:
    data = write(tmp_path / "people.jsonl", people(1))
    turns = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Yes?"},
        {"role": "user", "content": "?"},
    ]
    personas = tmp_path / "wrote" / "personas.jsonl"
    write(personas, [{"id": "p0-0", "persona": "I sleep badly.", "demonstrations": [SHOWN, SHOWN | {"prompt": turns}]}])
    [group] = groups(data, personas=personas.parent)
    assert group.context == ("Who I am, and how I like to be answered:\nI sleep badly.",)
    with serve(lambda *_: Reply("[[A]]")) as server:
        verbs.judge(
            "j", data=data, base_url=server.base_url, out=tmp_path / "run", profile="persona", personas=personas
        )
        told = server.requests[0]["messages"][1]["content"].split("</about_the_person>")[0]
    assert told.index("I sleep badly.") < told.index("<earlier_question>\nTea or coffee?\n</earlier_question>")
    assert "<answer_they_chose>\nTea, since you sleep badly.\n</answer_they_chose>" in told
    assert "user: Hi\n\nassistant: Yes?\n\nuser: ?" in told


def test_personas_bind_a_run_and_other_runs_are_as_they_were(
    score: Callable[..., Run], people: Callable[..., Rows], tmp_path: Path
) -> None:
    data = write(tmp_path / "people.jsonl", people(2))
    rows = [{"id": f"p0-{place}", "persona": f"I am {place}."} for place in range(2)]
    options: dict[str, Any] = {"profile": "persona", "personas": write(tmp_path / "a.jsonl", rows)}
    run = score("personalized", data, out=tmp_path / "run", **options)
    assert run.config.prompt.profile == "persona"
    keys = run.items.head(1).select("config", "id", "digest").rows()
    [example] = examples(run, keys, read_texts(run))
    context = example["person"]["context"]
    assert context.startswith("The model read a persona of the user, which the run does not contain")
    assert run.config.prompt.personas_digest
    rows[1]["persona"] = "I am another."
    with pytest.raises(OutputError, match="personas_digest"):
        score("personalized", data, out=tmp_path / "run", **options | {"personas": write(tmp_path / "b.jsonl", rows)})
    plain = score("personalized", data, out=tmp_path / "plain", profile="raw")
    assert plain.config.prompt.personas_digest is None
    assert prompts_digest("raw") == digest(dict(WORDINGS)) != prompts_digest("persona")


@pytest.mark.parametrize(
    "line",
    [
        "[]",
        '{"id": "a"}',
        '{"id": "a", "persona": [7]}',
        '{"id": "a", "persona": "x", "demonstrations": "x"}',
        '{"id": "a", "persona": "x", "demonstrations": [{"prompt": [], "chosen": "a", "rejected": "b"}]}',
    ],
)
def test_a_line_of_another_form_is_named(people: Callable[..., Rows], tmp_path: Path, line: str) -> None:
    data, path = write(tmp_path / "people.jsonl", people(1)), tmp_path / "broken.jsonl"
    path.write_text(f'\n{{"id": "p0-0", "persona": "x"}}\n{line}\n', encoding="utf-8")
    with pytest.raises(DataError, match=r"line 3: the line does not have the form \{\"id\""):
        groups(data, personas=path)


def test_what_a_file_leaves_out_or_says_twice_is_named(people: Callable[..., Rows], tmp_path: Path) -> None:
    data = write(tmp_path / "people.jsonl", people(2))
    one = {"id": "p0-0", "persona": "x"}
    twice = write(tmp_path / "twice.jsonl", [one, one])
    with pytest.raises(DataError, match="line 2: the id p0-0 has a persona on an earlier line; remove one of the two"):
        groups(data, personas=twice)
    with pytest.raises(DataError, match=r"The item p0-1 \(person p0-1\) has no persona; add it to the file, name"):
        groups(data, personas=write(tmp_path / "few.jsonl", [one]))
    with pytest.raises(DataError, match="line 1: the persona of id 3 is empty; write one, or remove the line"):
        groups(data, personas=write(tmp_path / "empty.jsonl", [{"id": 3, "persona": " "}]))
    with pytest.raises(
        DataError, match=r'`personas=...` requires `profile="persona"`; pass both, or leave out the file'
    ):
        load_benchmark("personalized", str(data), PromptConfig(profile="raw", personas=twice))
    with pytest.raises(DataError, match="The item p0-0"):
        groups(data)
    with pytest.raises(DataError, match="cannot be read"):
        groups(data, personas=tmp_path / "nowhere.jsonl")


@pytest.mark.heavy
def test_a_persona_of_many_words_is_dealt_with_as_any_long_text(
    score: Callable[..., Run], model: str, people: Callable[..., Rows], tmp_path: Path
) -> None:
    data = write(tmp_path / "people.jsonl", people(2))
    rows = [{"id": f"p0-{place}", "persona": "I like short answers. " * 2500} for place in range(2)]
    rows[1]["persona"] = "I like short answers."
    options: dict[str, Any] = {"by": model, "profile": "persona", "personas": write(tmp_path / "long.jsonl", rows)}
    options |= {"max_length": 2000}
    with pytest.raises(Exception, match=r"1 of 2 prompts have conversations of more than 2,000 tokens.*\(ids p0-0\)"):
        score("personalized", data, **options)
    cut = score("personalized", data, on_overflow="truncate-prompt", **options)
    assert (cut.count("truncated"), verbs.scoring(cut).items_truncated) == (1, 1)
    plain = score("personalized", data, by=model)
    same = cut.items["score_chosen"][0] == pytest.approx(plain.items["score_chosen"][0], abs=1e-4)
    assert same, "what does not fit is left out as a whole, so the question is scored by itself"
    dropped = score("personalized", data, on_overflow="drop", **options)
    assert verbs.scoring(dropped).items_dropped == 1


def test_the_file_of_an_own_sample_can_be_told(score: Callable[..., Run]) -> None:
    run = score("personalized-training", "sample", profile="persona")
    assert run.config.prompt.profile == "persona"
    assert verbs.config(run.path)["data"]["history"]["items_without"] > 0

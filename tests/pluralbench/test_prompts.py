"""What a model under test is shown: the profile as asked for, the roles as given, never what it is held to."""

import json
from collections.abc import Callable, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
import verbs
from chat_server import Reply, serve
from pluralbench import PromptConfig, find_benchmark
from pluralbench.contract import Group
from pluralbench.data.prompts import UserContext, context_blocks
from pluralbench.errors import DataError
from pluralbench.evaluation.loading import load_benchmark
from pluralbench.results import Run
from verbs import load_items
from written_tables import write

Rows = list[dict[str, Any]]
MARKER = "zq7secret"


def plans_of(data: Path, profile: str) -> Path | None:
    return data.with_name("plans.jsonl") if profile == "plan" else None


@pytest.fixture
def data(people: Callable[..., Rows], tmp_path: Path) -> Path:
    """Rows with the marker in every rubric aspect and narrative, and plans for them in either form."""
    rows = people(4, marker=MARKER)
    plans = [{"id": row["id"], "aspects": ["few words", "no tools"]} for row in rows[:2]]
    plans += [{"id": row["id"], "aspects": "few words, no tools"} for row in rows[2:]]
    write(tmp_path / "plans.jsonl", plans)
    return write(tmp_path / "people.jsonl", rows)


def shown(data: Path, benchmark: str = "personalized", **options: Any) -> Sequence[Group]:
    """What a model is given with these options."""
    return load_benchmark(benchmark, data, PromptConfig(**options)).groups()


@pytest.mark.parametrize("profile", ["none", "raw", "plan"])
def test_scoring_never_shows_rubrics_or_narratives(data: Path, profile: str) -> None:
    groups = shown(data, profile=profile, plans=plans_of(data, profile))
    assert len(groups) == 4
    assert MARKER not in repr(groups)
    assert MARKER not in repr([group.messages for group in groups])


def test_what_is_tokenized_has_the_prompt_and_no_rubric(
    score: Callable[..., Run], model: str, data: Path, monkeypatch: pytest.MonkeyPatch, people: Callable[..., Rows]
) -> None:
    from transformers import PreTrainedTokenizerFast

    texts: list[str] = []
    call = PreTrainedTokenizerFast.__call__

    def recorded(self: Any, text: Any, *args: Any, **options: Any) -> Any:
        texts.extend([text] if isinstance(text, str) else text)
        return call(self, text, *args, **options)

    monkeypatch.setattr(PreTrainedTokenizerFast, "__call__", recorded)
    score("personalized", data, by=model)
    for row in people(4, marker=MARKER):
        assert f"<s><|user|>\n{row['question']}</s>\n<|assistant|>\n{row['chosen']}</s>\n" in texts
    score("personalized", data, by=model, profile="raw", max_length=60, on_overflow="truncate-prompt")
    assert any("Post no. 1 of 0." in text for text in texts)
    assert not [text for text in texts if MARKER in text]


def asked(data: Path, out: Path, reply: str = "[[A]]", **options: Any) -> tuple[Run, list[str]]:
    """A judge's run and every request it made, as it was sent."""
    with serve(lambda *_: Reply(reply)) as server:
        run = verbs.judge("j", data=str(data), base_url=server.base_url, out=out, attempts=1, **options)
        return run, [json.dumps(body, ensure_ascii=False) for body in server.requests]


HOWS: list[dict[str, Any]] = [{"orders": "both"}, {"orders": "one"}, {"protocol": "pointwise", "reply": "[[5]]"}]


@pytest.mark.parametrize(
    ("profile", "how"), [*(("raw", how) for how in HOWS), ("none", HOWS[0]), ("plan", HOWS[1]), ("plan", HOWS[2])]
)
def test_judging_never_shows_rubrics_or_narratives(
    data: Path, tmp_path: Path, profile: str, how: dict[str, Any]
) -> None:
    _, requests = asked(data, tmp_path / "run", profile=profile, plans=plans_of(data, profile), **how)
    assert len(requests) == 4 * (1 if how.get("orders") == "one" else 2)
    assert not [request for request in requests if MARKER in request]


@pytest.mark.parametrize(("oracle", "how"), [("titles", HOWS[1]), ("reasons", HOWS[2])])
def test_an_oracle_is_shown_the_aspects_but_not_the_narrative(
    data: Path, tmp_path: Path, oracle: Any, how: dict[str, Any]
) -> None:
    run, requests = asked(data, tmp_path / "run", oracle=oracle, **how)
    assert all(f"{MARKER}-aspect" in request for request in requests)
    assert {f"{MARKER}-reason" in request for request in requests} == {oracle == "reasons"}
    assert not [request for request in requests if f"{MARKER}-narrative" in request or "Post no. 1" in request]
    assert run.config.judge_setting("oracle") == oracle


@pytest.mark.heavy
@pytest.mark.parametrize("how", HOWS[2:])
def test_the_papers_oracle_is_shown_the_posts_too_and_goes_by_what_this_person_expects(
    data: Path, tmp_path: Path, how: dict[str, Any]
) -> None:
    run, requests = asked(data, tmp_path / "oracle", oracle="titles", profile="raw", criterion="person", **how)
    for request in requests:
        about = request.split("<about_the_person>")[1].split("</about_the_person>")[0]
        assert about.index("Post no. 4") < about.index("What this person expects of an answer:")
        assert f"{MARKER}-aspect" in about
        assert "this very person most likely expected" in request
        assert "how helpful, relevant, correct" not in request
    config = run.config
    assert (config.judge_setting("oracle"), config.prompt.profile, config.judge_setting("criterion")) == (
        "titles",
        "raw",
        "person",
    )
    bare, requests = asked(data, tmp_path / "bare", criterion="person", **how)
    assert all("Where nothing is said, infer from how they ask" in request for request in requests)
    assert not [request for request in requests if "about_the_person" in request]
    usual, requests = asked(data, tmp_path / "usual", **how)
    assert all("otherwise weigh how helpful, relevant, correct" in request for request in requests)
    assert [one.config.judge_setting("criterion") for one in (bare, usual)] == ["person", "quality"]


@pytest.mark.parametrize("posts", [1, 3, 10])
def test_a_profile_is_so_many_posts_each_with_its_number_and_category(data: Path, posts: int) -> None:
    group = shown(data, profile="raw", profile_size=posts)[2]
    text = group.messages[-1]["content"]
    told = [f"[Post {number}, Tea]\nPost no. {number} of 2." for number in range(1, min(posts, 4) + 1)]
    assert "\n".join(told) in text
    assert f"Post no. {posts + 1}" not in text
    assert text.index("Post no. 1") < text.index("My question:"), "the profile precedes the question"


@pytest.mark.parametrize(
    ("profile", "told"),
    [
        ("I am a vegan. I cook.", ["[Post 1]\nI am a vegan. I cook."]),
        (["I am a vegan.", " ", "I cook."], ["[Post 1]\nI am a vegan.", "[Post 2]\nI cook."]),
        (
            [{"text": "I cook."}, {"text": "I bake.", "category": "Food"}],
            ["[Post 1]\nI cook.", "[Post 2, Food]\nI bake."],
        ),
    ],
)
def test_a_profile_may_be_plain_text(
    pairs: Callable[..., Rows], tmp_path: Path, profile: object, told: list[str]
) -> None:
    data = write(tmp_path / "p.jsonl", pairs(2, profile=profile))
    items = load_items(find_benchmark("pairs", ["profile=profile"]), str(data))
    for item in items.frame.iter_rows(named=True):
        first, *others = context_blocks(item, UserContext(PromptConfig(profile="raw")))
        assert [first.partition(":\n")[2], *others] == told


def test_a_text_in_a_csv_is_a_profile_and_a_number_is_none(pairs: Callable[..., Rows], tmp_path: Path) -> None:
    benchmark = find_benchmark("pairs", ["profile=profile"])
    rows = pairs(1, profile="I am a vegan.") + pairs(1, id="q9", profile="")
    items = load_items(benchmark, str(write(tmp_path / "p.csv", rows)))
    assert [profile and [post["text"] for post in profile] for profile in items.frame["profile"].to_list()] == [
        ["I am a vegan."],
        None,
    ]
    numbers = write(tmp_path / "n.jsonl", pairs(1, profile=[1, 2]))
    with pytest.raises(
        DataError, match="at id q0: `profile` is not a text, a list of texts or a list of objects with a"
    ):
        load_items(benchmark, str(numbers))


def test_a_plan_is_shown_in_either_form(score: Callable[..., Run], data: Path) -> None:
    plans = data.with_name("plans.jsonl")
    for group in shown(data, profile="plan", plans=plans):
        assert "few words, no tools\n\nMy question:\n" in group.messages[-1]["content"]
        assert "Post no." not in str(group.messages)
    assert score("personalized", data, profile="plan", plans=plans).config.prompt.plans_digest


def test_an_item_without_a_plan_is_named(score: Callable[..., Run], data: Path, tmp_path: Path) -> None:
    plans = write(tmp_path / "few.jsonl", [{"id": "p0-0", "aspects": ["x"]}])
    with pytest.raises(DataError, match='The plans file has no id p0-1; add it, or choose `profile="none"`'):
        score("personalized", data, profile="plan", plans=plans, out=tmp_path / "run")
    assert not (tmp_path / "run.work").exists()


@pytest.mark.parametrize(
    "line",
    ["{", "[]", '{"id": "p0-0"}', '{"aspects": []}', '{"id": 1, "aspects": [1]}', '{"id": 1, "aspects": null}', "7"],
)
def test_a_broken_plan_is_named_by_its_line(score: Callable[..., Run], data: Path, tmp_path: Path, line: str) -> None:
    plans = tmp_path / "broken.jsonl"
    plans.write_text(f'\n{{"id": "p0-0", "aspects": ["x"]}}\n{line}\n', encoding="utf-8")
    with pytest.raises(DataError, match=r"line 3: (the line does not have the form|this is not )"):
        score("personalized", data, profile="plan", plans=plans)


def test_roles_are_kept_and_what_is_told_goes_before_the_last_question(tmp_path: Path) -> None:
    turns = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "Yes?"},
        {"role": "user", "content": "推荐 {about} 一本书"},
    ]
    row = {"id": "1", "prompt": turns, "chosen": "书", "rejected": "{}"}
    plans = write(tmp_path / "plans.jsonl", [{"id": 1, "aspects": ["in {braces}"]}])
    [group] = shown(write(tmp_path / "p.jsonl", [row]), "pairs", profile="plan", plans=plans)
    assert (list(group.prompt), list(group.responses)) == (turns, ["书", "{}"])
    told = "What I expect of an answer: in {braces}\n\nMy question:\n推荐 {about} 一本书"
    assert group.messages == [*turns[:3], {"role": "user", "content": told}]


def test_another_template_can_be_given(score: Callable[..., Run], model: str, data: Path, tmp_path: Path) -> None:
    (tmp_path / "t.jinja").write_text("{% for m in messages %}@{{ m['content'] }}{% endfor %}", "utf-8")
    usual = score("personalized", data, by=model)
    given = score("personalized", data, by=model, chat_template=tmp_path / "t.jinja")
    assert usual.result.model.chat_template_digest != given.result.model.chat_template_digest is not None
    assert not usual.items.equals(given.items)


def test_a_profile_that_is_too_long_loses_its_least_relevant_posts(
    score: Callable[..., Run], model: str, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pluralbench_local import conversations

    kept: list[Group] = []
    tokenized = conversations._tokenize_groups

    def recorded(groups: Sequence[Group], template: Any) -> Any:
        kept[:] = groups
        return tokenized(groups, template)

    monkeypatch.setattr(conversations, "_tokenize_groups", recorded)
    options: dict[str, Any] = {"by": model, "profile": "raw", "limit": 1, "on_overflow": "truncate-prompt"}
    whole = score("personalized", data, **options)
    tokens = max(whole.items["tokens_chosen"][0], whole.items["tokens_rejected"][0])
    run = score("personalized", data, max_length=tokens - 1, **options)
    text = kept[0].messages[-1]["content"]
    assert [f"Post no. {number} of 0." in text for number in (1, 2, 3, 4)] == [True, True, True, False]
    assert text.endswith(f"My question:\n{kept[0].prompt[-1]['content']}")
    assert (run.count("truncated"), verbs.scoring(run).items_truncated) == (1, 1)
    assert run.items["tokens_cut"][0] > 1, "a post goes as a whole"


def test_groups_are_the_same_in_any_order(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pluralbench.data.prompts.BATCH_GROUPS", 2)
    groups = shown(data)
    every = [*groups]
    for order in permutations(range(4)):
        assert [groups[place] for place in order] == [every[place] for place in order]
    assert (groups[-1], groups[1:]) == (every[-1], every[1:])
    with pytest.raises(IndexError):
        groups[4]

"""What a model under test is shown: the profile as asked for, the roles as given, never what it is held to."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import verbs
from chat_server import Reply, serve
from pluralbench import DataError, Run
from transformers import PreTrainedTokenizerFast
from written_tables import write

Rows = list[dict[str, Any]]
MARKER = "zq7secret"


def plans_of(data: Path, profile: str) -> Path | None:
    return data.with_name("plans.jsonl") if profile == "plan" else None


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every text that reaches a tokenizer."""
    texts: list[str] = []
    call = PreTrainedTokenizerFast.__call__

    def recorded(self: Any, text: Any, *args: Any, **options: Any) -> Any:
        texts.extend([text] if isinstance(text, str) else text)
        return call(self, text, *args, **options)

    monkeypatch.setattr(PreTrainedTokenizerFast, "__call__", recorded)
    return texts


@pytest.fixture
def data(people: Callable[..., Rows], tmp_path: Path) -> Path:
    """Rows with the marker in every rubric aspect and narrative, and plans for them."""
    rows = people(4, marker=MARKER)
    plans = [{"id": row["id"], "aspects": ["few words", "no tools"]} for row in rows[:2]]
    plans += [{"id": row["id"], "aspects": "few words, no tools"} for row in rows[2:]]
    write(tmp_path / "plans.jsonl", plans)
    return write(tmp_path / "people.jsonl", rows)


@pytest.mark.parametrize("profile", ["none", "raw", "plan"])
@pytest.mark.parametrize("mode", ["fast", "exact"])
@pytest.mark.parametrize("length", [{}, {"max_length": 60, "on_overflow": "truncate-prompt"}])
def test_scoring_never_shows_rubrics_or_narratives(
    score: Callable[..., Run], data: Path, seen: list[str], mode: str, profile: str, length: dict[str, Any]
) -> None:
    score("personalized", data, mode=mode, profile=profile, plans=plans_of(data, profile), **length)
    assert any("0!" in text for text in seen), "the texts are what is seen"
    assert not [text for text in seen if MARKER in text]


def test_implicit_scoring_never_shows_rubrics_or_narratives(
    score: Callable[..., Run], language_models: Callable[..., str], data: Path, seen: list[str]
) -> None:
    run = score(
        "personalized", data, by=language_models(0), kind="implicit", reference=language_models(1), profile="raw"
    )
    assert run.record.model.reference_digest != run.record.model.digest
    assert seen
    assert not [text for text in seen if MARKER in text]


def asked(data: Path, out: Path, reply: str = "[[A]]", **options: Any) -> tuple[Run, list[str]]:
    """A judge's run and every request it made, as it was sent."""
    with serve(lambda *_: Reply(reply)) as server:
        run = verbs.judge("j", data=str(data), base_url=server.base_url, out=out, attempts=1, **options)
        return run, [json.dumps(body, ensure_ascii=False) for body in server.requests]


@pytest.mark.parametrize("profile", ["none", "raw", "plan"])
@pytest.mark.parametrize("how", [{"orders": "both"}, {"orders": "one"}, {"pointwise": True, "reply": "[[5]]"}])
def test_judging_never_shows_rubrics_or_narratives(
    data: Path, tmp_path: Path, profile: str, how: dict[str, Any]
) -> None:
    _, requests = asked(data, tmp_path / "run", profile=profile, plans=plans_of(data, profile), **how)
    assert len(requests) == 4 * (1 if how.get("orders") == "one" else 2)
    assert not [request for request in requests if MARKER in request]


@pytest.mark.parametrize("how", [{"orders": "one"}, {"pointwise": True, "reply": "[[5]]"}])
def test_an_oracle_is_shown_the_aspects_but_not_the_narrative(data: Path, tmp_path: Path, how: dict[str, Any]) -> None:
    run, requests = asked(data, tmp_path / "run", oracle=True, **how)
    assert all(f"{MARKER}-aspect" in request for request in requests)
    assert not [request for request in requests if f"{MARKER}-narrative" in request]
    assert run.record.prompt.oracle is True


def test_an_oracle_needs_aspects(pairs: Callable[..., Rows], tmp_path: Path) -> None:
    data = write(tmp_path / "p.jsonl", pairs(2))
    with pytest.raises(DataError, match="id q0 has no rubric aspects, which --oracle shows"):
        asked(data, tmp_path / "run", benchmark="pairs", oracle=True)
    assert not (tmp_path / "run.work").exists()


@pytest.mark.parametrize("posts", [1, 3, 10])
def test_a_profile_is_so_many_posts_each_with_its_number_and_category(
    score: Callable[..., Run], data: Path, seen: list[str], posts: int
) -> None:
    run = score("personalized", data, profile="raw", profile_size=posts)
    assert run.record.prompt.profile_size == posts
    full = [text for text in seen if "<|user|>" in text and "of 2." in text]
    assert full
    for text in full:
        shown = [f"[Post {number}, Tea]\nPost no. {number} of 2." for number in range(1, min(posts, 4) + 1)]
        assert "\n".join(shown) in text
        assert f"Post no. {posts + 1}" not in text
        assert text.index("Post no. 1") < text.index("My question:"), "the profile precedes the question"


def test_no_profile_is_the_question_alone(
    score: Callable[..., Run], data: Path, seen: list[str], people: Callable[..., Rows]
) -> None:
    score("personalized", data)
    for row in people(4, marker=MARKER):
        conversation = f"<s><|user|>\n{row['question']}</s>\n<|assistant|>\n{row['chosen']}</s>\n"
        assert conversation in seen


def test_a_plan_is_shown_in_either_form(score: Callable[..., Run], data: Path, seen: list[str]) -> None:
    run = score("personalized", data, profile="plan", plans=data.with_name("plans.jsonl"))
    assert run.record.prompt.plans_digest
    conversations = [text for text in seen if "My question:" in text]
    assert len(conversations) >= 8
    assert all("few words, no tools" in text for text in conversations)
    assert not [text for text in seen if "Post no." in text]


def test_an_item_without_a_plan_is_named(score: Callable[..., Run], data: Path, tmp_path: Path) -> None:
    plans = write(tmp_path / "few.jsonl", [{"id": "p0-0", "aspects": ["x"]}])
    with pytest.raises(DataError, match="The plans have none for id p0-1; add it, or choose --profile none"):
        score("personalized", data, profile="plan", plans=plans, out=tmp_path / "run")
    assert not (tmp_path / "run.work").exists()


@pytest.mark.parametrize(
    "line",
    ["{", "[]", '{"id": "p0-0"}', '{"aspects": []}', '{"id": 1, "aspects": [1]}', '{"id": 1, "aspects": null}', "7"],
)
def test_a_broken_plan_is_named_by_its_line(score: Callable[..., Run], data: Path, tmp_path: Path, line: str) -> None:
    plans = tmp_path / "broken.jsonl"
    plans.write_text(f'\n{{"id": "p0-0", "aspects": ["x"]}}\n{line}\n', encoding="utf-8")
    with pytest.raises(DataError, match="line 3, is not of the form"):
        score("personalized", data, profile="plan", plans=plans)
    with pytest.raises(DataError, match="cannot be read"):
        score("personalized", data, profile="plan", plans=tmp_path / "nowhere.jsonl")


def test_an_item_without_a_profile_is_named(
    score: Callable[..., Run], pairs: Callable[..., Rows], tmp_path: Path
) -> None:
    with pytest.raises(DataError, match="The item of id q0 has no profile; choose --profile none"):
        score("pairs", write(tmp_path / "p.jsonl", pairs(2)), profile="raw")


def test_roles_reach_the_template_and_a_profile_goes_before_the_last_question(
    score: Callable[..., Run], seen: list[str], tmp_path: Path
) -> None:
    turns = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "Yes?"},
        {"role": "user", "content": "推荐 {about} 一本书"},
    ]
    row = {"id": "1", "prompt": turns, "chosen": "书", "rejected": "{}"}
    plans = write(tmp_path / "plans.jsonl", [{"id": 1, "aspects": ["in {braces}"]}])
    score("pairs", write(tmp_path / "p.jsonl", [row]), profile="plan", plans=plans)
    start = "<s><|system|>\nBe brief.</s>\n<|user|>\nhi</s>\n<|assistant|>\nYes?</s>\n<|user|>\n"
    told = "What I expect of an answer: in {braces}\n\nMy question:\n推荐 {about} 一本书</s>\n<|assistant|>\n"
    assert f"{start}{told}书</s>\n" in seen
    assert f"{start}{told}{{}}</s>\n" in seen


def test_another_template_can_be_given(score: Callable[..., Run], data: Path, seen: list[str], tmp_path: Path) -> None:
    (tmp_path / "t.jinja").write_text(
        "{% for m in messages %}@{{ m['role'] }}: {{ m['content'] }}{% endfor %}", "utf-8"
    )
    usual = score("personalized", data)
    run = score("personalized", data, chat_template=tmp_path / "t.jinja")
    assert any(text.startswith("@user: ") for text in seen)
    digests = [one.record.prompt.chat_template_digest for one in (usual, run)]
    assert digests[0] != digests[1]


def test_plans_and_the_profile_that_takes_them_belong_together(
    score: Callable[..., Run], people: Callable[..., Rows], tmp_path: Path
) -> None:
    data = write(tmp_path / "p.jsonl", people(2))
    plans = write(tmp_path / "plans.jsonl", [{"id": "p0-0", "aspects": ["x"]}])
    for words in ({"profile": "plan"}, {"plans": plans}):
        with pytest.raises(DataError, match="--profile plan and --plans FILE belong together"):
            score("personalized", data, **words)

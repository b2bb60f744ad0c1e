"""Conversations longer than the limit: an error that names them, or dropped, or cut alike for a whole group."""

from dataclasses import replace
from typing import Any

import pytest
from pluralbench_local import LocalError, LocalRewardModel, score
from pluralbench_local.conversations import tokenize
from pluralbench_rewards import Group, Overflow
from reward_models import (
    POSITIONS,
    Folders,
    conversation_ids,
    load_classifier,
    load_implicit,
    load_plainly,
    log_probability_alone,
    logits_alone,
    make_tokenizer,
    opening_ids,
    user,
    work_of,
)
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

SHORT = Group("short", user("hi"), ["origami", "drumming"])
LONG = Group("long", user("walking with an old dog at dawn " * 12), ["origami", "drumming by the sea"])
LIMIT = 60


def lengths(model: "LocalRewardModel", group: Group) -> list[int]:
    return [len(conversation_ids(model.template.tokenizer, group, response)) for response in group.responses]


def texts(model: "LocalRewardModel", group: Group, limit: int, overflow: Overflow) -> list[str]:
    """What the model is given to read."""
    [tokenized] = tokenize([group], model.template, limit, overflow)
    return [str(model.template.tokenizer.decode(list(tokens.ids))) for tokens in tokenized.conversations]


def test_too_long_is_an_error_that_names_prompts_and_options(llama: "LocalRewardModel") -> None:
    groups = [SHORT, *(Group(f"q{number}", LONG.prompt, LONG.responses) for number in range(7))]
    with pytest.raises(LocalError) as failed:
        score(llama, groups, max_length=LIMIT)
    assert str(failed.value) == (
        f"7 of 8 prompts have conversations of more than 60 tokens, the longest {max(lengths(llama, LONG))} "
        "(ids q0, q1, q2, q3, q4, …); raise `max_length=...`, or choose drop, truncate-left or truncate-prompt as "
        "`on_overflow=...`."
    )
    assert failed.value.exit_status == 2


def test_a_group_is_dropped_whole_for_one_long_response_with_a_reason(llama: "LocalRewardModel") -> None:
    long, reported = Group("q", user("hi"), ["ok", "drumming " * 80]), list[int]()
    scored = score(
        llama,
        [SHORT, long, SHORT],
        max_length=LIMIT,
        on_overflow="drop",
        on_scored=reported.extend,
    )
    assert scored.dropped == {1: f"{max(lengths(llama, long))} tokens, more than 60"}
    assert scored.scores[1] == []
    assert scored.scores[0] == scored.scores[2] == pytest.approx(score(llama, [SHORT]).scores[0], abs=1e-4)
    assert sorted(reported) == [0, 2]
    assert work_of(scored).conversations == 4


def test_truncate_left_keeps_the_last_tokens_and_cuts_a_group_alike(
    classifiers: Folders, llama: "LocalRewardModel"
) -> None:
    scored = score(llama, [LONG, SHORT], max_length=LIMIT, on_overflow="truncate-left")
    plain = load_plainly(AutoModelForSequenceClassification, classifiers())
    conversations = [conversation_ids(llama.template.tokenizer, LONG, response) for response in LONG.responses]
    cut = max(map(len, conversations)) - LIMIT
    assert scored.tokens_cut == [cut, 0]
    assert scored.tokens[0] == [len(ids) - cut for ids in conversations]
    assert max(scored.tokens[0]) == LIMIT
    assert scored.scores[0] == pytest.approx([logits_alone(plain, ids[cut:])[0] for ids in conversations], abs=1e-4)
    assert scored.scores[1] == pytest.approx(score(llama, [SHORT]).scores[0], abs=1e-4)


def test_truncate_left_never_cuts_into_a_response_that_fits(llama: "LocalRewardModel") -> None:
    group = Group("q", user("hi there"), ["origami", "drumming " * 80])
    short, long = texts(llama, group, LIMIT, "truncate-left")
    assert short.endswith("origami</s>\n")
    assert long.endswith("drumming drumming </s>\n")
    assert score(llama, [group], max_length=LIMIT, on_overflow="truncate-left").tokens[0][1] == LIMIT


def test_truncate_left_of_an_implicit_reward_reads_the_response_alone(language_models: Folders) -> None:
    model = load_implicit(language_models())
    plain, tokenizer = load_plainly(AutoModelForCausalLM, language_models()), model.template.tokenizer
    conversations = [conversation_ids(tokenizer, LONG, response) for response in LONG.responses]
    cut, begin = max(map(len, conversations)) - LIMIT, len(opening_ids(tokenizer, LONG))
    expected = [log_probability_alone(plain, ids[cut:], begin - cut) for ids in conversations]
    scored = score(model, [LONG], max_length=LIMIT, on_overflow="truncate-left")
    assert scored.scores[0] == pytest.approx(expected, abs=2e-3)


def test_truncate_prompt_leaves_the_template_and_the_responses_whole(llama: "LocalRewardModel") -> None:
    system = {"role": "system", "content": "Be brief."}
    group = Group("q", [system, *LONG.prompt], LONG.responses)
    for response, text in zip(group.responses, texts(llama, group, LIMIT, "truncate-prompt"), strict=True):
        before, kept = text.split("<|user|>\n")
        assert before == "<s><|system|>\nBe brief.</s>\n"
        question, answer = kept.split("<|assistant|>\n")
        assert answer == f"{response}</s>\n"
        assert LONG.prompt[0]["content"].endswith(question.removesuffix("</s>\n"))
        assert len(question) > 20
    scored = score(llama, [group], max_length=LIMIT, on_overflow="truncate-prompt")
    assert LIMIT - 3 <= max(scored.tokens[0]) <= LIMIT
    assert scored.tokens_cut == [max(lengths(llama, group)) - max(scored.tokens[0])]


BLOCKS = [f"[Post {number}]\n" + "walking by the sea " * 3 for number in range(1, 7)]


def test_truncate_prompt_leaves_out_the_least_relevant_posts_first_and_whole(llama: "LocalRewardModel") -> None:
    group = Group("q", user("a quiet hobby?"), ["origami", "drumming by the sea"], context=BLOCKS)
    told = [replace(group, context=BLOCKS[:kept]) for kept in range(len(BLOCKS) + 1)]
    longest = [
        max(len(tokens.ids) for tokens in one.conversations) for one in tokenize(told, llama.template, 10**6, "error")
    ]
    assert longest == sorted(longest)
    for kept, most in enumerate(longest[:-1]):
        for limit in (most, longest[kept + 1] - 1):
            assert texts(llama, group, limit, "truncate-prompt") == texts(llama, told[kept], 10**6, "error")
    [cut] = tokenize([group], llama.template, longest[2], "truncate-prompt")
    assert cut.cut == longest[-1] - longest[2]


def test_only_then_is_the_question_itself_cut(llama: "LocalRewardModel") -> None:
    group = replace(LONG, context=BLOCKS)
    assert texts(llama, group, LIMIT, "truncate-prompt") == texts(llama, LONG, LIMIT, "truncate-prompt")


def test_truncate_prompt_drops_a_group_whose_answer_alone_is_too_long(llama: "LocalRewardModel") -> None:
    group = Group("q", user("hi"), ["origami", "drumming " * 80])
    scored = score(llama, [group, SHORT], max_length=LIMIT, on_overflow="truncate-prompt")
    assert scored.dropped == {0: "an answer alone is longer than 60 tokens"}
    assert (scored.scores[0], len(scored.scores[1])) == ([], 2)


def test_truncate_prompt_cuts_characters_of_several_tokens(llama: "LocalRewardModel") -> None:
    group = Group("q", user("🎈" * 30), ["origami"])
    for fewer in range(1, 6):
        limit = max(lengths(llama, group)) - fewer
        [read] = texts(llama, group, limit, "truncate-prompt")
        assert len(llama.template.tokenizer(read, add_special_tokens=False)["input_ids"]) <= limit
        assert "\ufffd" not in read


def limit_of(model: "LocalRewardModel", asked: int | None = None) -> int:
    return work_of(score(model, [SHORT], max_length=asked)).max_length


def test_the_limit_is_the_models_own_or_the_tokenizers_if_lower_or_the_one_asked_for(
    classifiers: Folders, llama: "LocalRewardModel"
) -> None:
    assert (limit_of(llama), limit_of(llama, 50)) == (POSITIONS, 50)
    settings: list[tuple[int, dict[str, Any]]] = [
        (200, {"max_position_embeddings": 200}),
        (300, {"tokenizer": make_tokenizer(model_max_length=300)}),
        (100, {"architecture": "gpt2", "n_positions": 100}),
    ]
    for limit, given in settings:
        assert limit_of(load_classifier(classifiers(**given))) == limit


def test_a_limit_beyond_the_models_absolute_positions_is_said_in_a_sentence(classifiers: Folders) -> None:
    model = load_classifier(classifiers("gpt2", n_positions=64))
    with pytest.raises(
        LocalError, match=r"only 64 positions, .*; lower `max_length=...`, and say by `on_overflow=...` w"
    ):
        score(model, [LONG], max_length=500)


def test_truncate_prompt_goes_on_with_the_next_message_or_says_why_not(llama: "LocalRewardModel") -> None:
    turns = [*user("walking " * 100), {"role": "assistant", "content": "drumming " * 80}, *user("and then?")]
    scored = score(llama, [Group("q", turns, ["ok"])], max_length=LIMIT, on_overflow="truncate-prompt")
    assert "an answer alone" not in scored.dropped.get(0, "")

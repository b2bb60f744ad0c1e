"""Rewards from the logits of the next token are those of the model's own forward pass, read as published."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from case_marks import heavy
from pluralbench_local import LocalError, load, score
from pluralbench_rewards import Group, Mode
from pluralbench_runs import UserError
from reward_models import (
    TEMPLATE,
    Folders,
    differences,
    load_classifier,
    load_plainly,
    make_groups,
    make_tokenizer,
    undecided,
    user,
    work_of,
)
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

MODES: list[Mode] = ["fast", "exact"]
# In bfloat16 the forward pass rounds its logits of some 3 to 1/64, which the rows in float64 do not.
CLOSE = {"float32": 1e-4, "bfloat16": 0.1}
NEMOTRON = {"token_reward": "nemotron"}
RERANKER = {"token_reward": "qwen3-reranker", "positive_token": "y", "negative_token": "n"}
QUESTION = "Is this a good answer (Yes or No)?"
WITHOUT_NEWLINE = TEMPLATE.replace("{{ eos_token }}\n{% endfor %}", "{{ eos_token }}{% endfor %}")
ALWAYS_OPENS = TEMPLATE.replace("{% if add_generation_prompt %}", "{% if true %}")
BRACKETS = (  # a user's turn opens the reply, as of Mistral
    "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'assistant' %}{{ message['content'] }}"
    "{{ eos_token }}{% else %}[INST] {{ message['content'] }} [/INST]{% endif %}{% endfor %}"
)
NEVER_OPENS = TEMPLATE.partition("{% if add")[0]


def last_logits(model: Any, ids: Sequence[int]) -> Any:
    """The logits after the last token, in a plain forward pass of one conversation.

    The cards of the Nemotron rewards take the first score of `generate`; `logits[0, -1]` is the same before warpers.
    """
    import torch

    with torch.inference_mode():
        return model(input_ids=torch.tensor([list(ids)])).logits[0, -1].double()


def alone(
    folder: str,
    groups: Sequence[Group],
    read: Callable[[Any, Any], float],
    *,
    more: Sequence[dict[str, str]] = (),
    opening: bool = True,
    prefill: str = "",
    dtype: str = "float32",
    template: str = TEMPLATE,
) -> list[list[float]]:
    """Rewards by `read(logits, tokenizer)`, a conversation at a time."""
    model = load_plainly(AutoModelForCausalLM, folder, dtype)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    tokenizer.chat_template = template

    def reward(group: Group, response: str) -> float:
        turns = [*group.prompt, {"role": "assistant", "content": response}, *more]
        text = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=opening) + prefill
        return float(read(last_logits(model, tokenizer(text, add_special_tokens=False)["input_ids"]), tokenizer))

    return [[reward(group, response) for response in group.responses] for group in groups]


def word(tokenizer: Any, text: str) -> int:
    """The id of the one token that a text is."""
    [token] = tokenizer(text, add_special_tokens=False)["input_ids"]
    return int(token)


def log_odds(positive: str, negative: str) -> Callable[[Any, Any], float]:
    return lambda logits, tokenizer: logits[word(tokenizer, positive)] - logits[word(tokenizer, negative)]


def probability(positive: str, negative: str) -> Callable[[Any, Any], float]:
    return lambda logits, tokenizer: logits[[word(tokenizer, positive), word(tokenizer, negative)]].softmax(-1)[0]


CASES: dict[str, tuple[dict[str, Any], dict[str, Any], Callable[[Any, Any], float]]] = {
    # One logit at the end of the assistant's turn, as of id 0 of the Nemotron rewards.
    "id 7": (
        {"positive_token": "id:7", "token_position": "end"},
        {"opening": False},
        lambda logits, _: logits[7],
    ),
    # Yes and No in answer to a question, as the card of Llama-3.3-Nemotron-70B-Reward-Principle subtracts them.
    "log-odds": (
        {"positive_token": "y", "negative_token": "n", "question": QUESTION},
        {"more": user(QUESTION)},
        log_odds("y", "n"),
    ),
    # Two letters, softmax over both, as eval_reward_bench_pm.py of RLHFlow.
    "probability": (
        {"token_reward": "a-b", "question": QUESTION},
        {"more": user(QUESTION)},
        probability("A", "B"),
    ),
    "prefill": (
        {"positive_token": " the", "prefill": "Verdict:"},
        {"prefill": "Verdict:"},
        lambda logits, tokenizer: logits[word(tokenizer, " the")],
    ),
}


def loaded(folder: str, **fields: Any) -> Any:
    return load_classifier(folder, kind="token", **fields)


@pytest.mark.parametrize(("case", "dtype"), [*((case, "float32") for case in CASES), ("log-odds", "bfloat16")])
def test_the_reward_is_read_from_the_logits_of_the_forward_pass(
    language_models: Folders, case: str, dtype: str
) -> None:
    fields, options, read = CASES[case]
    folder, groups = language_models(), make_groups(2, number=6, longest=30)
    model, truth = loaded(folder, dtype=dtype, **fields), alone(folder, groups, read, dtype=dtype, **options)
    for mode in MODES:
        scored = score(model, groups, mode=mode)
        assert work_of(scored).strategy == mode
        assert max(differences(scored.scores, truth)) < CLOSE[dtype]
        assert undecided(scored.scores, truth) < CLOSE[dtype]
    assert max(abs(value) for row in truth for value in row) > 0.3


@pytest.mark.parametrize(
    ("architecture", "settings"),
    [
        ("gemma2", {"final_logit_softcapping": 2.0}),
        ("cohere", {"logit_scale": 2.0}),
        *heavy(("granite", {"logits_scaling": 0.5}), ("qwen3", {}), ("bloom", {}), ("longrope", {})),
    ],
)
def test_each_architecture(language_models: Folders, architecture: str, settings: dict[str, Any]) -> None:
    fields, options, read = CASES["log-odds"]
    folder, groups = language_models(architecture, **settings), make_groups(3, number=4, longest=20)
    truth = alone(folder, groups, read, **options)
    for mode in MODES:
        assert max(differences(score(loaded(folder, **fields), groups, mode=mode).scores, truth)) < CLOSE["float32"]


@pytest.mark.parametrize("template", [TEMPLATE, WITHOUT_NEWLINE], ids=["with", "without"])
@pytest.mark.parametrize("opening", [False, True])
def test_templates_with_and_without_the_final_newline(
    language_models: Folders, template: str, opening: bool, written: Callable[[str], Path]
) -> None:
    folder, groups = language_models(), make_groups(4, number=3, longest=20)
    fields = {"positive_token": "id:9", "token_position": "reply" if opening else "end"}
    model = loaded(folder, **fields, chat_template=written(template))
    truth = alone(folder, groups, lambda logits, _: logits[9], opening=opening, template=template)
    assert max(differences(score(model, groups).scores, truth)) < CLOSE["float32"]


@pytest.mark.parametrize("case", ["id 7", "log-odds"])
def test_a_template_whose_user_turns_open_the_reply(
    language_models: Folders, case: str, written: Callable[[str], Path]
) -> None:
    fields, options, read = CASES[case]
    folder = language_models()
    groups = [group for group in make_groups(4, number=3, longest=20) if group.prompt[0]["role"] == "user"]
    model = loaded(folder, chat_template=written(BRACKETS), **fields)
    truth = alone(folder, groups, read, template=BRACKETS, **options)
    assert max(differences(score(model, groups).scores, truth)) < CLOSE["float32"]


@pytest.mark.parametrize("architecture", ["llama", "bloom"])  # bloom's conversations are padded
@pytest.mark.parametrize(("side", "pad", "number"), [("left", "</s>", 1), ("right", "<pad>", 2), ("left", None, None)])
def test_padding_changes_nothing(
    language_models: Folders, architecture: str, side: str, pad: str | None, number: int | None
) -> None:
    fields, options, read = CASES["log-odds"]
    tokenizer = make_tokenizer(pad=pad, padding_side=side)
    folder = language_models(architecture, tokenizer=tokenizer, pad_token_id=number)
    groups = make_groups(5, number=4, longest=20)
    truth = alone(folder, groups, read, **options)
    assert max(differences(score(loaded(folder, **fields), groups).scores, truth)) < CLOSE["float32"]


def test_exact_scores_are_those_of_one_conversation_at_a_time_to_the_bit(language_models: Folders) -> None:
    groups = make_groups(6, number=4, longest=20)
    model = loaded(language_models(), **CASES["log-odds"][0])
    together = score(model, groups, mode="exact").scores
    singly = [
        [
            score(model, [Group("one", group.messages, [response])], mode="exact").scores[0][0]
            for response in group.responses
        ]
        for group in groups
    ]
    assert together == singly


def test_the_nemotron_rewards_are_the_logit_of_id_0_at_the_end_of_the_turn(
    language_models: Folders, written: Callable[[str], Path]
) -> None:
    folder, groups = language_models(), make_groups(7, number=3, longest=20)
    truth = alone(folder, groups, lambda logits, _: logits[0], opening=False, template=WITHOUT_NEWLINE)
    model = loaded(folder, **NEMOTRON, chat_template=written(WITHOUT_NEWLINE))
    assert max(differences(score(model, groups).scores, truth)) < CLOSE["float32"]


def test_qwen3_reranker_gets_query_and_document(language_models: Folders) -> None:
    model = loaded(language_models(), **RERANKER)
    text = model.template.conversation(user("A quiet hobby?"), "Origami.")
    # The form of QwenLM/Qwen3-Embedding's README.md; the sentences are ours.
    assert text.startswith("<|im_start|>system\n")
    assert "<|im_start|>user\n<Instruct>: " in text
    assert "\n<Query>: A quiet hobby?\n<Document>: Origami.<|im_end|>\n" in text
    assert text.endswith("<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n")
    turns = [*user("Hi"), {"role": "assistant", "content": "Hello."}, *user("A hobby?")]
    assert (
        "<Query>: user: Hi\nassistant: Hello.\nuser: A hobby?\n<Document>: x<|im_end|>"
        in model.template.conversation(turns, "x")
    )


def test_a_template_of_the_whole_input_may_take_its_place(
    language_models: Folders, written: Callable[[str], Path]
) -> None:
    """As the card writes it: a fixed end, whatever `add_generation_prompt` is, and two messages by their places."""
    form = "<|user|>\n<Query>: {}\n<Document>: {}</s>\n<|assistant|>\n<think>\n\n</think>\n\n"
    file = written(form.format("{{ messages[0]['content'] }}", "{{ messages[1]['content'] }}") + "{{ '' }}")
    model = loaded(language_models(), **RERANKER, chat_template=file)
    group = Group("q", user("a quiet hobby"), ["origami", "drumming"])
    plain, tokenizer = load_plainly(AutoModelForCausalLM, language_models()), model.template.tokenizer
    truth = []
    for response in group.responses:
        ids = tokenizer(form.format("a quiet hobby", response), add_special_tokens=False)["input_ids"]
        truth.append(float(last_logits(plain, ids)[[*model.template.labels]].softmax(-1)[0]))
    assert score(model, [group]).scores[0] == pytest.approx(truth, abs=1e-4)


REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "several tokens": ({"positive_token": "Yes please"}, TEMPLATE, r"'Yes please' is not a single token after the end"),
    "joined to the template": (
        {"positive_token": "he", "prefill": "Verdict: t"},
        TEMPLATE,
        r"'he' is not a single token after the end",
    ),
    "unknown id": (
        {"positive_token": "id:9999"},
        TEMPLATE,
        r"'id:9999' is not the id of one of the model's \d+ tokens",
    ),
    "the same token": ({"positive_token": "y", "negative_token": "y"}, TEMPLATE, r"are the same \(id \d+\)"),
    "no opening": ({"positive_token": "y"}, NEVER_OPENS, r"opens no reply here \(it ignores `add_generation_prompt`\)"),
    "always an opening": (
        {"positive_token": "id:0", "token_position": "end"},
        ALWAYS_OPENS,
        r"opens a reply at the end of every conversation",
    ),
    "no reply after a response": ({"positive_token": "y"}, BRACKETS, r"opens no reply here"),
    "a newline after the turn": (
        {"token_reward": "nemotron"},
        TEMPLATE,
        r"ends with '\\n', and this reward is read at",
    ),
    "no tail": (
        {"positive_token": "id:0", "token_position": "end"},
        "{% for message in messages %}{{ message['content'] }}{% endfor %}",
        r"writes no fixed text after a response",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_reward_that_would_be_read_at_another_place_or_token_is_refused(
    language_models: Folders, case: str, written: Callable[[str], Path]
) -> None:
    fields, template, message = REFUSED[case]
    with pytest.raises(LocalError, match=message):
        loaded(language_models(), chat_template=written(template), **fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"kind": "token"},
            r"needs the token of the reward; give `token_reward=\.\.\.` \(nemotron, yes-no, a-b, qwen3",
        ),
        ({"token_reward": "nemotron"}, r"`token_reward=\.\.\.` is for token rewards; set `kind=\"token\"`"),
        ({"kind": "token", "token_reward": "yes-no"}, r"give the model's own as `question=\.\.\.`"),
        ({"kind": "token", "positive_token": "y", "token_score": "log_odds"}, r"\"log_odds\"` needs a negative token"),
        (
            {"kind": "token", "positive_token": "y", "negative_token": "n", "token_score": "logit"},
            r"\"logit\"` has no use for a negative token",
        ),
        ({"kind": "token", "positive_token": "y", "label": "logit:0"}, r"set `token_score=\.\.\.`"),
        (
            {"kind": "token", "positive_token": "y", "prefill": "So: ", "token_position": "end"},
            r"`prefill=\.\.\.` needs a reply; set `token_position=",
        ),
        ({"kind": "token", "token_reward": "armo"}, r"token_reward"),
    ],
)
def test_settings_that_do_not_fit_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        load("m", **fields)

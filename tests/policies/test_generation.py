"""Sampling from a language model in this process: what is drawn, and that it is recorded like any other call."""

import random
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from case_marks import heavy
from pluralbench_calls import Answer, CallsError, ChatModel, Request, ask, chat_request, working_ledger
from pluralbench_local import LocalError, LocalModel
from pluralbench_policies import Generation, PolicyError, chat_model_of, embedded_folder
from pluralbench_policies.decoding import Decoder, DecodingParams, sample_tokens
from pluralbench_policies.language_models import language_model as language_model_of
from pluralbench_policies.rendering import Rendering
from pluralbench_policies.trainable import chat_tokenizer, prompt_ids
from pluralbench_rewards import model_digest
from reward_models import POSITIONS, TEMPLATE, save_language_model, user, words
from scipy.stats import chisquare
from smollm2 import in_bfloat16
from transformers import AutoModelForCausalLM, AutoTokenizer

MOST = 16


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_language_model(tmp_path_factory.mktemp("models") / "policy")


def prompts(number: int, longest: int = 60) -> list[list[dict[str, str]]]:
    draws = random.Random(number)
    return [user(f"{place} {words(draws, longest)}") for place in range(number)]


def requests_for(model: ChatModel, messages: Sequence[list[dict[str, str]]], samples: int = 4) -> list[Request]:
    return [
        chat_request(model, message, seed=7, label=f"prompt {place}", attempt=number)
        for place, message in enumerate(messages)
        for number in range(samples)
    ]


def answered(folder: Path, requests: Sequence[Request], generation: "Generation") -> list[Answer]:
    with working_ledger(folder / "calls.sqlite") as ledger:
        return ask(requests, ledger, generation)


def texts(answers: Sequence[Answer]) -> list[str]:
    return [answer.text for answer in answers]


def greedily(folder: str, messages: list[dict[str, str]], most: int) -> str:
    """What the library's own `generate` answers."""
    model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype="float32")
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    ids = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    made = model.generate(**ids, do_sample=False, max_new_tokens=most, pad_token_id=2)
    return str(tokenizer.decode(made[0, ids["input_ids"].shape[1] :], skip_special_tokens=True))


@pytest.mark.parametrize("architecture", ["llama", "gemma2", "bloom", *heavy("gpt2", "qwen3-next")])
def test_at_temperature_0_it_answers_as_the_library(tmp_path: Path, architecture: str) -> None:
    folder = save_language_model(tmp_path / "policy", architecture)
    asked = prompts(3)
    model = chat_model_of(folder, temperature=0.0, max_tokens=MOST)
    answers = answered(tmp_path, requests_for(model, asked, 2), Generation(folder))
    assert texts(answers)[::2] == texts(answers)[1::2] == [greedily(folder, messages, MOST) for messages in asked]


@pytest.mark.parametrize("architecture", ["llama", *heavy("gemma2")])
def test_a_sample_is_the_same_alone_and_beside_others(tmp_path: Path, architecture: str) -> None:
    folder = save_language_model(tmp_path / "policy", architecture)
    requests = requests_for(chat_model_of(folder, max_tokens=MOST, top_p=0.9), prompts(3), 3)
    together = texts(answered(tmp_path, requests, Generation(folder)))
    alone = Generation(folder, token_budget=1)
    assert all(len(message) == 1 for message in alone.pack(requests))
    (tmp_path / "alone").mkdir()
    assert texts(answered(tmp_path / "alone", requests, alone)) == together
    assert len(set(together)) == len(together)


def test_a_prompts_samples_are_packed_together_to_the_budget(policy: str) -> None:
    requests = requests_for(chat_model_of(policy, max_tokens=MOST), prompts(6), 4)
    random.Random(0).shuffle(requests)
    generation = Generation(policy, token_budget=600)
    messages = generation.pack(requests)
    assert Counter(one.key for message in messages for one in message) == Counter(one.key for one in requests)
    for message in messages:
        size = sum({one.label.split(",")[0]: generation.size(one) for one in message}.values()) + MOST * len(message)
        assert size <= 600
        labels = [one.label.split(",")[0] for one in message]
        assert sum(a != b for a, b in pairwise(labels)) == len(set(labels)) - 1
    assert len(messages) < 6


@pytest.mark.parametrize(
    ("temperature", "top_p", "top_k"), [(1.0, None, None), (0.5, None, None), (2.0, 0.8, None), (1.0, None, 3)]
)
def test_tokens_are_drawn_with_their_probabilities(temperature: float, top_p: float | None, top_k: int | None) -> None:
    logits = torch.tensor([[2.0, 1.0, 0.5, 0.0, -1.0, -2.0]])
    number = 20_000
    uniform = np.random.default_rng(3).random(number).tolist()
    drawn = sample_tokens(logits.expand(number, -1), DecodingParams(temperature, top_p, top_k), uniform)
    found = torch.bincount(drawn, minlength=6).numpy()
    expected = (logits[0].double() / temperature).softmax(-1).numpy()
    if top_p is not None:
        # By hand: the likeliest tokens until their probabilities reach top_p.
        kept = int(np.searchsorted(expected.cumsum(), top_p)) + 1
        expected = np.where(np.arange(6) < kept, expected, 0) / expected[:kept].sum()
        assert kept < 6
        assert not found[kept:].any()
    if top_k is not None:
        expected = np.where(np.arange(6) < top_k, expected, 0) / expected[:top_k].sum()
    likely = expected > 0
    assert not found[~likely].any()
    assert chisquare(found[likely], expected[likely] * number).pvalue > 0.01


def test_what_is_recorded_is_not_drawn_again(tmp_path: Path, policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = requests_for(chat_model_of(policy, max_tokens=MOST), prompts(3))
    with working_ledger(tmp_path / "calls.sqlite") as ledger:
        some = ask(requests[:5], ledger, Generation(policy))
        every = ask(requests, ledger, Generation(policy))
        assert every[:5] == some
        monkeypatch.setattr(Decoder, "samples", lambda *_: pytest.fail("drawn again"))
        assert ask(requests, ledger, Generation(policy)) == every
    assert all(answer.prompt_tokens > 0 and 0 < answer.completion_tokens <= MOST for answer in every)


def test_an_answer_says_how_it_ended(tmp_path: Path) -> None:
    folder = save_language_model(tmp_path / "policy", initializer_range=0.02)  # nearly every token is as likely
    requests = requests_for(chat_model_of(folder, max_tokens=300, temperature=1.5), prompts(1), 12)
    answers = answered(tmp_path, requests, Generation(folder))
    assert {(answer.outcome, answer.finish_reason) for answer in answers} == {("answer", "stop"), ("length", "length")}
    assert all(
        (answer.completion_tokens == 300) == (answer.outcome == "length")
        for answer in answers
        if answer.outcome == "length"
    )
    assert all(answer.text for answer in answers)


def test_a_prompt_that_is_too_long_is_counted_and_the_rest_goes_on(tmp_path: Path, policy: str) -> None:
    asked = [user("tea " * 3 * POSITIONS), *prompts(2)]
    answers = answered(tmp_path, requests_for(chat_model_of(policy, max_tokens=MOST), asked, 1), Generation(policy))
    assert [answer.outcome for answer in answers][1:] != ["error", "error"]
    assert (answers[0].outcome, answers[0].finish_reason) == ("error", "prompt too long")
    tokens = answers[0].prompt_tokens
    assert answers[0].text == f"The prompt has {tokens:,} tokens, and the model takes 1,024, its answer included."


def test_an_answer_is_cut_where_the_model_has_no_position_left(tmp_path: Path, policy: str) -> None:
    model = chat_model_of(policy, temperature=0.0, max_tokens=POSITIONS)
    [request] = requests_for(model, [user("tea " * 300)], 1)
    generation = Generation(policy)
    [answer] = answered(tmp_path, [request], generation)
    assert answer.prompt_tokens == generation.size(request)
    assert (answer.outcome, answer.prompt_tokens + answer.completion_tokens) == ("length", POSITIONS)


def test_another_checkpoint_has_other_requests(tmp_path: Path, policy: str) -> None:
    other = save_language_model(tmp_path / "policy", seed=1)
    assert chat_model_of(policy).model == f"policy@{str(model_digest(policy))[:12]}"
    assert chat_model_of(policy).model != chat_model_of(other).model
    template = tmp_path / "template.jinja"
    template.write_text("{{ messages[0]['content'] }}", encoding="utf-8")
    described = [
        LocalModel(name=policy, dtype="bfloat16"),
        LocalModel(name=policy, chat_template=template),
        LocalModel(name=policy, date="2025-01-02"),
        LocalModel(name=policy),
    ]
    keys = {requests_for(chat_model_of(one), prompts(1), 1)[0].key for one in described}
    assert len(keys) == 4
    with pytest.raises(
        CallsError, match=r"A request is for policy@.* of transformers, but the loaded model is policy@"
    ):
        answered(tmp_path, requests_for(chat_model_of(policy), prompts(1)), Generation(other))


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        (
            {"kind": "implicit", "reference": "b"},
            PolicyError,
            "Sampling takes no `reference=...`, which is for reward models; remove",
        ),
        ({"label": "logit:0"}, PolicyError, "Sampling takes no `label=...`, which is for reward models; remove it"),
        ({"name": "org/nowhere"}, PolicyError, "org/nowhere cannot be identified: it is not a folder, and the Hub has"),
    ],
)
def test_a_policy_that_is_none_is_refused(policy: str, changed: dict[str, str], error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        chat_model_of(LocalModel(**({"name": policy} | changed)))


def test_where_memory_runs_out_half_a_batch_is_drawn_at_a_time(
    tmp_path: Path, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = requests_for(chat_model_of(policy, max_tokens=MOST), prompts(2))
    whole, sizes = Decoder.samples, []

    def small(self: "Decoder", *asked: Any) -> Any:
        sizes.append(len(asked[1]))
        if len(asked[1]) > 3:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return whole(self, *asked)

    (tmp_path / "whole").mkdir()
    expected = texts(answered(tmp_path / "whole", requests, Generation(policy)))
    monkeypatch.setattr(Decoder, "samples", small)
    assert texts(answered(tmp_path, requests, Generation(policy))) == expected
    assert sizes == [8, 4, 2, 2, 4, 2, 2]
    monkeypatch.setattr(Decoder, "samples", lambda *_: (_ for _ in ()).throw(MemoryError()))
    (tmp_path / "none").mkdir()
    with pytest.raises(
        CallsError, match=r"One sample for a prompt of \d+ tokens does not fit into memory; lower `max_"
    ):
        answered(tmp_path / "none", requests[:1], Generation(policy))


def test_without_the_reader_of_its_weights_the_embedded_model_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(PolicyError, match=r"gguf.*: `uv sync --inexact --package pluralbench-policies --extra local`"):
        embedded_folder(tmp_path / "smollm2")
    assert list(tmp_path.iterdir()) in ([], [tmp_path / "smollm2.lock"])


@pytest.mark.heavy
def test_the_embedded_model_answers(tmp_path: Path) -> None:
    folder = in_bfloat16()
    assert embedded_folder(folder) == folder
    with pytest.raises(PolicyError, match="holds a model of another dtype than float32; choose another folder"):
        embedded_folder(folder, dtype="float32")
    policy = LocalModel(name=str(folder), dtype="float32")
    question = user("What is the capital of France? Answer in one sentence.")
    requests = requests_for(chat_model_of(policy, temperature=0.0, max_tokens=8), [question], 1)
    requests += requests_for(chat_model_of(policy, temperature=1.5, max_tokens=4), [question], 3)
    answer, *samples = answered(tmp_path, requests, Generation(policy))
    assert "Paris" in answer.text
    assert answer.text == greedily(str(folder), question, 8)
    assert len({sample.text for sample in samples}) > 1
    assert {sample.outcome for sample in samples} <= {"answer", "length"}


def test_samples_of_a_model_have_its_probabilities(policy: str) -> None:
    model: Any = AutoModelForCausalLM.from_pretrained(policy)
    prompt = list(range(3, 20))
    with torch.no_grad():
        expected = model(torch.tensor([prompt])).logits[0, -1].double().softmax(-1).numpy()
    decoder, number = Decoder(model, [1]), 4000
    first = [-1] * number
    for sample in decoder.samples([prompt], [0] * number, DecodingParams(1.0), range(number), [1] * number):
        first[sample.place] = 1 if sample.ended else sample.tokens[0]
    common = np.argsort(-expected)[:20]
    found = np.array([*(first.count(token) for token in common), 0])
    found[-1] = number - found.sum()
    shares = np.array([*expected[common], 1 - expected[common].sum()])
    assert chisquare(found, shares * number).pvalue > 0.01


def test_tokens_have_the_probabilities_that_the_model_gives_them(policy: str) -> None:
    model: Any = AutoModelForCausalLM.from_pretrained(policy)
    prompts = [list(range(3, 20)), list(range(30, 40))]
    for sampling in (DecodingParams(1.0, top_logprobs=5), DecodingParams(0.0, top_logprobs=5)):
        for sample in Decoder(model, [1]).samples(prompts, [0, 0, 1], sampling, [1, 2, 3], [8, 9, 4]):
            ids = [*prompts[sample.place == 2], *sample.tokens]
            with torch.no_grad():
                every = model(torch.tensor([ids])).logits[0].double().log_softmax(-1)
            assert len(sample.logprobs) == len(sample.tokens)
            for row, token, (own, top) in zip(
                every[-len(sample.tokens) - 1 :], sample.tokens, sample.logprobs, strict=False
            ):
                assert own == pytest.approx(row[token].item(), abs=1e-4)
                assert list(top.values()) == pytest.approx(row.topk(5).values.tolist(), abs=1e-4)


def test_an_answer_without_text_is_empty(tmp_path: Path) -> None:
    folder = save_language_model(tmp_path / "policy")
    model: Any = AutoModelForCausalLM.from_pretrained(folder)
    model.config.tie_word_embeddings = False
    with torch.no_grad():
        model.lm_head.weight.zero_()
    model.generation_config.eos_token_id = [0, 1]  # the likeliest of equals is the first
    model.save_pretrained(folder)
    [answer] = answered(
        tmp_path, requests_for(chat_model_of(folder, temperature=0.0), prompts(1), 1), Generation(folder)
    )
    assert (answer.outcome, answer.text, answer.completion_tokens) == ("empty", "", 1)


def rendered(folder: str, tmp_path: Path, messages: list[dict[str, str]], template: str, **extra: Any) -> str:
    """The prompt that a model with this chat template reads."""
    path = tmp_path / "template.jinja"
    path.write_text(template, encoding="utf-8")
    source = LocalModel(name=folder, chat_template=path)
    [request] = requests_for(chat_model_of(source, temperature=0.0, extra=extra), [messages], 1)
    rendering = Rendering(language_model_of(source))
    return str(rendering.tokenizer.decode(rendering.prompt(request)))


BY_ROLE = (
    "{% for m in messages %}[{{ m['role'] }}{{ mark | default('') }}]{{ m['content'] }};{% endfor %}"
    "{% if add_generation_prompt %}[reply]{% endif %}"
)
ROLES = [
    {"role": "user", "content": "Which?"},
    {"role": "response_1", "content": "Tea."},
    {"role": "assistant", "content": "It is"},
]


def test_a_prompt_is_rendered_by_the_models_own_template(policy: str, tmp_path: Path) -> None:
    question = "[user]Which?;[response_1]Tea.;"
    assert rendered(policy, tmp_path, ROLES[:2], BY_ROLE) == f"{question}[reply]"
    assert rendered(policy, tmp_path, ROLES[:2], BY_ROLE, add_generation_prompt=False) == question
    begun = rendered(policy, tmp_path, ROLES, BY_ROLE, continue_final_message=True)
    assert begun == f"{question}[assistant]It is"
    thinking = rendered(policy, tmp_path, ROLES[:1], BY_ROLE, chat_template_kwargs={"mark": "!"})
    assert thinking == "[user!]Which?;[reply]"
    keys = {
        requests_for(chat_model_of(policy, extra=extra), [ROLES[:2]], 1)[0].key
        for extra in ({}, {"chat_template_kwargs": {"mark": "!"}}, {"add_generation_prompt": False}, {"top_k": 5})
    }
    assert len(keys) == 4


def test_a_template_writes_a_fixed_date(policy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert rendered(policy, tmp_path, ROLES[:1], "{{ strftime_now('%Y-%m-%d') }}") == "2024-07-26"
    assert "policy writes the date 2024-07-26." in capsys.readouterr().err


def test_a_template_that_refuses_or_leaves_out_a_role_is_named(policy: str, tmp_path: Path) -> None:
    refuses = "{{ raise_exception('no such role') if messages[1]['role'] != 'assistant' }}"
    with pytest.raises(LocalError, match=r"fails on a conversation with the roles user, response_1 \(no such role\)"):
        rendered(policy, tmp_path, ROLES[:2], refuses)
    leaves_out = "{% for m in messages if m['role'] in ('user', 'assistant') %}{{ m['content'] }}{% endfor %}"
    with pytest.raises(LocalError, match="leaves out the message of the role response_1; give one that knows"):
        rendered(policy, tmp_path, ROLES[:2], leaves_out)
    with pytest.raises(PolicyError, match=r"The request field 'chat_template_kwargs' is not of the type dict: '!'"):
        rendered(policy, tmp_path, ROLES[:2], BY_ROLE, chat_template_kwargs="!")


def test_a_policy_reads_the_same_date_on_every_day(policy: str, tmp_path: Path) -> None:
    asked = []
    for name, begin in (("today", "{{ strftime_now('%d %B %Y %H:%M:%S') }}"), ("written", "26 July 2024 00:00:00")):
        template = tmp_path / f"{name}.jinja"
        template.write_text(f"{begin}\n{TEMPLATE}", encoding="utf-8")
        asked.append(prompt_ids(chat_tokenizer(LocalModel(name=policy, chat_template=template)), user("hi")))
    assert asked[0] == asked[1]

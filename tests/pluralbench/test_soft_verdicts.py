"""Probabilities of a judge's verdicts: recorded, counted, calibrated, and deciding where they are asked to."""

import json
import math
import random
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest
import verbs
from chat_server import Reply, Script, serve
from llamacpp_server import serve_states, write_gguf
from persona_tables import release, rows
from pluralbench import JudgeConfig, merge
from pluralbench.leaderboard.checks import check_submission
from pluralbench.reports.figures.report import figures_of
from pluralbench.reports.runs import overview
from pluralbench.results import Run
from pluralbench_calls import (
    CallsError,
    ChatModel,
    Ledger,
    OpenAIChat,
    ask,
    ask_until_valid,
    chat_request,
    parse_choice,
    read_ledger,
)
from pluralbench_calls.logprobs import FIELDS
from pluralbench_policies import Generation, chat_model_of
from pluralbench_runs.errors import ConfigError
from reward_models import save_language_model
from token_logprobs import sent, token
from verbs import value
from written_tables import write

Rows = list[dict[str, Any]]
ITEMS = 12
SHOWN = re.compile(r"<response_a>\n(.*?)\n</response_a>", re.DOTALL)
LETTERS = ("verdict_chosen_first", "verdict_rejected_first")
SURE, LABELED, RARE = 0.999, 0.9, 1e-4
"""A probability that leaves B out of the likeliest tokens, the share of both letters, and that of the rarest token."""


def belief(body: Mapping[str, Any]) -> float:
    """The probability that the first response is better, by nothing but the request; a tenth is very sure."""
    draw = random.Random(body["messages"][-1]["content"])
    return SURE if draw.random() < 0.1 else draw.uniform(0.05, 0.95)


def soft(body: dict[str, Any], _: int = 0) -> Reply:
    """A verdict after reasons, with the probabilities of both letters."""
    first = belief(body)
    letter, other = ("A", "B") if first >= 0.5 else ("B", "A")
    rest = {} if first == SURE else {other: min(first, 1 - first) * LABELED}
    verdict = token(letter, own=max(first, 1 - first) * LABELED, x=RARE, **rest)
    text, logprobs = sent(["Response ", token("A", own=0.6, B=0.3), " is fine", ".\n", "[[", verdict, "]]"])
    return Reply(text, logprobs=logprobs)


@pytest.fixture
def data(pairs: Callable[..., Rows], tmp_path: Path) -> Path:
    return write(tmp_path / "p.jsonl", pairs(ITEMS))


def judged(script: Script, data: Path, out: Path, **options: Any) -> tuple[Run, list[dict[str, Any]]]:
    options = {"benchmark": "pairs", "logprobs": True} | options
    with serve(script) as server:
        run = verbs.judge("judge-1", data=str(data), base_url=server.base_url, out=out, **options)
        return run, server.requests


def error_of(differences: np.ndarray, right: np.ndarray) -> float:
    """The calibration error, computed again: five equal bins up to the largest log-odds."""
    bins = np.minimum((differences / differences.max() * 5).astype(int), 4)
    error = 0.0
    for number in range(5):
        own = bins == number
        if own.any():
            error += own.mean() * abs(right[own].mean() - 1 / (1 + math.exp(-differences[own].mean())))
    return error


def test_each_verdict_has_the_probability_that_its_token_had(data: Path, tmp_path: Path) -> None:
    run, requests = judged(soft, data, tmp_path / "run")
    assert all(body["logprobs"] is True and body["top_logprobs"] == 20 for body in requests)
    asked = {SHOWN.findall(body["messages"][-1]["content"])[0]: body for body in requests}
    texts = {row["id"]: row for row in map(json.loads, data.read_text(encoding="utf-8").splitlines())}
    margins, bounds = [], 0
    for row in run.items.iter_rows(named=True):
        orders = [belief(asked[texts[row["id"]][side]]) for side in ("chosen", "rejected")]
        sure = SURE * LABELED / (SURE * LABELED + RARE)
        expected = [sure if p == SURE else p for p in orders]
        assert [row[f"probability_{side}_first"] for side in ("chosen", "rejected")] == pytest.approx(
            expected, abs=1e-5
        )
        assert row["margin"] == pytest.approx((expected[0] - expected[1]) / 2, abs=1e-5)
        assert row["bounds"] == orders.count(SURE)
        margins.append(row["margin"])
        bounds += row["bounds"]
    assert bounds > 0
    assert (run.count("probability_bounds"), run.count("without_probability")) == (bounds, 0)
    signed = np.array(margins)
    odds = np.abs(np.log((0.5 + signed) / (0.5 - signed)))
    assert value(run, "ece") == pytest.approx(error_of(odds, signed > 0), abs=1e-9)
    assert value(run, "accuracy_of_mean_probability") == (signed > 0).mean()
    assert check_submission(run).accepted
    assert f"{bounds} verdicts" in "".join(overview([run]).notes)
    assert "calibration_pairs" in figures_of([run])


@pytest.mark.heavy
def test_verdicts_are_those_of_a_run_without_probabilities_unless_these_decide(data: Path, tmp_path: Path) -> None:
    plain, requests = judged(soft, data, tmp_path / "plain", logprobs=False, concurrency=1)
    run, asked = judged(soft, data, tmp_path / "run", concurrency=1)
    assert asked == [body | {"logprobs": True, "top_logprobs": 20} for body in requests]
    same = ["id", "verdict", "outcome", *LETTERS]
    assert run.items.select(same).equals(plain.items.select(same))
    assert {"bounds", "probability_chosen_first"}.isdisjoint(plain.items.columns)
    assert plain.items["margin"].null_count() == ITEMS
    decided, _ = judged(soft, data, tmp_path / "decided", tie_margin=0.1)
    margins = decided.items["margin"].to_list()
    assert margins == run.items["margin"].to_list()
    assert decided.items["verdict"].to_list() == [
        "tie" if abs(margin) <= 0.1 else "chosen" if margin > 0 else "rejected" for margin in margins
    ]
    assert decided.headline.value == sum(margin > 0.1 for margin in margins) / ITEMS
    assert check_submission(decided).accepted
    assert "Decided by the mean probability of both orders: a tie up to 0.1 from 1/2." in overview([decided]).notes


def test_shards_join_to_the_same_probabilities(data: Path, tmp_path: Path, run: Callable[..., Any]) -> None:
    whole, _ = judged(soft, data, tmp_path / "whole", limit=6)
    for number in (1, 2):
        judged(soft, data, tmp_path / f"part{number}", limit=6, shard=f"{number}/2")
    joined = merge([tmp_path / "part1", tmp_path / "part2"], out=tmp_path / "joined")
    assert joined.items.equals(whole.items)
    assert joined.metrics.equals(whole.metrics)
    labels = [read_ledger(one.path / "ledger.parquet").select("key", "logprobs") for one in (whole, joined)]
    assert labels[0].equals(labels[1])
    status, out, _ = run("show", joined.path, "--closest", "1")
    assert status == 0
    assert (
        len(re.findall(r"Judge, .*? shown first: .*?; it is better with probability 0\.\d+", " ".join(out.split())))
        == 2
    )


@pytest.mark.parametrize(
    ("prompt", "before", "labels", "after"),
    [
        ("letter", "A is short.\n[[", "AB", "]]"),
        ("boxed-assistant", "Assistant 2 is long. \\boxed{Assistant ", "12", "}"),
        ("output-letter", "Output (", "ab", ") is better"),
        (
            "two-turns",
            "Scores: 1 and 2.\n[The Begin of Ranking Score]\n\\boxed{",
            "12",
            "}\n[The End of Ranking Score]",
        ),
        ("result-letter", "Feedback: A is fine. [RESULT] ", "AB", ""),
        ("json-choice", '{"Choice": "Model ', "AB", '"}'),
    ],
)
def test_prompts_of_other_models_have_probabilities(
    data: Path, tmp_path: Path, prompt: str, before: str, labels: str, after: str
) -> None:
    def reply(*_: Any) -> Reply:
        pieces = re.findall(r"\w+|\W", before)
        text, logprobs = sent([*pieces, token(labels[0], own=0.6, **{labels[1]: 0.2}), *([after] if after else [])])
        return Reply(text, logprobs=logprobs)

    how: dict[str, Any] = {"prompt": prompt, "orders": "one", "limit": 1, "temperature": 0.0}
    run, _ = judged(reply, data, tmp_path / "run", **how)
    [row] = run.items.iter_rows(named=True)
    found = row["probability_chosen_first"] or row["probability_rejected_first"]
    assert found == pytest.approx(0.75, abs=1e-6)


def test_a_verdict_without_a_token_of_its_own_is_counted_and_decides_nothing(data: Path, tmp_path: Path) -> None:
    def twice(body: dict[str, Any], _: int) -> Reply:
        text, logprobs = sent(["[[", token("A"), "]]", " so ", "[[", token("A"), "]]"])
        return Reply(text, logprobs=logprobs)

    run, _ = judged(twice, data, tmp_path / "run", orders="one", limit=4)
    assert set(run.items["outcome"]) <= {"win", "loss"}
    assert (run.items["margin"].null_count(), run.count("without_probability")) == (4, 4)
    run, _ = judged(twice, data, tmp_path / "decided", orders="one", limit=4, tie_margin=0.0)
    assert set(run.items["outcome"]) == {"invalid"}
    assert run.result.invalid_reasons == {"no single token decides the verdict, so it has no probability": 4}


def test_a_server_without_logprobs_is_refused_and_a_later_one_goes_on(
    data: Path, tmp_path: Path, run: Callable[..., Any]
) -> None:
    with serve(lambda *_: Reply("Requested 20 logprobs, more than the maximum of 5", status=400)) as server:
        words = ("judge", "judge-1", "--base-url", server.base_url, "--benchmark", "pairs", "--data", data)
        status, _, error = run(*words, "--limit", "2", "--logprobs", "--out", tmp_path / "refused")
        assert status == 2
        assert "refuses logprobs" in error
        assert "leave out `--logprobs`, or ask for fewer tokens (`top_logprobs` in `--extra`)" in " ".join(
            error.split()
        )
    with pytest.raises(CallsError, match=r"judge-1 at 127\.0\.0\.1 answers without logprobs"):
        judged(lambda *_: Reply("[[A]]"), data, tmp_path / "run", limit=2)
    resumed, _ = judged(soft, data, tmp_path / "run", limit=2)
    assert resumed.items["margin"].null_count() == 0


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"tie_margin": 0.1}, r"`tie_margin=\.\.\.` requires `logprobs=True`"),
        ({"logprobs": True, "protocol": "pointwise"}, r'applies to `protocol="pairwise"`, not to pointwise'),
        ({"logprobs": True, "tie_margin": 0.5}, "tie_margin"),
        ({"extra": {"logprobs": True}}, "`logprobs` is set by the program"),
        ({"logprobs": True, "prompt": "boxed-pair"}, "the prompt boxed-pair asks for scores"),
    ],
)
def test_what_probabilities_cannot_be_for_is_refused(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        JudgeConfig(**options)


def test_probabilities_of_choices_for_personas(tmp_path: Path) -> None:
    data = release(tmp_path / "data", prism=rows("prism", 8))

    def certain(body: dict[str, Any], _: int) -> Reply:
        verdict = token("A", own=0.6, B=0.2)
        text, logprobs = sent(["[[", verdict, "]]", " [[", token("85", own=0.9, **{"70": 0.1}), "]]"])
        return Reply(text, logprobs=logprobs)

    with serve(certain) as server:
        options: dict[str, Any] = {"data": str(data), "base_url": server.base_url, "out": tmp_path / "run"}
        run = verbs.judge_personas("judge-1", logprobs=True, orders="both", **options)
    assert run.items.select("probability", "probability_swapped").unique().rows() == [
        (pytest.approx(0.75, abs=1e-6), pytest.approx(0.75, abs=1e-6))
    ]
    assert run.items["margin"].to_list() == [0.0] * run.items.height
    assert value(run, "ece") == 0.5  # half sure of each, and right nowhere
    assert check_submission(run).accepted


@pytest.mark.heavy
def test_llamacpp_gives_the_probability_that_transformers_computes(tmp_path: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = save_language_model(tmp_path / "model", tie_word_embeddings=True)
    choice = {"type": "object", "properties": {"verdict": {"enum": ["A", "B"]}}, "required": ["verdict"]}
    messages = [{"role": "user", "content": "Which one: A or B? 哪个？"}]
    requests = []
    for top in (20, 500):  # few of the tokens, and all
        fields = FIELDS | {"top_logprobs": top}
        chat = ChatModel(provider="127.0.0.1", model="tiny", temperature=0.0, max_tokens=60, extra=fields)
        schema = {"name": "verdict", "schema": choice}
        requests.append(chat_request(chat, messages, seed=0, label="verdict", schema=schema))
    model = write_gguf(folder, tmp_path / "tiny.gguf", generates=True)
    with serve_states(model, embeddings=False) as url, Ledger(tmp_path / "ledger") as ledger:
        backend = OpenAIChat(f"{url}/v1")
        replies = ask_until_valid(
            requests, lambda one, _: one, lambda _, text: parse_choice(text), ledger, backend, attempts=1
        )
        raw = httpx2.post(f"{url}/v1/chat/completions", json={**requests[0].body, "model": "tiny"}).json()
    tokens = raw["choices"][0]["logprobs"]["content"]
    label = next(place for place, one in enumerate(tokens) if one["token"].strip('" ') == replies[0].value)
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    prompt = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True)["input_ids"]
    ids = [*prompt, *(one["id"] for one in tokens[:label])]
    with torch.inference_mode():
        logits = AutoModelForCausalLM.from_pretrained(folder)(torch.tensor([ids])).logits[0, -1].double()
    expected: dict[str, float] = {"A": 0.0, "B": 0.0}
    for place, probability in enumerate(torch.softmax(logits, 0).tolist()):
        written = re.fullmatch(r"[^0-9A-Za-z]*([ABab])[^0-9A-Za-z]*", tokenizer.decode([place]))
        if written:
            expected[written[1].upper()] += probability
    few, every = (reply.soft for reply in replies)
    assert few is not None
    assert every is not None
    assert dict(zip(every.values, every.probabilities, strict=True)) == pytest.approx(expected, rel=1e-5)
    assert (few.bounded, every.bounded) == (True, False)
    bound: dict[str, float] = dict(zip(few.values, few.probabilities, strict=True))
    other = "A" if replies[0].value == "B" else "B"
    assert bound[other] >= expected[other]


@pytest.mark.heavy
def test_a_model_in_this_process_gives_the_labels_that_llamacpp_gives(tmp_path: Path) -> None:
    folder = save_language_model(tmp_path / "model", tie_word_embeddings=True, seed=10)  # writes a letter
    here = chat_model_of(folder, temperature=0.0, max_tokens=16, extra=FIELDS)
    there = here.model_copy(update={"provider": "127.0.0.1", "model": "tiny"})
    messages = [{"role": "user", "content": "Which one: A or B? 哪个？"}]
    served, generated = (chat_request(one, messages, seed=0, label="verdict") for one in (there, here))
    with (
        serve_states(write_gguf(folder, tmp_path / "tiny.gguf", generates=True), embeddings=False) as url,
        Ledger(tmp_path / "ledger") as ledger,
    ):
        [first] = ask([served], ledger, OpenAIChat(f"{url}/v1"))
        [second] = ask([generated], ledger, Generation(folder))
    assert first.text.strip() == second.text.strip()
    labels = [json.loads(answer.logprobs) for answer in (first, second)]
    assert labels[0]
    for ours, theirs in zip(*labels, strict=True):
        assert first.text[theirs["at"]] == second.text[ours["at"]]
        assert ours["top"] == pytest.approx(theirs["top"], abs=1e-4)
        assert ours["least"] == pytest.approx(theirs["least"], abs=1e-4)

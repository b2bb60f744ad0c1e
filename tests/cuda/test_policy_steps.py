"""Sampling, and a step of each trainer of policies, on a card that computes no numbers."""

from pathlib import Path
from typing import Any

import pytest
from optimized_runs import LETTERS, TASKS, quick
from pluralbench_local import LocalModel
from pluralbench_local.models import load_model, load_tokenizer
from pluralbench_local.training_job import read_log
from pluralbench_policies.config import OptimizeConfig
from pluralbench_policies.decoding import Decoder, DecodingParams
from pluralbench_policies.optimization import _trainer_for
from pluralbench_policies.planner_options import PlannerConfig, TokenizedExample
from pluralbench_policies.scorer import Optimization, Scorer
from pluralbench_policies.trainable import load_policy, prompt_ids, sample
from pretended_card import CARD, Card, pretended_card
from reward_models import Folders
from transformers import AutoModelForCausalLM

pytestmark = pytest.mark.heavy

OURS = {
    "decoding.Decoder.samples: to the CPU": "the tokens, once for each place: which samples go on depends on them",
    "decoding._PackedSamples.keep: nonzero": "only when samples leave the batch, and once for all layers",
    "models.resolve_device: number": "a device is tried before a model is loaded",
    "trainable.divergence: to the CPU": "once for each measurement of the divergence",
    "ppo.whiten: mask": "once a step",
    "ppo.prepare_step: number": "the entropy, once a step, for the log",
    "ppo._update: to the CPU": "once a step, for the log",
    "ppo._update.values_of: to the CPU": "once a step, for the log",
    "trainable.sample: to the CPU": "the drawn tokens, once a step",
}
"""Each place of ours where the processor waits for the card while it samples or optimizes, and why."""
OF_LIBRARIES = {
    "models.load_model": "models are loaded",
    "decoding.Decoder._prefill": "transformers copies the size of a sliding window for each prompt and layer",
    "ppo.Critic.__init__": "the critic's head is made on the CPU",
    "ppo.advantages_of": "torchrl copies gamma and lambda once a step",
    "ppo._update": "torchrl's loss is made once a step",
    "ppo.losses": "torchrl asks in each forward pass whether there is a value clip, which it keeps on the card",
    "trainable.sample": "transformers asks after each token whether all samples have ended",
    "trl_trainers": "TRL reads its log's numbers in each forward pass, pads and shuffles once a step, makes adapters",
    "planner_trainer": "TRL reads its log's numbers in each forward pass",
}
"""Each function of ours below which a library waits for the card, and why it does."""


def check_waits(card: "Card", *ours: str) -> None:
    """These functions of ours wait as the table says, libraries only where the other one says, and nothing else."""
    direct = {place for place in card.waits if "," not in place}
    assert direct == {place for place in OURS if place.startswith(ours)}
    for place in card.waits.keys() - direct:
        assert place.startswith(tuple(OF_LIBRARIES)), place


@pytest.mark.parametrize(
    ("architecture", "sampling"),
    [("llama", DecodingParams(0.7, 0.9, 20)), ("gemma3", DecodingParams(0))],
    ids=["nucleus", "greedy"],
)
def test_samples(folders: Folders, architecture: str, sampling: DecodingParams) -> None:
    limits = [3, 3, 3, 6]
    with pretended_card() as card:
        model = load_model(
            AutoModelForCausalLM, LocalModel(name=folders(architecture, "implicit"), device="cuda", dtype="bfloat16")
        )
        decoder = Decoder(model, [1])
        assert decoder.packing == (architecture == "llama")
        card.forget()
        drawn = list(decoder.samples([[5, 6, 7], [5, 6]], [0, 0, 1, 1], sampling, [1, 2, 3, 4], limits))
        check_waits(card, "decoding.Decoder", *(["decoding._PackedSamples"] if decoder.packing else []))
        assert card.waits["decoding.Decoder.samples: to the CPU"] == (6 if decoder.packing else 3 + 6)
    assert sorted((sample.place, len(sample.tokens)) for sample in drawn) == list(enumerate(limits))


@pytest.fixture(autouse=True)
def _no_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    """TRL's kernels in Triton are compiled for a card; its loss in torch's operators takes their place."""
    monkeypatch.setattr("trl.kernels.chunked_logprob._TRITON_AVAILABLE", False)


@pytest.fixture
def _completions_of_some_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a card samples here is one token long, so it is sampled, and then others take its place."""
    from pluralbench_policies import ppo, trl_trainers

    turn = trl_trainers._AutocastGenerationMixin._generate_single_turn

    def made(number: int) -> list[list[int]]:
        return [[50 + row, *[60] * (row % 3), 1] for row in range(number)]

    def sampled(model: Any, prompts: Any, ends: Any, options: OptimizeConfig) -> list[list[int]]:
        return made(len(sample(model, prompts, ends, options)))

    def turned(self: Any, *values: Any) -> Any:
        drawn = turn(self, *values)
        return (made(len(drawn[0])), *drawn[1:]) if isinstance(drawn, tuple) else made(len(drawn))

    monkeypatch.setattr(ppo, "sample", sampled)
    monkeypatch.setattr(trl_trainers._AutocastGenerationMixin, "_generate_single_turn", turned)
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda _, path, **__: path.touch())


@pytest.mark.usefixtures("_completions_of_some_length")
@pytest.mark.parametrize("algorithm", ["ppo", "rloo"])
def test_a_step(folders: Folders, tmp_path: Path, algorithm: str) -> None:
    sizes = {"batch_size": 4, "mini_batch_size": 2, "micro_batch_size": 2, "num_generations": 2, "max_tokens": 4}
    options = quick(algorithm, max_steps=1, kl_steps=1, **sizes)
    with pretended_card() as card:
        source = LocalModel(name=folders("llama", "implicit", num_hidden_layers=1), device="cuda")
        tokenizer = load_tokenizer(source)
        policy = load_policy(source)
        prompts = [prompt_ids(tokenizer, task.messages) for task in TASKS]
        card.forget()
        scorer = Scorer(LETTERS, TASKS, 1.0)
        steps = [[0, 1, 2, 3]]
        _trainer_for(options)(Optimization(source, policy, tokenizer, scorer, steps, prompts, options, tmp_path))
        check_waits(card, "models", "trainable.divergence", *(["trainable", "ppo"] if algorithm == "ppo" else []))
        assert all(weights.device == CARD for weights in policy.parameters())
    assert len(read_log(tmp_path)) == 1


def test_a_planners_step(folders: Folders, tmp_path: Path) -> None:
    from pluralbench_policies.planner_trainer import fit

    with pretended_card() as card:
        source = LocalModel(name=folders("llama", "implicit", num_hidden_layers=1), device="cuda", dtype="bfloat16")
        model: Any = load_model(AutoModelForCausalLM, source)
        rows = [TokenizedExample("a", [5, 6, 7, 8, 9], 3), TokenizedExample("b", [5, 6, 7], 2)]
        card.forget()
        options = PlannerConfig(max_steps=1, batch_size=2, micro_batch_size=1, warmup_steps=0)
        fit(model, load_tokenizer(source), rows, rows[:1], [0, 1], options, tmp_path)
        check_waits(card, "planner")
    assert len(read_log(tmp_path)) == 1

"""PPO's numbers by hand: advantages and returns, the clipped losses, and the distribution that is sampled from."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from optimized_runs import quick
from pluralbench_local import LocalModel
from pluralbench_policies.trainable import Rows, divergence, load_body, load_policy, logits_of, make_rows, sample
from torch import Tensor

CPU = torch.device("cpu")


OPTIONS = quick("ppo", gamma=0.9, gae_lambda=0.5, clip_range=0.2, value_clip_range=0.5)


@pytest.fixture(scope="module")
def ppo() -> Any:
    """The trainer, whose libraries take a second to import: not as the tests are collected."""
    from pluralbench_policies import ppo

    return ppo


def drawn(ppo: Any, tokens: "Tensor", **given: "Tensor") -> Any:
    """A step of completions without prompts; what is not given is 0."""
    rows = Rows(torch.zeros_like(tokens, dtype=torch.long), tokens.long(), tokens, tokens.sum(1).tolist())
    names = ("log_probs", "values", "advantages", "returns")
    counts = given.get("counts", tokens)
    log_probs, values, advantages, returns = (given.get(name, torch.zeros(tokens.shape)) for name in names)
    return ppo.SampledStep(rows, counts, log_probs, values, advantages, returns, counts.sum(1).tolist())


# Advantages


numbers = st.floats(-3, 3, width=32)


@settings(max_examples=25)
@given(st.lists(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=6), min_size=1, max_size=4))
def test_advantages_are_those_of_the_recursion(ppo: Any, completions: list[list[tuple[float, float]]]) -> None:
    shape = (len(completions), max(map(len, completions)))
    rewards, values, tokens = torch.zeros(shape), torch.full(shape, 7.0), torch.zeros(shape, dtype=torch.bool)
    for row, steps in enumerate(completions):
        for place, (reward, value) in enumerate(steps):
            rewards[row, place], values[row, place], tokens[row, place] = reward, value, True
    advantages, returns = ppo.advantages_of(rewards, values, tokens, OPTIONS)
    for row, steps in enumerate(completions):
        later = after = 0.0
        for place, (reward, value) in reversed(list(enumerate(steps))):
            later = reward + 0.9 * after - value + 0.45 * later
            after = value
            assert float(advantages[row, place]) == pytest.approx(later, abs=1e-4)
            assert float(returns[row, place]) == pytest.approx(later + value, abs=1e-4)


def test_only_what_counts_is_standardised(ppo: Any) -> None:
    counts = torch.tensor([[True, True], [True, False]])
    found = ppo.whiten(torch.tensor([[1.0, 2.0], [6.0, 1e6]]), counts)
    deviation = math.sqrt((4 + 1 + 9) / 2)  # about the mean of 3
    assert found[counts].tolist() == pytest.approx([-2 / deviation, -1 / deviation, 3 / deviation])
    assert ppo.whiten(torch.tensor([[2.0, 2.0]]), counts[:1]).tolist() == [[0, 0]]
    assert ppo.whiten(torch.tensor([[2.0, 3.0]]), torch.tensor([[True, False]]))[0, 0] == 0


# Losses


def test_the_clipped_losses_by_hand(ppo: Any) -> None:
    # Four tokens of a vocabulary of two; the policy now gives each 0.6, and the last one does not count.
    tokens = torch.ones(1, 4, dtype=torch.bool)
    counts = torch.tensor([[True, True, True, False]])
    logits = torch.tensor([0.6, 0.4]).log().expand(1, 4, 2)
    step = drawn(
        ppo,
        tokens,
        counts=counts,
        log_probs=torch.tensor([[0.4, 0.8, 0.6, 0.1]]).log(),  # ratios 1.5, 0.75 and 1
        advantages=torch.tensor([[1.0, -2.0, 0.5, 1e6]]),
        values=torch.tensor([[1.0, 0.0, 0.0, 0.0]]),
        returns=torch.tensor([[3.0, 0.2, 1.0, 1e6]]),
    )
    values = torch.tensor([[2.0, 0.3, 0.9, 5.0]])
    made = ppo.losses(ppo.loss_module(OPTIONS), step, slice(0, 1), logits, values, 3.0)
    # Each the smaller of both: of 1.5 and 1.2, of -1.5 and -1.6, and 0.5.
    assert float(made["loss_objective"]) == pytest.approx(-(1.2 - 1.6 + 0.5))
    # Each the larger of both: the first may move to 1.5 only, the last to 0.5 only.
    assert float(made["loss_critic"]) == pytest.approx(0.5 * (1.5**2 + 0.1**2 + 0.5**2))
    assert float(made["clip_fraction"]) == pytest.approx(2 / 3)


def test_a_ratio_beyond_the_clip_has_no_gradient(ppo: Any) -> None:
    logits = torch.tensor([0.6, 0.4]).log().repeat(1, 2, 1).requires_grad_()
    step = drawn(
        ppo,
        torch.ones(1, 2, dtype=torch.bool),
        log_probs=torch.tensor([[0.4, 0.6]]).log(),
        advantages=torch.tensor([[1.0, 1.0]]),
    )
    ppo.losses(ppo.loss_module(OPTIONS), step, slice(0, 1), logits, torch.zeros(1, 2), 3.0)["loss_objective"].backward()
    assert logits.grad is not None
    assert logits.grad[0, 0].tolist() == [0, 0]
    # -d log p / d logits = p - 1 of the drawn token
    assert logits.grad[0, 1].tolist() == pytest.approx([-0.4, 0.4])


def test_of_a_bad_token_no_ratio_counts_more_than_the_dual_clip(ppo: Any) -> None:
    # Ratios of 2.4, 4 and 4; the last token is a good one, whose ratio counts as 1.2.
    logits = torch.tensor([0.6, 0.4]).log().repeat(1, 3, 1).requires_grad_()
    step = drawn(
        ppo,
        torch.ones(1, 3, dtype=torch.bool),
        log_probs=torch.tensor([[0.25, 0.15, 0.15]]).log(),
        advantages=torch.tensor([[-1.0, -2.0, 1.0]]),
    )
    made = ppo.losses(ppo.loss_module(OPTIONS), step, slice(0, 1), logits, torch.zeros(1, 3), 3.0)["loss_objective"]
    assert float(made.detach()) == pytest.approx(2.4 + 3.0 * 2.0 - 1.2)
    made.backward()
    assert logits.grad is not None
    assert logits.grad[0, 0].abs().sum() > 0
    assert logits.grad[0, 1:].tolist() == [[0, 0], [0, 0]]


# A policy


@pytest.fixture(scope="module")
def learner(ppo: Any, base: str) -> Any:
    source = LocalModel(name=base, device="cpu")
    critic = ppo.Critic(load_body(source), OPTIONS)
    torch.manual_seed(3)
    torch.nn.init.normal_(critic.head.weight)
    return ppo.PPOState(load_policy(source), critic, None, (None, None))


PROMPTS = [[0, 40, 41], [0, 60, 61, 62, 63, 64, 65], [0]]
COMPLETIONS = [[50, 51, 52, 53], [70, 1], [80, 81, 1]]


def test_a_completion_is_read_in_a_batch_as_alone(learner: Any) -> None:
    rows = make_rows(PROMPTS, COMPLETIONS, CPU)
    together, values = logits_of(learner.policy, rows, OPTIONS), learner.critic(rows)
    for row, (prompt, completion) in enumerate(zip(PROMPTS, COMPLETIONS, strict=True)):
        ids = torch.tensor([prompt + completion])
        places = slice(len(prompt) - 1, -1)
        alone = learner.policy(input_ids=ids).logits[0, places]
        torch.testing.assert_close(together[row, : len(completion)], alone, rtol=1e-4, atol=1e-4)
        states = learner.critic.body(input_ids=ids).last_hidden_state[0, places]
        torch.testing.assert_close(
            values[row, : len(completion)], learner.critic.head(states)[:, 0], rtol=1e-4, atol=1e-4
        )
        assert rows.completions[row, : len(completion)].tolist() == completion


def test_a_completion_without_a_reward_counts_for_nothing(ppo: Any, learner: Any) -> None:
    rows = make_rows(PROMPTS, COMPLETIONS, CPU)
    step, entropy = ppo.prepare_step(learner, rows, torch.tensor([2.0, math.nan, -1.0]), OPTIONS)
    assert step.counts.tolist() == [[True] * 4, [False] * 4, [True] * 3 + [False]]
    two = make_rows(PROMPTS[::2], COMPLETIONS[::2], CPU)
    alone, _ = ppo.prepare_step(learner, two, torch.tensor([2.0, -1.0]), OPTIONS)
    torch.testing.assert_close(step.advantages[step.counts], alone.advantages[alone.counts], rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(step.returns[step.counts], alone.returns[alone.counts], rtol=1e-3, atol=1e-4)
    assert 0 < entropy < math.log(500)
    # The return of the last token is the reward, and of the first the reward discounted where lambda is 1.
    whole, _ = ppo.prepare_step(learner, two, torch.tensor([2.0, -1.0]), quick("ppo", gamma=0.9))
    assert whole.returns[0].tolist() == pytest.approx([2 * 0.9**3, 2 * 0.9**2, 2 * 0.9, 2], rel=1e-4)


def test_the_divergence_is_taken_off_each_tokens_reward(ppo: Any, learner: Any, base: str) -> None:
    rows, options = make_rows(PROMPTS, COMPLETIONS, CPU), quick("ppo", kl_coef=0.5)
    torch.manual_seed(0)
    start: Any = load_policy(LocalModel(name=base, device="cpu"))
    for parameter in start.parameters():
        parameter.data += 0.05 * torch.randn_like(parameter)
    step, _ = ppo.prepare_step(
        ppo.PPOState(learner.policy, learner.critic, start, (None, None)), rows, torch.zeros(3), options
    )
    ours, theirs = (
        logits_of(model, rows, options).log_softmax(-1).gather(-1, rows.completions[..., None])[..., 0]
        for model in (learner.policy, start)
    )
    penalty = torch.where(rows.tokens, 0.5 * (ours - theirs), 0.0)
    # With discount and lambda 1, a return is the sum of what is still to come.
    expected = -penalty.flip(1).cumsum(1).flip(1)
    torch.testing.assert_close(step.returns[rows.tokens], expected[rows.tokens], rtol=1e-3, atol=1e-4)


def test_samples_follow_the_distribution_that_is_optimised(learner: Any) -> None:
    """At temperature 0.5, and whatever the model's own generation settings say."""
    options = quick("ppo", temperature=0.5, max_tokens=1)
    torch.manual_seed(0)
    learner.policy.generation_config.top_k = 1
    drawn_ids = sample(learner.policy, [PROMPTS[1]] * 4000, [1], options)
    assert learner.policy.generation_config.top_k == 1
    expected = logits_of(learner.policy, make_rows([PROMPTS[1]], [[1]], CPU), options)[0, 0].softmax(-1)
    found = torch.bincount(torch.tensor(drawn_ids)[:, 0], minlength=len(expected)) / 4000
    # The standard error of a share p is at most sqrt(p / 4000).
    assert bool(((found - expected).abs() < 5 * (expected / 4000).sqrt() + 2e-3).all())
    assert int((found > 0).sum()) > 20


def test_the_divergence_by_hand(learner: Any) -> None:
    rows = make_rows(PROMPTS, COMPLETIONS, CPU)
    assert divergence(learner.policy, learner.policy, rows, OPTIONS) == pytest.approx(0, abs=1e-6)
    halves, quarters = torch.tensor([0.5, 0.5]).log(), torch.tensor([0.75, 0.25]).log()

    def constant(logits: "Tensor") -> Any:
        class Model:
            def forward(self) -> None: ...

            def __call__(self, **read: "Tensor") -> Any:
                return type("Output", (), {"logits": logits.expand(*read["input_ids"].shape, 2)})

        return Model()

    by_hand = 0.5 * math.log(0.5 / 0.75) + 0.5 * math.log(0.5 / 0.25)
    assert divergence(constant(halves), constant(quarters), rows, OPTIONS) == pytest.approx(by_hand)


def test_advantages_and_returns_by_hand(ppo: Any) -> None:
    # Two completions, of three tokens and of two, with the reward at the last token.
    tokens = torch.tensor([[True, True, True], [True, True, False]])
    rewards = torch.tensor([[0.0, 0.0, 1.0], [0.5, -1.0, 0.0]])
    values = torch.tensor([[0.2, 0.4, 0.6], [0.1, 0.3, 9.0]])  # the 9 is behind the end
    advantages, returns = ppo.advantages_of(rewards, values, tokens, OPTIONS)
    # First, from the last token back, with 0.9 * 0.5 = 0.45:
    #   1 - 0.6 = 0.4;  0.9 * 0.6 - 0.4 + 0.45 * 0.4 = 0.32;  0.9 * 0.4 - 0.2 + 0.45 * 0.32 = 0.304
    # Second: -1 - 0.3 = -1.3;  0.5 + 0.9 * 0.3 - 0.1 + 0.45 * -1.3 = 0.085
    assert advantages[0].tolist() == pytest.approx([0.304, 0.32, 0.4])
    assert advantages[1, :2].tolist() == pytest.approx([0.085, -1.3])
    assert returns[0].tolist() == pytest.approx([0.504, 0.72, 1.0])
    assert returns[1, :2].tolist() == pytest.approx([0.185, -1.0])

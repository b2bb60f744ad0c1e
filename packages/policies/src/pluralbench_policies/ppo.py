"""PPO with a critic: GAE and the clipped losses of policy and critic from torchrl, with a dual clip added.

A token is an action. The last token of a completion gets the completion's reward; all other rewards are 0. With
`kl_coef`, each token is penalized by its log-probability ratio to the initial policy. The other details follow verl,
which Personalized RewardBench used (appendix B): advantages are standardized over all tokens of a step, losses are
means over the tokens of an update, and probability ratios are capped at 3 if the advantage is negative (dual clip).
Unlike verl, the critic's head is initialized with 0.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from operator import mul, truediv
from typing import Any

import torch
from pluralbench_local.packing import to_device
from pluralbench_local.training_job import CheckpointClock, accelerator_of, restore, save_checkpoint
from pluralbench_local.training_model import checkpoint_activations
from tensordict import TensorDict
from tensordict.nn import ProbabilisticTensorDictModule, TensorDictModule
from torch import Tensor, nn
from torch.distributions import Categorical
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

from pluralbench_policies.config import OptimizeConfig
from pluralbench_policies.scorer import Optimization, draw_curves, lengths, step_lines
from pluralbench_policies.trainable import (
    Rows,
    autocast,
    divergence,
    end_ids,
    inputs,
    load_body,
    load_policy,
    logits_of,
    make_rows,
    places_of,
    sample,
)

EPSILON = 1e-8  # added to a variance, as in verl


class Critic(nn.Module):
    """The base model with a linear head that predicts the value before each token.

    The head is initialized with 0, so that only rewards count at first.
    """

    def __init__(self, body: Any, options: OptimizeConfig) -> None:
        super().__init__()
        self.options = options
        self.body = body
        self.head = nn.Linear(body.config.get_text_config().hidden_size, 1).to(body.device)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, rows: Rows) -> Tensor:
        """Predict the value before each token of the completions, shape (rows, completion tokens)."""
        with autocast(rows.ids.device, self.options):
            states = self.body(**inputs(self.body, rows)).last_hidden_state
        values: Tensor = self.head(states[:, -rows.tokens.shape[1] - 1 : -1].float())
        return values.squeeze(-1)


@dataclass(frozen=True)
class PPOState:
    """The models and optimizers of a run; without `start`, the initial policy, no KL divergence is needed."""

    policy: Any
    critic: Critic
    start: Any
    optimizers: tuple[Any, Any]


@dataclass(frozen=True)
class SampledStep:
    """A step's completions and the targets of their updates. Tensors have the shape (rows, completion tokens).

    Attributes:
        counts: Mask of the tokens to train on: those of completions with a reward.
        log_probs: Log-probabilities under the policy that sampled them.
        values: Predictions of the critic before the updates.
        advantages: Standardized advantages.
        returns: Targets of the critic.
        sizes: Number of tokens to train on, by row.
    """

    rows: Rows
    counts: Tensor
    log_probs: Tensor
    values: Tensor
    advantages: Tensor
    returns: Tensor
    sizes: Sequence[int]


def optimize_by_ppo(optimization: Optimization) -> None:
    """Run all steps after the checkpoint. The critic is initialized from the source, too."""
    source, model, tokenizer, scorer, steps, prompts, options, work = optimization
    accelerator = accelerator_of(model.device)
    torch.manual_seed(options.seed)
    critic = Critic(load_body(source), options)
    for module in (model, critic.body):
        if options.gradient_checkpointing:
            checkpoint_activations(source.name, module)
        module.train()  # needed for checkpointing; dropout is 0
    start = load_policy(source).eval() if options.kl_coef or options.kl_steps else None
    rates = ((model, options.learning_rate), (critic, options.critic_learning_rate))
    optimizers: Any = [
        torch.optim.AdamW(module.parameters(), lr=rate, weight_decay=options.weight_decay) for module, rate in rates
    ]
    accelerator.prepare(nn.ModuleList([model, critic]))  # registers them for checkpoints
    learner = PPOState(model, critic, start, accelerator.prepare(*optimizers))
    ends = end_ids(model, tokenizer)
    done, clock = restore(accelerator, work), CheckpointClock(options.save_steps)
    with step_lines(work, done, len(steps)) as write:
        for number, places in enumerate(steps[done:], done + 1):
            began = time.perf_counter()
            row_places = [place for place in places for _ in range(options.completions)]
            row_prompts = [prompts[place] for place in row_places]
            drawn = sample(model, row_prompts, ends, options)
            rewards = scorer(row_places, tokenizer.batch_decode(drawn, skip_special_tokens=True))
            rows = make_rows(row_prompts, drawn, model.device)
            line: dict[str, Any] = {**scorer.line, **lengths(drawn, ends)}
            if options.kl_steps and number % options.kl_steps == 0:
                line["kl"] = divergence(model, start, rows, options)
            step, line["entropy"] = prepare_step(learner, rows, torch.tensor(rewards), options)
            line |= _update(learner, step, options)
            write(line | {"seconds": time.perf_counter() - began})
            if number < len(steps) and clock.due(number):
                save_checkpoint(accelerator, work, number)
                clock.saved()
                draw_curves(work)


@torch.no_grad()
def prepare_step(learner: PPOState, rows: Rows, rewards: Tensor, options: OptimizeConfig) -> tuple[SampledStep, float]:
    """Compute advantages and returns of a step, and the policy's mean entropy in nats per token.

    `rewards` has the shape (rows,), on the CPU. A completion with a NaN reward is ignored.
    """
    categorical: Any = Categorical  # untyped
    parts = []
    for begin in range(0, len(rows.ids), options.part):
        part = rows.part(slice(begin, begin + options.part))
        policy = categorical(logits=logits_of(learner.policy, part, options))
        log_probs = policy.log_prob(part.completions)
        penalty = torch.zeros_like(log_probs)
        if options.kl_coef:
            initial = categorical(logits=logits_of(learner.start, part, options))
            penalty = options.kl_coef * (log_probs - initial.log_prob(part.completions))
        parts.append((log_probs, policy.entropy(), penalty, learner.critic(part)))
    log_probs, entropy, penalty, values = (torch.cat(tensors) for tensors in zip(*parts, strict=True))
    sizes = [length if finite else 0 for length, finite in zip(rows.lengths, rewards.isfinite().tolist(), strict=True)]
    rewards = to_device(rewards, rows.ids.device)
    counts = rows.tokens & rewards.isfinite()[:, None]
    by_token = torch.where(counts, -penalty, 0.0)
    last = rows.tokens.sum(1, keepdim=True) - 1
    by_token.scatter_add_(1, last, rewards.nan_to_num(nan=0.0)[:, None])
    advantages, returns = advantages_of(by_token, values, rows.tokens, options)
    drawn = SampledStep(rows, counts, log_probs, values, whiten(advantages, counts), returns, sizes)
    return drawn, float(entropy[places_of(rows.tokens, sum(rows.lengths))].mean())


def advantages_of(rewards: Tensor, values: Tensor, tokens: Tensor, options: OptimizeConfig) -> tuple[Tensor, Tensor]:
    """Compute the advantage and the return of each token by GAE.

    A completion ends with its last token, even if it was truncated. All tensors have the shape (rows, completion
    tokens), where `tokens` is the mask of the completions' tokens; results outside it are meaningless.
    """
    last = tokens & ~torch.nn.functional.pad(tokens[:, 1:], (0, 1))
    ends = (last | ~tokens)[..., None]
    # The value after the last token is never used.
    after = torch.nn.functional.pad(values[:, 1:], (0, 1))
    data = TensorDict(
        {
            "state_value": values[..., None],
            "next": {"state_value": after[..., None], "reward": rewards[..., None], "done": ends, "terminated": ends},
        },
        batch_size=rewards.shape,
    )
    estimates = GAE(gamma=options.gamma, lmbda=options.gae_lambda, value_network=None, device=rewards.device)(data)
    return estimates["advantage"].squeeze(-1), estimates["value_target"].squeeze(-1)


def whiten(advantages: Tensor, counts: Tensor) -> Tensor:
    """Standardize advantages by mean and standard deviation over the tokens that count."""
    chosen = advantages[counts]
    variance = chosen.var(correction=min(1, len(chosen) - 1))  # sample variance, as in verl; 0 for a single token
    return (advantages - chosen.mean()) * (variance + EPSILON).rsqrt()


def loss_module(options: OptimizeConfig) -> ClipPPOLoss:
    """Make torchrl's per-token losses, which read precomputed logits and values."""
    actor = ProbabilisticTensorDictModule(in_keys=["logits"], out_keys=["action"], distribution_class=Categorical)
    critic = TensorDictModule(nn.Identity(), in_keys=["new_value"], out_keys=["state_value"])
    loss = ClipPPOLoss(
        actor, critic, clip_epsilon=options.clip_range, clip_value=options.value_clip_range, loss_critic_type="l2",
        critic_coeff=0.5, entropy_bonus=False, reduction="none", functional=False, log_explained_variance=False,
    )  # fmt: skip
    loss.set_keys(sample_log_prob="log_prob")
    return loss


def losses(
    module: ClipPPOLoss, drawn: SampledStep, part: slice, logits: Tensor, values: Tensor, dual_clip: float
) -> dict[str, Any]:
    """Compute the losses of some rows, summed over the tokens that count.

    `logits` have the shape (rows, completion tokens, vocabulary), `values` (rows, completion tokens). `dual_clip` is
    the upper bound of the probability ratio if the advantage is negative; larger ratios have no gradient (Ye et al.
    2020, as in verl).

    Returns:
        `loss_objective`, `loss_critic` and `clip_fraction`.
    """
    size = sum(drawn.sizes[part])
    counts = places_of(drawn.counts[part], size)
    tokens = {
        "logits": logits[counts],
        "action": drawn.rows.part(part).completions[counts],
        "log_prob": drawn.log_probs[part][counts],
        "advantage": drawn.advantages[part][counts][:, None],
        "value_target": drawn.returns[part][counts][:, None],
        "state_value": drawn.values[part][counts][:, None],
        "new_value": values[counts][:, None],
    }
    loss_values = module(TensorDict(tokens, batch_size=[size]))
    objective, advantage = loss_values["loss_objective"], tokens["advantage"].squeeze(1)
    objective = torch.where(advantage < 0, torch.minimum(objective, -dual_clip * advantage), objective)
    return {
        "loss_objective": objective.sum(),
        "loss_critic": loss_values["loss_critic"].sum(),
        "clip_fraction": loss_values["clip_fraction"],
    }


def _update(learner: PPOState, drawn: SampledStep, options: OptimizeConfig) -> dict[str, float]:
    """The means of its updates are returned for the log."""
    module = loss_module(options).to(drawn.rows.ids.device)
    computed, norms = [], []
    for begin in range(0, len(drawn.counts), options.update_size):
        tokens = sum(drawn.sizes[begin : begin + options.update_size])
        if not tokens:
            continue
        for first in range(begin, begin + options.update_size, options.part):
            part = slice(first, first + options.part)
            share = sum(drawn.sizes[part]) / tokens
            if not share:
                continue
            rows = drawn.rows.part(part)
            logits, values = logits_of(learner.policy, rows, options), learner.critic(rows)
            loss_values = losses(module, drawn, part, logits, values, options.dual_clip)
            ((loss_values["loss_objective"] + loss_values["loss_critic"]) / tokens).backward()
            computed.append(({name: value.detach() for name, value in loss_values.items()}, tokens, share))
        for trained, optimizer in zip((learner.policy, learner.critic), learner.optimizers, strict=True):
            norm = nn.utils.clip_grad_norm_(trained.parameters(), options.max_grad_norm)
            if trained is learner.policy:
                norms.append(norm)
            optimizer.step()
            optimizer.zero_grad()

    def values_of(name: str) -> list[float]:
        values: list[float] = torch.stack([loss_values[name] for loss_values, _, _ in computed]).tolist()
        return values

    # Read after all updates: each reading waits for a GPU.
    tokens_of, shares = [tokens for _, tokens, _ in computed], [share for _, _, share in computed]
    sums = {
        "loss": sum(map(truediv, values_of("loss_objective"), tokens_of)),
        "value_loss": sum(map(truediv, values_of("loss_critic"), tokens_of)),
        "clipped": sum(map(mul, values_of("clip_fraction"), shares)),
        "gradient_norm": sum(torch.stack(norms).tolist()),
    }
    return {name: value / options.updates for name, value in sums.items()}

"""PPO with a critic: advantages by GAE, and the clipped losses of policy and critic, all torchrl's but the dual clip.

A token is an action. Its reward is 0 but at the last token of a completion, where it is the completion's, less the
divergence from the start at each token where that has a weight. The values around it are those of verl, by which
Personalized RewardBench optimised (appendix B): advantages are standardised over all tokens of a step, losses are
means over the tokens of an update, and where an advantage is negative a ratio counts as 3 at most (dual clip). Unlike
there the critic's head begins at 0.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from pluralbench_local import LocalModel
from pluralbench_local.training_job import accelerator_of, restore, save_checkpoint
from pluralbench_local.training_model import checkpoint_activations
from tensordict import TensorDict
from tensordict.nn import ProbabilisticTensorDictModule, TensorDictModule
from torch import Tensor, nn
from torch.distributions import Categorical
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

from pluralbench_policies.config import OptimizeConfig
from pluralbench_policies.curves import draw_curves, lengths, step_lines
from pluralbench_policies.scorer import Scorer
from pluralbench_policies.trainable import (
    Rows,
    autocast,
    divergence,
    end_ids,
    inputs,
    laid_out,
    load_body,
    load_policy,
    logits_of,
    sample,
)

TINY = 1e-8  # of a variance, as in verl


class Critic(nn.Module):
    """The base with a linear head: the value before each token. It begins at 0, so that only rewards count at first."""

    def __init__(self, body: Any, options: OptimizeConfig) -> None:
        super().__init__()
        self.options = options
        self.body = body
        self.head = nn.Linear(body.config.get_text_config().hidden_size, 1).to(body.device)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, rows: Rows) -> Tensor:
        """The value before each token of the completions, [rows, completion tokens]."""
        with autocast(rows.ids.device, self.options):
            states = self.body(**inputs(self.body, rows)).last_hidden_state
        values: Tensor = self.head(states[:, -rows.tokens.shape[1] - 1 : -1].float())
        return values.squeeze(-1)


@dataclass(frozen=True)
class PPOState:
    """What learns, and with what it is compared. start: the policy before the first step, where that is asked for."""

    policy: Any
    critic: Critic
    start: Any
    optimizers: tuple[Any, Any]


@dataclass(frozen=True)
class SampledStep:
    """A step's completions with all that their updates need, [rows, completion tokens] each.

    counts: the tokens to learn from, which are those of completions that have a reward. log_probs, values: of the
    policy and the critic that drew them.
    """

    rows: Rows
    counts: Tensor
    log_probs: Tensor
    values: Tensor
    advantages: Tensor
    returns: Tensor


def optimize_by_ppo(
    source: LocalModel,
    model: Any,
    tokenizer: Any,
    scorer: Scorer,
    steps: Sequence[Sequence[int]],
    prompts: Sequence[Sequence[int]],
    options: OptimizeConfig,
    work: Path,
) -> None:
    """Take all steps that the checkpoint in `work` does not have; the critic begins as `source`, as the policy does.

    steps: of each step its tasks' places. prompts: of each task the tokens of its prompt.
    """
    accelerator = accelerator_of(model.device)
    torch.manual_seed(options.seed)
    critic = Critic(load_body(source, model.device), options)
    for each in (model, critic.body):
        if options.gradient_checkpointing:
            checkpoint_activations(source.name, each)
        each.train()  # without dropout; checkpointing wants it
    start = load_policy(source, model.device).eval() if options.kl_coef or options.kl_steps else None
    rates = ((model, options.learning_rate), (critic, options.critic_learning_rate))
    optimizers: Any = [
        torch.optim.AdamW(each.parameters(), lr=rate, weight_decay=options.weight_decay) for each, rate in rates
    ]
    accelerator.prepare(nn.ModuleList([model, critic]))  # for its checkpoints
    learner = PPOState(model, critic, start, accelerator.prepare(*optimizers))
    ends = end_ids(model, tokenizer)
    done = restore(accelerator, work)
    with step_lines(work, done, len(steps)) as write:
        for number, places in enumerate(steps[done:], done + 1):
            began = time.perf_counter()
            each = [place for place in places for _ in range(options.completions)]
            asked = [prompts[place] for place in each]
            drawn = sample(model, asked, ends, options)
            rewards = scorer(each, tokenizer.batch_decode(drawn, skip_special_tokens=True))
            rows = laid_out(asked, drawn, model.device)
            line: dict[str, Any] = {**scorer.line, **lengths(drawn, ends)}
            if options.kl_steps and number % options.kl_steps == 0:
                line["kl"] = divergence(model, start, rows, options)
            step, line["entropy"] = prepare_step(learner, rows, torch.tensor(rewards, device=rows.ids.device), options)
            line |= _update(learner, step, options)
            write(line | {"seconds": time.perf_counter() - began})
            if number % options.save_steps == 0 and number < len(steps):
                save_checkpoint(accelerator, work, number)
                draw_curves(work)


@torch.no_grad()
def prepare_step(learner: PPOState, rows: Rows, rewards: Tensor, options: OptimizeConfig) -> tuple[SampledStep, float]:
    """Advantages and returns of a step, and the policy's mean entropy in nats a token.

    rewards: [rows]; a completion whose reward is NaN counts for nothing.
    """
    categorical: Any = Categorical  # untyped
    parts = []
    for begin in range(0, len(rows.ids), options.part):
        some = rows.part(slice(begin, begin + options.part))
        policy = categorical(logits=logits_of(learner.policy, some, options))
        log_probs = policy.log_prob(some.completions)
        penalty = torch.zeros_like(log_probs)
        if options.kl_coef:
            before = categorical(logits=logits_of(learner.start, some, options))
            penalty = options.kl_coef * (log_probs - before.log_prob(some.completions))
        parts.append((log_probs, policy.entropy(), penalty, learner.critic(some)))
    log_probs, entropy, penalty, values = (torch.cat(several) for several in zip(*parts, strict=True))
    counts = rows.tokens & rewards.isfinite()[:, None]
    by_token = torch.where(counts, -penalty, 0.0)
    last = rows.tokens.sum(1, keepdim=True) - 1
    by_token.scatter_add_(1, last, rewards.nan_to_num(nan=0.0)[:, None])
    advantages, returns = advantages_of(by_token, values, rows.tokens, options)
    drawn = SampledStep(rows, counts, log_probs, values, whiten(advantages, counts), returns)
    return drawn, float(entropy[rows.tokens].mean())


def advantages_of(rewards: Tensor, values: Tensor, tokens: Tensor, options: OptimizeConfig) -> tuple[Tensor, Tensor]:
    """Advantage and return of each token by GAE, [rows, completion tokens]; only those of `tokens` mean something.

    rewards: of each token. values: before each token. A completion ends with its last token, also where it was cut.
    """
    last = tokens & ~torch.nn.functional.pad(tokens[:, 1:], (0, 1))
    ends = (last | ~tokens)[..., None]
    # The value after the last token is never read.
    after = torch.nn.functional.pad(values[:, 1:], (0, 1))
    data = TensorDict(
        {
            "state_value": values[..., None],
            "next": {"state_value": after[..., None], "reward": rewards[..., None], "done": ends, "terminated": ends},
        },
        batch_size=rewards.shape,
    )
    made = GAE(gamma=options.gamma, lmbda=options.gae_lambda, value_network=None, device=rewards.device)(data)
    return made["advantage"].squeeze(-1), made["value_target"].squeeze(-1)


def whiten(advantages: Tensor, counts: Tensor) -> Tensor:
    """Less their mean, over their standard deviation, both over the tokens that count."""
    chosen = advantages[counts]
    variance = chosen.var(correction=min(1, len(chosen) - 1))  # that of a sample, as in verl; of one token it is 0
    return (advantages - chosen.mean()) * (variance + TINY).rsqrt()


def loss_module(options: OptimizeConfig) -> ClipPPOLoss:
    """Torchrl's losses of each token; it reads the logits and the new values that were computed for it."""
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
    """The losses of some rows, `loss_objective` and `loss_critic` summed over their tokens that count.

    logits: [rows, completion tokens, vocabulary]. values: [rows, completion tokens]. dual_clip: where the advantage is
    negative, a larger ratio than this counts as this, and has no gradient (Ye et al. 2020, as verl has it).
    """
    counts = drawn.counts[part]
    tokens = {
        "logits": logits[counts],
        "action": drawn.rows.part(part).completions[counts],
        "log_prob": drawn.log_probs[part][counts],
        "advantage": drawn.advantages[part][counts][:, None],
        "value_target": drawn.returns[part][counts][:, None],
        "state_value": drawn.values[part][counts][:, None],
        "new_value": values[counts][:, None],
    }
    made = module(TensorDict(tokens, batch_size=[int(counts.sum())]))
    objective, advantage = made["loss_objective"], drawn.advantages[part][counts]
    objective = torch.where(advantage < 0, torch.minimum(objective, -dual_clip * advantage), objective)
    return {
        "loss_objective": objective.sum(),
        "loss_critic": made["loss_critic"].sum(),
        "clip_fraction": made["clip_fraction"],
    }


def _update(learner: PPOState, drawn: SampledStep, options: OptimizeConfig) -> dict[str, float]:
    """Take the updates of a step. Returns what to log of them: their means."""
    module = loss_module(options).to(drawn.rows.ids.device)
    sums = {"loss": 0.0, "value_loss": 0.0, "clipped": 0.0, "gradient_norm": 0.0}
    for begin in range(0, len(drawn.counts), options.update_size):
        tokens = int(drawn.counts[begin : begin + options.update_size].sum())
        if not tokens:
            continue
        for first in range(begin, begin + options.update_size, options.part):
            part = slice(first, first + options.part)
            share = int(drawn.counts[part].sum()) / tokens
            if not share:
                continue
            rows = drawn.rows.part(part)
            logits, values = logits_of(learner.policy, rows, options), learner.critic(rows)
            made = losses(module, drawn, part, logits, values, options.dual_clip)
            ((made["loss_objective"] + made["loss_critic"]) / tokens).backward()
            sums["loss"] += float(made["loss_objective"].detach()) / tokens / options.updates
            sums["value_loss"] += float(made["loss_critic"].detach()) / tokens / options.updates
            sums["clipped"] += float(made["clip_fraction"]) * share / options.updates
        for trained, optimizer in zip((learner.policy, learner.critic), learner.optimizers, strict=True):
            norm = nn.utils.clip_grad_norm_(trained.parameters(), options.max_grad_norm)
            if trained is learner.policy:
                sums["gradient_norm"] += float(norm) / options.updates
            optimizer.step()
            optimizer.zero_grad()
    return sums

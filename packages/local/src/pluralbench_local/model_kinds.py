"""The kinds of local reward models: how each is recognized, loaded and read.

Scoring, serving and training know no kind by name: a new kind is an entry of `KINDS`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np
import torch
from pluralbench_rewards import Mode
from pluralbench_runs import plural
from torch import Tensor, nn
from transformers import (
    AutoModel,
    AutoModelForSequenceClassification,
    PretrainedConfig,
    PreTrainedTokenizerBase,
)

from pluralbench_local.attention import MIN_ROWS
from pluralbench_local.config import LocalModel
from pluralbench_local.conversations import Template
from pluralbench_local.errors import LocalError
from pluralbench_local.models import load_model, load_tokenizer, silence_transformers
from pluralbench_local.network import ReadableNetwork, network_of
from pluralbench_local.packing import Tokens, last_states, to_device
from pluralbench_local.planning import VOCABULARY_ROWS
from pluralbench_local.probes import (
    by_own_forward_pass,
    probe_conversations,
    reads_as_model,
    with_probed_padding,
)
from pluralbench_local.segments import with_segments
from pluralbench_local.step_heads import is_process, load_step_network, step_rewards, step_scores, step_template
from pluralbench_local.token_heads import (
    language_model_logits,
    load_language_model,
    token_template,
    with_token_head,
)
from pluralbench_local.value_heads import FAMILIES, HeadFamily, load_value_head
from pluralbench_local.weights import ModelFiles

Rows = list[list[int]]
"""For each conversation the indices of its states."""


def _logits(
    network: ReadableNetwork, states: Tensor, rows: Rows, conversations: Sequence[Tokens], mode: Mode
) -> Tensor:
    last = last_states(states, rows)
    if network.head is None:
        return last.float()
    if mode == "fast":
        logits: Tensor = network.head(last)
    else:
        # A narrow matrix product is rounded depending on its number of rows: use as many as an unpacked batch has.
        pairs = zip(last, conversations, strict=True)
        logits = torch.stack([network.head(state.expand(1, len(tokens.ids), -1))[0, -1] for state, tokens in pairs])
    return logits.float()


def _log_probabilities(
    network: ReadableNetwork, states: Tensor, rows: Rows, conversations: Sequence[Tokens], mode: Mode
) -> Tensor:
    """In float64."""
    owner = to_device([number for number, indices in enumerate(rows) for _ in indices], states.device)
    target = to_device([tokens.ids[place + 1] for tokens in conversations for place in tokens.reads], states.device)
    # Responses that share a prompt share the state that predicts their first token: project each state once.
    read_rows = np.array([index for indices in rows for index in indices], dtype=np.int64)
    distinct, numbers = np.unique(read_rows, return_inverse=True)
    by_number = numbers.argsort(kind="stable")
    starts = range(0, len(distinct), VOCABULARY_ROWS)
    ends = [int(end) for end in np.searchsorted(numbers[by_number], [start + VOCABULARY_ROWS for start in starts])]
    unique, inverse, order = (
        to_device(torch.from_numpy(each), states.device) for each in (distinct, numbers, by_number)
    )
    sums = torch.zeros(len(conversations), dtype=torch.float64, device=states.device)
    for start, begin, end in zip(starts, [0, *ends], ends, strict=False):
        distinct_rows = unique[start : start + VOCABULARY_ROWS]
        more = distinct_rows[-1:].expand(max(MIN_ROWS - len(distinct_rows), 0))
        logits = language_model_logits(network, states[torch.cat((distinct_rows, more))])
        chunk = order[begin:end]
        # `logsumexp` takes up to four times as long.
        values = logits.log_softmax(-1)[inverse[chunk] - start, target[chunk]]
        sums.index_add_(0, owner[chunk], values.double())
    return sums.unsqueeze(1)


def token_logits(
    network: ReadableNetwork, states: Tensor, rows: Rows, conversations: Sequence[Tokens], mode: Mode
) -> Tensor:
    """Return the logits of a `TokenHead`, in float64."""
    assert network.head is not None  # noqa: S101 - a language model has one
    logits: Tensor = network.head(last_states(states, rows))
    return logits


@dataclass(frozen=True)
class ModelKind:
    """A kind of reward model.

    Attributes:
        name: Name in records, and `LocalModel.kind` if that selects it.
        recognize: Whether a model is of this kind, by its settings, files, configuration or the names of its tensors.
        loader: Loads a reward model that scores in its own way, as "module:function" of a `LocalModel` and a
            `ScoringConfig`. Default: a network that the other fields describe.
        network: Loads the network of a model.
        append: Key in the model's configuration with the id of a token that it expects after a conversation.
        whole_response: Whether all tokens of the response are read, instead of the conversation's last token.
        numbers: Numbers of each conversation, of shape (conversations, labels), from the states that are read.
        steps: Scores of the steps of each conversation, where items give them; None if it reads no steps.
        option: What tells its numbers apart: the field `label` or `reference` of `LocalModel`. step: its head has read
            `label`, and there is one number.
        own_logits: Whether its numbers are the logits of the model's own forward pass, which are read if others differ.
        precision: Precision of its numbers. Default: that of the weights.
        family: The value heads that it is of; see `pluralbench_local.value_heads`.
        by_class: Whether the token is read that the model's class in transformers reads, if `LocalModel.read` does not
            say otherwise.
        ending: How a conversation continues after the response, up to the position that is read. Default: it ends.
    """

    name: str
    recognize: Callable[[ModelFiles], bool]
    loader: str = ""
    network: Callable[[ModelFiles], ReadableNetwork] = lambda files: _network(files, AutoModelForSequenceClassification)
    append: str = ""
    whole_response: bool = False
    numbers: Callable[[ReadableNetwork, Tensor, Rows, Sequence[Tokens], Mode], Tensor] = _logits
    steps: Callable[[ReadableNetwork, Tensor, Rows, Sequence[Tokens], Mode], Sequence[Tensor]] | None = None
    option: str = "label"
    own_logits: bool = False
    precision: torch.dtype | None = None
    family: HeadFamily | None = None
    by_class: bool = False
    ending: Callable[[LocalModel, Template], Template] = lambda source, template: template

    def template(
        self,
        source: LocalModel,
        tokenizer: PreTrainedTokenizerBase,
        config: PretrainedConfig,
        num_embeddings: int | None,
    ) -> Template:
        """Return how conversations become tokens that the model reads.

        Raises:
            LocalError: If the configuration or the tokenizer lacks a token that the model expects, or `read` is given
                for a model that has its own token.
        """
        family = self.family
        if source.read is not None and not self.by_class:
            raise LocalError(f"`read=...` is for sequence classifiers, which {source.name} is not; leave it out.")
        skips = family.skips_padding if family else self.by_class and source.read != "last"
        unread = getattr(config.get_text_config(), "pad_token_id", None) if skips else None
        eos = None
        if family and family.ends_with_eos:
            eos = tokenizer.eos_token
            if eos is None:
                raise LocalError(f"The tokenizer has no eos token, which {family.name} reads; set its `eos_token`.")
        appended = self._appended(config)
        if family and family.ends_with_cls:
            if tokenizer.cls_token_id is None:
                raise LocalError(f"The tokenizer has no cls token, which {family.name} reads; set its `cls_token`.")
            appended = (tokenizer.cls_token_id,)
        template = Template(tokenizer, appended, self.whole_response, num_embeddings, eos=eos, unread=unread)
        template = with_segments(template, config) if self.by_class else template
        return self.ending(source, template)

    def settings(self, network: ReadableNetwork) -> dict[str, Any]:
        """Return what a run records of a loaded model of this kind."""
        own = {} if self.family is None else self.family.settings(network.model.config)
        return own | getattr(network.head, "settings", {}) | network.settings

    def probed(self, network: ReadableNetwork, template: Template) -> ReadableNetwork:
        """Return a loaded network that is read as its model computes, by its own forward pass or alone if need be."""
        with silence_transformers():
            conversations = probe_conversations(template, network.model)
            head = network.head
            if self.own_logits and head is not None and not reads_as_model(network, conversations, head):
                network = by_own_forward_pass(network)
            return with_probed_padding(network, conversations)

    def _appended(self, config: PretrainedConfig) -> tuple[int, ...]:
        if not self.append:
            return ()
        token = getattr(config, self.append, None)
        if not isinstance(token, int):
            raise LocalError(f"The configuration of {config.name_or_path} has no number as `{self.append}`; add it.")
        return (token,)


def _network(
    files: ModelFiles, auto: Any, head: Callable[[Any], nn.Module | None] = lambda model: getattr(model, "score", None)
) -> ReadableNetwork:
    """Load a whole network by a class of transformers. `head` gives what reads its states: None if it pools itself."""
    model = load_model(auto, files.source)
    with silence_transformers():
        try:
            module = head(model)
        except AttributeError as error:
            raise LocalError(f"{files.source.name} has no reward head ({error}); it is not a reward model.") from None
        return network_of(model, module)


def _classifier(files: ModelFiles) -> ReadableNetwork:
    rows, labels = files.shapes.get("score.weight", (0,))[0], files.config.num_labels or 0
    if rows and rows != labels:
        raise LocalError(
            f"The head of {files.source.name} has {plural(rows, 'row')} (score.weight), but config.json names "
            f"{plural(labels, 'label')}; correct `id2label` there."
        )
    return _network(files, AutoModelForSequenceClassification)


def _token_network(files: ModelFiles) -> ReadableNetwork:
    size = files.config.get_text_config().vocab_size
    template = token_template(files.source, Template(load_tokenizer(files.source), num_embeddings=size))
    return with_token_head(load_language_model(files), template.labels)


LANGUAGE_MODEL = ModelKind(
    "implicit",
    lambda files: files.source.kind == "implicit",
    network=load_language_model,
    whole_response=True,
    numbers=_log_probabilities,
    option="reference",
    precision=torch.float32,
)
"""The log-probability of the response, less that under a reference (as in DPO).

The factor beta changes no decision and is left out. The tokens of the response are all those after the template's
opening of the answer, including its closing tokens.
"""
TOKEN = ModelKind(
    "token",
    lambda files: files.source.kind == "token",
    network=_token_network,
    numbers=token_logits,
    ending=token_template,
)
"""The logits of one or two tokens after the conversation, by `pluralbench_local.token_rewards`."""
PROCESS = ModelKind(
    "process",
    is_process,
    network=load_step_network,
    numbers=step_rewards,
    steps=step_scores,
    option="step",
    ending=step_template,
)
"""Scores of the steps of an answer, which make one reward, by `pluralbench_local.step_rewards`."""
CLASSIFIER = ModelKind("classifier", lambda files: True, network=_classifier, own_logits=True, by_class=True)
"""A logit of the conversation's last token that is not the padding token, as transformers' classes read.

Of several, `label` makes one: "logit:K", "softmax:K" for its probability, their "mean", or their weighted sum.
Personalized RewardBench (section 4.1) uses "softmax:-1".
"""

KINDS: tuple[ModelKind, ...] = (
    ModelKind(
        "personal",
        lambda files: files.source.personal() is not None,
        loader="pluralbench_local.personal.scoring:load_personal",
    ),
    LANGUAGE_MODEL,
    TOKEN,
    PROCESS,
    # internlm/internlm2-*-reward: `get_score` of the model's own code reads the reward token after the conversation.
    ModelKind(
        "classifier",
        lambda files: "InternLM2ForRewardModel" in (files.config.architectures or ()),
        network=lambda files: _network(files, AutoModel, attrgetter("v_head")),
        append="reward_token_id",
        own_logits=True,
    ),
    ModelKind(
        "pairwise",
        lambda files: "head_layer.1.weight" in files.shapes and hasattr(files.config, "cand1_prefix_id"),
        loader="pluralbench_local.pairwise:load_pairrm",
    ),
    ModelKind(
        "pairwise",
        lambda files: "prompt_head.weight" in files.shapes or files.shapes.get("value_head.weight", (1,))[0] > 1,
        loader="pluralbench_local.general_preference:load_general_preference",
    ),
    # RLHFlow's pair-preference models are language models whose files do not tell.
    ModelKind(
        "pairwise",
        lambda files: files.source.kind == "pairwise",
        loader="pluralbench_local.pairwise:load_pair_preference",
    ),
    *(
        ModelKind("classifier", family.recognizes, network=partial(load_value_head, family), family=family)
        for family in FAMILIES
    ),
    CLASSIFIER,
)
"""The first kind that recognizes a model is its kind, if its settings name no other."""


def kind_of(files: ModelFiles) -> ModelKind:
    """Return the kind of a model. Raises `LocalError` if its configuration or its weights cannot be read."""
    given = files.source.kind
    return next(kind for kind in KINDS if kind.recognize(files) and given in {None, kind.name})

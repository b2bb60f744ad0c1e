"""Models that only compare two responses: PairRM, general preference models, and language models that answer A or B."""

import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from pluralbench_rewards import Cached, Group, Message, Mode, ModelRecord, OnScored, Pairs, Scored, ScoringConfig
from pluralbench_runs import step
from torch import Tensor, nn
from transformers import CONFIG_MAPPING, AutoModel, PreTrainedTokenizerBase

from pluralbench_local.config import LocalModel
from pluralbench_local.conversations import Template
from pluralbench_local.errors import LocalError
from pluralbench_local.model_kinds import ModelKind, Rows, token_logits
from pluralbench_local.models import describe_weights, load_model, load_tokenizer, num_embeddings
from pluralbench_local.network import ReadableNetwork
from pluralbench_local.packing import Tokens
from pluralbench_local.scoring import LocalRewardModel
from pluralbench_local.token_heads import load_language_model, with_token_head
from pluralbench_local.weights import ModelFiles

PAIRRM_TOKENS = 2048
"""Tokens of PairRM's longest training texts: 1,224 of the prompt, and 412 of each response."""
PREFIXES = ("<|source|>", "<|candidate1|>", "<|candidate2|>")
INSTRUCTION = "Write each <Response i> of the assistant in this conversation."
"""What begins prompt, first and second response."""


@dataclass(frozen=True)
class LocalPairwiseModel:
    """A loaded model that reads two responses at once, in an order.

    The scorer computes the probability that the first is better, from the `text` of a pair in place of a response.
    """

    scorer: LocalRewardModel
    text: Callable[[str, str], str]

    def record(self) -> ModelRecord:
        """Return the record of the model."""
        return self.scorer.record()

    def compare(
        self, groups: Sequence[Group], pairs: Sequence[Pairs], *, cached: Cached = None, on_scored: OnScored = None
    ) -> Scored:
        """Compare responses in pairs; see `pluralbench_rewards.PairwiseRewardModel.compare`."""
        return self.scorer.score(self._as_responses(groups, pairs), cached=cached, on_scored=on_scored)

    def tolerance(self, groups: Sequence[Group], pairs: Sequence[Pairs], scored: Scored) -> float:
        """Measure how far probabilities of another mode may lie from these; see `LocalRewardModel.tolerance`."""
        return self.scorer.tolerance(self._as_responses(groups, pairs), scored)

    def _as_responses(self, groups: Sequence[Group], pairs: Sequence[Pairs]) -> list[Group]:
        return [
            replace(group, responses=[self.text(group.responses[one], group.responses[other]) for one, other in own])
            for group, own in zip(groups, pairs, strict=True)
        ]


def without_own_code(files: ModelFiles) -> LocalModel:
    """Return a model whose body is loaded as transformers has it, whatever code comes with the model."""
    trusted = files.source.trust_remote_code and files.config.model_type not in CONFIG_MAPPING
    return files.source.model_copy(update={"trust_remote_code": trusted})


def make_scorer(
    kind: ModelKind,
    source: LocalModel,
    network: ReadableNetwork,
    template: Template,
    scoring: ScoringConfig,
    max_length: int | None = None,
    lacking: Sequence[str] = ("reference", "label", "read"),
) -> LocalRewardModel:
    """Return what computes the numbers of a pairwise model, and measures their tolerance.

    `lacking` has the options that the model does not have.

    Raises:
        LocalError: If the model is given one of them.
    """
    for option in lacking:
        if getattr(source, option) is not None:
            raise LocalError(
                f"{source.name} compares two responses and has no {option}; leave out `{option}=...`, or choose "
                "another `kind=...`."
            )
    scoring = scoring.model_copy(update={"max_length": scoring.max_length or max_length})
    return LocalRewardModel(
        source.name, kind, network, template, scoring=scoring, source=source, measures_tolerance=True
    )


class PairRMTemplate(Template):
    """Prompt and both responses of PairRM, each encoded by itself behind its prefix.

    Source: reward-bench `pairrm.py`, `tokenize_pair` and `tokenize_conv_pair`. Its texts of several turns begin with an
    instruction in other words, so that the probabilities of such pairs differ from the published code's.
    """

    def render(self, messages: Sequence[Message], *, opening: bool = False) -> str:
        """Render a prompt, and a pair in place of the response. `opening` changes nothing."""
        del opening
        *prompt, pair = messages
        earlier = [message["content"] for message in prompt[:-1] if message["role"] == "assistant"]
        if not earlier:
            return PREFIXES[0] + "\n".join(message["content"] for message in prompt) + pair["content"]
        lines, answered = list[str](), 0
        for message in prompt:
            if message["role"] == "assistant":
                answered += 1
                lines.append(f"Assistant: <Response {answered}>")
            else:
                lines.append(f"USER: {message['content']}")
        lines.append(f"Assistant: <Response {answered + 1}>")
        _, first, second = _split(PREFIXES[0] + pair["content"])
        before = "".join(f"<Response {number}>: {text}\n" for number, text in enumerate(earlier, 1))
        last = f"<Response {answered + 1}>: "
        return (
            PREFIXES[0]
            + INSTRUCTION
            + "\n".join(lines)
            + pair_of_texts(f"{before}{last}{first}", f"{before}{last}{second}")
        )

    def encode(self, texts: Sequence[str], *, add_special_tokens: bool = True) -> "Iterator[array[int]]":
        """Yield the token ids of rendered texts, whose three parts get the tokenizer's special tokens each."""
        del add_special_tokens
        parts = [prefix + part for text in texts for prefix, part in zip(PREFIXES, _split(text), strict=True)]
        ids: Any = self.tokenizer(parts, verbose=False)["input_ids"]
        for start in range(0, len(ids), len(PREFIXES)):
            yield array("i", [token for part in ids[start : start + len(PREFIXES)] for token in part])

    def tokens(self, ids: "array[int]", opening: "array[int]") -> Tokens:
        """Return a text that is read from the first to the last prefix."""
        del opening
        tokenizer: Any = self.tokenizer
        first, *_, last = tokenizer.convert_tokens_to_ids([*PREFIXES])
        return Tokens(ids, range(ids.index(first), ids.index(last) + 1))


def pair_of_texts(first: str, second: str) -> str:
    """Return the text of a pair of responses for PairRM."""
    return f"{PREFIXES[1]}{first}{PREFIXES[2]}{second}"


def _split(text: str) -> list[str]:
    """Split a rendered text at the prefixes: prompt, first and second response."""
    _, *parts = re.split("|".join(map(re.escape, PREFIXES)), text)
    if len(parts) != len(PREFIXES):
        raise LocalError(
            f"A prompt or response contains one of {', '.join(PREFIXES)}, which mark the parts of PairRM's input; "
            "remove it from the text."
        )
    return parts


def _pairrm_numbers(
    network: ReadableNetwork, states: Tensor, rows: Rows, conversations: Sequence[Tokens], mode: Mode
) -> Tensor:
    """Probability that the first response is better: the mean over tasks of the difference of the head's scores."""
    del mode
    assert network.head is not None  # noqa: S101 - for mypy
    logits = []
    for indices, tokens in zip(rows, conversations, strict=True):
        middle = tokens.ids.index(network.model.config.cand1_prefix_id) - tokens.reads.start
        source, first, second = (states[indices[place]] for place in (0, middle, -1))
        left, right = (network.head(torch.cat([source, one]).unsqueeze(0)) for one in (first, second))
        logits.append((left - right).float().mean())
    return torch.stack(logits).double().sigmoid().unsqueeze(1)


def load_pairrm(source: LocalModel, scoring: ScoringConfig) -> LocalPairwiseModel:
    """Load PairRM (arXiv 2306.02561): a DeBERTa body, and a head that reads the states at three prefixes.

    Source: reward-bench `pairrm.py`, `DebertaV2PairRM`.
    """
    if scoring.on_overflow == "truncate-left":
        raise LocalError(
            "PairRM reads a prompt before two responses, so a text without its start cannot be read; choose error, "
            "drop or truncate-prompt as `on_overflow=...`."
        )
    with step(f"Loading {describe_weights(source)}"):
        files = ModelFiles(source)
        tokenizer = load_tokenizer(source)
        _check_prefixes(source, files.config, tokenizer)
        body = load_model(AutoModel, without_own_code(files), key_mapping={r"^pretrained_model\.": ""})
        head = _pairrm_head(files, body.config.hidden_size).to(device=body.device, dtype=body.dtype).eval()
    body.reward_head = head
    why = "it reads its tokens in both directions"
    network = ReadableNetwork(body, body, head, body.config._attn_implementation, why)  # noqa: SLF001 - no public name
    kind = ModelKind("pairwise", lambda files: True, numbers=_pairrm_numbers)
    template = PairRMTemplate(tokenizer, num_embeddings=num_embeddings(body))
    return LocalPairwiseModel(make_scorer(kind, source, network, template, scoring, PAIRRM_TOKENS), pair_of_texts)


def _check_prefixes(source: LocalModel, config: Any, tokenizer: PreTrainedTokenizerBase) -> None:
    names = ("source_prefix_id", "cand1_prefix_id", "cand2_prefix_id")
    for prefix, name in zip(PREFIXES, names, strict=True):
        ours, expected = tokenizer.convert_tokens_to_ids(prefix), getattr(config, name, None)
        if ours != expected:
            raise LocalError(
                f"The tokenizer of {source.name} has the id {ours} of {prefix}, but config.json names {expected} as "
                f"{name}; use the model's own tokenizer."
            )


def _pairrm_head(files: ModelFiles, width: int) -> nn.Sequential:
    names = ("head_layer.1.weight", "head_layer.1.bias", "head_layer.4.weight", "head_layer.4.bias")
    tensors = files.tensors(names)
    missing = [name for name in names if name not in tensors]
    if missing:
        raise LocalError(f"{files.source.name} has no {missing[0]}, so what it computes would be random.")
    inner, tasks = (nn.Linear(*tensors[name].shape[::-1]) for name in names[::2])
    if inner.in_features != 2 * width or tasks.in_features != inner.out_features:
        raise LocalError(
            f"The head head_layer of {files.source.name} reads {inner.in_features:,} numbers, but its body has hidden "
            f"states of {width:,}, of which it reads two; it belongs to another model."
        )
    head = nn.Sequential(inner, nn.Tanh(), tasks)
    head.load_state_dict({name: tensors[old] for name, old in zip(head.state_dict(), names, strict=True)})
    return head


class PairPreferenceTemplate(Template):
    """One message of the user with the conversation and both responses, and the opening of an answer.

    Source: RLHFlow `eval_reward_bench_pm.py` and reward-bench `slicpairpm.py`: earlier turns by their template as
    transformers renders it, and no BOS token. Neither asks for the opening of an answer, which the templates of that
    time always wrote.
    """

    def render(self, messages: Sequence[Message], *, opening: bool = False) -> str:
        """Render a prompt, and a pair in place of the response. `opening` changes nothing."""
        del opening
        *prompt, pair = messages
        turns = "".join(f"\n<turn> {message['role']}\n {message['content']}" for message in prompt)
        return self.asked(f"[CONTEXT] \n{turns}\n {pair['content']}")

    def asked(self, content: str) -> str:
        """Render one message of the user and the opening of an answer, without BOS token."""
        text = super().render([{"role": "user", "content": content}], opening=True)
        bos = self.tokenizer.bos_token
        return text.replace(str(bos), "") if bos else text

    def letters(self, name: str) -> tuple[int, ...]:
        """Return the ids of the tokens A and B.

        Raises `LocalError` if the template opens no answer, or a letter is not a single token behind it.
        """
        content, answer = "Which one?", "origami"
        question = self.asked(content)
        bos = self.tokenizer.bos_token
        whole = super().render([{"role": "user", "content": content}, {"role": "assistant", "content": answer}])
        before = (whole.replace(str(bos), "") if bos else whole).rpartition(answer)[0]
        # Templates may begin a finished answer with empty thoughts.
        if not before.startswith(question) or re.sub(r"</?think>", "", before[len(question) :]).strip():
            raise LocalError(
                f"The chat template of {name} opens no answer, so the letter of the better response cannot be read; "
                "give one that does as `chat_template=...`."
            )
        start, *ended = (list(ids) for ids in self.encode([question, question + "A", question + "B"]))
        single = [ids[-1] for ids in ended if ids[:-1] == start]
        if len(set(single)) < len(ended):
            raise LocalError(
                f"A and B are not single tokens behind the chat template of {name}; use the model's own tokenizer."
            )
        return tuple(single)


def pair_of_letters(first: str, second: str) -> str:
    """Return the text of a pair of responses for a language model that answers A or B."""
    return f"[RESPONSE A] {first} [RESPONSE B] {second} \n"


def _letter_numbers(
    network: ReadableNetwork, states: Tensor, rows: Rows, conversations: Sequence[Tokens], mode: Mode
) -> Tensor:
    """Probability of the token A, by the softmax over A and B."""
    return token_logits(network, states, rows, conversations, mode).softmax(-1)[:, :1]


def load_pair_preference(source: LocalModel, scoring: ScoringConfig) -> LocalPairwiseModel:
    """Load a language model that answers with the letter of the better response (RLHFlow's pair-preference models)."""
    with step(f"Loading {describe_weights(source)}"):
        files = ModelFiles(source)
        size = files.config.get_text_config().vocab_size
        template = PairPreferenceTemplate(load_tokenizer(source), num_embeddings=size)
        letters = template.letters(source.name)
        network = with_token_head(load_language_model(files), letters)
    kind = ModelKind("pairwise", lambda files: True, numbers=_letter_numbers)
    return LocalPairwiseModel(make_scorer(kind, source, network, template, scoring), pair_of_letters)

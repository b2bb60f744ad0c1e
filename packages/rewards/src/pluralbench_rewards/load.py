"""`load`: a reward model of a kind, ready to score."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from pluralbench_calls import LOCAL_MODEL, Backend, Limits, LocalModel, OpenAIChat, provider_of

from pluralbench_rewards.conversations import Template
from pluralbench_rewards.errors import ModelError
from pluralbench_rewards.judge import Judge, Reply
from pluralbench_rewards.models import Dtype, Source, load_classifier, load_language_model, load_tokenizer
from pluralbench_rewards.network import unpacked
from pluralbench_rewards.rewards import Classifier, Implicit, check_label, check_vocabulary

Kind = Literal["classifier", "implicit", "generative"]
OPENAI = "https://api.openai.com/v1"
LOCAL = "local"


def load(model: str, kind: Kind = "classifier", **options: Any) -> Classifier | Implicit | Judge:
    """A reward model of a kind, ready for `score`.

    kind: "classifier" (`AutoModelForSequenceClassification`, or an entry of `SPECIAL`) and "implicit" (a language
    model's log-probability of the response) run in this process, and `options` are those of `load_local`;
    "generative" is a judge at an endpoint, and they are those of `load_judge`.
    """
    return load_judge(model, **options) if kind == "generative" else load_local(model, kind, **options)


def load_local(
    model: str,
    kind: Literal["classifier", "implicit"] = "classifier",
    *,
    reference: str | None = None,
    label: str | None = None,
    device: str = "auto",
    dtype: Dtype = "auto",
    revision: str | None = None,
    trust_remote_code: bool = False,
    chat_template: str | None = None,
) -> Classifier | Implicit:
    """Load a reward model from a folder or the Hub into this process.

    reference: the model that an implicit one was trained from; without it the reward is reference-free.
    label: which of several logits is the reward, "logit:K" or "softmax:K".
    device: "auto", "cpu", "cuda", "cuda:1", or "spread" over all that there are. dtype: "auto" is as it was saved.
    trust_remote_code: run Python code that comes with the model, with your rights.
    chat_template: the text of a Jinja template to use instead of the tokenizer's own.

    Raises `ModelError` and `DeviceError`.
    """
    source = Source(str(model), revision, device, dtype, trust_remote_code)
    if kind == "classifier":
        if reference is not None:
            raise ModelError("A classifier has no reference model; --reference belongs to --kind implicit.")
        tokenizer = load_tokenizer(source, chat_template)
        network, append = load_classifier(source)
        check_label(source.name, network, label)
        return Classifier(source.name, network, Template(tokenizer, append), label)
    if label is not None:
        raise ModelError("An implicit reward has no labels; --label belongs to --kind classifier.")
    tokenizer = load_tokenizer(source, chat_template)
    policy = load_language_model(source)
    other = None if reference is None else load_language_model(replace(source, name=str(reference), revision=None))
    if other is not None and other.model.config.vocab_size != policy.model.config.vocab_size:
        raise ModelError(f"{reference} has another vocabulary than {model}, so it cannot be its reference.")
    for name, network in ((source.name, policy), *([] if other is None else [(str(reference), other)])):
        check_vocabulary(name, network)
    if other is not None and bool(policy.unpackable) != bool(other.unpackable):
        why = policy.unpackable or other.unpackable
        policy, other = unpacked(policy, why), unpacked(other, why)
    return Implicit(source.name, policy, other, Template(tokenizer, whole_response=True))


def load_judge(
    model: str,
    *,
    base_url: str | None = None,
    api_key_env: str | None = None,
    ledger: Path = Path("ledger.sqlite"),
    temperature: float = 0.0,
    top_p: float | None = None,
    max_tokens: int = 512,
    attempts: int = 4,
    reply: Reply = "reasoned",
    limits: Limits | None = None,
) -> Judge:
    """A judge: the model of an OpenAI-compatible endpoint, or "local", the small embedded one.

    base_url: without it OpenAI's. api_key_env: the environment variable that holds the key. ledger: where its calls
    are recorded. attempts: tries for a reply that can be parsed. reply: with reasons, the verdict
    alone, or in JSON by a schema. Nothing is opened or asked before it judges.
    """
    backend: Backend
    if model == LOCAL and base_url is None:
        name, provider, backend = LOCAL_MODEL, LOCAL, LocalModel()
    else:
        url = base_url or OPENAI
        key = api_key_env or ("OPENAI_API_KEY" if url == OPENAI else None)
        name, provider, backend = model, provider_of(url), OpenAIChat(url, api_key_env=key)
    return Judge(name, provider, backend, ledger, temperature, top_p, max_tokens, attempts, limits or Limits(), reply)

"""`LocalModel`: which reward model to load in this process, and how. Imports no torch."""

import json
import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pluralbench_calls.model_checks import model_configs, unreachable_errors
from pluralbench_rewards import ModelRecord, model_commit, model_digest
from pluralbench_runs import (
    ADAPTER_FILE,
    FrozenModel,
    PathText,
    check_model_folder,
    check_recipe,
    digest,
    one_line,
    public_location,
    read_small,
)
from pydantic import Field, field_validator, model_validator

from pluralbench_local.adapters import Adapter, find_adapter
from pluralbench_local.errors import LocalError
from pluralbench_local.step_rewards import (
    STEP_FIELDS,
    Aggregation,
    ProcessRewardName,
    StepForm,
    StepReading,
    check_step_fields,
    step_reading,
)
from pluralbench_local.token_rewards import (
    TOKEN_FIELDS,
    TOKEN_LABELS,
    TokenPosition,
    TokenReward,
    TokenRewardName,
    TokenScore,
    check_token_reward,
    token_reward,
)

Kind = Literal["classifier", "implicit", "token", "process", "pairwise"]
READING_FIELDS = ("kind", "base", "reference", "label", "read", "tokenizer", *TOKEN_FIELDS, *STEP_FIELDS)
"""Fields of `LocalModel` that say how a reward is read."""
OWN_FIELDS = {"token": TOKEN_FIELDS, "process": STEP_FIELDS, "implicit": ("reference",)}
"""Those that only one kind has. A step's make a model without a kind one of the kind "process"."""
TokenRead = Literal["class", "last"]
PERSONAL_FILE = "personal.json"
Dtype = Literal["auto", "float32", "bfloat16", "float16"]
DEVICE = re.compile(r"auto|cpu|spread|all|(cuda|mps|xpu|hpu|npu)(:[0-9]{1,3})?")


class LocalModel(FrozenModel):
    """A reward model in this process.

    A folder with a personalized reward model (`personal.json`) is recognized; `device`, `dtype` and the like then
    apply to its backbone.
    """

    loader: ClassVar[str] = "pluralbench_local.loading:load_to_score"

    name: PathText = Field(description="A folder, ORG/NAME on the Hub, or local (the small embedded model).")
    kind: Kind | None = Field(
        None,
        description="classifier: a sequence classifier or value head; implicit: log-probability of the response under "
        "a language model, minus that under --reference; token: logits of a language model's next token; process: a "
        "number at each step of the answer; pairwise: a language model that answers A or B for the better of two "
        "responses. Default: what is recognized from the files.",
    )
    base: PathText | None = Field(
        None, description="Adapter: its base model, a folder or ORG/NAME. Default: that of adapter_config.json."
    )
    reference: PathText | None = Field(None, description="implicit: the model that training started from.")
    label: str | None = Field(
        None,
        description="Reward of a model with several logits: logit:K, softmax:K for its probability, mean, or weights "
        "by name or number, such as 0:0.65,4:-0.4. process: of a step, also sigmoid:K. Of a general preference model: "
        "scaled, plain or normalized.",
    )
    read: TokenRead | None = Field(
        None,
        description="Sequence classifier: the token whose logit is read. class: as the model's class in transformers "
        "reads, the last that is not `pad_token_id`; last: the last, as vLLM and SGLang read. Encoders pool "
        "their tokens by themselves. Default: class.",
    )
    token_reward: TokenRewardName | None = Field(
        None, description="token: a published way to read the reward; the next six options change parts of it."
    )
    positive_token: str | None = Field(
        None,
        description="token, process: the token that speaks for the response or step, such as Yes; token: or its id, "
        "such as id:9642.",
    )
    negative_token: str | None = Field(
        None, description="token, process: the token against it, such as No; optional for token."
    )
    token_score: TokenScore | None = Field(
        None,
        description="token: logit of the positive token; log_odds: its logit minus that of the negative one; "
        "probability: softmax of the two. Default: log_odds, or logit without a negative token.",
    )
    token_position: TokenPosition | None = Field(
        None,
        description="token: reply: the first token of a further reply, which the chat template opens; end: the token "
        "after the response. Default: reply.",
    )
    question: str | None = Field(
        None,
        description='token: message of the user after the response, such as "Is the answer correct (Yes or No)?".',
    )
    prefill: str | None = Field(
        None, description='token: text that begins the model\'s reply, before the token, such as "Verdict: ".'
    )
    process_reward: ProcessRewardName | None = Field(
        None, description="process: a published way to read the steps; the next options change parts of it."
    )
    step_mark: str | None = Field(
        None, description="process: what marks the end of a step, such as <extra_0>; of form turn, the model's reply."
    )
    step_form: StepForm | None = Field(
        None,
        description="process: token: the mark's tokens come after those of a step; text: the mark is part of the text; "
        "turn: each step is a message, and the mark its reply. Default: token.",
    )
    step_split: str | None = Field(
        None, description="process: text between the steps of an answer. Default: blank lines."
    )
    aggregation: Aggregation | None = Field(
        None,
        description="process: how the scores of the steps make the reward. Default: as the model's publication does; "
        "required if it names no way.",
    )
    revision: str | None = Field(None, description="Revision of the model on the Hub.")
    tokenizer: PathText | None = Field(
        None, description="Tokenizer to use instead of the model's own: a folder, or ORG/NAME on the Hub."
    )
    chat_template: Path | None = Field(None, description="Jinja file to use instead of the tokenizer's chat template.")
    date: str | None = Field(
        None,
        description="Date (YYYY-MM-DD) in place of today's, which some chat templates write. Default: 2024-07-26, so "
        "that no number depends on the day.",
    )
    device: str = Field(
        "auto", description="auto, cpu, cuda, cuda:1, spread over all GPUs, or all: scored by a process on each GPU."
    )
    dtype: Dtype = Field("auto", description="Dtype of the weights; auto: as saved.")
    trust_remote_code: bool = Field(
        default=False, description="Run Python code that comes with a model, with your permissions."
    )

    @field_validator("device")
    @classmethod
    def _known_device(cls, device: str) -> str:
        if not DEVICE.fullmatch(device):  # torch would tell too, after seconds
            raise ValueError(
                f"{one_line(device, 40)} is not auto, cpu, cuda, cuda:N with a GPU's number, spread or all"
            )
        return device

    @field_validator("date")
    @classmethod
    def _real_date(cls, day: str | None) -> str | None:
        if day is not None and not _is_date(day):
            raise ValueError(f"{one_line(day, 40)} is not a date of the form YYYY-MM-DD")
        return day

    @model_validator(mode="after")
    def _fields_of_a_kind(self) -> Self:
        given = self._given()
        own = {*OWN_FIELDS.get(self.kind or "process", ())}
        own |= {"positive_token", "negative_token"} if self.has_steps() else set()
        for kind, fields in OWN_FIELDS.items():
            name = next((name for name in fields if name in given and name not in own), None)
            if name is not None:
                raise ValueError(f'`{name}=...` is for {kind} rewards; set `kind="{kind}"`, or leave it out')
        if self.kind == "implicit" and self.label is not None:
            raise ValueError("`label=...` is for classifiers; leave it out")
        if self.kind not in {None, "classifier"} and self.read is not None:
            raise ValueError("`read=...` is for sequence classifiers; leave it out")
        if self.kind == "token":
            check_token_reward(given)
        if self.has_steps():
            check_step_fields(given)
        return self

    def has_steps(self) -> bool:
        """Return whether its fields say that the steps of an answer are read."""
        return self.kind == "process" or not self._given().keys().isdisjoint(STEP_FIELDS)

    def step_reading(self, known: ProcessRewardName | None = None) -> StepReading | None:
        """Return how a reward of the kind "process" is read; see `pluralbench_local.step_rewards.step_reading`."""
        return step_reading(self._given(), known)

    def reading(self) -> TokenReward:
        """Return how a reward of the kind "token" is read."""
        return token_reward(self._given())

    def rule(self) -> str | None:
        """Return how several logits make a reward: `label`, or that of `token_score`."""
        return TOKEN_LABELS[self.reading().score] if self.kind == "token" else self.label

    def _given(self) -> dict[str, Any]:
        return {name: value for name, value in self if value is not None}

    def record(self) -> ModelRecord:
        """Return the record of the model before it is loaded: its digest or commit, and its settings."""
        template = self.template()
        trained, adapter = self.personal(), self.adapter()
        recorded = {"date"} if trained is not None else {"read", "date", "tokenizer", *TOKEN_FIELDS, *STEP_FIELDS}
        settings = {name: value for name, value in self._given().items() if name in recorded}
        if self.tokenizer is not None:
            known = {
                "tokenizer_digest": model_digest(self.tokenizer),
                "tokenizer_commit": model_commit(self.tokenizer),
            }
            settings |= {name: value for name, value in known.items() if value is not None}
        return ModelRecord(
            name=self.name,
            kind=self.kind or ("classifier" if trained is None else "personal"),
            digest=model_digest(self.name),
            commit=model_commit(self.name, self.revision) if adapter is None else adapter.commit,
            base=None if adapter is None else adapter.base,
            base_digest=None if adapter is None else model_digest(adapter.base),
            base_commit=None if adapter is None else model_commit(adapter.base, adapter.base_revision),
            reference=self.reference,
            reference_digest=None if self.reference is None else model_digest(self.reference),
            reference_commit=None if self.reference is None else model_commit(self.reference),
            label=self.label,
            chat_template_digest=None if template is None else digest(template),
            device=self.device,
            dtype=self.dtype,
            trust_remote_code=self.trust_remote_code,
            settings=settings if trained is None else settings | _settings(trained),
        )

    def personal(self) -> dict[str, Any] | None:
        """Return the contents of `personal.json`; None if the model is not a personalized reward model.

        Raises:
            LocalError: If the file cannot be read, or a field is set that personalized models do not have.
        """
        path = Path(self.name) / PERSONAL_FILE
        if not path.is_file():
            return None
        option = next((name for name in READING_FIELDS if getattr(self, name) is not None), None)
        if option is not None:
            raise LocalError(
                f"{self.name} is a personalized reward model, which has no {option}; leave out `{option}=...`."
            )
        try:
            record: dict[str, Any] = json.loads(read_small(path))
            _settings(record)
        except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
            raise LocalError(f"{path} cannot be read ({one_line(error)}); train the model again.") from None
        return record

    def adapter(self) -> Adapter | None:
        """Return the adapter of this name; None if it is a whole model, or cannot be reached.

        Raises:
            LocalError: If the adapter is not safe to load, or its base is not known; or if a whole model has a base.
        """
        adapter = find_adapter(self.name, self.revision, self.base)
        if adapter is None and self.base is not None:
            raise LocalError(f"{self.name} is not an adapter, so it has no base; leave out `base=...`.")
        return adapter

    def whole(self) -> Self:
        """Return the model whose configuration and weights are loaded first: the base of an adapter, else this one."""
        adapter = self.adapter()
        if adapter is None:
            return self
        return self.model_copy(update={"name": adapter.base, "revision": adapter.base_revision, "base": None})

    def other(self, name: str) -> Self:
        """Return another model or tokenizer that is loaded beside this one, by its name."""
        return self.model_copy(update={"name": name, "revision": None, "base": None})

    def check_merged(self) -> None:
        """Raise `LocalError` if this is an adapter, which is loaded only to score."""
        if self.adapter() is not None:
            raise LocalError(
                f"{self.name} is an adapter; merge it into its base (PEFT's `merge_and_unload`), save the result with "
                "its tokenizer, and give that."
            )

    def check_location(self, *others: str) -> None:
        """Check the folder before any library is imported; a name on the Hub is checked when it is loaded.

        One of the files `others` is enough in place of a model's configuration.

        Raises:
            LocalError: If it is not a model folder, or not safe to load.
        """
        folder = Path(self.name)
        if folder.is_dir():
            if not any((folder / name).exists() for name in ("config.json", ADAPTER_FILE, *others)):
                hint = "; copy it and the tokenizer from the base model" if any(folder.glob("*.pt")) else ""
                raise LocalError(f"{folder} is not a model folder: it has no config.json{hint}.")
            check_model_folder(folder, LocalError, adapter=self.adapter() is not None)
        elif folder.exists() or self.name.count("/") != 1 or self.name.startswith((".", "/", "~")):
            raise LocalError(f"{self.name} is not a model folder; give a folder, or ORG/NAME on the Hub.")
        elif self.revision is None and folder.parent.is_dir():
            raise LocalError(
                f"There is no {folder.name} in the folder {folder.parent}; give a model's folder, or "
                '`revision="main"` for a model on the Hub.'
            )

    def check_on_hub(self) -> None:
        """Check that the Hub, or its cache, has a model of this name, by its configuration files. No-op for a folder.

        Raises:
            LocalError: If there is no such model, or the Hub cannot be reached.
        """
        unreachable: tuple[type[Exception], ...] = (ValueError, *unreachable_errors())
        try:
            model_configs(self.name, LocalError, revision=self.revision)
        except unreachable as error:
            raise LocalError(f"The configuration of {self.name} cannot be loaded: {one_line(error, 300)}.") from None

    def template(self) -> str | None:
        """Return the chat template of the file or the token reward; None for the tokenizer's. Raises `LocalError`."""
        if self.chat_template is None:
            return self.reading().chat_template if self.kind == "token" else None
        try:
            return read_small(self.chat_template).decode()
        except (OSError, UnicodeDecodeError) as error:
            raise LocalError(f"The chat template {self.chat_template} cannot be read: {error}.") from None


def _settings(personal: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that a run records of a personalized reward model: its method, its inputs, and its backbone."""
    options, backbone = dict(personal["options"]), dict(personal["backbone"])
    method = {
        name: options.get(name) for name in ("method", "profile", "persona", "profile_size", "history_size", "seed")
    }
    source = {
        "backbone": public_location(backbone["name"]),
        "backbone_digest": backbone.get("digest"),
        "backbone_commit": backbone.get("commit"),
    }
    return {name: value for name, value in (method | source).items() if value is not None}


def _is_date(day: str) -> bool:
    try:
        return datetime.strptime(day, "%Y-%m-%d").strftime("%Y-%m-%d") == day
    except ValueError:
        return False


def described(model: str | Path | LocalModel, **fields: Any) -> LocalModel:
    """Return the `LocalModel` of a name or another `LocalModel`, with these fields changed. Raises `RecipeError`."""
    values = model.model_dump(exclude_unset=True) if isinstance(model, LocalModel) else {"name": str(model)}
    return check_recipe(LocalModel, values | fields, "of the model")

"""`LocalModel`: which reward model to load in this process, and how. Imports no torch."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from pluralbench_rewards import ModelRecord, model_commit, model_digest
from pluralbench_runs import (
    FrozenModel,
    PathText,
    check_model_folder,
    check_recipe,
    digest,
    one_line,
    public_location,
    read_small,
)
from pydantic import Field

from pluralbench_local.errors import LocalError

Kind = Literal["classifier", "implicit"]
PERSONAL_FILE, TRAINING_FILE = "personal.json", "training.json"
Dtype = Literal["auto", "float32", "bfloat16", "float16"]


class LocalModel(FrozenModel):
    """A reward model in this process.

    A folder with a personalized reward model (`personal.json`) is recognized; `device`, `dtype` and the like then
    apply to its backbone.

    Attributes:
        loader: Function that loads it, as "module:function".
    """

    loader: ClassVar[str] = "pluralbench_local.loading:load_to_score"

    name: PathText = Field(description="A folder, ORG/NAME on the Hub, or local (the small embedded model).")
    kind: Kind = Field(
        "classifier",
        description="classifier: a sequence classifier; implicit: log-probability of the response under a language "
        "model, minus that under --reference.",
    )
    reference: PathText | None = Field(None, description="implicit: the model that training started from.")
    label: str | None = Field(
        None, description="Reward of a model with several logits: logit:K, or softmax:K for its probability."
    )
    revision: str | None = Field(None, description="Revision of the model on the Hub.")
    chat_template: Path | None = Field(None, description="Jinja file to use instead of the tokenizer's chat template.")
    device: str = Field(
        "auto", description="auto, cpu, cuda, cuda:1, spread over all GPUs, or all: scored by a process on each GPU."
    )
    dtype: Dtype = Field("auto", description="Dtype of the weights; auto: as saved.")
    trust_remote_code: bool = Field(
        default=False, description="Run Python code that comes with a model, with your permissions."
    )

    def record(self) -> ModelRecord:
        """Return the record of the model before it is loaded: its digest or commit, and its settings."""
        template = self.template()
        trained = self.personal()
        return ModelRecord(
            name=self.name,
            kind=self.kind if trained is None else "personal",
            digest=model_digest(self.name),
            commit=model_commit(self.name, self.revision),
            reference=self.reference,
            reference_digest=None if self.reference is None else model_digest(self.reference),
            reference_commit=None if self.reference is None else model_commit(self.reference),
            label=self.label,
            chat_template_digest=None if template is None else digest(template),
            device=self.device,
            dtype=self.dtype,
            trust_remote_code=self.trust_remote_code,
            settings={} if trained is None else _settings(trained),
        )

    def personal(self) -> dict[str, Any] | None:
        """Return the contents of `personal.json`; None if the model is not a personalized reward model.

        Raises:
            LocalError: If the file cannot be read, or a field is set that personalized models do not have.
        """
        path = Path(self.name) / PERSONAL_FILE
        if not path.is_file():
            return None
        for option, value in (
            ("kind", self.kind != "classifier"),
            ("reference", self.reference),
            ("label", self.label),
        ):
            if value:
                raise LocalError(
                    f"{self.name} is a personalized reward model, which has no {option}; leave out `{option}=...`."
                )
        try:
            record: dict[str, Any] = json.loads(read_small(path))
            _settings(record)
        except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
            raise LocalError(f"{path} cannot be read ({one_line(error)}); train the model again.") from None
        return record

    def check_location(self) -> None:
        """Check the folder before any library is imported; a name on the Hub is checked when it is loaded.

        Raises:
            LocalError: If it is not a model folder, or not safe to load.
        """
        folder = Path(self.name)
        if folder.is_dir():
            if not (folder / "config.json").exists():
                raise LocalError(f"{folder} is not a model folder: it has no config.json.")
            check_model_folder(folder, LocalError)
        elif folder.exists() or self.name.count("/") != 1 or self.name.startswith((".", "/", "~")):
            raise LocalError(f"{self.name} is not a model folder; give a folder, or ORG/NAME on the Hub.")

    def template(self) -> str | None:
        """Read the file of the chat template; None if there is none. Raises `LocalError`."""
        if self.chat_template is None:
            return None
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


def described(model: str | Path | LocalModel, **fields: Any) -> LocalModel:
    """Return the `LocalModel` of a name or another `LocalModel`, with these fields changed. Raises `RecipeError`."""
    values = model.model_dump(exclude_unset=True) if isinstance(model, LocalModel) else {"name": str(model)}
    return check_recipe(LocalModel, values | fields, "of the model")

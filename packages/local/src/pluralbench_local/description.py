"""`LocalModel`: a reward model in this process, described before it is loaded. Nothing here needs torch."""

from pathlib import Path
from typing import Any, ClassVar, Literal

from pluralbench_rewards import ModelRecord, model_commit, model_digest
from pluralbench_runs import Table, check_recipe, digest
from pydantic import Field

from pluralbench_local.errors import ModelError

Kind = Literal["classifier", "implicit"]
Dtype = Literal["auto", "float32", "bfloat16", "float16"]


class LocalModel(Table):
    """A reward model that runs in this process.

    name: a folder, or ORG/NAME on the Hub. kind: "classifier" is a sequence classifier (or an entry of `SPECIAL`),
    "implicit" the log-probability of the response under a language model, less that under its reference.
    """

    loader: ClassVar[str] = "pluralbench_local.loading:load_to_score"

    name: str
    kind: Kind = Field("classifier", description="implicit: log-probability of the response under a language model.")
    reference: str | None = Field(None, description="The model that an implicit one was trained from.")
    label: str | None = Field(
        None, description="Which of several logits is the reward: logit:K, or softmax:K for its probability."
    )
    revision: str | None = Field(None, description="Of the model on the Hub.")
    chat_template: Path | None = Field(None, description="A Jinja file instead of the tokenizer's template.")
    device: str = Field("auto", description="auto, cpu, cuda, cuda:1, or spread over all GPUs.")
    dtype: Dtype = Field("auto", description="Precision; auto is as it was saved.")
    trust_remote_code: bool = Field(
        default=False, description="Run Python code that comes with a model, with your rights."
    )

    def record(self) -> ModelRecord:
        """What is known of the model before it is loaded: content or commit, and how it is to be loaded."""
        template = self.template()
        return ModelRecord(
            name=self.name,
            kind=self.kind,
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
        )

    def template(self) -> str | None:
        """The text of the chat template's file. Raises `ModelError`."""
        if self.chat_template is None:
            return None
        try:
            return self.chat_template.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ModelError(f"The chat template {self.chat_template} cannot be read: {error}.") from None


def described(model: str | Path | LocalModel, **fields: Any) -> LocalModel:
    """The description of a model: of its name, or as given, with these fields of it. Raises `RecipeError`."""
    values = model.model_dump(exclude_unset=True) if isinstance(model, LocalModel) else {"name": str(model)}
    return check_recipe(LocalModel, values | fields, "of the model")

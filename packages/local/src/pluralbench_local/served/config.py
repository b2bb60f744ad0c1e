"""`ServedModel`: a reward model behind servers. Imports no torch."""

from typing import ClassVar

from pluralbench_rewards import ModelRecord
from pluralbench_rewards.served import ServerError
from pluralbench_rewards.served.serving import ServingConfig
from pluralbench_runs import FrozenModel

from pluralbench_local.config import LocalModel

NOT_SERVED = "`{}=...` is for models behind a server; give `server=...` too, or leave it out."


class ServedModel(FrozenModel):
    """A reward model behind servers. model: the same model here, whose tokenizer, chat template and rules are used.

    Its weights are read only to check the servers, on its `device`, where they are here and fit.
    """

    loader: ClassVar[str] = "pluralbench_local.served.scoring:load"

    model: LocalModel
    serving: ServingConfig

    def record(self) -> ModelRecord:
        """Return the record of the local model. Servers and engines are not part of it, so a run may change them."""
        record = self.model.record()
        return record.model_copy(update={"device": None, "settings": record.settings | {"served": True}})


def described(model: LocalModel, serving: ServingConfig) -> LocalModel | ServedModel:
    """Return the model behind the servers, or the local model if there are none.

    Raises:
        ServerError: If there are settings of servers but no server, a reference without a server or the reverse, or the
            model is personalized.
    """
    if not serving.server:
        fields = ServingConfig.model_fields.items()
        changed = next((name for name, info in fields if getattr(serving, name) != info.default), None)
        if changed is not None:
            raise ServerError(NOT_SERVED.format(changed))
        return model
    if model.personal() is not None:
        raise ServerError(
            f"{model.name} is a personalized reward model, which no engine serves; leave out `server=...`."
        )
    if (model.reference is None) != (not serving.reference_server):
        raise ServerError(
            "A reference needs its own server; give `reference=...` (the model) and `reference_server=...` (its "
            "address) together."
        )
    return ServedModel(model=model, serving=serving)

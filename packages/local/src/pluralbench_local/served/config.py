"""`ServedModel`: a reward model behind servers, described before any of them is asked. Nothing here needs torch."""

from typing import ClassVar

from pluralbench_rewards import ModelRecord
from pluralbench_rewards.served import ServerError
from pluralbench_rewards.served.serving import ServingConfig
from pluralbench_runs import FrozenModel

from pluralbench_local.config import LocalModel

NOT_SERVED = "`{}` belongs to a model behind a server; give `server` too, or leave it out."


class ServedModel(FrozenModel):
    """A reward model behind servers. model: the same model here, whose tokenizer, chat template and rules are used.

    Its weights are read only to check the servers, on its `device`, where they are here and fit.
    """

    loader: ClassVar[str] = "pluralbench_local.served.scoring:load"

    model: LocalModel
    serving: ServingConfig

    def record(self) -> ModelRecord:
        """What is known of the model here. Which servers hold it, and of which engine, does not bind a run."""
        known = self.model.record()
        return known.model_copy(update={"device": None, "settings": known.settings | {"served": True}})


def described(model: LocalModel, serving: ServingConfig) -> LocalModel | ServedModel:
    """The model behind the servers, or in this process where there is none.

    Raises `ServerError` for an option of servers without a server, a reference without one, and personalized models.
    """
    if not serving.server:
        fields = ServingConfig.model_fields.items()
        given = next((name for name, info in fields if getattr(serving, name) != info.default), None)
        if given is not None:
            raise ServerError(NOT_SERVED.format(given))
        return model
    if model.personal() is not None:
        raise ServerError(
            f"{model.name} holds a personalized reward model, which no engine serves; leave out `server`."
        )
    if (model.reference is None) != (not serving.reference_server):
        raise ServerError(
            "A reference needs a server of its own: give `reference` (whose model it is) and `reference_server` (who "
            "serves it) together."
        )
    return ServedModel(model=model, serving=serving)

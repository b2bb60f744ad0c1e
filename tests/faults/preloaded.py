"""What a child would import first of all: every module of the project, and what its functions import when called."""

import contextlib
import gc
from importlib import import_module
from pkgutil import walk_packages

OURS = """
    build_chinese build_multilingual build_persona_judge build_personalized pluralbench pluralbench_calls
    pluralbench_local pluralbench_measures pluralbench_policies pluralbench_release pluralbench_rewards
    pluralbench_runs pluralbench_schemas pluralbench_studies pluralbench_tables
"""
FOREIGN = """
    _pytest accelerate anyio._backends._asyncio bm25s encodings.idna google.cloud.translate_v3 grpc
    hanzidentifier huggingface_hub markdownify matplotlib.backends.backend_agg matplotlib.backends.backend_svg
    matplotlib.figure matplotlib.style networkx openai.lib.streaming.chat openai.resources.chat.completions
    openai.types.chat pandera.backends.polars.builtin_checks pandera.backends.polars.register pandera.polars py3langid
    pyarrow.parquet rapidfuzz.fuzz sacremoses scipy.cluster.hierarchy scipy.integrate scipy.optimize scipy.spatial
    scipy.stats sentencex snowballstemmer subjects torch._dynamo transformers.models.auto.modeling_auto
    transformers.models.llama.modeling_llama
"""

gc.disable()  # what is imported stays: to look through it for garbage was a fourth of the time
for name in OURS.split():
    with contextlib.suppress(
        ImportError
    ):  # a member that needs an extra, or that this state of the project has not yet
        for module in walk_packages(import_module(name).__path__, f"{name}."):
            with contextlib.suppress(ImportError):
                if module.name != "pluralbench.evaluation.inspect_tasks":  # which no command imports, for a second
                    import_module(module.name)
for name in FOREIGN.split():
    with contextlib.suppress(ImportError):
        import_module(name)
with contextlib.suppress(ImportError):
    import_module("build_multilingual.language_id").identify([""])  # unpacks its model for a second
with contextlib.suppress(ImportError, AttributeError):
    # The names of weights in checkpoints: a thousand expressions, compiled with the first model of a process.
    import_module("transformers.conversion_mapping").get_checkpoint_conversion_mapping("llama")

gc.freeze()  # it stays in memory that all children share: no collection writes to it
gc.enable()

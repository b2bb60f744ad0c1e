"""What every way to a model refuses before a library reads it: code of the Hub, pickles that run, other commits."""

import asyncio
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from build_multilingual.recipe import ConnectionTable, TranslatorTable
from build_multilingual.translators import translator
from live_hub import Fault, Hub
from pluralbench_calls.model_checks import check_model
from pluralbench_calls.retrieval import retriever
from pluralbench_local import LocalError
from pluralbench_rewards import model_commit
from pluralbench_runs import UserError


async def translate(name: str) -> None:
    async with translator(TranslatorTable(name="nllb", model=name), ConnectionTable()):
        pass


def local(name: str, revision: str | None = None) -> dict[str, Callable[[], Any]]:
    """The ways in which `pluralbench_local` loads a model of this name."""
    from pluralbench_local import LocalModel, load
    from pluralbench_local.models import load_tokenizer
    from pluralbench_local.personal.backbones import load_encoder
    from pluralbench_local.token_heads import load_language_model
    from pluralbench_local.weights import ModelFiles
    from pluralbench_rewards import ScoringConfig

    model = LocalModel(name=name, revision=revision, device="cpu")
    return {
        "classifier": lambda: load(model),
        "language model": lambda: load_language_model(ModelFiles(model)),
        "tokenizer": lambda: load_tokenizer(model),
        "encoder": lambda: load_encoder(model, ScoringConfig()),
    }


OTHERS: dict[str, Callable[[str], Any]] = {
    "contriever": lambda name: retriever(f"contriever:{name}")._scorer,
    "sentence-transformers": lambda name: retriever(f"sentence-transformers:{name}")._scorer,
    "nllb": lambda name: asyncio.run(translate(name)),
}
KERNEL = {"attn_implementation": "acme/kernel"}
BAD: dict[str, tuple[str, dict[str, Any], str]] = {
    "kernel": ("config.json", KERNEL, "names code on the Hub (`attn_implementation`: 'acme/kernel'), which would run"),
    "kernel of a module": ("0_Router/query_0/config.json", {"text_config": KERNEL}, "names code on the Hub"),
    "kernel as argument": ("sentence_bert_config.json", {"model_args": KERNEL}, "names code on the Hub"),
    "any kernel": ("sentence_bert_config.json", {"model_kwargs": {"use_kernels": True}}, "sets `use_kernels`, with"),
    "pickle": ("sentence_bert_config.json", {"model_args": {"weights_only": False}}, "sets `weights_only`, with which"),
    "adapter": ("adapter_config.json", {"base_model_name_or_path": "acme/other"}, "belongs to an adapter, which may"),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """A small model that all take in, and the list of modules of a sentence encoder."""
    from reward_models import save_classifier

    folder = Path(save_classifier(tmp_path_factory.mktemp("good") / "model"))
    return {path.name: path.read_bytes() for path in folder.iterdir()} | {"modules.json": b"[]"}


@pytest.mark.parametrize("bad", BAD)
def test_a_model_that_could_run_code_is_loaded_in_no_way(
    bad: str, files: dict[str, bytes], hub: Hub, tmp_path: Path
) -> None:
    file, values, said = BAD[bad]
    content = json.loads(files.get(file, b"{}")) | values
    changed = files | {file: json.dumps(content).encode()}
    for path, text in changed.items():
        (tmp_path / "model" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "model" / path).write_bytes(text)
    repository = hub.create(f"org/{bad.replace(' ', '-')}", "models")
    repository.commit(changed)
    for name in (str(tmp_path / "model"), f"org/{bad.replace(' ', '-')}"):
        others = {way: partial(use, name) for way, use in OTHERS.items()}
        for way, use in (local(name) | others).items():
            with pytest.raises(UserError) as caught:
                use()
            assert f"{name}/{file} {said}" in str(caught.value), way


@pytest.mark.parametrize("length", [40, 10])
def test_a_model_of_another_commit_than_asked_for_is_loaded_in_no_way(
    length: int, files: dict[str, bytes], hub: Hub
) -> None:
    repository = hub.create(f"org/behind-{length}", "models")
    commit = repository.commit(files)
    came = repository.commit({"more.txt": b"more"})
    hub.serves = "main"
    name = f"org/behind-{length}"
    for use in local(name, commit[:length]).values():
        with pytest.raises(LocalError, match=f"commit {came[:12]} of {name}, not {commit[:12][:length]} "):
            use()


def test_a_branch_or_tag_is_of_any_commit(files: dict[str, bytes], hub: Hub) -> None:
    repository = hub.create("org/tags", "models")
    commit = repository.commit(files)
    for tag in ("20261127", "deadbeef"):
        repository.tag(tag, commit, "A tag.")
    for revision in ("main", "20261127", "deadbeef", commit, commit[:10], None):
        check_model("org/tags", LocalError, revision=revision)


def test_a_hub_that_answers_without_a_model_is_an_error(hub: Hub) -> None:
    hub.faults = [Fault("GET", "/api/models/org/none", 200, says="", times=9)]
    with pytest.raises(LocalError, match="answer about org/none cannot be read"):
        local("org/none")["classifier"]()
    assert model_commit("org/none") is None

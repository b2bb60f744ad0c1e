"""Each model that the page names has the kind that the page says, by its options and a folder of its shape."""

import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from members import ROOT
from pluralbench_local import LocalModel
from pluralbench_local.model_kinds import CLASSIFIER, LANGUAGE_MODEL, PROCESS, TOKEN, ModelKind, kind_of
from pluralbench_local.value_heads import FAMILIES
from pluralbench_local.weights import ModelFiles
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

PAGE = ROOT / "docs/reference/models.md"
BODIES = ("InternLM2", "DebertaV2", "Gemma2", "Gemma", "Mistral", "Qwen3", "Qwen2", "Llama")
CONFIG_CODE = """
from transformers import LlamaConfig


class OwnConfig(LlamaConfig):
    model_type = "internlm2"
"""
CODE = {"AutoConfig": "own_code.OwnConfig"}
OTHERS: dict[str, ModelKind] = {
    "implicit reward": LANGUAGE_MODEL,
    "token reward": TOKEN,
    "process reward": PROCESS,
}
LOADED_BY: dict[str, Any] = {
    "sequence classifier": AutoModelForSequenceClassification,
    "implicit reward": AutoModelForCausalLM,
    "token reward": AutoModelForCausalLM,
    "pair preference": AutoModelForCausalLM,
}
COMPARING = {
    "PairRM": "load_pairrm",
    "pair preference": "load_pair_preference",
    "general preference model": "load_general_preference",
}


def rows() -> list[list[str]]:
    """Cells of the table of models: names, kind, options, shape, what the row rests on."""
    section = PAGE.read_text(encoding="utf-8").partition("## Models by name\n")[2].partition("\n## ")[0]
    table = section.partition("| model | kind |")[2]
    lines = [line for line in table.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]


def body_of(architecture: str) -> str:
    """The type of the body whose name an architecture has; that of Llama where it has none."""
    return next((body.lower().replace("v2", "-v2") for body in BODIES if architecture.startswith(body)), "llama")


def save_shape(folder: Path, shape: list[str], *, code: bool) -> None:
    """Write a folder of a shape: a configuration with its keys, and its tensors with a body's."""
    folder.mkdir()
    tensors = [name for name in shape if name.islower() and "." in name and not name.endswith(".json")]
    keys = dict(text.split(": ") for text in shape if ": " in text)
    saved = {name: torch.ones(1, 1) for name in tensors}
    if shape[0] == "adapter_config.json":
        base = ["LlamaForCausalLM", "lm_head.weight"]
        save_shape(folder / "base", base, code=False)
        adapter = {"peft_type": "LORA", "task_type": "SEQ_CLS", "base_model_name_or_path": str(folder / "base")}
        (folder / shape[0]).write_text(json.dumps(adapter), encoding="utf-8")
        beside = tensors[0].startswith("v_head")
        save_file({} if beside else saved, folder / "adapter_model.safetensors")
        if beside:
            save_file(saved, folder / "value_head.safetensors")
        return
    architecture = shape[0]
    config = {"architectures": [architecture], "model_type": body_of(architecture), "num_labels": 1}
    config |= {name: int(value) if value.isdigit() else value for name, value in keys.items()}
    if code:
        config["auto_map"] = CODE
        (folder / "own_code.py").write_text(CONFIG_CODE, encoding="utf-8")
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    save_file(saved | {"model.layers.0.mlp.up_proj.weight": torch.ones(1, 1)}, folder / "model.safetensors")


def options_of(words: str) -> dict[str, Any]:
    """Fields of `LocalModel` by options of the command."""
    given = iter(shlex.split(words.removeprefix("`").partition("`")[0]))
    fields: dict[str, Any] = {}
    for option in given:
        name = option.removeprefix("--").replace("-", "_")
        fields[name] = True if name == "trust_remote_code" else next(given)
    return fields


def has_kind(kind: ModelKind, said: str, fields: dict[str, Any]) -> bool:
    """Whether a kind is the one that the page says."""
    if said.startswith("value head, "):
        return kind.family in FAMILIES and said.removeprefix("value head, ") in kind.family.name
    if said == "InternLM2":
        return kind.append == "reward_token_id"
    if said in {"sequence classifier", "own code"}:
        return kind is CLASSIFIER and fields.get("trust_remote_code", False) == (said == "own code")
    if said in COMPARING:
        return kind.loader.endswith(f":{COMPARING[said]}")
    return kind is OTHERS[said]


def test_every_named_model_has_the_kind_that_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.setattr(sys, "path", [*sys.path])
    wrong = {}
    for number, (names, said, words, cell, _) in enumerate(rows()):
        folder, shape, fields = tmp_path / str(number), re.findall("`([^`]+)`", cell), options_of(words)
        save_shape(folder, shape, code="trust_remote_code" in fields)
        files = ModelFiles(LocalModel(name=str(folder), **fields))
        kind = kind_of(files)
        if not has_kind(kind, said, fields):
            wrong[names] = kind.name
        elif said in LOADED_BY and shape[0] != "adapter_config.json":
            network = LOADED_BY[said]._model_mapping[type(files.config)].__name__
            if network != shape[0]:
                wrong[names] = network
    assert wrong == {}
    assert len(rows()) >= 40


def test_every_row_says_what_it_rests_on() -> None:
    basis = r"(class|other class|formula|transformers|PEFT); (files|read|memory)"
    assert [names for names, *_, said in rows() if not re.fullmatch(basis, said)] == []

"""Adapters of PEFT: merged, scored as PEFT's own unmerged forward pass scores, and each refused one."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from live_hub import live_hub, point_clients
from pluralbench_local import LocalError, LocalModel, load, score
from reward_models import (
    ENDS_WITH_EOS,
    EOS,
    Folders,
    conversation_ids,
    differences,
    load_classifier,
    load_implicit,
    make_groups,
    make_tokenizer,
    save_adapter,
)
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification
from value_heads import save_value_head

peft: Any = pytest.importorskip("peft", reason="needs the extra `lora`")

# peft 0.21 uses a name that transformers 5.23 deprecates; resizing adds random rows.
pytestmark = [pytest.mark.filterwarnings(f"ignore::{kind}") for kind in ("FutureWarning", "UserWarning")]

GROUPS = make_groups(3, number=3, longest=12)
BACKBONE = ["q_proj", "v_proj", "up_proj"]
Adapters = Callable[..., Path]


@pytest.fixture(scope="module")
def adapters(tmp_path_factory: pytest.TempPathFactory, language_models: Folders) -> Adapters:
    """`adapters(task_type="SEQ_CLS")`: a new adapter of a language model."""

    def make(base: str | None = None, **settings: Any) -> Path:
        return save_adapter(tmp_path_factory.mktemp("adapter") / "it", base or language_models(), **settings)

    return make


def unmerged(
    folder: Path, dtype: str, labels: int = 1, *, tokenizer: Any = None, pad: int | None = None
) -> list[list[list[float]]]:
    """Logits by PEFT's forward pass with the adapter beside the weights, one conversation at a time."""
    config = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))
    base = config["base_model_name_or_path"]
    auto: Any = AutoModelForSequenceClassification
    plain = auto.from_pretrained(base, num_labels=labels, dtype=getattr(torch, dtype), ignore_mismatched_sizes=True)
    model = peft.PeftModel.from_pretrained(plain, str(folder)).eval()
    tokenizer = tokenizer or make_tokenizer()
    plain.config.pad_token_id = pad or plain.config.pad_token_id
    with torch.inference_mode():
        return [
            [
                model(input_ids=torch.tensor([conversation_ids(tokenizer, group, response)])).logits[0].tolist()
                for response in group.responses
            ]
            for group in GROUPS
        ]


def test_the_padding_token_of_training_is_that_of_the_adapters_tokenizer(adapters: Adapters) -> None:
    folder, tokenizer = adapters(task_type="SEQ_CLS"), make_tokenizer(pad=EOS, template=ENDS_WITH_EOS)
    tokenizer.save_pretrained(folder)
    expected = [[logits[0] for logits in group] for group in unmerged(folder, "float32", tokenizer=tokenizer, pad=1)]
    scored = score(load_classifier(str(folder)), GROUPS)
    assert max(differences(scored.scores, expected)) < 1e-4
    assert scored.inputs_ending_in_padding == sum(len(group.responses) for group in GROUPS)


VARIANTS: dict[str, dict[str, Any]] = {
    "all linear": {"task_type": "SEQ_CLS"},
    "no task": {"modules_to_save": ["score"], "target_modules": BACKBONE},
    "rank stabilized": {"task_type": "SEQ_CLS", "use_rslora": True, "alpha_pattern": {"q_proj": 32}},
    "dora": {"task_type": "SEQ_CLS", "use_dora": True, "target_modules": BACKBONE},
    "tokens": {"task_type": "SEQ_CLS", "trainable_token_indices": [5, 6, 7], "target_modules": BACKBONE},
}


@pytest.mark.parametrize(
    ("variant", "dtype"),
    [*((variant, "float32") for variant in VARIANTS), ("no task", "bfloat16"), ("dora", "bfloat16")],
)
def test_scores_are_those_of_the_unmerged_forward_pass(adapters: Adapters, variant: str, dtype: str) -> None:
    folder = adapters(**VARIANTS[variant])
    expected = [[logits[0] for logits in group] for group in unmerged(folder, dtype)]
    spread = max(abs(value) for group in expected for value in group)
    limit = spread * (1e-4 if dtype == "float32" else 0.08)  # merging rounds the sum of both weights
    model = load_classifier(str(folder), dtype=dtype)
    for mode in ("fast", "exact"):
        for ours, theirs in zip(score(model, GROUPS, mode=mode).scores, expected, strict=True):
            assert ours == pytest.approx(theirs, abs=limit)
    assert model.network.unpackable == ""
    assert model.record().architecture == "LlamaForSequenceClassification"


def test_the_head_of_the_adapter_says_how_many_labels_there_are(adapters: Adapters) -> None:
    folder = adapters(labels=3, task_type="SEQ_CLS")
    with pytest.raises(LocalError, match="has 3 logits"):
        load(str(folder), device="cpu")
    expected = [[logits[1] for logits in group] for group in unmerged(folder, "float32", labels=3)]
    ours = score(load_classifier(str(folder), label="logit:1"), GROUPS).scores
    assert [value for group in ours for value in group] == pytest.approx(
        [value for group in expected for value in group], abs=1e-3
    )


def test_a_head_that_only_the_base_has_is_used(adapters: Adapters, classifiers: Folders) -> None:
    folder = adapters(base=classifiers(), target_modules=BACKBONE)
    assert "score" not in str(load_file(folder / "adapter_model.safetensors").keys())
    expected = [[logits[0] for logits in group] for group in unmerged(folder, "float32")]
    for ours, theirs in zip(score(load_classifier(str(folder)), GROUPS).scores, expected, strict=True):
        assert ours == pytest.approx(theirs, abs=1e-3)


def test_a_language_model_adapter_against_its_base(adapters: Adapters, language_models: Folders) -> None:
    folder = adapters(auto=AutoModelForCausalLM, task_type="CAUSAL_LM", target_modules=BACKBONE)
    auto: Any = AutoModelForCausalLM
    merged = peft.PeftModel.from_pretrained(auto.from_pretrained(language_models()), str(folder)).merge_and_unload()
    whole = folder.parent / "merged"
    merged.save_pretrained(whole)
    make_tokenizer().save_pretrained(whole)
    ours = score(load_implicit(str(folder), language_models()), GROUPS).scores
    assert ours == score(load_implicit(str(whole), language_models()), GROUPS).scores
    assert any(abs(value) > 0.1 for group in ours for value in group)


def test_added_tokens_enlarge_the_base(adapters: Adapters, language_models: Folders, tmp_path: Path) -> None:
    auto: Any = AutoModelForSequenceClassification
    base = auto.from_pretrained(language_models(), num_labels=1)
    rows = base.config.vocab_size + 3
    base.resize_token_embeddings(rows)
    whole = peft.get_peft_model(base, peft.LoraConfig(task_type="SEQ_CLS", target_modules=BACKBONE))
    whole.save_pretrained(tmp_path / "it", save_embedding_layers=True)
    model = load_classifier(str(tmp_path / "it"))
    loaded: Any = model.network.model
    assert loaded.get_input_embeddings().weight.equal(base.get_input_embeddings().weight)


def test_tokenizer_and_template_are_the_adapters_first(adapters: Adapters, language_models: Folders) -> None:
    folder = adapters(task_type="SEQ_CLS")
    base = load_classifier(str(folder)).template.tokenizer
    assert base.chat_template == make_tokenizer().chat_template
    (folder / "chat_template.jinja").write_text("{{ messages }}", encoding="utf-8")
    assert load_classifier(str(folder)).template.tokenizer.chat_template == "{{ messages }}"
    (folder / "chat_template.jinja").unlink()
    tokenizer = make_tokenizer(template=None)
    tokenizer.add_tokens(["<new>"])
    tokenizer.save_pretrained(folder)
    saved = load_classifier(str(folder)).template.tokenizer
    assert (len(saved), saved.chat_template) == (len(base) + 1, base.chat_template)


def test_the_record_has_both_digests(adapters: Adapters, language_models: Folders) -> None:
    folder = adapters(task_type="SEQ_CLS")
    record = LocalModel(name=str(folder)).record()
    assert record.base == language_models()
    assert record.digest is not None
    assert record.base_digest == LocalModel(name=language_models()).record().digest
    loaded = load_classifier(str(folder)).record()
    assert (loaded.digest, loaded.base_digest) == (record.digest, record.base_digest)


def edit(folder: Path, **settings: Any) -> None:
    path = folder / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | settings), encoding="utf-8")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"base_model_name_or_path": None}, r"names no base model; give its folder, .* as `base=\.\.\.`\.$"),
        ({"base_model_name_or_path": "../gone"}, r"of the base model '\.\./gone', which is not a folder here; give"),
        ({"peft_type": "NEWER"}, "has the type 'NEWER', which the installed peft does not know"),
        ({"task_type": "TOKEN_CLS"}, "is for the task 'TOKEN_CLS', which gives no reward"),
        ({"peft_type": ["LORA"]}, r"has the type \['LORA'\], which the installed peft does not know"),
        ({"task_type": {"a": 1}}, "is for the task {'a': 1}, which gives no reward"),
        (
            {"target_modules": "(([a-z_.0-9]*)*)*x"},
            r"sets the expression .* which may be matched without end; list the",
        ),
        ({"exclude_modules": "(a|a)+x"}, "which may be matched without end"),
        ({"rank_pattern": {".*" * 9 + "x": 8}}, "which may be matched without end"),
        ({"init_lora_weights": "pissa_niter_100000000"}, "sets `init_lora_weights` to .* more rounds than 1,000"),
        ({"layer_replication": [[0, 2]] * 10_000}, "sets `layer_replication` to more than 1,000 layers"),
        ({"layer_replication": [5]}, "sets `layer_replication` to more than 1,000 layers, or to what is none"),
        ({"use_newer_lora": True}, "sets `use_newer_lora`, which the installed peft does not support"),
        ({"target_modules": ["nowhere"]}, "cannot be merged into its base"),
        ({"r": 8}, "cannot be merged into its base .*size mismatch"),
        ({"use_dora": True}, "magnitude_vector.* is missing; give the base that it was trained on"),
        ({"target_modules": ["q_proj"]}, "is not part of it; give the base"),
    ],
)
def test_an_adapter_that_does_not_fit(adapters: Adapters, settings: dict[str, Any], message: str) -> None:
    folder = adapters(task_type="SEQ_CLS", target_modules=BACKBONE)
    edit(folder, **settings)
    with pytest.raises(LocalError, match=message):
        load(str(folder), device="cpu")


@pytest.mark.parametrize("shape", [(), (0, 64), (1,)])
def test_a_head_of_an_odd_shape_is_refused(adapters: Adapters, shape: tuple[int, ...]) -> None:
    folder = adapters(task_type="SEQ_CLS", target_modules=BACKBONE)
    file = folder / "adapter_model.safetensors"
    save_file(load_file(file) | {"base_model.model.score.weight": torch.ones(shape)}, file)
    with pytest.raises(LocalError, match=r"has the shape \(.*\), not a row of numbers for each label"):
        load(str(folder), device="cpu")


def test_another_base(adapters: Adapters, language_models: Folders) -> None:
    folder = adapters(task_type="SEQ_CLS")
    whole = load_classifier(str(folder))
    edit(folder, base_model_name_or_path="/moved")
    moved = load_classifier(str(folder), base=language_models())
    assert score(moved, GROUPS).scores == score(whole, GROUPS).scores
    with pytest.raises(LocalError, match=r"is not an adapter, so it has no base; leave out `base=\.\.\.`"):
        load(language_models(), base=language_models(), device="cpu")
    with pytest.raises(LocalError, match="belongs to an adapter"):
        load(str(adapters(task_type="SEQ_CLS")), base=str(folder), device="cpu")


def test_a_head_that_was_not_saved(adapters: Adapters) -> None:
    folder = adapters(auto=AutoModelForCausalLM, task_type="CAUSAL_LM", target_modules=BACKBONE)
    with pytest.raises(LocalError, match=r"has no weights for score\.weight, nor has its base .*TRL's"):
        load(str(folder), device="cpu")


def test_weights_of_a_whole_model_beside_the_adapter(adapters: Adapters, classifiers: Folders, tmp_path: Path) -> None:
    folder = tmp_path / "both"
    shutil.copytree(adapters(task_type="SEQ_CLS"), folder)
    shutil.copy(Path(classifiers()) / "config.json", folder)
    load_classifier(str(folder))
    save_file({}, folder / "model.safetensors")
    with pytest.raises(LocalError, match="belongs to an adapter"):
        load(str(folder), device="cpu")


@pytest.mark.heavy
@pytest.mark.parametrize("config", ["with", "without"])
def test_an_adapter_on_the_hub_with_its_base_at_a_revision(
    adapters: Adapters, language_models: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: str
) -> None:
    folder, whole = adapters(task_type="SEQ_CLS"), Path(language_models())
    expected = score(load_classifier(str(folder)), GROUPS).scores
    name, base_name = f"org/adapter-{config}-config", f"org/base-{config}-config"
    edit(folder, base_model_name_or_path=base_name, revision="trained-on")
    if config == "with":
        shutil.copy(whole / "config.json", folder)
    with live_hub() as hub:
        point_clients(monkeypatch, hub, tmp_path / "home")
        base, adapter = hub.create(base_name, "models"), hub.create(name, "models")
        trained_on = base.commit(contents(whole))
        base.tag("trained-on", trained_on, "The base of the adapter")
        base.commit(contents(Path(language_models(seed=1))))
        commit = adapter.commit(contents(folder))
        online = load_classifier(name)
        assert score(online, GROUPS).scores == expected
        record = online.record()
        assert (record.commit, record.base, record.base_commit) == (commit, base_name, trained_on)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        asked = len(hub.asked)
        offline = load_classifier(name)
        assert score(offline, GROUPS).scores == expected
        assert offline.record() == record
        assert len(hub.asked) == asked


def test_a_whole_model_on_the_hub_that_holds_an_adapter_too(
    classifiers: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with live_hub() as hub:
        point_clients(monkeypatch, hub, tmp_path / "home")
        named = json.dumps({"base_model_name_or_path": "org/base"}).encode()
        hub.create("org/both", "models").commit(contents(Path(classifiers())) | {"adapter_config.json": named})
        with pytest.raises(LocalError, match=r"org/both/adapter_config\.json belongs to an adapter"):
            load("org/both", device="cpu")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("file", ["value_head.safetensors", "value_head.bin", "pytorch_model.bin"])
def test_a_value_head_beside_an_adapter(adapters: Adapters, language_models: Folders, file: str) -> None:
    """As LLaMA-Factory (its `callbacks.py`) and TRL (its `modeling_base.py`) save reward models."""
    folder = adapters(auto=AutoModelForCausalLM, task_type="CAUSAL_LM", target_modules=BACKBONE)
    head = {"v_head.summary.weight": torch.randn(1, 64), "v_head.summary.bias": torch.tensor([0.5])}
    if file.endswith(".bin"):
        torch.save(head, folder / file)
    else:
        save_file(head, folder / file)
    auto: Any = AutoModelForCausalLM
    plain = peft.PeftModel.from_pretrained(auto.from_pretrained(language_models()), str(folder)).eval()
    tokenizer = make_tokenizer()
    model = load_classifier(str(folder))
    for mode in ("fast", "exact"):
        for group, ours in zip(GROUPS, score(model, GROUPS, mode=mode).scores, strict=True):
            for response, value in zip(group.responses, ours, strict=True):
                ids = torch.tensor([conversation_ids(tokenizer, group, response)])
                states = plain(input_ids=ids, output_hidden_states=True).hidden_states[-1]
                expected = states[0, -1] @ head["v_head.summary.weight"][0] + 0.5
                assert value == pytest.approx(float(expected), abs=1e-3)


@pytest.mark.parametrize("family", ["trl", "openrlhf"])
def test_a_base_with_a_value_head(adapters: Adapters, tmp_path: Path, family: str) -> None:
    base = save_value_head(tmp_path / "base", family)
    folder = adapters(auto=AutoModelForCausalLM, task_type="CAUSAL_LM", target_modules=BACKBONE)
    edit(folder, base_model_name_or_path=base)
    with pytest.raises(
        LocalError, match=r"has a value head among its weights \(\w+.*weight\), and adapters are merged"
    ):
        load(str(folder), device="cpu")

"""Value heads of many programs are read as these publish it, and what would be random or misread is refused."""

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from case_marks import heavy
from live_hub import Hub, live_hub, point_clients
from pluralbench_local import LocalError, LocalModel, load, load_backbone, score
from pluralbench_local.weights import ModelFiles
from pluralbench_rewards import Mode
from reward_models import (
    BOS,
    TEMPLATE,
    Folders,
    change_config,
    differences,
    load_classifier,
    make_groups,
    make_tokenizer,
    save_classifier,
    save_language_model,
    work_of,
)
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM
from value_heads import LAYERS, SAVED, head_of, ids_to_read, published_rewards, save_value_head

GROUPS = make_groups(1, number=2, longest=12)
NO_NEWLINE = TEMPLATE.replace(
    "{{ eos_token }}\n{% endfor %}", "{{ eos_token }}{% if not loop.last %}\n{% endif %}{% endfor %}"
)
NO_EOS = TEMPLATE.replace("{{ eos_token }}\n{% endfor %}", "\n{% endfor %}")
MODES: tuple[Mode, ...] = ("fast", "exact")
SMOKE = ("trl", "openrlhf", "athene")
OTHERS = sorted({*SAVED} - {*SMOKE})
WAYS = [
    ("float32", TEMPLATE, "right", 2, 2e-4),
    ("float32", NO_NEWLINE, "left", 7, 2e-4),
    ("bfloat16", NO_EOS, "right", 2, 0.15),
]


@pytest.fixture(scope="module")
def whole_body(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """The language model whose weights `save_value_head` saves, as the library loads it, and each once."""

    @cache
    def body(dtype: str = "float32", architecture: str = "llama") -> Any:
        folder = save_language_model(tmp_path_factory.mktemp("bodies") / "base", architecture, num_hidden_layers=LAYERS)
        auto: Any = AutoModelForCausalLM
        return auto.from_pretrained(folder, dtype=getattr(torch, dtype)).eval()

    return body


def config_of(folder: str) -> dict[str, Any]:
    config: dict[str, Any] = json.loads((Path(folder) / "config.json").read_text(encoding="utf-8"))
    return config


@pytest.mark.parametrize(
    ("family", "dtype", "template", "side", "pad", "close"),
    [
        *((family, *WAYS[0]) for family in SMOKE),
        *heavy(*((family, *way) for family in SMOKE for way in WAYS[1:])),
        # Each other head in two of the three ways.
        *heavy(*((family, *WAYS[(place + way) % 3]) for place, family in enumerate(OTHERS) for way in range(2))),
    ],
)
def test_a_value_head_is_read_as_its_program_reads_it(
    tmp_path: Path,
    whole_body: Callable[..., Any],
    family: str,
    dtype: str,
    template: str,
    side: str,
    pad: int,
    close: float,
) -> None:
    """The second computation: hidden states of the whole language model, padded, read and headed by formulas.

    TRL `modeling_value_head.py` (bias, `pretrained_model.`); LLaMA-Factory `valuehead.py`, `hf_engine.py`; GRM
    `grm_utils.py`; OpenRLHF `reward_dataset.py` (lines 128 to 155: eos), `model.py` (left padding, positions from the
    mask); DeepSpeed-Chat `reward_model.py` (before the first padding token after the prompt); Athene-RM-8B (its card:
    at the cls token, which is appended to the text); reward-bench's `starling.py`, `openbmb.py`, `beaver.py` (a cost is
    negated), `qrm.py`, `inform.py`.
    """
    tokenizer = make_tokenizer(template=template, cls_token=BOS)
    folder = save_value_head(tmp_path / "model", family, dtype=dtype, tokenizer=tokenizer)
    body, config = whole_body(dtype), config_of(folder)
    expected, alone = [], []
    for group in GROUPS:
        answers = [[*group.messages, {"role": "assistant", "content": response}] for response in group.responses]
        rows = [ids_to_read(family, tokenizer, config, messages) for messages in answers]
        options: dict[str, Any] = {"dtype": dtype, "side": side, "pad": pad}
        expected.append(published_rewards(family, body, config, rows, **options))
        alone.append([published_rewards(family, body, config, [ids], **options)[0] for ids in rows])
    size = max(abs(value) for row in expected for value in row)
    assert max(differences(expected, [[0.0] * len(row) for row in expected])) > 0.1
    model = load_classifier(folder)
    assert model.network.dtype == getattr(torch, dtype)
    for mode in MODES:
        scored = score(model, GROUPS, mode=mode)
        for others in (expected, alone):
            assert max(differences(scored.scores, others)) < close * max(size, 1)
        work = work_of(scored)
        assert (work.strategy, work.unpackable) == (mode, "")
    single = score(model, GROUPS, token_budget=1)  # batches as small as can be
    assert max(differences(single.scores, expected)) < close * max(size, 1)


@pytest.mark.parametrize(
    ("family", "changed", "said"),
    [
        (
            "beaver-cost",
            {"score_type": "price"},
            "config.json sets `score_type` to 'price'; give reward, cost or critic.",
        ),
        (
            "qrm-linear",
            {"num_quantiles": 4},
            "The head regression_layer has 5 rows, no multiple of `num_quantiles` (4) in config.json; correct it.",
        ),
    ],
)
def test_a_configuration_that_does_not_fit_the_head(
    tmp_path: Path, family: str, changed: dict[str, Any], said: str
) -> None:
    folder = save_value_head(tmp_path / "model", family)
    change_config(folder, **changed)
    with pytest.raises(LocalError) as failed:
        load(folder, device="cpu")
    assert str(failed.value) == said


def test_a_statistic_of_the_configuration_counts_where_the_weights_have_none(tmp_path: Path) -> None:
    """safe-rlhf `score_model/__init__.py`, `init_score_head`: it sets both, and loading overwrites them."""
    folder = save_value_head(tmp_path / "model", "align-anything")
    plain = score(load_classifier(folder), GROUPS).scores
    change_config(folder, do_normalize=True, mean=[0.5], var=[4.0])
    normalized = [[(value - 0.5) / (2 + 1e-8) for value in row] for row in plain]
    assert max(differences(score(load_classifier(folder), GROUPS).scores, normalized)) < 1e-6
    change_config(folder, mean=[0.5, 0.5])
    with pytest.raises(LocalError, match=r"^The normalizer has a `mean` of 2 numbers for 1 rewards; correct it\.$"):
        load(folder, device="cpu")


def test_a_body_with_a_value_head_gives_vectors(tmp_path: Path) -> None:
    folder = save_value_head(tmp_path / "model", "grm-mlp")
    assert load_backbone(folder).record.width == 64


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("family", "architecture"), [("trl", "gpt2"), ("starling-34b", "gpt2"), ("openrlhf", "gemma2"), ("trl", "bloom")]
)
def test_heads_on_other_bodies(tmp_path: Path, whole_body: Callable[..., Any], family: str, architecture: str) -> None:
    folder = save_value_head(tmp_path / "model", family, architecture)
    body, config = whole_body(architecture=architecture), config_of(folder)
    model = load_classifier(folder)
    expected = []
    for group in GROUPS:
        answers = [[*group.messages, {"role": "assistant", "content": response}] for response in group.responses]
        rows = [ids_to_read(family, model.template.tokenizer, config, messages) for messages in answers]
        expected.append(
            [published_rewards(family, body, config, [ids], dtype="float32", side="right", pad=2)[0] for ids in rows]
        )
    for mode in MODES:
        assert max(differences(score(model, GROUPS, mode=mode).scores, expected)) < 5e-4


@pytest.mark.parametrize(
    ("family", "settings"),
    [
        ("trl", {"head": "v_head.summary (TRL, LLaMA-Factory or GRM)", "reads": "last token"}),
        (
            "openrlhf",
            {
                "head": "score (OpenRLHF)",
                "reads": "eos, which ends each conversation",
                "normalization": "none (config.json has mean 0.5 and std 2.0)",
            },
        ),
        *heavy(
            (
                "beaver-cost",
                {
                    "head": "score_head (Beaver or align-anything)",
                    "reads": "last token",
                    "normalized": True,
                    "sign": "minus the cost",
                },
            )
        ),
    ],
)
def test_what_is_read_is_recorded_and_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], family: str, settings: dict[str, Any]
) -> None:
    folder = save_value_head(tmp_path / "model", family)
    record = load(folder, device="cpu").record()
    assert (record.kind, record.settings) == ("classifier", settings)
    assert f"{folder}: head {settings['head']}; reads {settings['reads']}" in capsys.readouterr().err
    parameters = sum(weight.numel() for weight in load_file(Path(folder) / "model.safetensors").values())
    saved = load_file(Path(folder) / "model.safetensors")
    unread = sum(weight.numel() for name, weight in saved.items() if name.startswith(("lm_head", "normalizer")))
    assert record.parameters == parameters - unread


@pytest.fixture
def trl(tmp_path: Path) -> Path:
    """A folder with a head of TRL."""
    return Path(save_value_head(tmp_path / "model", "trl"))


Change = Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda tensors: tensors | {"score.weight": torch.ones(1, 64)},
            r"HERE has two reward heads, v_head\.summary\.weight and score\.weight; remove one from its files of "
            r"weights\.",
        ),
        (
            lambda tensors: tensors | {"v_head.summary.weight": torch.ones(1, 32)},
            r"The head v_head\.summary of HERE reads 32 numbers, but its body has hidden states of 64; it belongs to "
            r"another model\.",
        ),
        (
            lambda tensors: tensors | {"v_head.summary.weight": torch.ones(64)},
            r"The layers of the head v_head\.summary of HERE have shapes that do not follow one another .*\.",
        ),
        (
            lambda tensors: tensors | {"v_head.summary.weight": torch.ones(0, 64)},
            r"The tensor v_head\.summary\.\w+ of HERE has the shape .* no reward is computed; save the head again\.",
        ),
        (
            lambda tensors: tensors | {"v_head.summary.weight": torch.ones(1, 64, dtype=torch.int64)},
            r"The tensor v_head\.summary\.weight of HERE has the shape \(1, 64\) and the type torch\.int64, .*",
        ),
        (
            lambda tensors: tensors | {"v_head.summary.bias": torch.ones(3)},
            r"The tensor v_head\.summary\.bias of HERE has the shape \(3,\) and the type torch\.float32, .*",
        ),
        (
            lambda tensors: {name: tensor for name, tensor in tensors.items() if not name.startswith("v_head")},
            r"HERE has no weights for score\.weight, so what it computes would be random; .*",
        ),
        (
            lambda tensors: {name: tensor for name, tensor in tensors.items() if "layers.1.mlp.down" not in name},
            r"HERE has no weights for layers\.1\.mlp\.down_proj\.weight, so what it computes would be random\.",
        ),
        (
            lambda tensors: (
                tensors | {"v_head.summary.weight": torch.ones(3, 64), "v_head.summary.bias": torch.ones(3)}
            ),
            r"The head of HERE has 3 logits; choose the reward .*",
        ),
    ],
)
def test_what_would_be_random_or_misread_is_refused(trl: Path, change: Change, said: str) -> None:
    file = trl / "model.safetensors"
    save_file(change(load_file(file)), file, metadata={"format": "pt"})
    with pytest.raises(LocalError) as failed:
        load(str(trl), device="cpu")
    assert re.fullmatch(said, str(failed.value).replace(str(trl), "HERE")), str(failed.value)


def test_labels_of_the_configuration_that_differ_from_the_rows_of_the_head(tmp_path: Path) -> None:
    folder = save_classifier(tmp_path / "model", num_labels=3)
    change_config(folder, id2label={"0": "good", "1": "bad"}, label2id={"good": 0, "bad": 1})
    with pytest.raises(LocalError) as failed:
        load(folder, device="cpu")
    assert str(failed.value) == (
        f"The head of {folder} has 3 rows (score.weight), but config.json names 2 labels; correct `id2label` there."
    )


def test_a_tokenizer_without_the_token_that_is_read(tmp_path: Path) -> None:
    folder = save_value_head(tmp_path / "model", "athene")
    with pytest.raises(
        LocalError, match=r"^The tokenizer has no cls token, which Athene reads; set its `cls_token`\.$"
    ):
        load(folder, device="cpu")


def test_a_pickled_head_of_more_than_tensors_is_not_opened(trl: Path) -> None:
    file = trl / "model.safetensors"
    kept = {name: tensor for name, tensor in load_file(file).items() if not name.startswith("v_head")}
    save_file(kept, file, metadata={"format": "pt"})
    torch.save({"v_head.summary.weight": torch.ones(1, 64), "code": trl.joinpath}, trl / "value_head.bin")
    with pytest.raises(LocalError) as failed:
        load(str(trl), device="cpu")
    assert str(failed.value) == (
        f"The model of {trl} cannot be loaded: value_head.bin is a pickle of more than tensors, which may run code; "
        "save its tensors as safetensors."
    )


def test_weights_without_the_configuration_of_their_base(tmp_path: Path) -> None:
    torch.save(head_of("starling-7b"), tmp_path / "starling.pt")
    with pytest.raises(LocalError) as failed:
        load(str(tmp_path), device="cpu")
    assert str(failed.value) == (
        f"{tmp_path} is not a model folder: it has no config.json; copy it and the tokenizer from the base model."
    )


def test_shapes_are_those_of_all_shards_and_of_the_head(tmp_path: Path) -> None:
    folder = Path(save_value_head(tmp_path / "model", "llama-factory"))
    tensors = load_file(folder / "model.safetensors")
    whole = {name: tuple(tensor.shape) for name, tensor in (tensors | head_of("llama-factory")).items()}
    assert ModelFiles(LocalModel(name=str(folder))).shapes == whole
    auto: Any = AutoModelForCausalLM
    auto.from_pretrained(folder).save_pretrained(folder, max_shard_size="60KB")
    assert len(list(folder.glob("model-*.safetensors"))) > 1
    (folder / "model.safetensors").unlink(missing_ok=True)
    assert ModelFiles(LocalModel(name=str(folder))).shapes == whole


def test_a_classifier_is_recognized_with_and_without_its_kind(classifiers: Folders) -> None:
    folder = classifiers()
    named, found = load_classifier(folder, kind="classifier"), load_classifier(folder)
    assert named.record() == found.record()
    assert named.record().settings == {}


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with live_hub() as server:
        point_clients(monkeypatch, server, tmp_path / "home")
        yield server


@pytest.mark.heavy
def test_a_head_on_the_hub_is_recognized_by_headers_and_later_without_a_network(
    tmp_path: Path, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(save_value_head(tmp_path / "model", "llama-factory"))
    repository = hub.create("org/head", "models")
    commit = repository.commit({path.name: path.read_bytes() for path in folder.iterdir()})
    local = LocalModel(name=str(folder))
    # A head's header is shorter than the first part of a file that a client asks for; the body's is not its whole file.
    assert ModelFiles(LocalModel(name="org/head")).shapes == ModelFiles(local).shapes
    cache = tmp_path / "home" / "hub"
    assert not list(cache.glob("**/*.safetensors"))
    expected = score(load_classifier(str(folder)), GROUPS).scores
    model = load_classifier("org/head", revision=commit)
    assert score(model, GROUPS).scores == expected
    assert model.record().commit == commit
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert score(load_classifier("org/head", revision=commit), GROUPS).scores == expected

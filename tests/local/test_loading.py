"""Models that can be loaded, and the sentence for each that cannot."""

import json
import math
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from pluralbench_local import LocalError, LocalModel, load, score
from pluralbench_rewards import model_digest
from pluralbench_runs import RecipeError, UserError
from reward_models import (
    Folders,
    conversation_ids,
    load_classifier,
    load_plainly,
    logits_alone,
    make_groups,
    make_tokenizer,
    save_classifier,
)
from transformers import AutoModelForSequenceClassification

GROUPS = make_groups(1, number=4)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(save_classifier(tmp_path / "model"))


@pytest.mark.parametrize("name", ["/nowhere/a/model", "./model", "~/model", "a/b/c", "model", "config.json"])
def test_a_folder_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.json").touch()
    with pytest.raises(LocalError) as failed:
        load(name)
    assert str(failed.value) == f"{name} is not a model folder; give a folder, or ORG/NAME on the Hub."
    assert failed.value.exit_status == 2


def test_a_path_that_is_not_there_is_never_asked_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()
    with pytest.raises(LocalError, match=r"^There is no mine in the folder models; give a model's folder, or"):
        LocalModel(name="models/mine").check_location()
    LocalModel(name="models/mine", revision="main").check_location()
    LocalModel(name="acme/mine").check_location()


NO_LOAD = r"The {} of HERE cannot be loaded: .*\."


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("config.json", None, r"HERE is not a model folder: it has no config\.json\."),
        *(("config.json", text, r"HERE/config\.json is not valid JSON: .*") for text in (b"{", b"", b"\xff\xfe{")),
        *(("config.json", text, NO_LOAD.format(r"\w+")) for text in (b"[1]", b"{}", b'{"model_type": "nonesuch"}')),
        ("config.json", b'{"model_type": "llama", "vocab_size": -1, "num_labels": 1}', NO_LOAD.format(r"\w+")),
        *(("model.safetensors", kept, NO_LOAD.format("model")) for kept in (None, 0, 2000)),
        (
            "tokenizer*",
            None,
            r"HERE has no tokenizer; save the model's tokenizer to it, or name another as `tokenizer=...`\.",
        ),
        ("tokenizer.json", b"{", NO_LOAD.format("tokenizer")),
    ],
)
def test_a_folder_that_is_not_whole(folder: Path, name: str, content: bytes | int | None, said: str) -> None:
    """content: what the file holds, or how much is left of it; None for none."""
    for path in [*folder.glob(name)]:
        if content is None:
            path.unlink()
        else:
            path.write_bytes(path.read_bytes()[:content] if isinstance(content, int) else content)
    with pytest.raises(LocalError) as failed:
        load(str(folder), device="cpu")
    assert re.fullmatch(said, str(failed.value).replace(str(folder), "HERE")), str(failed.value)


@pytest.mark.skipif(find_spec("sentencepiece") is not None, reason="sentencepiece is installed")
def test_a_tokenizer_of_sentencepiece_names_the_packages(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer.model").write_bytes(b"\x0e\x0a\x05<unk>\n\x0e\n")
    config = {"tokenizer_class": "LlamaTokenizer"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(LocalError, match=r"is a tokenizer\.model of SentencePiece, .* install `sentencepiece` and"):
        load_classifier(str(folder))


def test_a_tokenizer_of_another_folder_is_used_and_recorded(folder: Path, tmp_path: Path) -> None:
    """That folder needs no model; it has the chat template, too."""
    groups = make_groups(1, number=2)
    own = score(load_classifier(str(folder)), groups).scores
    other = tmp_path / "tokenizer"
    other.mkdir()
    for path in (*folder.glob("tokenizer*"), *folder.glob("chat_template*")):
        path.rename(other / path.name)
    with pytest.raises(LocalError, match=r"has no tokenizer; save .* or name another as `tokenizer=\.\.\.`\.$"):
        load_classifier(str(folder))
    model = load_classifier(str(folder), tokenizer=str(other))
    assert score(model, groups).scores == own
    settings = LocalModel(name=str(folder), tokenizer=str(other)).record().settings
    assert settings == {"tokenizer": str(other), "tokenizer_digest": model_digest(other)}
    assert model.record().settings == settings
    make_tokenizer(template="{% for message in messages %}[{{ message['content'] }}{% endfor %}").save_pretrained(other)
    assert score(load_classifier(str(folder), tokenizer=str(other)), groups).scores != own
    with pytest.raises(LocalError, match=r"nowhere is not a model folder; give a folder, or ORG/NAME on the Hub\.$"):
        load_classifier(str(folder), tokenizer="nowhere")


def test_a_language_model_is_no_classifier(language_models: Folders) -> None:
    with pytest.raises(LocalError) as failed:
        load(language_models(), device="cpu")
    assert str(failed.value) == (
        f"{language_models()} has no weights for score.weight, so what it computes would be random; a language model "
        'scores with `kind="implicit"`, token, process or pairwise, or judges.'
    )


@pytest.mark.parametrize("architecture", ["llama", "gemma2"])  # gemma2 ties its embeddings
def test_a_classifier_is_no_language_model(classifiers: Folders, architecture: str) -> None:
    said = r"is not a language model: it has a reward head \(score\.weight\); score with it as a classifier\.$"
    with pytest.raises(LocalError, match=said):
        load(classifiers(architecture), kind="implicit", device="cpu")


def test_several_logits_want_a_rule(classifiers: Folders) -> None:
    folder = classifiers(num_labels=2)
    with pytest.raises(LocalError) as failed:
        load(folder, device="cpu")
    assert str(failed.value) == (
        f"The head of {folder} has 2 logits; choose the reward with `label=...`: logit:K, or softmax:K for its "
        "probability (K from 0 to 1, or -1 for the last), mean, or weights by name or number (LABEL_0, LABEL_1), such "
        "as 0:0.65,1:-0.4."
    )


@pytest.mark.parametrize("architecture", ["llama", "bert"])
def test_a_rule_says_which_logit_is_the_reward(classifiers: Folders, architecture: str) -> None:
    folder = classifiers(architecture, num_labels=3, id2label={0: "helpful: so", 1: "long", 2: "0"})
    plain, [group] = load_plainly(AutoModelForSequenceClassification, folder), GROUPS[3:4]
    # Names go from number to weight; a number is that of a logit even where another one has it as its name.
    rules: dict[str, Any] = {
        "mean": lambda logits: sum(logits) / 3,
        "helpful: so:0.65,long:-0.4": lambda logits: 0.65 * logits[0] - 0.4 * logits[1],
        "2:1e-1, 0:2": lambda logits: 0.1 * logits[2] + 2 * logits[0],
        "logit:1": lambda logits: logits[1],
        "logit:-1": lambda logits: logits[2],
        "logit:-3": lambda logits: logits[0],
        "softmax:-1": lambda logits: math.exp(logits[2]) / sum(map(math.exp, logits)),
        "softmax:0": lambda logits: math.exp(logits[0]) / sum(map(math.exp, logits)),
    }
    for label, expected in rules.items():
        model = load_classifier(folder, label=label)
        tokenizer = model.template.tokenizer
        logits = [logits_alone(plain, conversation_ids(tokenizer, group, response)) for response in group.responses]
        assert score(model, [group]).scores[0] == pytest.approx([expected(values) for values in logits], abs=1e-4)


@pytest.mark.parametrize(
    "label",
    [
        *("logit", "logit:2", "softmax:1.0", "", "means", "good", "good:", ":1", "good:nan", "good:inf", "bad:1"),
        *("good:1,", "good:1,good:2", "good:1,0:2", "2:1", "-1:1"),
    ],
)
def test_a_rule_that_does_not_fit(classifiers: Folders, label: str) -> None:
    folder = classifiers(num_labels=2, id2label={0: "good", 1: "long"})
    with pytest.raises(LocalError) as failed:
        load(folder, label=label, device="cpu")
    assert str(failed.value) == (
        f"The label {label!r} does not fit the head of {folder}, which has 2 logits (good, long); give logit:K, "
        "softmax:K, mean, or weights by name or number, such as 0:0.65,1:-0.4, as `label=...`."
    )


def test_options_of_another_kind_are_refused(classifiers: Folders, language_models: Folders) -> None:
    with pytest.raises(RecipeError, match=r"`label=\.\.\.` is for classifiers; leave it out"):
        load(language_models(), kind="implicit", label="logit:0", device="cpu")
    with pytest.raises(RecipeError, match=r"`reference=\.\.\.` is for implicit rewards; set `kind=\"implicit\"`"):
        load(classifiers(), reference=language_models(), device="cpu")


def test_a_reference_with_another_vocabulary(language_models: Folders) -> None:
    reference = language_models(vocab_size=512)
    with pytest.raises(LocalError) as failed:
        load(language_models(), kind="implicit", reference=reference, device="cpu")
    assert str(failed.value) == (
        f"{reference} has another vocabulary than {language_models()}, so it cannot be its reference."
    )


@pytest.mark.usefixtures("no_gpu")
@pytest.mark.parametrize("device", ["cuda", "cuda:1", "spread"])
def test_a_gpu_that_is_not_there(classifiers: Folders, device: str) -> None:
    with pytest.raises(LocalError) as failed:
        load(classifiers(), device=device)
    assert str(failed.value) == (f'The device {device} needs a GPU, and this machine has none; set `device="cpu"`.')


def test_a_device_that_nobody_knows(classifiers: Folders) -> None:
    with pytest.raises(UserError, match="banana is not auto, cpu, cuda"):
        load(classifiers(), device="banana")


def test_weights_are_read_as_saved_or_in_the_type_that_was_asked_for(classifiers: Folders) -> None:
    half = classifiers(dtype=torch.bfloat16)
    assert json.loads((Path(half) / "config.json").read_text(encoding="utf-8"))["dtype"] == "bfloat16"
    assert load_classifier(half).network.dtype == torch.bfloat16
    assert load_classifier(half, dtype="float32").network.dtype == torch.float32


@pytest.mark.parametrize("mode", ["fast", "exact"])
def test_scores_that_are_no_number_are_given_as_such(tmp_path: Path, mode: str) -> None:
    folder = save_classifier(tmp_path / "model")
    plain = load_plainly(AutoModelForSequenceClassification, folder)
    plain.score.weight.data.fill_(torch.nan)
    plain.save_pretrained(folder)
    model = load_classifier(folder)
    scored = score(model, GROUPS, mode=mode)
    assert [len(values) for values in scored.scores] == [len(group.responses) for group in GROUPS]
    assert all(math.isnan(value) for values in scored.scores for value in values)
    assert math.isfinite(model.tolerance(GROUPS, scored))

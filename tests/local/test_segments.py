"""Encoders that embed two segments read a prompt and a response as the tokenizer's pair."""

from pathlib import Path
from typing import Any

import pytest
from pluralbench_local import LocalError, LocalModel, load, score
from pluralbench_local.training_model import training_template
from pluralbench_rewards import Group
from reward_models import (
    BOS,
    EOS,
    Folders,
    differences,
    load_classifier,
    load_plainly,
    make_tokenizer,
    save_classifier,
    user,
)
from tokenizers import processors

GROUPS = [
    Group("hobby", user("a quiet hobby"), ["origami", "drumming", "walking with an old dog"]),
    Group("book", user("推荐 一本 书"), ["龙井", "x"]),
]
PAIR = "<s>{{ messages[:-1] | map(attribute='content') | join(' ') }}</s>{{ messages[-1]['content'] }}</s>"


def pair_tokenizer(template: str = PAIR, pair: str = "<s>:0 $A:0 </s>:0 $B:1 </s>:1") -> Any:
    special: dict[str, Any] = {"cls_token": BOS, "sep_token": EOS, "model_input_names": ["input_ids", "token_type_ids"]}
    tokenizer = make_tokenizer(template=template, **special)
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair=pair,
        special_tokens=[(token, tokenizer.convert_tokens_to_ids(token)) for token in (BOS, EOS)],
    )
    return tokenizer


def pairs_alone(folder: str, groups: list[Group], length: int = 0) -> list[list[float]]:
    """Scores by the model's own forward pass of the tokenizer's encoding of each pair, or of its end of a length."""
    import torch
    from transformers import AutoModelForSequenceClassification, PreTrainedTokenizerFast

    model, tokenizer = (
        load_plainly(AutoModelForSequenceClassification, folder),
        PreTrainedTokenizerFast.from_pretrained(folder),
    )

    def inputs(prompt: str, text: str) -> dict[str, Any]:
        return {name: values[:, -length:] for name, values in tokenizer(prompt, text, return_tensors="pt").items()}

    with torch.inference_mode():
        return [
            [model(**inputs(group.prompt[0]["content"], text)).logits.item() for text in group.responses]
            for group in groups
        ]


@pytest.mark.parametrize("mode", ["fast", "exact"])
def test_a_pair_is_read_as_the_tokenizer_encodes_it(tmp_path: Path, mode: Any) -> None:
    folder = save_classifier(tmp_path / "m", "bert", tokenizer=pair_tokenizer())
    expected = pairs_alone(folder, GROUPS)
    scored = score(load_classifier(folder), GROUPS, mode=mode)
    assert max(differences(scored.scores, expected)) < 1e-4
    one = [Group("one", user("a quiet hobby"), ["origami"])]
    for length in (7, 3):  # one token of the first segment is left, or none
        cut = score(load_classifier(folder), one, mode=mode, max_length=length, on_overflow="truncate-left")
        assert max(differences(cut.scores, pairs_alone(folder, one, length))) < 1e-4
    template = training_template(LocalModel(name=folder))
    assert template.separator == load_classifier(folder).template.separator is not None


def test_one_segment_has_one_type(tmp_path: Path, classifiers: Folders) -> None:
    one = pair_tokenizer("<s>{{ messages | map(attribute='content') | join(' ') }}</s>")
    assert load_classifier(save_classifier(tmp_path / "one", "bert", tokenizer=one)).template.separator is None
    without = save_classifier(tmp_path / "without", "bert", tokenizer=pair_tokenizer(), type_vocab_size=1)
    assert load_classifier(without).template.separator is None
    decoder = save_classifier(tmp_path / "decoder", tokenizer=pair_tokenizer())
    assert load_classifier(decoder).template.separator is None


def test_a_pair_of_an_unknown_form_is_refused(tmp_path: Path) -> None:
    odd = pair_tokenizer(pair="<s>:0 $A:0 </s>:1 $B:1 </s>:1")
    folder = save_classifier(tmp_path / "odd", "bert", tokenizer=odd)
    with pytest.raises(LocalError, match=r"writes two segments, which this tokenizer encodes in an unknown way; "):
        load(folder, device="cpu")

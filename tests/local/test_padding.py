"""Models whose scores change when a batch is padded get one conversation in each, as their own forward pass does."""

from pathlib import Path
from typing import Any

import pytest
import torch
from case_marks import heavy
from pluralbench_local import LocalError, score
from reward_models import (
    TEMPLATE,
    conversation_ids,
    differences,
    load_classifier,
    make_groups,
    make_tokenizer,
    save_classifier,
    work_of,
)
from transformers import AutoConfig, AutoModelForSequenceClassification

TINY: dict[str, Any] = {
    "d_model": 32,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32,
}
TINY |= {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "forced_eos_token_id": None}
MODELS: dict[str, dict[str, Any]] = {
    "xlnet": {"d_model": 32, "n_layer": 1, "n_head": 2, "d_inner": 32},  # reads the last position
    "fnet": {"hidden_size": 32, "num_hidden_layers": 1, "intermediate_size": 32},  # has no mask
    "bart": TINY,  # wants as many eos in each conversation of a batch
    "t5": {"d_model": 32, "d_kv": 16, "d_ff": 32, "num_layers": 1, "num_heads": 2},
    "bert": {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32},
}


@pytest.mark.parametrize("kind", ["xlnet", *heavy("fnet", "bart", "t5", "bert")])
def test_scores_are_those_of_each_conversation_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    torch.manual_seed(0)
    tokenizer = make_tokenizer()
    special = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2, "decoder_start_token_id": 2, "num_labels": 1}
    config = AutoConfig.for_model(kind, **(special | {"vocab_size": len(tokenizer)} | MODELS[kind]))
    auto: Any = AutoModelForSequenceClassification
    model = auto.from_config(config).eval()
    for weights in model.parameters():
        torch.nn.init.normal_(weights, std=0.2)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    groups = make_groups(1)
    scored = score(load_classifier(str(tmp_path)), groups)
    with torch.inference_mode():
        own = [
            [
                model(torch.tensor([conversation_ids(tokenizer, group, text)])).logits[0, 0].item()
                for text in group.responses
            ]
            for group in groups
        ]
    assert max(differences(scored.scores, own)) < 1e-4
    work = work_of(scored)
    assert (work.batches == sum(len(set(group.responses)) for group in groups)) == (kind != "bert")
    assert ("batches one conversation each, since" in capsys.readouterr().err) == (kind != "bert")


def test_a_template_longer_than_the_positions_is_probed_with_other_texts(tmp_path: Path) -> None:
    template = "word " * 2000 + TEMPLATE
    folder = save_classifier(tmp_path, "gpt2", tokenizer=make_tokenizer(template=template))
    model = load_classifier(folder)
    assert model.record().settings == {}
    with pytest.raises(LocalError, match=r"have conversations of more than 1,024 tokens"):
        score(model, make_groups(1))

"""Conversations that are rendered already have the scores of their messages, as text and as tokens, to the bit."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from case_marks import heavy
from pluralbench_local import LocalError, load
from pluralbench_local.conversations import tokenize
from pluralbench_rewards import Group, RenderedConversation, ScoresRendered, ScoringConfig
from reward_models import BOS, Folders, make_groups, make_tokenizer
from value_heads import save_value_head

EXACT = ScoringConfig(mode="exact")
GROUPS = [
    Group(group.id, group.prompt, [text]) for group in make_groups(6, number=4, longest=12) for text in group.responses
]
KINDS: dict[str, Callable[[Folders, Folders, Path], dict[str, Any]]] = {
    "llama": lambda classifiers, _, __: {"model": classifiers("llama")},
    "bert": lambda classifiers, _, __: {"model": classifiers("bert")},
    "starling": lambda _, __, folder: {"model": save_value_head(folder / "m", "starling-34b")},
    "athene": lambda _, __, folder: {
        "model": save_value_head(folder / "m", "athene", tokenizer=make_tokenizer(cls_token=BOS))
    },
    "token": lambda _, models, __: {
        "model": models("llama"),
        "kind": "token",
        "positive_token": "y",
        "token_position": "end",
    },
}


@pytest.mark.parametrize("kind", ["llama", *heavy(*[name for name in KINDS if name != "llama"])])
def test_a_rendered_conversation_has_the_score_of_its_messages(
    classifiers: Folders, language_models: Folders, tmp_path: Path, kind: str
) -> None:
    model: Any = load(**KINDS[kind](classifiers, language_models, tmp_path), device="cpu", scoring=EXACT)
    expected = model.score(GROUPS)
    every = tokenize(GROUPS, model.template, 10_000, "error")
    texts = [RenderedConversation(model.template.conversation(one.prompt, one.responses[0])) for one in GROUPS]
    tokens = [RenderedConversation(list(one.conversations[0].ids)) for one in every]
    for rendered in (texts, tokens):
        mixed = random.Random(1).sample(range(len(rendered)), len(rendered))
        scored = model.score_rendered([rendered[place] for place in mixed])
        assert scored.scores == [expected.scores[place] for place in mixed]
        assert scored.tokens == [expected.tokens[place] for place in mixed]
        assert [model.score_rendered([one]).scores[0] for one in rendered[:3]] == expected.scores[:3]


def test_what_is_read_at_more_places_takes_messages_only(language_models: Folders) -> None:
    implicit = load(language_models(), kind="implicit", device="cpu")
    assert isinstance(implicit, ScoresRendered)
    with pytest.raises(LocalError, match="reads where the response begins, so it scores messages only"):
        implicit.score_rendered([RenderedConversation("a")])

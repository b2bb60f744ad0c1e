"""Conversations become tokens by the tokenizer's template, with nothing added and nothing taken away."""

from collections.abc import Callable
from pathlib import Path

import pytest
from case_marks import heavy
from pluralbench_local import LocalError, LocalRewardModel, score
from pluralbench_local.conversations import tokenize
from pluralbench_rewards import Group
from reward_models import (
    ENDS_WITH_EOS,
    EOS,
    Folders,
    change_config,
    classifier_alone,
    conversation_ids,
    differences,
    load_classifier,
    make_groups,
    make_tokenizer,
    save_classifier,
    user,
)
from value_heads import save_value_head

STRICT = (
    "{% for m in messages %}{% if m['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    "[{{ m['role'] }}] {{ m['content'] }}\n{% endfor %}"
)


def texts(model: "LocalRewardModel", group: Group) -> list[str]:
    [tokenized] = tokenize([group], model.template, 10**9, "error")
    return [str(model.template.tokenizer.decode(list(tokens.ids))) for tokens in tokenized.conversations]


def test_roles_and_the_system_message_are_kept_as_given(llama: "LocalRewardModel") -> None:
    turns = [
        {"role": "system", "content": "Be brief.  "},
        *user("  Hi 🍵\n"),
        {"role": "assistant", "content": "Hello."},
        {"role": "critic", "content": "ما"},
        *user("And?"),
    ]
    assert texts(llama, Group("q", turns, ["Yes.", ""])) == [
        "<s><|system|>\nBe brief.  </s>\n<|user|>\n  Hi 🍵\n</s>\n<|assistant|>\nHello.</s>\n<|critic|>\nما</s>\n"
        f"<|user|>\nAnd?</s>\n<|assistant|>\n{response}</s>\n"
        for response in ("Yes.", "")
    ]


def test_tokens_are_those_of_the_tokenizers_own_way(llama: "LocalRewardModel") -> None:
    groups = make_groups(3)
    for group, tokenized in zip(groups, tokenize(groups, llama.template, 10**9, "error"), strict=True):
        own = [conversation_ids(llama.template.tokenizer, group, response) for response in group.responses]
        assert [list(tokens.ids) for tokens in tokenized.conversations] == own
    assert score(llama, groups).tokens == [
        [len(conversation_ids(llama.template.tokenizer, group, response)) for response in group.responses]
        for group in groups
    ]


def test_more_conversations_than_are_tokenized_at_once_stay_in_order(llama: "LocalRewardModel") -> None:
    groups = [Group(str(number), user(str(number)), [f"{number} a", f"{number} b", "c"]) for number in range(700)]
    tokenized = tokenize(groups, llama.template, 10**9, "error")
    for place in (0, 340, 341, 342, 699):
        own = [conversation_ids(llama.template.tokenizer, groups[place], text) for text in groups[place].responses]
        assert [list(tokens.ids) for tokens in tokenized[place].conversations] == own


def test_a_tokenizer_without_a_template_is_said(
    tmp_path_factory: pytest.TempPathFactory, written: Callable[[str], Path]
) -> None:
    folder = save_classifier(tmp_path_factory.mktemp("bare"), tokenizer=make_tokenizer(template=None))
    with pytest.raises(LocalError) as failed:
        score(load_classifier(folder), make_groups(0))
    assert str(failed.value) == "The tokenizer has no chat template; give one as `chat_template=...`."
    assert (
        len(
            score(load_classifier(folder, chat_template=written(STRICT)), [Group("q", user("hi"), ["a", "b"])]).scores[
                0
            ]
        )
        == 2
    )


def test_a_template_that_refuses_a_role_is_quoted(classifiers: Folders, written: Callable[[str], Path]) -> None:
    model = load_classifier(classifiers(), chat_template=written(STRICT))
    turns = [{"role": "system", "content": "Be brief."}, *user("hi")]
    with pytest.raises(LocalError) as failed:
        score(model, [Group("q", turns, ["a"])])
    assert str(failed.value) == (
        "The chat template fails on a conversation with the roles system, user, assistant (System role not supported); "
        "give another one as `chat_template=...`."
    )


@pytest.mark.parametrize(
    "template", ["{% for m in messages %}", "{{ messages[0].nothing.at_all }}", "{{ 1 / 0 }}", "", "{{ '' }}"]
)
def test_a_template_that_is_broken_or_says_nothing_is_refused(
    classifiers: Folders, written: Callable[[str], Path], template: str
) -> None:
    model = load_classifier(classifiers(), chat_template=written(template))
    with pytest.raises(LocalError, match=r"give (one|another one) as `chat_template=\.\.\.`\.$"):
        score(model, [Group("q", user("hi"), ["a"])])


def test_a_template_that_is_given_is_used(
    classifiers: Folders, llama: "LocalRewardModel", written: Callable[[str], Path]
) -> None:
    group = Group("q", user("hi"), ["origami", "drumming"])
    model = load_classifier(classifiers(), chat_template=written(STRICT))
    assert texts(model, group) == [f"[user] hi\n[assistant] {response}\n" for response in group.responses]
    assert max(differences(score(model, [group]).scores, score(llama, [group]).scores)) > 0.01
    folder = classifiers(tokenizer=make_tokenizer(template=STRICT))
    assert max(differences(score(model, [group]).scores, classifier_alone(folder, [group]))) < 1e-4


ENDINGS = [*make_groups(1), Group("ends", user(f"a{EOS} b {EOS}{EOS}"), [EOS, f"origami {EOS} drumming", ""])]


@pytest.fixture(scope="module")
def padded(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    """Classifiers whose padding token ends each conversation, as TRL makes of bases without one."""
    tokenizer = make_tokenizer(pad=EOS, template=ENDS_WITH_EOS)

    def save(architecture: str = "llama") -> str:
        folder = tmp_path_factory.mktemp(architecture)
        return save_classifier(folder, architecture, tokenizer=tokenizer, pad_token_id=1)

    return save


@pytest.mark.parametrize(
    ("architecture", "mode"), [("llama", "fast"), ("llama", "exact"), *heavy(("gpt-oss", "exact"), ("gpt2", "fast"))]
)
def test_the_token_is_read_that_the_models_class_reads(padded: Folders, architecture: str, mode: str) -> None:
    folder = padded(architecture)
    scored = score(load_classifier(folder), ENDINGS, mode=mode)
    assert max(differences(scored.scores, classifier_alone(folder, ENDINGS))) < 1e-4
    assert scored.inputs_ending_in_padding == sum(len(group.responses) for group in ENDINGS)
    last = score(load_classifier(folder, read="last"), ENDINGS, mode=mode)
    assert last.inputs_ending_in_padding is None
    assert max(differences(last.scores, scored.scores)) > 0.01
    change_config(folder, pad_token_id=None)  # of one conversation, the class then reads the last token
    assert max(differences(last.scores, classifier_alone(folder, ENDINGS))) < 1e-4


def test_a_value_head_has_its_own_token(tmp_path: Path) -> None:
    folder = save_value_head(tmp_path / "head", "trl")
    with pytest.raises(
        LocalError, match=r"^`read=\.\.\.` is for sequence classifiers, which .* is not; leave it out\.$"
    ):
        load_classifier(folder, read="last")


@pytest.mark.parametrize("architecture", ["llama", "bert"])
def test_a_tokenizer_without_a_pad_token_will_do(tmp_path_factory: pytest.TempPathFactory, architecture: str) -> None:
    pad = None if architecture == "llama" else 0
    folder = save_classifier(
        tmp_path_factory.mktemp("unpadded"), architecture, tokenizer=make_tokenizer(pad=None), pad_token_id=pad
    )
    model, groups = load_classifier(folder), make_groups(1)
    assert model.template.tokenizer.pad_token is None
    assert max(differences(score(model, groups).scores, classifier_alone(folder, groups))) < 1e-4

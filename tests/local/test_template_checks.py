"""No chat template makes a number depend on the day or on chance, or leaves out a message in silence."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest
from pluralbench_local import LocalError, LocalModel, score
from pluralbench_local.rendering import apply_chat_template, fixed_date
from pluralbench_rewards import Group
from reward_models import TEMPLATE, Folders, differences, load_classifier, make_groups, user

TODAY = "{{ strftime_now('%d %B %Y %H:%M:%S') }}\n" + TEMPLATE
WRITTEN = "26 July 2024 00:00:00\n" + TEMPLATE
GROUPS = make_groups(4, number=3, longest=10)
TURNS = [
    Group("one", user("hi"), ["a", "b"]),
    Group("more", [{"role": "system", "content": "Be brief."}, *user("hi")], ["a", "b"]),
]
Written = Callable[[str], Path]


def test_a_template_writes_the_same_date_on_every_day(classifiers: Folders, written: Written) -> None:
    folder = classifiers()
    model = load_classifier(folder, chat_template=written(TODAY))
    fixed = load_classifier(folder, chat_template=written(WRITTEN))
    assert score(model, GROUPS).scores == score(fixed, GROUPS).scores
    assert (model.record().settings, fixed.record().settings) == ({"date": "2024-07-26"}, {})
    other = load_classifier(folder, chat_template=written(TODAY), date="2025-01-02")
    assert other.template.render(user("hi")).startswith("02 January 2025 00:00:00\n")
    assert other.record().settings == {"date": "2025-01-02"}
    assert max(differences(score(other, GROUPS).scores, score(model, GROUPS).scores)) > 0.001


def test_elsewhere_templates_write_today(classifiers: Folders, written: Written) -> None:
    loaded = load_classifier(classifiers(), chat_template=written("{{ strftime_now('%Y-%m-%d') }}"))
    tokenizer = loaded.template.tokenizer
    before = str(datetime.now().date())
    text = tokenizer.apply_chat_template(user("hi"), tokenize=False)
    assert text in {before, str(datetime.now().date())}
    assert apply_chat_template(tokenizer, user("hi"), tokenize=False) == "2024-07-26"
    with fixed_date(tokenizer):
        assert tokenizer.apply_chat_template(user("hi"), tokenize=False) == "2024-07-26"


@pytest.mark.parametrize("date", ["2024-13-01", "26 July 2024", "2024-7-6", "٢٠٢٤-٠٧-٢٦", ""])
def test_what_is_no_date_is_refused(date: str) -> None:
    with pytest.raises(ValueError, match="is not a date of the form YYYY-MM-DD"):
        LocalModel(name="a/b", date=date)


def test_a_template_that_draws_is_refused(classifiers: Folders, written: Written) -> None:
    model = load_classifier(classifiers(), chat_template=written("{{ range(100000) | random }}" + TEMPLATE))
    with pytest.raises(LocalError, match=r"^The chat template renders the same conversation differently each time; "):
        score(model, TURNS)


WITHOUT_SYSTEM = "{% if messages[0]['role'] == 'system' %}{% set messages = messages[1:] %}{% endif %}" + TEMPLATE
LACKING = {
    "the system message": (WITHOUT_SYSTEM, "1 of 2 (system) of the prompt more"),
    "all turns but the last two": (
        TEMPLATE.replace("in messages", "in messages[-2:]"),
        "1 of 2 (system) of the prompt more",
    ),
    "the rest of each message": (
        TEMPLATE.replace("message['content']", "message['content'][:20]"),
        "1 of 1 (user) of the prompt one",
    ),
}


@pytest.mark.parametrize("lacking", LACKING)
def test_a_template_that_leaves_out_a_message_is_refused(classifiers: Folders, written: Written, lacking: str) -> None:
    text, what = LACKING[lacking]
    model = load_classifier(classifiers(), chat_template=written(text))
    with pytest.raises(LocalError) as refused:
        score(model, TURNS)
    assert str(refused.value) == (
        f"The chat template leaves out message {what}, or a part of it; give another one as `chat_template=...`."
    )


def test_a_template_may_trim_and_join_messages(classifiers: Folders, written: Written) -> None:
    text = (
        "{% for m in messages %}{% if m['role'] == 'system' %}{% continue %}{% endif %}[{{ m['role'] }}] "
        "{% if loop.index0 == 1 and messages[0]['role'] == 'system' %}{{ messages[0]['content'] | trim | upper }} "
        "{% endif %}{{ m['content'].split('</think>')[-1] | trim }}{% endfor %}"
    )
    assert score(load_classifier(classifiers(), chat_template=written(text)), TURNS).scores

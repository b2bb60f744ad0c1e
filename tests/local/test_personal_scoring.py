"""A trained personalized reward model scores like every other model, from its folder."""

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from pluralbench_local import LocalError, LocalModel, Personal, embed, load, load_backbone, score
from pluralbench_local.loading import load_to_score
from pluralbench_local.personal import scoring
from pluralbench_local.personal.options import PersonalConfig
from pluralbench_local.personal.scoring import rewards_of
from pluralbench_local.personal.training import train_personal
from pluralbench_rewards import MISSING_CONTEXT, EarlierPair, Group, Person, RewardModel, ScoringConfig, model_digest
from reward_models import POSITIONS, Folders, save_language_model, user, work_of

HOBBIES = ("origami", "drumming", "walking an old dog", "chess at dawn", "tea", "pruning pears")


def groups(responses: int, number: int = 6) -> list[Group]:
    """Items of two persons."""
    return [
        Group(
            f"q{place}",
            user(f"Name hobby {place} for a long evening."),
            [f"{HOBBIES[(place + response) % 6]} {response}" for response in range(responses)],
            Person(f"p{place % 2}", persona=["Drinks tea."], earlier=[EarlierPair(user("a hobby"), "tea", "chess")]),
            [f"Post {place % 2} of a quiet person.", "Another post."],
        )
        for place in range(number)
    ]


Train = Callable[..., Path]


@pytest.fixture(scope="module")
def train(language_models: Folders, tmp_path_factory: pytest.TempPathFactory) -> Train:
    """`train(method="bt")`: the folder of a model on the vectors of a tiny backbone, not to be changed."""
    backbone = load_backbone(language_models())
    pairs = groups(2)
    corpus = embed(pairs, [[1, 2]] * len(pairs), backbone, posts=5)
    made: dict[str, Path] = {}

    def trained(**settings: object) -> Path:
        if repr(settings) not in made:
            made[repr(settings)] = tmp_path_factory.mktemp("personal") / "model"
            options = PersonalConfig.model_validate({"epochs": 1, "hidden_size": 16, "num_layers": 1} | settings)
            train_personal(corpus, made[repr(settings)], options=options, backbone=backbone.record)
        return made[repr(settings)]

    return trained


def test_scores_are_the_rewards_of_the_vectors(train: Train) -> None:
    model = load(train())
    assert isinstance(model, Personal)
    assert isinstance(model, RewardModel)
    asked = groups(16, number=3)
    corpus = embed(asked, [[0] * 16] * 3, model.backbone, posts=5)
    scored = model.score(asked)
    for values, expected in zip(scored.scores, rewards_of(model.saved, corpus), strict=True):
        assert values == pytest.approx(expected, abs=1e-5)
    assert len({value for values in scored.scores for value in values}) > 40
    assert work_of(scored).strategy == "fast"
    exact = score(model, asked, mode="exact")
    assert work_of(exact).strategy == "exact"
    measuring = load_to_score(LocalModel(name=str(train())), ScoringConfig())
    assert isinstance(measuring, RewardModel)
    measured = measuring.score(asked)
    assert measured.tolerance is not None
    assert 0 < measured.tolerance < 0.01
    for ours, other in zip(scored.scores, exact.scores, strict=True):
        assert ours == pytest.approx(other, abs=measured.tolerance)


def test_scores_come_in_parts_and_known_ones_are_not_computed(train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    model, asked = load(train()), groups(3)
    whole = model.score(asked)
    monkeypatch.setattr(scoring, "PART_RESPONSES", 6)
    reported: dict[int, list[float]] = {}
    parts = model.score(asked, cached={1: [3.0, 2.0, 1.0]}, on_scored=reported.update)
    assert [*reported] == [0, 2, 3, 4, 5]
    assert parts.scores[1] == [3.0, 2.0, 1.0]
    for place, values in reported.items():
        assert values == parts.scores[place] == pytest.approx(whole.scores[place], abs=1e-4)
    with pytest.raises(KeyboardInterrupt):
        model.score(asked, on_scored=_interrupt)


def _interrupt(scores: Mapping[int, list[float]]) -> None:
    if 2 in scores:
        raise KeyboardInterrupt


@pytest.mark.parametrize("method", ["bt", "vpl"])
def test_a_model_without_a_profile_reads_nothing_of_the_person(train: Train, method: str) -> None:
    model = load(train(method=method, profile=False))
    asked = groups(2)
    told, untold = model.score(asked), model.score([replace(group, person=None, context=()) for group in asked])
    assert told.scores == untold.scores
    assert work_of(told).computed_tokens == work_of(untold).computed_tokens


@pytest.mark.parametrize("method", ["bt", "gpo", "vpl"])
def test_a_model_with_a_profile_reads_what_its_method_reads(train: Train, method: str) -> None:
    model, asked = load(train(method=method)), groups(2)
    scores = model.score(asked).scores
    other = [replace(group, context=["Something else."]) for group in asked]
    assert model.score(other).scores != scores
    person = Person("p", earlier=[EarlierPair(user("a hobby"), "chess", "tea")])
    assert (model.score([replace(group, person=person) for group in asked]).scores != scores) == (method != "bt")
    alone = [replace(group, context=[*group.context, *["one more"] * 3, "the sixth"]) for group in asked]
    assert model.score(alone).scores == model.score([replace(g, context=g.context[:5]) for g in alone]).scores


def test_an_item_without_a_profile_is_named(train: Train) -> None:
    asked = groups(2)
    asked[3] = replace(asked[3], context=["", " "])
    with pytest.raises(
        LocalError,
        match=r"model was trained with a profile, and the prompt q3 has none; leave out .* \(1 of 6\) with `on_m",
    ):
        load(train()).score(asked)
    with pytest.raises(LocalError, match=r"has none; set `profile=\"raw\"`, or"):
        load(train()).score(asked[3:4])
    asked = groups(2)
    asked[4] = replace(asked[4], person=Person("p"))
    with pytest.raises(LocalError, match=r"was trained with personas, and the prompt q4 has none"):
        load(train(persona=True)).score(asked)


def test_an_item_without_a_profile_is_dropped_if_the_options_say_so(train: Train) -> None:
    folder, asked = train(), groups(2)
    whole = load(folder).score(asked).scores
    asked[3] = replace(asked[3], context=["", " "])
    model = load(folder, scoring=ScoringConfig(on_missing_context="drop"))
    reported: list[int] = []
    scored = model.score(asked, cached={1: [2.0, 1.0]}, on_scored=reported.extend)
    assert (scored.dropped, reported, scored.scores[3]) == ({3: MISSING_CONTEXT}, [0, 2, 4, 5], [])
    for place in reported:
        assert scored.scores[place] == pytest.approx(whole[place], abs=1e-4)
    alone = model.score(asked[3:4])
    assert (alone.scores, alone.dropped) == ([[]], {0: MISSING_CONTEXT})


def test_a_prompt_that_is_too_long_is_refused_or_dropped(train: Train) -> None:
    asked = groups(2, number=2)
    asked[0] = replace(asked[0], prompt=user("word " * POSITIONS))
    with pytest.raises(LocalError, match=r"1 of 2 prompts .* \(ids q0\)"):
        load(train()).score(asked)
    reported: list[int] = []
    scored = load(train(), scoring=ScoringConfig(on_overflow="drop")).score(asked, on_scored=reported.extend)
    assert (scored.scores[0], len(scored.scores[1]), list(scored.dropped), reported) == ([], 2, [0], [1])


def test_it_is_known_before_it_is_loaded(train: Train) -> None:
    folder = train()
    described, loaded = LocalModel(name=str(folder)).record(), load(folder).record()
    assert described.kind == loaded.kind == "personal"
    assert described.digest == loaded.digest == model_digest(folder)
    assert described.settings == loaded.settings
    assert described.settings["method"] == "bt"
    assert described.settings["profile"] is True
    backbone = load_backbone(json.loads((folder / "personal.json").read_text(encoding="utf-8"))["backbone"]["name"])
    assert described.settings["backbone_digest"] == backbone.record.digest
    assert (loaded.architecture, loaded.dtype, loaded.device) == ("LlamaForCausalLM", "float32", loaded.device)


@pytest.fixture
def moved(train: Train, tmp_path: Path) -> Callable[[object], Path]:
    """`moved(name)`: a copy of a trained model that looks for its backbone there."""

    def move(name: object) -> Path:
        folder = shutil.copytree(train(), tmp_path / "copy")
        record = json.loads((folder / "personal.json").read_text(encoding="utf-8"))
        record["backbone"]["name"] = str(name)
        (folder / "personal.json").write_text(json.dumps(record), encoding="utf-8")
        return folder

    return move


def test_a_backbone_is_found_where_the_record_says(
    moved: Callable[[object], Path], language_models: Folders, train: Train
) -> None:
    folder = moved("backbone")
    with pytest.raises(LocalError, match=r"The backbone of .*copy is not in backbone; put it there, or set `backbone"):
        load(folder)
    shutil.copytree(language_models(), folder / "backbone")
    assert load(folder).score(groups(2)).scores == load(train()).score(groups(2)).scores


def test_another_backbone_is_refused_by_both_names(
    moved: Callable[[object], Path], tmp_path: Path, train: Train
) -> None:
    other = save_language_model(tmp_path / "other", seed=5)
    folder = moved(other)
    with pytest.raises(
        LocalError, match=r"copy was trained on the vectors of .*, and cannot read those of .*"
    ) as error:
        load(folder)
    own = json.loads((train() / "personal.json").read_text(encoding="utf-8"))["backbone"]["digest"]
    assert {f"content {own[:12]}", f"content {(model_digest(other) or '')[:12]}"} <= {
        part.strip("() ") for part in str(error.value).replace("(", ",").split(",")
    }


def test_options_of_other_models_are_refused(train: Train) -> None:
    with pytest.raises(LocalError, match="is a personalized reward model, which has no label; leave out"):
        load(train(), label="logit:0")


@pytest.mark.parametrize("text", ["{", "{}"])
def test_a_record_that_cannot_be_read_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "personal.json").write_text(text, encoding="utf-8")
    with pytest.raises(LocalError, match=r"personal\.json cannot be read \(.*\); train the model again\."):
        load(tmp_path)


def test_what_a_profile_lost_is_counted(train: Train) -> None:
    [group] = groups(2, number=1)
    scored = load(train()).score([group, replace(group, id="long", context=["post " * POSITIONS, "tea"])])
    assert scored.tokens_cut[0] == 0 < scored.tokens_cut[1]

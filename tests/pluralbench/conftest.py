"""Small tables of each shape, scorers, tiny models, and runs of the one on the other.

What needs torch imports it when it is first asked for, so that tests without a model of weights do not wait for it.
"""

import itertools
import random
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import verbs
from commands import without_status
from pluralbench.commands.app import main
from pluralbench.results import Run
from samples import sample as built_sample
from session_folder import made_once
from some_words import WORDS

if TYPE_CHECKING:
    from pluralbench.downstream.study import Study

Folders = Callable[..., str]
Rows = list[dict[str, Any]]


@pytest.fixture(scope="session")
def _quiet_torch() -> Iterator[None]:
    from reward_models import one_quiet_thread

    with one_quiet_thread():
        yield


@pytest.fixture(scope="session")
def classifiers(_quiet_torch: None, tmp_path_factory: pytest.TempPathFactory) -> Folders:
    """`classifiers(seed=1)`: the folder of a classifier; `head=0.0` fills its head. Not to be changed."""
    import torch
    from reward_models import save_classifier
    from transformers import AutoModelForSequenceClassification

    root = tmp_path_factory.mktemp("classifiers")
    made: dict[str, str] = {}

    def folder(*, head: float | None = None, **settings: Any) -> str:
        key = repr((head, sorted(settings.items())))
        if key not in made:
            made[key] = save_classifier(root / str(len(made)), num_hidden_layers=2, **settings)
            if head is not None:
                model: Any = AutoModelForSequenceClassification.from_pretrained(made[key])
                torch.nn.init.constant_(model.score.weight, head)
                model.save_pretrained(made[key])
        return made[key]

    return folder


@pytest.fixture(scope="session")
def language_models(_quiet_torch: None, tmp_path_factory: pytest.TempPathFactory) -> Folders:
    """`language_models(1)`: the folder of a language model of this seed. Not to be changed."""
    from reward_models import save_language_model

    root = tmp_path_factory.mktemp("language_models")
    made: dict[int, str] = {}

    def folder(seed: int = 0) -> str:
        if seed not in made:
            made[seed] = save_language_model(root / str(seed), seed=seed, num_hidden_layers=2)
        return made[seed]

    return folder


@pytest.fixture(scope="session")
def talker(_quiet_torch: None, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a policy that says words. Not to be changed."""
    from small_world import save_talker

    return save_talker(tmp_path_factory.mktemp("talker") / "policy")


@pytest.fixture(scope="session")
def world(_quiet_torch: None) -> Path:
    """A folder with a study of four reward models, in `small.toml`, and what it wrote, in `study`."""
    from pluralbench.downstream.study import study
    from pluralbench.reports.kinds import write_study_page
    from reward_models import save_classifier
    from small_world import people_file, save_talker, study_values, write_study

    def make(folder: Path) -> None:
        names = {1: "given [1|2]", 2: "given (2)"}
        rewards = {
            name: save_classifier(folder / f"given-{seed}", num_hidden_layers=2, seed=seed)
            for seed, name in names.items()
        }
        data, more = (people_file(folder / f"{seed}.jsonl", 6, seed=seed) for seed in (0, 1))
        values = study_values(save_talker(folder / "policy"), rewards, data, more)
        write_study_page(study(write_study(folder / "small.toml", values), out=folder / "study"))

    return made_once("world", make)


@pytest.fixture(scope="session")
def recipe(world: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of four reward models. Not to be changed."""
    return Path(shutil.copy(world / "small.toml", tmp_path_factory.mktemp("recipe")))


@pytest.fixture(scope="session")
def done(world: Path) -> "Study":
    """The study, finished. Not to be changed."""
    from pluralbench.downstream.study import load_study

    return load_study(world / "study")


@pytest.fixture(scope="session")
def model(classifiers: Folders) -> str:
    """A classifier."""
    return classifiers()


@pytest.fixture(scope="session")
def constant(classifiers: Folders) -> str:
    """A classifier that gives every response the same score."""
    return classifiers(head=0.0)


@pytest.fixture(scope="session")
def sample() -> Path:
    """The release of the sample of Personalized RewardBench. Not to be changed."""
    return built_sample("build-personalized").release


def _words(draw: random.Random, most: int = 12) -> str:
    return " ".join(draw.choices(WORDS, k=draw.randint(1, most)))


@pytest.fixture(scope="session")
def pairs() -> Callable[..., Rows]:
    """`pairs(20, language="fr")`: rows with id, prompt, chosen and rejected, and these values in each row."""

    def make(number: int = 12, *, seed: int = 0, **values: Any) -> Rows:
        draw = random.Random(seed)
        return [
            {
                "id": f"q{place}",
                "prompt": f"{_words(draw)}?",
                "chosen": f"{_words(draw)} {place}",
                "rejected": f"{_words(draw)} {place}!",
            }
            | values
            for place in range(number)
        ]

    return make


@pytest.fixture(scope="session")
def people() -> Callable[..., Rows]:
    """`people(4, marker="x")`: rows as Personalized RewardBench has them, its marker in all that nobody may see."""

    def make(number: int = 4, *, seed: int = 0, marker: str = "secret") -> Rows:
        draw = random.Random(seed)
        aspect = {name: f"{marker}-{name} {_words(draw)}" for name in ("aspect", "evidence", "reason")}
        return [
            {
                "id": f"p{seed}-{place}",
                "question": f"{_words(draw)}?",
                "profile": [
                    {"id": f"post{post}", "category": "Tea", "text": f"Post no. {post} of {place}."}
                    for post in range(1, 5)
                ],
                "rubric_aspects": [aspect, aspect],
                "narrative": f"{marker}-narrative {_words(draw)}",
                "category": "Art",
                "chosen": f"{_words(draw)} {place}",
                "rejected": f"{_words(draw)} {place}!",
            }
            for place in range(number)
        ]

    return make


@pytest.fixture
def score(tmp_path: Path) -> Callable[..., Run]:
    """`score("pairs", data)`: the run of `verbs.by_text`, in a directory of its own; `by=model` is that of a model."""
    numbers = itertools.count()

    def scored(benchmark: str, data: Path | str, by: Any = verbs.by_text, **options: Any) -> Run:
        out = options.pop("out", tmp_path / "runs" / str(next(numbers)))
        device = {"device": "cpu"} if isinstance(by, str) else {}
        return verbs.score(by, benchmark=benchmark, data=data, out=out, **device, **options)

    return scored


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run `pluralbench` with these words in this process: its exit status, output and errors."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    def words_to_result(*words: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["pluralbench", *map(str, words)])
        with pytest.raises(SystemExit) as exit_:
            main()
        written = capsys.readouterr()
        return int(exit_.value.code or 0), written.out, without_status(written.err)

    return words_to_result

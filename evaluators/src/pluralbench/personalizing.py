"""`personalize`: personalized reward models from their data to the page that compares them."""

from pathlib import Path

from pluralbench_local import LocalModel
from pluralbench_local.personal.options import PersonalOptions
from pluralbench_rewards import Scoring

from pluralbench.descriptions import Data, Personalizing
from pluralbench.evaluation.personalize import BENCHMARK, personalize_run
from pluralbench.reports.figures.personalize import draw_personalized
from pluralbench.reports.personalize import page
from pluralbench.results.personalize import FIGURES_FOLDER, PAGE_FILE, Personalized


def personalize(
    backbone: str | Path | LocalModel,
    *,
    data: str | Path | Data | None,
    benchmark: str = BENCHMARK,
    held_out: float | str | Path | None = None,
    score_on: str | Path | Data | None = None,
    score_benchmark: str = "personalized",
    personalizing: Personalizing | None = None,
    options: PersonalOptions | None = None,
    personas: Path | None = None,
    scoring: Scoring | None = None,
    embeddings: Path | None = None,
    out: str | Path | None = None,
    fresh: bool = False,
) -> Personalized:
    """Train personalized reward models with and without a profile, and compare what they decide.

    Personalized RewardBench, appendices A.3 and B: the ablation and the layout of its Table 6.

    backbone: a language model or a sentence encoder whose vectors all of them read, and which stays as it is; "local"
    is the small embedded one. data: users to train on and new ones, in splits or to be divided by `held_out`, which is
    a share of the users, or where others are. The latest pairs of users with three or more are held out too, as those
    of known users. score_on, score_benchmark: another benchmark that is decided, config by config.
    personalizing: methods, conditions and seeds. options: how each is trained; what it reads of the person is not
    taken from there. personas: descriptions of users, by the id of an item or a person, where the data has none.
    scoring: how the backbone runs. embeddings: a folder of vectors that runs share; without it they are in `out`.

    `out` holds `report.md`, the numbers, each decision, and the models in folders that `score` takes. What was
    interrupted goes on with the same call. Raises a `UserError` for every mistake of the caller.
    """
    done = personalize_run(
        backbone,
        data=data,
        benchmark=benchmark,
        held_out=held_out,
        score_on=score_on,
        score_benchmark=score_benchmark,
        personalizing=personalizing,
        options=options,
        personas=personas,
        scoring=scoring,
        embeddings=embeddings,
        out=out,
        fresh=fresh,
    )
    if not (done.path / PAGE_FILE).exists():
        figures = [path for path in draw_personalized(done, done.path / FIGURES_FOLDER) if path.suffix == ".png"]
        text = page(done, [path.relative_to(done.path) for path in figures])
        (done.path / PAGE_FILE).write_text(text, encoding="utf-8")
    return done

"""Verbs that train reward models and planners, and write plans."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pluralbench_runs import Seed
from pluralbench_runs.options import Flag, Options
from pydantic import Field

from pluralbench.config import (
    PLACE,
    AspectMatchingConfig,
    ConnectionConfig,
    DataConfig,
    LocalModel,
    PersonalConfig,
    PersonalizeConfig,
    PlanConfig,
    PlannerConfig,
    Profile,
    PromptConfig,
    ScoringConfig,
    TrainingConfig,
)
from pluralbench.verbs.evaluate import WITHOUT_DRAW

if TYPE_CHECKING:
    from pluralbench_local import Trained

    from pluralbench.results.runs import Personalized, Plans

ProfileSize = Annotated[int, Field(ge=1)]
HeldOut = Annotated[float | str | Path | None, Flag(metavar="SHARE|FILE")]
Out = Annotated[str | Path, Flag("--out")]


def train(
    base: Annotated[str | Path | LocalModel, Options("Model", ("kind", "reference", "label", "dtype"))],
    out: Out,
    *,
    data: Annotated[str | Path | DataConfig | None, Options(left_out=WITHOUT_DRAW)] = None,
    benchmark: str = "pairs",
    prompt: Profile | PromptConfig | None = None,
    held_out: HeldOut = None,
    label_noise: float = 0.0,
    options: Annotated[TrainingConfig | None, Options("Training")] = None,
    fresh: bool = False,
) -> "Trained":
    """Train a reward model on the items of a benchmark.

    Writes a directory with a sequence classifier, a log of the steps, and training.json with the data, the options and
    the held-out accuracy. Repeat it with the same arguments to resume.

    Args:
        base: Language model (gets a new head) or classifier with one logit: directory, ORG/NAME on the Hub, or `local`
            (small embedded language model). In Python also a `LocalModel`.
        out: Directory of the trained model.
        data: Location of the dataset, or a `DataConfig`, which also selects configs, columns and a limit. Default: the
            benchmark's dataset on the Hub, if it has one.
        benchmark: Name, such as personalized, multilingual, chinese, reward-bench-2 or pairs (`pluralbench list` shows
            all), or a TOML file.
        prompt: User context in the prompt, such as "raw", or a `PromptConfig`. Default: none.
        held_out: Measure accuracy on this fraction of the clusters (prompts or users), such as 0.2, drawn by the seed,
            or on the items of a file. Default: none.
        label_noise: Reverse the order of this fraction of the training items, drawn by the seed. Held-out items are
            never reversed.
        options: Training options such as epochs and learning rate. Its seed also draws `held_out` and `label_noise`.
            Default: `TrainingConfig()`.
        fresh: Start over, and replace existing output.

    Returns:
        The directory, the training record and the held-out accuracy.

    Raises:
        UserError: If an argument, the data, the model or the directory cannot be used. The message names the fix.

    Examples:
        pluralbench train ./base --data pairs.jsonl --held-out 0.2 --learning-rate 5e-5 --out my-model
        pluralbench train ./base --data pairs.jsonl --trainable head --epochs 20 --learning-rate 0.01 --out my-model
        pluralbench train ORG/NAME --benchmark personalized --profile raw --data dist/train --lora 16/32 --out my-model
    """
    arguments = locals()
    from pluralbench.evaluation.train import train as run_training

    return run_training(**arguments)


def personalize(
    backbone: Annotated[str | Path | LocalModel, Options("Backbone", ("kind", "reference", "label"))],
    *,
    data: Annotated[str | Path | DataConfig | None, Options(left_out=("split", *WITHOUT_DRAW))],
    benchmark: str = "personalized-training",
    held_out: HeldOut = None,
    score_on: Annotated[str | Path | None, Flag(metavar=PLACE)] = None,
    score_benchmark: str = "personalized",
    personalizing: Annotated[PersonalizeConfig | None, Options("Methods")] = None,
    options: Annotated[PersonalConfig | None, Options("Training", ("method", "profile", "persona", "seed"))] = None,
    personas: Path | None = None,
    scoring: ScoringConfig | None = None,
    embeddings: Path | None = None,
    out: str | Path | None = None,
    fresh: bool = False,
) -> "Personalized":
    """Train personalized reward models with and without a user profile, and compare their accuracy.

    Follows the ablation of Personalized RewardBench (appendices A.3 and B; the report has the layout of its Table 6).
    Pairs of new users are decided, and the latest pairs of training users with three or more pairs ("known users").

    Writes a run directory with the models, which `score` accepts, decisions, metrics and report.md. Repeat it with the
    same arguments to resume.

    Args:
        backbone: Frozen language model or sentence encoder that computes the embeddings: directory, ORG/NAME on the
            Hub, or `local` (small embedded language model). In Python also a `LocalModel`.
        data: Location of the users' items, or a `DataConfig`. Its splits are training users and new users, unless
            `held_out` says otherwise.
        benchmark: Name, such as personalized, multilingual, chinese, reward-bench-2 or pairs (`pluralbench list` shows
            all), or a TOML file.
        held_out: Measure accuracy on this fraction of the training users, such as 0.2, or on the items of a file.
            Default: the test split.
        score_on: Also score the items of another benchmark at this location. Default: none.
        score_benchmark: Benchmark of `score_on`.
        personalizing: Methods, conditions and seeds. Default: `PersonalizeConfig()`.
        options: Training of each model, except what it reads of the user. Default: `PersonalConfig()`.
        personas: Output of `synthesize`, or JSON Lines with persona and the id of an item or a user. Default: the
            data's personas.
        scoring: How the backbone runs. Default: `ScoringConfig()`.
        embeddings: Directory of embeddings, which runs can share. Default: in the run directory.
        out: Run directory. Default: a name under runs/ that lists the backbone and the other settings.
        fresh: Start over, and replace existing output.

    Returns:
        The run, as `load_run` reads it.

    Raises:
        UserError: An argument or the data is not valid.

    Examples:
        pluralbench personalize local --data sample --methods bt,pal --seeds 1 --out personal
        pluralbench personalize ORG/NAME --data dist/training --score-on dist/personalized-rewardbench --out personal
        pluralbench personalize ORG/ENCODER --data pairs.parquet --held-out 0.2 --methods bt,gpo,vpl,pal --profile all
    """
    arguments = locals()
    from pluralbench.personalizing.run import personalize as run_personalize

    return run_personalize(**arguments)


def train_planner(
    base: Annotated[str | Path | LocalModel, Options("Model", ("kind", "reference", "label"))],
    out: Out,
    *,
    data: Annotated[str | Path | DataConfig | None, Options(left_out=("on_empty", *WITHOUT_DRAW))] = None,
    benchmark: str = "personalized",
    profile_size: ProfileSize = 10,
    held_out: Annotated[float | None, Flag(metavar="SHARE")] = None,
    options: Annotated[PlannerConfig | None, Options("Training")] = None,
    fresh: bool = False,
) -> Any:
    """Train a language model to infer what a user expects of an answer, from their posts and question.

    The targets are the rubric aspects of a benchmark's items (Personalized RewardBench, section 4.3); responses are not
    read. Training uses LoRA with TRL, of the extra `optimize` (in a clone: uv sync --inexact --package pluralbench
    --extra optimize). Writes a directory with an ordinary language model, a log of the steps, and planner.json with the
    data and options. Repeat it with the same arguments to resume.

    Args:
        base: Language model with a chat template: directory, ORG/NAME on the Hub, or `local` (small embedded model). In
            Python also a `LocalModel`.
        out: Directory of the trained planner.
        data: Location of the items, or a `DataConfig`. Default: the benchmark's data for training planners, never what
            it scores on. The default split is the train split.
        benchmark: Name, such as personalized, multilingual, chinese, reward-bench-2 or pairs (`pluralbench list` shows
            all), or a TOML file.
        profile_size: Maximum number of posts per user.
        held_out: Measure the loss on this fraction of the users, such as 0.05, drawn by the seed. Default: none.
        options: Training options. Default: `PlannerConfig()`.
        fresh: Start over, and replace existing output.

    Returns:
        The trained planner, a `pluralbench_local.Trained`.

    Raises:
        UserError: An argument or the data is not valid.

    Examples:
        pluralbench train-planner Qwen/Qwen2.5-0.5B-Instruct --held-out 0.05 --out planner
        pluralbench train-planner local --data people.jsonl --max-steps 40 --warmup-steps 4 --batch-size 2
            --learning-rate 3e-3 --out planner
    """
    arguments = locals()
    from pluralbench.planning.training import train_planner as run_training

    return run_training(**arguments)


def plan(
    planner: str | Path | LocalModel,
    *,
    benchmark: str = "personalized",
    data: Annotated[str | Path | DataConfig | None, Options(left_out=("on_empty", *WITHOUT_DRAW))] = None,
    profile_size: ProfileSize = 10,
    sampling: Annotated[PlanConfig | None, Options("Planner")] = None,
    matching: Annotated[AspectMatchingConfig | None, Options("True aspects")] = None,
    connection: ConnectionConfig | None = None,
    seed: Seed = 0,
    out: str | Path | None = None,
    fresh: bool = False,
) -> "Plans":
    """Let a planner infer what each user expects of an answer, and measure how many true aspects it finds.

    Writes a directory with plans.jsonl for `score` and `judge` (--profile plan --plans). A plan that is not a list is
    kept as text, as the paper does for all plans (Personalized RewardBench, section 4.3). Calls are recorded; repeat it
    with the same arguments to resume.

    Args:
        planner: Directory or ORG/NAME on the Hub to run here, a model of the endpoint, if there is one, or `local`
            (embedded). In Python also a `LocalModel`.
        benchmark: Name, such as personalized, multilingual, chinese, reward-bench-2 or pairs (`pluralbench list` shows
            all), or a TOML file.
        data: Location of the items, or a `DataConfig`. Default: the benchmark's data on the Hub. Questions and
            profiles are read, and the true rubric aspects only to evaluate the plans.
        profile_size: Maximum number of posts per user.
        sampling: Sampling of the plans. Default: `PlanConfig()`.
        matching: When an aspect of a plan matches a true aspect. Default: `AspectMatchingConfig()`.
        connection: Endpoint of the planner. Default: none.
        seed: Random seed, sent to models that take one.
        out: Run directory. Default: a name under runs/ that lists the planner and the other settings.
        fresh: Start over, and replace existing output.

    Returns:
        The plans, as `load_run` reads them.

    Raises:
        UserError: An argument or the data is not valid.

    Examples:
        pluralbench plan ./planner --data dist/personalized-rewardbench
        pluralbench plan gpt-5-mini --base-url https://api.openai.com/v1 --price 0.25/2 --max-cost 2 --out plans
        pluralbench score ./my-model --data dist/personalized-rewardbench --profile plan --plans plans
    """
    arguments = locals()
    from pluralbench.planning.plans import plan as run_plan

    return run_plan(**arguments)

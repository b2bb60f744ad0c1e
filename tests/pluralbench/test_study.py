"""`pluralbench study`: from a recipe to a page, whole however often it is stopped, and each step made once."""

import json
import shutil
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pluralbench_local
import polars as pl
import pytest
from chat_server import Reply, serve
from commands import without_status
from filelock import FileLock
from html_runs import Read
from markdown_it import MarkdownIt
from pluralbench.downstream import study as steps
from pluralbench.downstream.correlate import correlate
from pluralbench.downstream.score_series import ScoreSeries
from pluralbench.downstream.study import Study, load_study, study
from pluralbench.reports.html.page import html_report
from pluralbench.reports.kinds import loaded_study_section, study_findings, study_section
from pluralbench.results.finding import find_runs
from pluralbench_policies import PolicyError
from pluralbench_runs import OutputError
from small_world import PPO, people_file, write_study
from undrawn import undrawn

Command = Callable[..., tuple[int, str, str]]
STEPS = [
    *((steps, name) for name in ("score", "best_of_n", "optimize", "write_jsonl")),
    *((pluralbench_local, name) for name in ("untrained", "train")),
]


def changed(recipe: Path, **values: Any) -> Path:
    """The recipe with other values, beside it."""
    return write_study(recipe.with_name("changed.toml"), tomllib.loads(recipe.read_text(encoding="utf-8")) | values)


def made_in(folder: Path) -> dict[str, tuple[int, int]]:
    """The files of a study's steps: when they were written, and how large they are."""
    wanted = (path for path in folder.rglob("*") if path.is_file() and "figures" not in path.parts)
    found = {path.relative_to(folder): path.stat() for path in wanted}
    return {str(name): (one.st_mtime_ns, one.st_size) for name, one in found.items() if len(name.parts) > 1}


def links(page: str) -> Iterator[str]:
    """Where the links and pictures of a page go."""
    for block in MarkdownIt("commonmark").parse(page):
        for token in block.children or []:
            for name in ("href", "src"):
                if name in token.attrs:
                    yield unquote(str(token.attrs[name]))


def test_every_number_of_the_scores_is_that_of_its_step(done: Study) -> None:
    frame = pl.read_csv(done.path / "scores.csv")
    assert frame.columns == ["model", "own pairs", "judged pairs", "best-of-n", "optimization"]
    assert frame["model"].to_list() == ["given [1|2]", "given (2)", "0 pairs", "8 pairs"]
    assert done.best_of_n is not None
    candidates = done.best_of_n.frame("outcomes").sort("id", "sample")
    for row in frame.iter_rows(named=True):
        name = row["model"]
        for benchmark in ("own pairs", "judged pairs"):
            items = done.runs[benchmark][name].items
            wins = (items["score_chosen"] > items["score_rejected"]).mean()
            assert row[benchmark] == pytest.approx(wins)
        # Of 4 candidates the best of 4 is the one of the highest reward.
        rewards = done.best_of_n.frame("rewards").filter(model=name)
        judged = candidates.join(rewards, on=["id", "sample"])
        best = judged.sort("reward", descending=True).group_by("id").first()
        assert row["best-of-n"] == pytest.approx(best["value"].mean())
        assert row["optimization"] == pytest.approx(done.optimized[name].frame("outcomes")["value"].mean())
    assert frame.select(pl.exclude("model").n_unique()).row(0) > (1, 1, 1, 1)


@pytest.mark.heavy
def test_policies_that_were_trained_elsewhere_have_the_scores_of_those_that_the_study_trained(
    done: Study, recipe: Path, tmp_path: Path, run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pluralbench_policies.trainable.find_spec", lambda name: None)  # nothing can be trained
    given = tomllib.loads(recipe.read_text(encoding="utf-8"))
    values = {
        name: value for name, value in given.items() if name not in {"benchmarks", "best_of_n", "samples", "axis"}
    }
    values["models"] = given["models"][:2]
    names = [model["name"] for model in values["models"]]
    trained = {name: str(done.path / "optimization" / name / "policy") for name in names}
    values["optimization"] = given["optimization"] | {"trained": trained}
    again = write_study(tmp_path / "again.toml", values)
    status, told, error = run("study", again, "--out", tmp_path / "out", "--dry-run")
    assert status == 0, error
    for name, path in trained.items():
        assert f"judge {path}, trained against {name}" in " ".join(told.split())
    assert run("study", again, "--out", tmp_path / "out")[0] == 0
    scores = [pl.read_csv(one / "scores.csv").select("model", "optimization") for one in (done.path, tmp_path / "out")]
    assert scores[1].equals(scores[0].filter(pl.col("model").is_in(names)))


def test_the_correlations_are_those_of_the_scores(done: Study) -> None:
    from scipy.stats import spearmanr

    frame = pl.read_csv(done.path / "scores.csv")
    found = json.loads((done.path / "correlations.json").read_text(encoding="utf-8"))
    assert list(found) == ["best-of-n", "optimization"]
    for name, one in found.items():
        assert one["spearman"] == pytest.approx(spearmanr(frame["own pairs"], frame[name]).statistic)
        baseline = one["baselines"]["judged pairs"]["spearman"]
        assert baseline == pytest.approx(spearmanr(frame["judged pairs"], frame[name]).statistic)
        assert one["seed"] == 3
        assert str(done.path) not in json.dumps(one), "a study that is moved says the same"


def test_the_page_says_what_was_found_and_its_links_lead_somewhere(done: Study) -> None:
    page = (done.path / "README.md").read_text(encoding="utf-8")
    found = json.loads((done.path / "correlations.json").read_text(encoding="utf-8"))
    for name, title in (("best-of-n", "Best-of-N"), ("optimization", "Policy optimization")):
        rho, p = found[name]["spearman"], found[name]["p_values"]["spearman"]
        assert (
            f"- {title}: over 4 reward models, the ranking by own pairs and the downstream ranking have a Spearman "
            f"correlation of {rho:+.2f} (p = {p:.3f}, one-sided, over all orders): "
        ) in page
        rho = found[name]["baselines"]["judged pairs"]["spearman"]
        assert f"- {title}: the correlation for the baseline judged pairs is {rho:+.2f} (p of the difference = " in page
    rows = [line for line in page.splitlines() if line.endswith((" 1    |", " 2    |", " 3    |", " 4    |"))]
    assert len(rows) == 8, "ranks of the four reward models, by best-of-n and by optimisation"
    places = list(links(page))
    drawn = ["axis", "best_of_n", *(f"{name}/scores" for name in found)]
    assert sorted(places) == sorted(f"figures/{stem}.png" for stem in drawn)
    for place in places:
        assert (done.path / place).read_bytes().startswith(b"\x89PNG"), place
    assert page.count(" in 1 step of PPO.") == 4
    assert str(done.path) not in page


@pytest.mark.heavy
def test_the_page_of_runs_has_a_section_of_the_study_with_its_findings_once(done: Study) -> None:
    runs = find_runs([done.path])
    assert runs.studies == [done.path]
    loaded = load_study(done.path)
    assert {name: one.as_dict() for name, one in loaded.correlations.items()} == {
        name: one.as_dict() for name, one in done.correlations.items()
    }
    page = Read(html_report(runs._replace(runs=[], others={}))[0])
    for sentence in study_findings(done):
        assert page.words.count(sentence) == 1
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    assert {name for value in page.values("aria-labelledby") for name in value.split()} <= set(ids)
    assert "--" not in page.text
    assert "=..." not in page.text
    text, _ = html_report(runs._replace(runs=[]))
    assert "Policy: optimization" not in text
    assert "1 study." in text


def test_the_page_says_why_there_is_no_correlation_and_which_model_has_fewer_pairs(done: Study) -> None:
    names = [model.name for model in done.recipe.models]
    equal, ranked = (ScoreSeries("s", "m", names, np.array(scores)) for scores in ([0.0] * 4, [1.0, 2.0, 3.0, 4.0]))
    models = list(done.recipe.models)
    training = models[-1].train
    assert training is not None
    models[-1] = models[-1].model_copy(update={"train": training.model_copy(update={"pairs": 999})})
    recipe = done.recipe.model_copy(update={"models": tuple(models)})
    section = study_section(replace(done, recipe=recipe, correlations={"best-of-n": correlate(ranked, equal)}))
    assert any(
        "all reward models have the same score on the benchmark, or the same" in one for one in section.sentences
    )
    assert not any("this study has none" in one for one in section.sentences)
    assert sum(", not 999, since the sample has no more." in note for note in section.notes) == 1


def test_a_study_without_a_step_has_a_section_that_says_so(done: Study, tmp_path: Path) -> None:
    shutil.copy(done.path / "study.toml", tmp_path)
    result = loaded_study_section(tmp_path)
    step = tmp_path / "benchmarks" / "own pairs" / "given [1|2]"
    assert f"This study is not complete: {step} is not a finished run; it has no run.json." in result.sentences


@pytest.mark.heavy
def test_a_finished_study_makes_nothing_again(done: Study, run: Command) -> None:
    before, written = made_in(done.path), (done.path / "README.md").read_bytes()
    # By the recipe beside the page, which is the same one.
    status, out, error = run("study", done.path / "study.toml", "--out", done.path)
    assert (status, without_status(error)) == (0, "")
    assert made_in(done.path) == before
    assert (done.path / "README.md").read_bytes() == written
    assert "Best-of-N: over 4 reward models, the ranking by own pairs" in " ".join(out.split())
    assert f"{done.path}: README.md, scores.csv, figures, and a directory for each step" in " ".join(out.split())


def test_an_extra_that_a_late_step_needs_is_asked_for_first(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name in STEPS:
        monkeypatch.setattr(module, name, None)
    monkeypatch.setattr("pluralbench_policies.trainable.find_spec", lambda name: None if name == "torchrl" else name)
    with pytest.raises(PolicyError, match="needs torchrl"):
        study(recipe, out=tmp_path / "out")


JUDGE = {"judge": "m", "measure": "rating"}
NO_KEY = {"base_url": "http://127.0.0.1:9/v1", "api_key_env": "PLURALBENCH_NO_KEY"}
NOWHERE = {"location": "./nowhere.jsonl", "profile": "none"}


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"benchmarks": {"late": NOWHERE}}, "The benchmark 'late': ./nowhere.jsonl does not exist"),
        ({"best_of_n": {"items": NOWHERE}}, "[best_of_n]: ./nowhere.jsonl does not exist"),
        ({"optimization": {"items": NOWHERE}}, "[optimization]: ./nowhere.jsonl does not exist"),
        (
            {"optimization": {"trained": {"0 pairs": "./nowhere"}}},
            "`trained` of [optimization]: ./nowhere is not a model folder",
        ),
        ({"samples": {"learn": {"items": NOWHERE}}}, "./nowhere.jsonl does not exist"),
        ({"policy": "./nowhere"}, "The policy: ./nowhere is not a model folder"),
        ({"models": {"path": "./nowhere"}}, "The model 'late': ./nowhere is not a model folder"),
        (
            {"models": {"train": {"base": "./nowhere", "items": {"sample": "learn"}}}},
            "The model 'late': ./nowhere is not a model folder",
        ),
        (
            {"models": {"train": {"items": NOWHERE}}},
            "The training items of 'late': ./nowhere.jsonl does not exist",
        ),
        (
            {"models": {"train": {"items": {"sample": "learn"}, "pairs": 999}}},
            "The model 'late' is to be trained on 999 items (`pairs`), but the sample learn has at most ",
        ),
        (
            {"models": {"train": {"items": {"location": "YOUR-PREFERENCES"}}}},
            "The model 'late' is to be trained on a set of yours: save the output of `pluralbench study cheems-sets",
        ),
        (
            {"outcome": JUDGE, "judge_connection": {"base_url": "http://127.0.0.1:9/v1"}},
            "The judge: 127.0.0.1 cannot be reached",
        ),
        ({"outcome": JUDGE, "judge_connection": NO_KEY}, "The judge: 127.0.0.1 needs a key; set the"),
    ],
)
def test_what_a_late_step_needs_is_checked_before_the_first(
    recipe: Path, tmp_path: Path, run: Command, monkeypatch: pytest.MonkeyPatch, values: dict[str, Any], sentence: str
) -> None:
    for module, name in STEPS:
        monkeypatch.setattr(module, name, None)
    given = tomllib.loads(recipe.read_text(encoding="utf-8"))
    for key, value in values.items():
        match key:
            case "models":
                values = values | {key: [*given[key], {"name": "late"} | value]}
            case "benchmarks":
                values = values | {key: given[key] | value}
            case "optimization":
                values = values | {key: given[key] | value}
    for words in ((), ("--dry-run",)):
        status, _, error = run("study", changed(recipe, **values), "--out", tmp_path / "out", *words)
        assert (status, sentence in " ".join(error.split())) == (2, True), error
    assert not (tmp_path / "out").exists()


def test_a_dry_run_lists_the_steps_and_counts_answers_and_calls(recipe: Path, tmp_path: Path, run: Command) -> None:
    given = tomllib.loads(recipe.read_text(encoding="utf-8"))
    with serve(lambda *_: Reply("5")) as server:
        connection = {"base_url": server.base_url, "price": {"input": 1000.0, "output": 2000.0}}
        values = {"outcome": JUDGE, "judge_connection": connection}
        status, out, _ = run("study", changed(recipe, **values), "--out", tmp_path / "out", "--dry-run")
        assert (status, server.requests, (tmp_path / "out").exists()) == (0, [], False)
    lines = out.splitlines()
    assert [line.split(maxsplit=1)[1] for line in lines[: 2 * 4 + 3 + 1 + 4]] == [
        *("score given [1|2] on own pairs", "score given (2) on own pairs", "draw the pairs of learn", "train 0 pairs"),
        *("score 0 pairs on own pairs", "train 8 pairs", "score 8 pairs on own pairs"),
        *(f"score {model['name']} on judged pairs" for model in given["models"]),
        "best-of-n",
        *(f"optimize against {model['name']}" for model in given["models"]),
    ]
    rows = {name: len(Path(place).read_text(encoding="utf-8").splitlines()) for name, place in locations(given).items()}
    # 4 candidates to each prompt of the sample and of best-of-n; one before and one after each optimization.
    answers = 4 * rows["learn"] + 4 * rows["best_of_n"] + 2 * len(given["models"]) * rows["optimization"]
    said = " ".join(" ".join(lines[-3:]).split())
    assert (
        f"Ahead: 16 steps, 2 models to train. At most {answers} answers of the policy. At most {answers} calls" in said
    )
    assert f"at most {answers * 512:,} of replies, about $" in said
    dollars = float(said.partition("about $")[2].split(" ")[0].replace(",", ""))
    assert dollars > answers * 512 * 2000 / 1e6


def locations(given: dict[str, Any]) -> dict[str, str]:
    """The files of prompts of a study."""
    tables = {
        "learn": given["samples"]["learn"],
        "best_of_n": given["best_of_n"],
        "optimization": given["optimization"],
    }
    return {name: table["items"]["location"] for name, table in tables.items()}


@pytest.mark.heavy
def test_stopped_after_a_step_of_each_kind_it_ends_in_the_same_scores(
    done: Study, recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = [model for model in tomllib.loads(recipe.read_text(encoding="utf-8"))["models"] if "train" in model]
    recipe = changed(recipe, models=trained)
    out, stops = tmp_path / "stopped", list[str]()
    made = False

    def stopping(name: str, step: Any) -> Any:
        def call(*given: Any, **named: Any) -> Any:
            nonlocal made
            if made:
                raise KeyboardInterrupt
            before = made_in(out)
            found = step(*given, **named)
            if name not in stops and made_in(out) != before:
                made = True
                stops.append(name)
            return found

        return call

    with undrawn(), monkeypatch.context() as patch:
        for module, name in STEPS:
            patch.setattr(module, name, stopping(name, getattr(module, name)))
        finished = False
        while not finished:
            made, known = False, made_in(out)
            try:
                study(recipe, out=out)
                finished = True
            except KeyboardInterrupt:
                assert not (out / "scores.csv").exists()
            kept = made_in(out)
            assert {name: one for name, one in kept.items() if name in known} == known, "what was there stays"
    assert sorted(stops) == sorted(name for _, name in STEPS)
    before = made_in(out)
    with undrawn():
        study(recipe, out=out)
    assert made_in(out) == before
    scores, whole = (pl.read_csv(folder / "scores.csv") for folder in (out, done.path))
    assert scores.equals(whole.filter(pl.col("model").is_in([model["name"] for model in trained])))


@pytest.mark.parametrize(
    ("values", "differs"),
    [
        ({"seed": 4}, "seed 3, now 4"),
        ({"sampling": {"n": 4, "k": [1, 4], "max_tokens": 9}}, "k [1, 2, 4], now [1, 4]; max_tokens 16, now 9"),
        ({"outcome": {"judge": "gpt-x"}}, "judge rubric-overlap, now gpt-x"),
    ],
)
def test_a_changed_recipe_is_refused_in_plain_words(
    done: Study, recipe: Path, run: Command, values: dict[str, Any], differs: str
) -> None:
    before = made_in(done.path)
    other = changed(recipe, **values)
    status, _, error = run("study", other, "--out", done.path)
    assert (status, " ".join(error.split())) == (
        2,
        f"Error: The study in {done.path} has other settings ({differs}); use the same settings, choose another output "
        "directory, or start over with `--fresh`.",
    )
    assert made_in(done.path) == before
    assert "seed = 3" in (done.path / "study.toml").read_text(encoding="utf-8")


def only_scores(recipe: Path, path: Path, **values: Any) -> Path:
    """A study of the given reward models on one benchmark alone."""
    given = tomllib.loads(recipe.read_text(encoding="utf-8"))
    for key in ("samples", "best_of_n", "optimization", "policy", "outcome", "axis"):
        del given[key]
    given |= {"benchmarks": {"own pairs": given["benchmarks"]["own pairs"]}, "models": given["models"][:2]}
    return write_study(path, given | values)


@pytest.mark.heavy
def test_fresh_starts_over_and_moves_the_old_study_aside(recipe: Path, tmp_path: Path) -> None:
    out, plain = tmp_path / "out", only_scores(recipe, tmp_path / "plain.toml")
    study(plain, out=out)
    for name in ("correlations.json", "figures/axis.png", "benchmarks/gone/m/run.json"):
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text("of another study", encoding="utf-8")
    before = made_in(out)
    (out / "notes").mkdir()
    (out / "notes" / "mine.md").write_text("mine", encoding="utf-8")
    found = study(only_scores(recipe, tmp_path / "other.toml", seed=9), out=out, fresh=True)
    assert (out / "notes" / "mine.md").read_text(encoding="utf-8") == "mine"
    shutil.rmtree(out / "notes")
    assert {path.name for path in out.iterdir()} == {".lock", "study.toml", "scores.csv", "benchmarks"}
    assert [path.name for path in (out / "benchmarks").iterdir()] == ["own pairs"]
    assert all(made_in(out)[name][0] > before[name][0] for name in made_in(out))
    assert found.recipe.seed == 9
    assert found.correlations == {}
    assert "seed = 9" in (out / "study.toml").read_text(encoding="utf-8")
    [kept] = tmp_path.glob("out.kept-*")
    assert made_in(kept) == before
    assert load_study(kept).recipe.seed != 9


def test_a_study_of_benchmarks_alone_needs_no_policy(recipe: Path, tmp_path: Path, run: Command) -> None:
    out = tmp_path / "out"
    assert run("study", only_scores(recipe, tmp_path / "plain.toml"), "--out", out)[0] == 0
    page = (out / "README.md").read_text(encoding="utf-8")
    assert "**Scores of the reward models" in page
    assert "## Results" not in page
    assert list(links(page)) == []


def test_what_no_study_wrote_and_what_another_process_writes_is_left_alone(recipe: Path, tmp_path: Path) -> None:
    plain, out = only_scores(recipe, tmp_path / "plain.toml"), tmp_path / "out"
    out.mkdir()
    (out / "thesis.tex").write_text("mine", encoding="utf-8")
    for fresh in (False, True):
        with pytest.raises(OutputError) as refused:
            study(plain, out=out, fresh=fresh)
        assert (
            str(refused.value) == f"{out} contains files that are not part of a study; choose another output directory."
        )
    assert [path.name for path in out.iterdir()] == ["thesis.tex"]
    with pytest.raises(OutputError) as refused:
        study(plain, out=out / "thesis.tex")
    assert str(refused.value) == f"{out / 'thesis.tex'} is a file; choose another output directory."
    busy = tmp_path / "busy"
    study(plain, out=busy)
    before, recorded = made_in(busy), (busy / "study.toml").read_bytes()
    with FileLock(busy / ".lock"), pytest.raises(OutputError) as refused:
        study(only_scores(recipe, tmp_path / "other.toml", seed=5), out=busy, fresh=True)
    assert str(refused.value) == f"Another process is writing {busy}; wait for it or choose another output directory."
    assert (made_in(busy), (busy / "study.toml").read_bytes()) == (before, recorded)


@pytest.mark.heavy
def test_the_papers_study_correlates_beside_its_baselines(
    classifiers: Callable[..., str], talker: str, tmp_path: Path, run: Command
) -> None:
    """Table 3 of Personalized RewardBench: as it is shown, with other tables and small models."""
    values = tomllib.loads(run("study", "paper", "--show")[1])
    people = str(people_file(tmp_path / "people.jsonl", 6))
    for name, items in values["benchmarks"].items():
        items["location"] = people if name == "Personalized RewardBench" else "sample"
    for items in (values["best_of_n"]["items"], values["optimization"]["items"], values["optimization"]["train"]):
        items["location"] = people
    del values["optimization"]["train"]["split"], values["judge_connection"]
    values["optimization"]["options"] |= PPO | {"epochs": 1, "max_prompt_tokens": 512}
    values["sampling"] |= {"n": 2, "max_tokens": 8}
    values |= {"outcome": {"judge": "rubric-overlap"}, "runtime": {"device": "cpu", "dtype": "float32"}}
    values |= {"policy": talker, "models": [{"name": str(seed), "path": classifiers(seed=seed)} for seed in (1, 2)]}
    out = tmp_path / "out"
    with undrawn():
        status, _, error = run("study", write_study(tmp_path / "paper.toml", values), "--out", out)
    assert status == 0, error
    names = ["Chatbot Arena-Personalized", "PRISM-Personalized", "RewardBench"]
    found = json.loads((out / "correlations.json").read_text(encoding="utf-8"))
    assert {name: list(one["baselines"]) for name, one in found.items()} == {"best-of-n": names, "optimization": names}
    page = (out / "README.md").read_text(encoding="utf-8")
    assert [page.count(f"\n**Against {name} (") for name in names] == [2, 2, 2]

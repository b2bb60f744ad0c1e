"""Every kind of file that a stranger may hand in: what a good one looks like, and what reads it."""

import json
import shlex
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import chinese_project as chinese
import made_personalize
import made_runs
import persona_sources as persona
import polars as pl
import project_files
import small_world
import tomli_w
import written_verdicts
from children import ended
from pluralbench_calls import Answer, Ledger, read_ledger
from published_rows import published_files
from reward_models import save_classifier
from session_folder import made_once
from written_tables import write

BUILDERS = ("build-chinese", "build-multilingual", "build-persona-judge", "build-personalized")
ASKED = "--base-url {server} --api-key-env ''"


@dataclass(frozen=True)
class Kind:
    """A kind of input. make: writes good files into an empty folder. changed: which of them are changed, as a glob.

    commands: lines of what reads them there, drawn for each input; `{file}` is the changed file and `{server}` the URL
    of a chat server. number: how many inputs a full run tries. good: how each command ends on good files.
    """

    name: str
    make: Callable[[Path], object]
    changed: str
    commands: tuple[str, ...]
    number: int = 1_000
    good: int = 0


def _package(builder: str) -> Path:
    return Path(str(files(builder.replace("-", "_"))))


def _recipe(builder: str) -> Callable[[Path], object]:
    return lambda folder: shutil.copy(_package(builder) / "recipes/sample.toml", folder)


def _done(folder: Path, line: str) -> None:
    result = ended(shlex.split(line), folder, patience=120)
    assert result.status == 0, result.said


def released(builder: str) -> Path:
    """The release of a builder's sample, made once: it is copied, not changed."""
    return made_once(f"{builder}'s release", lambda folder: _done(folder, f"{builder} --out release")) / "release"


def _release(builder: str) -> Callable[[Path], object]:
    def make(folder: Path) -> None:
        for name in ("release", "other"):
            shutil.copytree(released(builder), folder / name)

    return make


def _ledgers(folder: Path) -> None:
    sample = _package("build-multilingual") / "sample" / "ledger.parquet"
    shutil.copy(sample, folder / "ledger.parquet")
    with Ledger(folder / "ledger.sqlite") as ledger:
        ledger.record(*(Answer(**row) for row in read_ledger(sample).head(40).iter_rows(named=True)))


def _lamp_qa(folder: Path) -> None:
    for number, path in enumerate(sorted((_package("build-personalized") / "sample/questions").glob("*.jsonl"))):
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()][:2]
        write(folder / "lamp" / f"{path.stem}{['.jsonl', '.json', '.parquet'][number % 3]}", rows)


def _dump(folder: Path) -> None:
    (folder / "beer.Posts.xml").write_text(project_files.posts(), encoding="utf-8")


def _scores(folder: Path) -> None:
    sides = [{"id": f"q{n}", "subset": "s", "scores_chosen": n / 3, "scores_rejected": 1.0} for n in range(6)]
    write(folder / "ours.jsonl", sides)
    for suffix in ("jsonl", "csv", "parquet"):
        write(folder / "theirs" / f"sides.{suffix}", sides)
    columns = {name: [row[name] for row in sides] for name in sides[0]}
    (folder / "theirs/columns.json").write_text(json.dumps(columns, indent=1), encoding="utf-8")
    write(folder / "theirs/lists.jsonl", [{"id": f"q{n}", "scores": [[n], [1]], "num_correct": 1} for n in range(6)])
    games = [{"judgment": {"scores": [0.5, 1]}, "decision": "B>A"}, {"judgment": None, "decision": "A>B"}]
    write(folder / "theirs/games.jsonl", [{"pair_id": f"q{n}", "label": "A>B", "judgments": games} for n in range(6)])


def _pairs(folder: Path) -> None:
    for suffix in (".csv", ".json", ".jsonl", ".parquet"):
        write(folder / f"pairs{suffix}", project_files.PAIRS)


def _right_and_wrong(name: str) -> Callable[[Path], object]:
    """The rows of a benchmark of right and wrong responses, as they are published."""

    def make(folder: Path) -> None:
        for suffix in (".jsonl", ".parquet"):
            write(folder / f"rows{suffix}", RIGHT_AND_WRONG[name])

    return make


def _people_asked(folder: Path) -> None:
    small_world.people_file(folder / "people.jsonl", 4)
    plans = [{"id": f"p0-{number}", "aspects": ["tea", "walks"]} for number in range(4)]
    write(folder / "plans.jsonl", plans)


def _annotated(folder: Path) -> None:
    chinese.write_taxonomy(folder)
    chinese.write_prompts(folder, ["open", "human", "preference"])
    _done(folder, f"build-chinese tasks {PROJECT} --out tasks")
    chinese.fill(min((folder / "tasks/sheets").glob("*.csv")), folder / "sheet.csv")
    project_files.export(folder / "tasks/sheets", folder / "export.json")


def _ranked(folder: Path) -> None:
    chinese.write_taxonomy(folder)
    chinese.write_rows(folder / "annotated.jsonl", [chinese.annotated(number) for number in range(4)])
    chinese.write_rows(folder / "more.jsonl", [chinese.unlabeled(number, 3) for number in range(4, 6)])


def _sources(folder: Path) -> None:
    answers = [{"QKEY": n, "Q1": ["Yes", "No"][n % 2]} for n in range(8)]
    persona.wave(folder / "waves/W1", {"Q1": ["Yes", "No", "Refused"]}, answers)
    persona.empathic(folder / "wassa", [(a, p, n * 2, n * 2) for a in (1, 2) for n, p in enumerate("pqr")])
    said = [persona.post(who, question) for who in ("cook", "nurse", "pilot") for question in ("q1", "q2")]
    write(folder / "reddit.jsonl", said)
    given = [persona.utterance(str(n), model, score) for n in range(3) for model, score in (("a", 90), ("b", 10))]
    persona.prism(folder / "prism", given)
    persona.people_csv(folder / "survey")


def _benchmark(folder: Path) -> None:
    write(folder / "pairs.jsonl", [{**pair, "subset": "cooking"} for pair in project_files.PAIRS])
    values = {
        "title": "Mine",
        "overall": "items",
        "sections": {"All": {"cooking": 5}},
        "columns": {"prompt": ["prompt"], "subset": "subset"},
    }
    (folder / "mine.toml").write_text(tomli_w.dumps({"mine": values}), encoding="utf-8")


def _verdicts(folder: Path) -> None:
    written_verdicts.written(folder)
    written_verdicts.written(folder, written_verdicts.LABELS, "labels.csv")
    frame = pl.read_csv(folder / "verdicts.csv", infer_schema=False)
    frame.write_parquet(folder / "verdicts.parquet")
    write(folder / "verdicts.jsonl", frame.to_dicts())


def _decisions(folder: Path) -> None:
    rows = [{"id": "0", "language": "spa_Latn", "decision": "keep", "reason": "fair"} for n in range(1)]
    persona.write_csv(folder / "decisions.csv", rows)
    write(folder / "pairs.jsonl", project_files.PAIRS)


def _rated(folder: Path) -> None:
    shutil.copy(_package("build-multilingual") / "sample/translations.jsonl", folder / "rated.jsonl")


def _runs(folder: Path) -> None:
    pairs = write(folder / "pairs.jsonl", project_files.PAIRS)
    for name in ("a", "b"):
        made_runs.scored("pairs", pairs, folder / "runs" / name, model=name)


def _model(folder: Path) -> None:
    write(folder / "pairs.jsonl", project_files.PAIRS)
    save_classifier(folder / "model")


def _personalized(folder: Path) -> None:
    made_personalize.made_personalized(folder / "run", made_personalize.made_items(methods=("bt", "vpl"), users=3))


def _study(folder: Path) -> None:
    small_world.people_file(folder / "people.jsonl", 4)
    text = project_files.STUDY.replace("dist/personalized-rewardbench", "people.jsonl")
    (folder / "study.toml").write_text(text.replace('policy = "policy"', 'policy = "./policy"'), encoding="utf-8")


PUBLISHED = published_files()
RIGHT_AND_WRONG = {
    "rmb-best-of-n": [row for name, rows in PUBLISHED.items() if "BoN_set" in name for row in rows],
    "rm-bench": PUBLISHED["rm-bench/total_dataset.json"],
    "judgebench": PUBLISHED["judgebench/gpt.jsonl"],
    "rewardmath": [
        {"problem": f"{n} + 1", "problem_id": n, "eval_solution": ["step", f"{k}"], "solution_type": kind}
        for n in range(3)
        for k, kind in enumerate(["chosen", "rejected", "rejected"])
    ],
    "ppe-gpqa": [
        {"question_id": f"{n}", "prompt": f"p{n}", "scores": [True, False, True], "response_1": "a", "response_2": "bb"}
        | {"response_3": f"ccc {n}", "sampled_conflict_pairs": [[0, 1], [1, 2], [0, 1]]}
        for n in range(3)
    ],
    "reward-bench-2": [
        {
            "id": name,
            "prompt": name,
            "subset": subset,
            "chosen": ["a", "bb"][: 2 if name < "a" else 1],
            "rejected": ["c"],
        }
        for name, subset in (("1", "Math"), ("ref:1", "Ties"), ("tied:1", "Ties"))
    ],
}
SAMPLES = files("pluralbench.data") / "samples"
VOTED = {"multipref": "multipref", "community-alignment": "community-alignment"}
VOTED["community-alignment-votes"] = "community-alignment"
RIGHT_AND_WRONG |= {
    name: [json.loads(line) for line in (SAMPLES / sample / "train.jsonl").read_text("utf-8").splitlines()[:4]]
    for name, sample in VOTED.items()
}
FEW = "--language spa_Latn --limit 1 --out out"
NAMED = " ".join(f"--annotator {name}" for name in chinese.FIVE)
PROJECT = f"--prompts prompts.jsonl --responses responses.jsonl --taxonomy taxonomy.toml {NAMED}"
TASKS = "--tasks tasks --out read.jsonl"
LEARNED = "--annotated annotated.jsonl --prompts more.jsonl --taxonomy taxonomy.toml"
QUESTIONS = f"build-personalized --llm m {ASKED} --limit 1 --out out"
KINDS = [
    *(
        Kind(f"recipe {name}", _recipe(name), "*.toml", (f"{name} --recipe {{file}} --out out",), 500)
        for name in BUILDERS
    ),
    Kind("recipe study", _study, "study.toml", ("pluralbench study {file} --out out",), 500, good=2),
    *(
        Kind(
            f"release {name}",
            _release(name),
            "release/**/*",
            tuple(
                f"pluralbench-release {words}" for words in ("verify release", "diff release other", "rebuild release")
            ),
            number=250,
        )
        for name in BUILDERS
    ),
    Kind("ledgers", _ledgers, "ledger.*", (*["take_ledger {file}"] * 4, f"build-multilingual --replay {{file}} {FEW}")),
    *(
        Kind(name, make, changed, (*[f"load_questions {source}"] * 4, f"{QUESTIONS} --source {source}"))
        for name, make, changed, source in (
            ("lamp-qa", _lamp_qa, "lamp/*", "lamp-qa:lamp"),
            ("dumps", _dump, "beer.Posts.xml", "stack-exchange:beer.Posts.xml"),
        )
    ),
    Kind("pairs", _pairs, "pairs.*", ("score_by_text {file}",)),
    *(
        Kind(name, _right_and_wrong(name), "rows.*", (f"score_by_text {{file}} {name}",), 300)
        for name in RIGHT_AND_WRONG
    ),
    Kind("people asked", _people_asked, "people.jsonl", ("score_by_text {file} personalized",), 500),
    Kind("plans", _people_asked, "plans.jsonl", ("score_by_text people.jsonl personalized {file}",)),
    Kind("benchmarks", _benchmark, "mine.toml", ("score_by_text pairs.jsonl {file}",)),
    Kind("sheets", _annotated, "sheet.csv", (f"build-chinese annotations {{file}} {TASKS}",)),
    Kind("label studio", _annotated, "export.json", (f"build-chinese annotations {{file}} {TASKS}",)),
    Kind("tasks", _annotated, "tasks/*.jsonl", (f"build-chinese annotations sheet.csv {TASKS}",)),
    Kind("prompts", _annotated, "[prt]*[s.]*o*l", (f"build-chinese tasks {PROJECT} --out out",), 500),
    Kind("taxonomy", _annotated, "taxonomy.toml", (f"build-chinese tasks {PROJECT} --out out",), 500),
    Kind(
        "annotated",
        _ranked,
        "*.jsonl",
        (
            "build-chinese resolve annotated.jsonl --out ranked.jsonl",
            f"build-chinese preference {LEARNED} --judge m {ASKED} --no-distant --out out",
        ),
    ),
    *(
        Kind(name, _sources, changed, (f"build-persona-judge {words} --retriever bm25 --out out",), number)
        for number, name, changed, words in (
            (1_000, "people's CSV", "survey/*", "--people-csv survey"),
            (250, "opinion waves", "waves/*/*", "--opinion-qa waves --respondents 4"),
            (250, "essays", "wassa/*", "--empathic-conversations wassa --size 1"),
            (250, "reddit", "reddit.jsonl", "--personal-reddit reddit.jsonl"),
            (250, "prism", "prism/*", "--prism prism --size 1"),
        )
    ),
    Kind(
        "verdicts",
        _verdicts,
        "verdicts.*",
        tuple(f"pluralbench judge-metrics {{file}} --format {form}" for form in ("table", "json")),
    ),
    Kind(
        "published scores", _scores, "theirs/*", ("pluralbench agree ours.jsonl --published {file} --rescore 0",), 500
    ),
    Kind("labels", _verdicts, "labels.csv", ("pluralbench judge-metrics verdicts.csv --labels {file}",), 500),
    Kind("decisions", _decisions, "decisions.csv", (f"build-multilingual --decisions {{file}} {FEW}",)),
    Kind(
        "rated",
        _rated,
        "rated.jsonl",
        ("build-multilingual --recipe translation --rated {file} --per-level 1 --out out",),
    ),
    Kind(
        "runs",
        _runs,
        "runs/a/*",
        (
            "pluralbench report runs",
            "pluralbench show runs/a --data pairs.jsonl",
            "pluralbench compare runs/a runs/b",
            "pluralbench report runs --html out.html",
            "pluralbench leaderboard runs --data pairs.jsonl --any-data --site site",
        ),
    ),
    Kind(
        "model",
        _model,
        "model/*",
        ("pluralbench score ./model --benchmark pairs --data pairs.jsonl --device cpu --out out",),
        500,
    ),
    Kind("personalized", _personalized, "run/[ipm]*", ("pluralbench report run --detail",), 500),
    Kind("scores", project_files.downstream, "benchmark.csv", ("pluralbench correlate {file} downstream.csv",), 500),
]

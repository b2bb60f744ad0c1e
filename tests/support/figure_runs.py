"""Runs with something to draw of each kind: parts, languages, categories, and verdicts by persona."""

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
from made_runs import changed, decision, for_persons, run_of
from pluralbench import find_benchmark
from pluralbench.data.benchmark_entries import known_benchmarks
from pluralbench.data.column_types import DECISIONS
from pluralbench.data.decisions import decide
from pluralbench.data.persona_items import PERSONA_JUDGE
from pluralbench.data.rows_to_items import ITEMS
from pluralbench.data.verdict_tables import check_verdicts
from pluralbench.metrics.frame import COLUMNS
from pluralbench.reports.verdicts import verdict_rows
from pluralbench.results import Run
from pluralbench_schemas import ENGLISH, LANGUAGES
from written_verdicts import verdicts

LONG = "org/" + "Skywork-Reward-V2-Llama-3.1-8B-finetuned-on-the-preferences-of-people-run-{}-last"
NAMES = ("org/small", LONG.format("alpha"), LONG.format("beta"), "org/奖励模型-七十二亿", "org/نموذج-المكافأة")
TASKS = ("prism", "opinion_qa", "empathic_conversations", "personal_reddit")
IN_SECTIONS = ["alpacaeval-easy", "mt-bench-hard", "donotanswer", "math-prm"]
PARTS: dict[str, dict[str, Sequence[str | None]]] = {
    "personalized": {"Art_and_Entertainment": [None], "Lifestyle_and_Personal_Development": [None]},
    "pairs": {"default": [None]},
    "reward-bench": {"filtered": IN_SECTIONS},
    "pandalm": {"test": ["Gmail", "推理", "a motivation that has a very long name which goes on and on"]},
    "multilingual": {"zho_Hant": IN_SECTIONS, "arb_Arab": IN_SECTIONS, "eng_Latn": IN_SECTIONS},
}
CATEGORIES = {"open": ["推理", "其他"], "human": ["推理", "理解", "复杂指令", "创作", "知识问答", "数学"]}
LONG_CATEGORIES = {
    "推理": "跨学科综合推理以及多步骤数学证明与代码生成能力的联合评测类别名称非常长需要折行显示",
    "理解": "Understanding of long documents with several conflicting instructions, tables and notes",
    "复杂指令": "混合 mixed 名称 with spaces",
}
CHINESE = ("org/Reward-V2-Llama-3.2-1B", "org/Nemotron-70B-Reward-with-a-very-long-name-v0.2", "org/奖励模型-七十二亿")
BASELINES = {"coin": 0.5, "longer": 0.6, "shorter": 0.4}


def name_of(number: int) -> str:
    """The name of a model."""
    return NAMES[number] if number < len(NAMES) else f"org/model-{number}"


@cache
def benchmark_run(number: int, benchmark: str, *, items: int = 20) -> Run:
    """A run of a model on a benchmark."""
    draws = random.Random(f"{number} {benchmark}")
    skill = draws.uniform(0.5, 0.9)
    places = [
        (config, subset)
        for config, subsets in PARTS.get(benchmark, {"one": [None], "two": [None]}).items()
        for subset in subsets
    ]
    rows = [
        decision(
            n,
            draws.choices(["win", "loss"], [skill, 1 - skill])[0],
            config=config,
            subset=subset,
            id=f"{config}{subset}{n}",
        )
        | {"cluster": f"{config}{subset}{n}"}
        for config, subset in places
        for n in range(items)
    ]
    described = find_benchmark(benchmark if benchmark in PARTS else "pairs")
    run = run_of(rows, described, model=name_of(number), path=f"runs/{benchmark}-{number}")
    return changed(run, benchmark__name=benchmark if benchmark in PARTS else "my/mine.toml")


def persona_run(number: int, folder: Path, variables: str = "all") -> Run:
    draws, rows, verdicts = random.Random(f"{number} {variables}"), [], []
    for task in TASKS[:2]:
        for n in range(30):
            truth, right = "AB"[n % 2], draws.random() < 0.7
            said = truth if right else "BA"[n % 2]
            rows.append(decision(n, "win" if right else "loss", config=task, id=f"{task}{n}", cluster=f"u{n % 12}"))
            verdicts.append({"task": task, "judge": name_of(number), "setting": "certainty", "row": n, "answer": said})
            verdicts[-1] |= {"persona_variables": variables, "certainty": draws.randint(30, 99), "truth": truth}
            verdicts[-1] |= {"user": f"u{n % 12}"}
    table = pl.DataFrame(verdicts)
    path = folder / f"persona-{number}-{variables}"
    path.mkdir(parents=True)
    table.write_csv(path / "verdicts.csv")
    run = run_of(rows, known_benchmarks()[PERSONA_JUDGE], model=name_of(number), path=path)
    return for_persons(changed(run, benchmark__name=PERSONA_JUDGE), variables=variables)


def with_references(run: Run) -> Run:
    """The run with what a coin, the longer and the shorter answer get, the same everywhere."""
    shares = run.metrics.filter(pl.col("metric").is_in(["accuracy", "exact_match", "overall"]))
    rows = [
        row | {"baseline": what, "value": value}
        for row in shares.iter_rows(named=True)
        for what, value in BASELINES.items()
    ]
    return replace(run, metrics=pl.concat([run.metrics, pl.DataFrame(rows, COLUMNS)]))


@cache
def category_decisions(number: int, renamed: tuple[tuple[str, str], ...]) -> pl.DataFrame:
    """Decisions on seven prompts a category."""
    draw_ = random.Random(number)
    skill = draw_.uniform(0.2, 1.5)
    places = [(c, name, n) for c, names in CATEGORIES.items() for name in names for n in range(7)]
    rows, scores = [], []
    for config, name, n in places:
        rank = [draw_.randint(1, 5) for _ in range(5)]
        rows.append({"config": config, "id": f"{name}{n}", "cluster": f"{config}{name}{n}", "rank": rank})
        rows[-1] |= {"subset": dict(renamed).get(name, name), "response_ids": list("abcde"), "responses": [""] * 5}
        scores.append([-skill * place + draw_.gauss(0, 1) for place in rank])
    return decide(pl.DataFrame(rows, schema=ITEMS), scores)


def chinese_run(
    number: int, *, scored: bool = True, renamed: dict[str, str] | None = None, model: str | None = None
) -> Run:
    """A run of these decisions, by a judge without margins where it is not `scored`."""
    decisions = category_decisions(number, tuple((renamed or {}).items()))
    if not scored:
        decisions = decisions.with_columns(margin=pl.lit(None, pl.Float64))
    name = CHINESE[number] if number < len(CHINESE) else f"org/model-{number}"
    run = run_of(decisions, "chinese", model=model or name, path=f"runs/{number}")
    return changed(run, model__kind="classifier" if scored else "generative")


def chinese_runs(models: int, **options: Any) -> list[Run]:
    """Runs of so many models; see `chinese_run`."""
    return [chinese_run(number, **options) for number in range(models)]


VERDICTS = ("verdict_chosen_first", "verdict_rejected_first")


def places_run(model: str, first: float, items: int = 60) -> Run:
    """A judge that takes the first answer so often, cannot be read now and then, and saw some pairs in one order."""
    draw_ = random.Random(model)
    verdicts = [
        [
            None if number % 5 == 0 and place else "invalid" if draw_.random() < 0.1 else "BA"[draw_.random() < first]
            for place in range(2)
        ]
        for number in range(items)
    ]
    rows = [decision(number) | dict(zip(VERDICTS, own, strict=True)) for number, own in enumerate(verdicts)]
    return run_of(
        pl.DataFrame(rows, schema=pl.Schema(DECISIONS | dict.fromkeys(VERDICTS, pl.String()))),
        model=model,
        path=f"runs/{model}",
    )


SUBSETS = ("alpacaeval-easy", "mt-bench-hard", "donotanswer", "math-prm")
CODES = ("eng_Latn", "deu_Latn", "zho_Hans")


def translated_run(
    model: str,
    kind: str,
    data: str = "google",
    *,
    skill: float = 0.7,
    first: int = 0,
    subsets: Sequence[str] = SUBSETS,
    codes: Sequence[str] = CODES,
    items: int = 24,
) -> Run:
    """A run on items in some languages and English, translated by `data`."""
    draw_ = random.Random(f"{model} {data}")
    rows = [
        decision(
            number,
            "win" if draw_.random() < skill + 0.1 * (code == "eng_Latn") else "loss",
            config=code,
            subset=subsets[number % len(subsets)],
            digest=f"{code} {number} {'' if code == 'eng_Latn' else data}",
        )
        for code in codes
        for number in range(first, first + items)
    ]
    run = run_of(rows, "multilingual", model=model, path=f"runs/{model}-{data}")
    return changed(run, data__digest=data, data__location=f"dist/{data}", model__kind=kind)


def translated_runs() -> list[Run]:
    """Four models of three kinds, two of them on a second translation, too."""
    runs = [
        translated_run("org/plain", "classifier"),
        translated_run("org/other", "classifier", skill=0.5),
        translated_run("org/dpo", "implicit"),
        translated_run("judge", "generative", skill=0.8),
    ]
    others = (translated_run(run.name, run.result.model.kind, "nllb", skill=0.6) for run in runs[1:3])
    return [*runs, *others]


SCRIPTS = {
    "org/แบบจำลองรางวัลภาษาไทยที่มีชื่อยาวมาก": "classifier",
    "org/نموذج-المكافأة-العربي-الطويل": "implicit",
    "org/報酬モデル-보상-모델-इनाम": "generative",
    "org/" + "aVeryLongNameWithoutAnyBreak" * 4: "function",
}


def runs_in_all_languages(models: int = 4) -> list[Run]:
    """Models on all languages, the first with names in other scripts; the others have the numbers of these."""
    runs = [translated_run(name, kind, codes=[*LANGUAGES], items=8) for name, kind in SCRIPTS.items()]
    more = (changed(runs[n % len(runs)], model__name=f"org/model-{n}") for n in range(len(runs), models))
    return [*runs, *(changed(run, model__kind="classifier") for run in more)]


WAYS = ("de-en", "en-de", "en-zh", "zh-en")
OUTCOMES = ("win", "loss", "tie", "invalid")


@cache
def language_run(
    number: int, codes: Sequence[str] = (), *, english: bool = True, model: str | None = None, items: int = 40
) -> Run:
    """A run on the same items in some languages (default: all), and on translations."""
    draw_ = random.Random(number)
    own = codes or [code for code in LANGUAGES if code != ENGLISH]
    places = [(code, SUBSETS[n % 4], f"q{n}") for code in (*[ENGLISH] * english, *own) for n in range(items)]
    translated = [f"translation-{way}-{level}" for way in WAYS for level in ("easy", "hard")]
    places += [("translation", subset, f"{subset} {n}") for subset in translated for n in range(12)]
    weights = [draw_.uniform(4, 9), 3, 0.5, 0.5]
    rows = [
        decision(0, draw_.choices(OUTCOMES, weights)[0], config=config, subset=subset, id=item, cluster=item)
        for config, subset, item in places
    ]
    return run_of(rows, "multilingual", model=model or f"org/model-{number}", path=f"runs/{number}")


JUDGES = ("gpt-4o", "org/a-judge-with-a-very-long-name-that-goes-on-and-on-v0.2-instruct", "裁判", *"bcdef")


def judged_rows(
    judges: int, sets: Sequence[str] = ("all", "none"), *, tasks: int = 1, sure: bool = True, **options: Any
) -> list[dict[str, Any]]:
    """What the verdicts of so many judges on so many tasks amount to. options: of `verdict_rows`."""
    draw_, rows = random.Random(judges), []
    for task in TASKS[:tasks]:
        truths = [draw_.choice("AB") for _ in range(60)]
        for place, judge in enumerate(JUDGES[:judges]):
            for variables in sets:
                for row, truth in enumerate(truths):
                    certainty = min(100, max(1, round(draw_.gauss(55 + 6 * place, 15))))
                    right = draw_.random() < (0.5 if variables == "none" else 0.4 + certainty / 200)
                    answer = truth if right else "AB"[truth == "A"]
                    rows.append({"task": task, "judge": judge, "persona_variables": variables, "row": row})
                    rows[-1] |= {"answer": answer, "certainty": certainty if sure else None}
                    rows[-1] |= {"truth": truth, "user": f"u{row % 12}"}
    return verdict_rows(check_verdicts(verdicts(rows)), **options)

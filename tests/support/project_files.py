"""The files and models that the documents' commands name, small and made on the spot."""

import csv
import json
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import chinese_project as chinese
import persona_sources as persona
import polars as pl
import verbs
from build_chinese.source import FOLDER as RANKED
from build_multilingual.source import SAMPLE as TRANSLATED
from build_persona_judge.sources.loaded import FOLDER as PERSONAS
from build_personalized.sources import SAMPLE as PEOPLE
from chat_server import Reply, request_digest, serve
from chinese_tables import published
from downstream_runs import MODELS, World, sampled
from dumps import post, text_of
from live_hub import Hub
from pluralbench_rewards import Group
from published_rows import write_published
from reward_models import POSITIONS, save_classifier, save_language_model
from written_tables import write as write_rows

CATEGORY = ["知识", "人文地理"]
SCORED = ("personalized-my-model-sample", "personalized-SmolLM2-135M-Instruct-Q4_1-judge-sample")
TINY: dict[str, Any] = {"num_hidden_layers": 1, "hidden_size": 32, "intermediate_size": 32, "head_dim": 8}
PAIRS = [
    {
        "id": number,
        "prompt": f"How long does it take to boil {thing}?",
        "chosen": f"It takes about ten minutes to boil {thing} in salted water, so set a clock.",
        "rejected": f"Nobody knows how long it takes to boil {thing}, and nobody has ever tried it.",
        "subset": "cooking",
    }
    for number, thing in enumerate(["potatoes", "a dozen eggs", "brown rice", "dried beans", "old carrots"])
]


SIZES: dict[str, Any] = {"num_hidden_layers": 2, "max_position_embeddings": 4 * POSITIONS}


def write(folder: Path) -> None:
    """Everything but the releases and the annotation tasks, which the commands themselves make."""
    save_classifier(folder / "path/to/model", **SIZES)
    my_model(folder)
    save_language_model(folder / "qwen3-0.6b", **TINY)
    for seed, name in enumerate(("policy", "base", "path/to/policy")):
        save_language_model(folder / name, seed=seed, **SIZES)
    my_adapter(folder)
    downstream(folder)
    published(folder / "CheemsBench/data/cheems_bench")
    chinese.write_rows(folder / "pairs.jsonl", PAIRS)
    chinese.write_rows(folder / "my-pairs.jsonl", [row | {"question": row["prompt"]} for row in PAIRS])
    contaminated = [{"benchmark": "personalized", "config": "Art_and_Entertainment", "id": "art-01", "kind": "equal"}]
    chinese.write_rows(folder / "contaminated.jsonl", contaminated)
    write_published(folder)
    labeled(folder)
    voted(folder)
    (folder / "wmt21.jsonl").write_bytes((TRANSLATED / "translations.jsonl").read_bytes())
    dump = folder / "beer.stackexchange.com/Posts.xml"
    dump.parent.mkdir()
    dump.write_text(posts(), encoding="utf-8")
    configs = ["open", "human"] * 2 + ["preference"] * 16
    chinese.write_prompts(folder, configs)
    # As many as the paper's batches take to make more than the steps of a warm-up.
    rows = [chinese.annotated(number, config) for number, config in enumerate(configs + ["preference"] * 70)]
    chinese.write_rows(folder / "annotated.jsonl", rows)
    chinese.write_rows(folder / "more.jsonl", [chinese.unlabeled(number) for number in range(100, 104)])
    for name in ("prompts", "annotated", "more"):  # in a category of the sample's taxonomy, which is the default
        path = folder / f"{name}.jsonl"
        chinese.write_rows(path, [row | {"category": CATEGORY} for row in chinese.read_rows(path)])
    (folder / "taxonomy.toml").write_bytes((RANKED / "taxonomy.toml").read_bytes())
    answers = [{"QKEY": n, "Q1": ["Yes", "No"][n % 2]} for n in range(8)]
    persona.wave(folder / "human_resp/W1", {"Q1": ["Yes", "No", "Refused"]}, answers)
    persona.empathic(folder / "wassa", [(a, p, n * 2, n * 2) for a in (1, 2) for n, p in enumerate("pqr")])
    said = [persona.post(who, question) for who in ("cook", "nurse", "pilot") for question in ("q1", "q2")]
    write_rows(folder / "synthetic_dataset.jsonl", said)
    for name in ("my-survey", "drinks"):
        persona.people_csv(folder / name)


def labeled(folder: Path) -> None:
    """Pairs with labels: in words, and on a scale."""
    words = ["model_a", "model_b", "tie", "tie (bothbad)", "model_a"]
    names = {"chosen": "response_a", "rejected": "response_b"}
    rows = [{names.get(name, name): value for name, value in row.items()} for row in PAIRS]
    chinese.write_rows(folder / "votes.jsonl", [row | {"winner": word} for row, word in zip(rows, words, strict=True)])
    with (folder / "rated.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["id", "prompt", "a", "b", "preference"])
        table.writerows([*list(row.values())[:4], number - 2] for number, row in enumerate(PAIRS))


def voted(folder: Path) -> None:
    """A vote a row on pairs, and conversations of two turns."""
    said = ["A much better", "A better", "same", "B better", "no answer"]
    votes = [
        {
            "question": n,
            "prompt": f"Tea {n}?",
            "answer_a": "Green.",
            "answer_b": "Black tea.",
            "vote": said[(n + k) % 5],
        }
        | {"person": f"p{k}", "country": "Italy" if k % 2 else "Spain"}
        for n in range(4)
        for k in range(3)
    ]
    chinese.write_rows(folder / "opinions.jsonl", votes)
    with (folder / "votes.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(
            file, ["prompt", "answer_a", "answer_b", "vote", "person", "country"], extrasaction="ignore"
        )
        table.writeheader()
        table.writerows(
            row | {"vote": {"A better": "A", "B better": "B"}.get(str(row["vote"]), "same")} for row in votes
        )
    later = {"second_prompt": "And milk?", "second_answer_a": "No.", "second_answer_b": "A little."}
    first = {"first_answer_a": "Boil it.", "first_answer_b": "For two minutes.", "first_choice": "answer_b"}
    chats = [
        {"chat": n, "person": f"p{n % 2}", "first_prompt": f"How do I make tea {n}?"}
        | first
        | later
        | {"second_choice": "answer_a" if n else None}
        for n in range(4)
    ]
    chinese.write_rows(folder / "chats.jsonl", chats)


def my_model(folder: Path) -> None:
    """A small classifier, which stands for the reader's model."""
    save_classifier(folder / "my-model", **SIZES)


def my_adapter(folder: Path) -> None:
    """An adapter of `base` with a head, written without PEFT, whose import takes seconds."""
    import torch
    from safetensors.torch import load_file, save_file

    name, body = "model.layers.0.self_attn.q_proj", load_file(folder / "base/model.safetensors")
    rows, width = body[f"{name}.weight"].shape
    tensors = {f"{name}.lora_A": torch.ones(1, width), f"{name}.lora_B": torch.ones(rows, 1)}
    tensors["score"] = torch.linspace(-1, 1, width).unsqueeze(0)
    (folder / "my-adapter").mkdir()
    saved = {f"base_model.model.{place}.weight": tensor for place, tensor in tensors.items()}
    save_file(saved, folder / "my-adapter/adapter_model.safetensors")
    adapter = {"peft_type": "LORA", "task_type": "SEQ_CLS", "base_model_name_or_path": "base", "r": 1}
    adapter |= {"target_modules": [name], "modules_to_save": ["score"]}
    (folder / "my-adapter/adapter_config.json").write_text(json.dumps(adapter), encoding="utf-8")


def downstream(folder: Path) -> None:
    """Scores of models, conversations of two turns, and a study that is small."""
    for seed, name in enumerate(("benchmark", "downstream", "other")):
        scores = [f"model-{place},{(7 * place + 5 * seed * place) % 11}" for place in range(7)]
        (folder / f"{name}.csv").write_text("\n".join(["model,score", *scores]) + "\n", encoding="utf-8")
    turns = [{"question_id": 80 + n, "turns": [f"Name {n} teas.", "Which is the best?"]} for n in range(1, 4)]
    chinese.write_rows(folder / "mt-bench.jsonl", turns)
    (folder / "small-study.toml").write_text(STUDY, encoding="utf-8")


STUDY = """\
title = "A small study"
policy = "policy"
benchmarks.sample = { location = "dist/personalized-rewardbench", limit = 1, profile = "none" }
best_of_n.items = { location = "dist/personalized-rewardbench", limit = 1, profile = "none" }
sampling = { n = 2, max_tokens = 8 }
outcome = { judge = "rubric-overlap" }
models = [{ name = "a", path = "path/to/model" }, { name = "b", path = "my-model" }]
"""


def write_runs(folder: Path) -> None:
    """The runs, plans and personas that commands read, of functions and the served judge, and renamed releases."""
    ids = [
        row["id"] for row in pl.read_parquet(folder / "dist/personalized-rewardbench/data/*/test.parquet").to_dicts()
    ]
    chinese.write_rows(folder / "plans.jsonl", [{"id": item, "aspects": ["a small purse"]} for item in ids])
    chinese.write_rows(folder / "personas.jsonl", [{"id": item, "persona": "Keeps a small purse."} for item in ids])
    shutil.copytree(folder / "dist/chinese-rewardbench", folder / "dist/cheemsbench")
    for number, name in enumerate(("plain", "a", "b", *SCORED)):
        data = folder / "dist/personalized-rewardbench"
        verbs.score(partial(scores, number), data=data, out=folder / "runs" / name)
    scored = pl.read_parquet(folder / "runs/a/items.parquet").select("id", "score_chosen", "score_rejected")
    chinese.write_rows(folder / "scores.jsonl", [row | {"model": "org/name"} for row in scored.to_dicts()])
    data = folder / "dist/multilingual-rewardbench"
    verbs.score(partial(scores, 1), benchmark="multilingual", data=data, out=folder / "runs/multilingual-model")
    with serve(World()) as server:
        sampled(server, folder / "dist/personalized-rewardbench", folder / "best", MODELS, limit=1, n=4, measure="win")
    with serve(answer) as server:
        out = folder / "runs/persona-judge-gpt-5-mini-certainty-all"
        data = folder / "dist/persona-judge"
        verbs.judge_personas("gpt-5-mini", data=data, out=out, base_url=server.base_url, api_key_env="", limit=5)
    shutil.copy(out / "verdicts.csv", folder)


def scores(step: int, groups: Sequence[Group]) -> list[list[float]]:
    """By every so many letters of a response."""
    return [[float(len(response[:: step + 1])) for response in group.responses] for group in groups]


def posts() -> str:
    """A Stack Exchange dump: three people who asked five questions each."""
    return text_of(
        [
            post(
                10 * user + number,
                str(user),
                CreationDate=f"2016-0{user}-{number:02}T10:00:00.000",
                Title=f"Which beer goes with dish {number} of menu {user}?",
                Body=f"<p>I cook dish {number}, and I keep to a small purse. Guest {user} drinks no wheat beer.</p>",
                Tags="<food><pairing>",
            )
            for user in range(1, 4)
            for number in range(1, 6)
        ]
    )


def fill_hub(hub: Hub) -> None:
    """The datasets that the recipes name, with few rows."""
    configs = sorted((PEOPLE / "questions").glob("*.jsonl"))
    files = {f"data/{path.name}": path.read_text(encoding="utf-8") for path in configs}
    splits = {path.stem: {"test": f"data/{path.name}"} for path in configs}
    hub.publish("alireza7/LaMP-QA", files, splits, license="cc-by-sa-4.0")
    rows = "".join(json.dumps(row | {"subset": "alpacaeval-easy"}) + "\n" for row in PAIRS)
    splits = {"default": {"filtered": "filtered.jsonl"}}
    hub.publish("allenai/reward-bench", {"filtered.jsonl": rows}, splits, license="odc-by")
    tables = {name: (PERSONAS / f"prism/{name}.jsonl").read_text(encoding="utf-8") for name in ("survey", "utterances")}
    splits = {name: {"train": f"{name}.jsonl"} for name in tables}
    texts = {f"{name}.jsonl": text for name, text in tables.items()}
    hub.publish("HannahRoseKirk/prism-alignment", texts, splits, license="cc-by-4.0")


def export(tasks: Path, to: Path) -> None:
    """What Label Studio exports (JSON-MIN) when each annotator has marked every pair of their sheets."""
    rows = []
    for sheet in sorted(tasks.rglob("*.csv")):
        with sheet.open(encoding="utf-8-sig", newline="") as file:
            for row in csv.DictReader(file):
                marks = {
                    f"{a}_{b}": {"1": "g", "2": "b", "s": "s"}[chinese.mark_of(row[a], row[b])]
                    for a, b in combinations("ABC", 2)
                    if row[a] and row[b]
                }
                rows.append({"task": row["task"], "annotator": row["annotator"], **marks})
    to.write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")


def rate(sheets: Path) -> None:
    """Fill in what raters are asked, from 1 to 5."""
    names = ("factuality", "relevance", "helpfulness", "rubric")
    _fill_in(
        sheets,
        lambda place, number: {name: str(1 + (number * step + place) % 5) for step, name in enumerate(names, start=1)},
    )


def label(sheets: Path) -> None:
    """Fill in which option people take for that of another, and how certain they are."""
    _fill_in(sheets, lambda place, number: {"answer": "AAB"[(number + place) % 3], "certainty": str(50 + number % 50)})


def _fill_in(sheets: Path, answers: Callable[[int, int], dict[str, str]]) -> None:
    """Give the columns of each row that `answers` names, by the place of its sheet and the number of the row."""
    for place, sheet in enumerate(sorted(sheets.glob("*.csv"))):
        with sheet.open(encoding="utf-8-sig", newline="") as file:
            rows = [row | answers(place, number) for number, row in enumerate(csv.DictReader(file))]
        with sheet.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)


def answer(body: dict[str, Any], number: int) -> Reply:
    """What the served model says: a right verdict on Chinese answers, aspects where JSON is asked for, else a text."""
    asked = str(body["messages"][-1]["content"])
    if "【回答A开始】" in asked:
        return chinese.judge(body, number)
    if "[[A]]" in str(body["messages"]):
        certain = "whole number from 1 to 100" in str(body["messages"])
        letter = "AB"[int(request_digest(body), 16) % 2]
        return Reply(f"[[{letter}]] [[{50 + number % 50}]]" if certain else f"[[{letter}]]")
    if "<aspects>" in asked:
        aspects = asked.rpartition("<aspects>")[2].partition("</aspects>")[0].strip().split("\n")
        return Reply(str([number % 3] * len(aspects)))
    if "[[10]]" in str(body["messages"]):
        return Reply(f"[[{1 + number % 10}]]")
    if "response_format" in body:
        return Reply(json.dumps({"aspects": [{"sentence": 1, "aspect": "A small purse", "reason": "They say so."}]}))
    return Reply(f"answer {request_digest(body)[:16]}, that takes the person's own words and ways seriously.")

"""Prompts with responses, as the Chinese builder's steps take them: the sample's, and small ones made to measure."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import build_chinese
import polars as pl
from build_chinese.task_folders import PROMPTS
from chinese_project import read_rows

SAMPLE = Path(build_chinese.__file__).parent / "sample"


def sample_prompts(*files: str) -> pl.DataFrame:
    """The sample's prompts with the responses of these files, or of `responses.jsonl`."""
    responses = [row for name in files or ("responses.jsonl",) for row in read_rows(SAMPLE / name)]
    return pl.DataFrame(
        [
            row
            | {
                "responses": [
                    {"id": given["id"], "content": given["content"], "model": given.get("model")}
                    for given in responses
                    if given["prompt"] == row["id"]
                ]
            }
            for row in read_rows(SAMPLE / "prompts.jsonl")
        ],
        schema=PROMPTS,
    )


def prompts_of(texts: Mapping[str, Sequence[str]], category: Sequence[str] = ("知识", "生活常识")) -> pl.DataFrame:
    """Prompts by their ids; the responses of p are p-a, p-b and so on, with these texts."""
    return pl.DataFrame(
        [
            {
                "id": prompt,
                "input": f"问题 {prompt}",
                "category": list(category),
                "config": "open",
                "responses": [
                    {"id": f"{prompt}-{chr(ord('a') + number)}", "content": text, "model": f"secret-model-{number}"}
                    for number, text in enumerate(answers)
                ],
            }
            for prompt, answers in texts.items()
        ],
        schema=PROMPTS,
    )


def counted_prompts(*counts: int) -> pl.DataFrame:
    """Prompts p1, p2, ... with so many responses each."""
    return prompts_of(
        {f"p{number}": [f"回答{place}" for place in range(count)] for number, count in enumerate(counts, start=1)}
    )

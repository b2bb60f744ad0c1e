"""Chat templates and normalizers that would never end or take all memory: a sentence before a model scores."""

import json
import random
import shlex
import shutil
from pathlib import Path

import pytest
from children import ended
from conftest import Tried
from project_files import PAIRS, TINY
from reward_models import save_classifier
from written_tables import write

pytestmark = [pytest.mark.faults, pytest.mark.timeout(3600)]
SCORE = shlex.split("pluralbench score ./model --benchmark pairs --data pairs.jsonl --device cpu --out out")
LEAST, MOST = 4, 9  # powers of ten of repetitions


def test_endless_templates(tried: Tried, tmp_path_factory: pytest.TempPathFactory) -> None:
    good = tmp_path_factory.mktemp("good")
    write(good / "pairs.jsonl", PAIRS)
    save_classifier(good / "model", **TINY)
    assert ended(SCORE, shutil.copytree(good, tmp_path_factory.mktemp("copied") / "case")).status == 0
    for number, draw, folder in tried.cases(40):
        shutil.copytree(good, folder, dirs_exist_ok=True)
        how = draw.choice([_template, _normalizer])(folder / "model", draw)
        result = ended(SCORE, folder, patience=60)
        if tried.end(number, result, how) and result.status != 2:
            tried.failure(number, "lost", f"status {result.status}, not 2: {how}")


def _template(model: Path, draw: random.Random) -> str:
    """A template with loops in loops, a macro that calls itself, or texts of texts."""
    times = 10 ** draw.randint(LEAST, MOST)
    # The sandbox of templates allows ranges of up to 100,000.
    loops = "{% for a in range(99999) %}" * draw.randint(2, 5)
    template = draw.choice([
        loops + draw.choice(["", "{{ messages }}", "{% set b = messages * 9 %}"]) + "{% endfor %}" * loops.count("%}"),
        "{% macro f(n) %}{{ f(n + 1) }}{{ f(n) }}{% endmacro %}{{ f(0) }}",
        f"{{{{ 'x' * {times * 1_000} }}}}",
        f"{{% set x = ['x' * {times}] * {times} %}}{{{{ x | join }}}}",
        f"{{{{ '%{times * 1_000}d' | format(1) }}}}",
        "{% set x = namespace(a='xx') %}{% for a in range(60) %}{% set x.a = x.a ~ x.a %}{% endfor %}{{ x.a }}",
    ])  # fmt: skip
    (model / "chat_template.jinja").write_text(template, encoding="utf-8")
    return f"[template {template[:120]}]"


def _normalizer(model: Path, draw: random.Random) -> str:
    """A normalizer that makes each letter to many, again and again."""
    path = model / "tokenizer.json"
    values = json.loads(path.read_text(encoding="utf-8"))
    letter, more, times = draw.choice("aeit "), draw.randint(2, 9), draw.randint(30, 60)
    step = {"type": "Replace", "pattern": {"String": letter}, "content": letter * more}
    values["normalizer"] = {"type": "Sequence", "normalizers": [step] * times}
    path.write_text(json.dumps(values), encoding="utf-8")
    return f"[normalizer: {letter!r} to {more}, {times} times]"

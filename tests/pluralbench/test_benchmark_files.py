"""A benchmark of one's own: a copied entry, its keys explained, and the sentence for each mistake."""

import inspect
import re
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest
import tomli_w
from members import ROOT
from pluralbench import find_benchmark
from pluralbench.data.benchmark_entries import BenchmarkCard
from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.fields import Columns
from pluralbench.data.labels import Labels
from pluralbench.errors import BenchmarkError


def test_a_copied_entry_is_a_benchmark_file(tmp_path: Path) -> None:
    text = files("pluralbench.data").joinpath("benchmarks.toml").read_text(encoding="utf-8")
    entries = tomllib.loads(text)
    for name, values in entries.items():
        (tmp_path / "one.toml").write_text(tomli_w.dumps({name: values}), encoding="utf-8")
        (tmp_path / "flat.toml").write_text(tomli_w.dumps(values), encoding="utf-8")
        if name != "persona-judge":
            one, flat = (find_benchmark(str(tmp_path / f"{form}.toml")) for form in ("one", "flat"))
            assert one == flat == find_benchmark(name)


def test_every_key_of_a_benchmark_is_explained() -> None:
    page = (ROOT / "docs/reference/benchmarks.md").read_text(encoding="utf-8")
    others = {"sample", "strata"}  # those of this package's samples, and of a run's draw
    for model in (Benchmark, Columns, Labels, BenchmarkCard):
        said = inspect.getdoc(model) or ""
        for key in model.model_fields.keys() - others:
            assert re.search(rf"\b{key}\b", said), key
            assert f"`{key}`" in page, key


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("titel = 'x'", ["is not a valid benchmark file: unknown key `titel`; did you mean `title`?"]),
        ("overall = 'items'", ["the key `title` is missing."]),
        (
            "title = 'x'\noverall = 'median'",
            ["`overall` must be one of items, configs, accuracy and exact match, F1; it is `median`."],
        ),
        ("[mine]\ntitle = 'x'\non_empty = 'yes'", ["`on_empty` must be one of error, drop, keep; it is `yes`."]),
        ("title = 'x'\n[columns]\nprompts = ['a']", ["unknown key `columns.prompts`; did you mean `prompt`?"]),
        ("[mine]\ntitle = 'x'\n[mine.sections]\nAll = 3", ["`sections.All` must be a table; it is `3`."]),
        ("title = 'x'\n[sections.S]\na = 1\nb = -2", ["`sections.S.b`"]),
        ("title = 'x'\n[sections.S]\na = 1\nb = 1e308", ["`sections.S.b`"]),
        ("title = 'x'\n[sections.S]\na = 0\nb = 0", ["the section S has no weight above 0"]),
        ("[a]\ntitle = 'x'\n[b]\ntitle = 'y'", ["describes several benchmarks (a, b); keep one per file."]),
        ("title = 'x'\n[columns]\nprompt = 'question'", ["`columns.prompt` must be a list; it is `question`."]),
        ("title = 'x'\n[columns]\nprompt = []", ["`columns.prompt` is empty"]),
        ("title = 'x'\n[labels]\nfirst = [1]\ntie = [1.0]", ["`labels`: the label '1' is empty or has two meanings"]),
        ("title = 'x'\n[labels]\ntie = [2]", ["`labels`: the label '2' is empty or has two meanings; name each"]),
        ("title = 'x'\n[labels]\nscale = [1, 1]", ["`labels`: `scale` needs two different numbers."]),
        ("title = 'x'\n[labels]\nscale = [1, 2]\nfirst = [1]", ["`scale` replaces `first` and `second`"]),
        ("title = 'x'\n[labels]\nscale = [1, 2]\nthreshold = 2", ["the `threshold` 2 is not between the ends"]),
        ("title = 'x'\n[labels]\nthreshold = 2", ["`labels`: `threshold` requires `scale`."]),
        (
            "title = 'x'\nhistory = { column = 'role' }",
            ["`history`: `column` and `values` require each other; set"],
        ),
        (
            "title = 'x'\nstrata = [{ config = 'c', drawn = 1, items = 2 }]",
            ["`strata` describes the drawn items of a run; leave it out"],
        ),
    ],
)
def test_a_benchmark_file_that_is_none_is_named(tmp_path: Path, text: str, parts: list[str]) -> None:
    (tmp_path / "b.toml").write_text(text, encoding="utf-8")
    with pytest.raises(BenchmarkError) as caught:
        find_benchmark(str(tmp_path / "b.toml"))
    for part in [str(tmp_path / "b.toml"), *parts]:
        assert part in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("change", ["first", "first=", "best=A", "scale=1", "scale=a,b", "threshold=x"])
def test_a_change_of_labels_that_is_none_is_named(change: str) -> None:
    with pytest.raises(BenchmarkError) as caught:
        find_benchmark("pandalm", (), [change])
    said = f"The labels {change} do not have the form MEANING=VALUE with MEANING one of first, second, tie, scale, "
    assert str(caught.value).startswith(said)

"""Tables become a directory that is already a Hub repository."""

import re
import tomllib
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import rfc8785
import yaml
from huggingface_hub import DatasetCard
from hypothesis import given
from hypothesis import strategies as st
from pluralbench_release import LEDGER, RECIPE, ReleaseError, content_digest, read_manifest, read_tables, verify
from pluralbench_runs import UserError
from pluralbench_schemas import TableError
from releases import TEXTS, files_of

FILES = [
    "README.md",
    "SHA256SUMS",
    "data/Art/test.parquet",
    "data/no/test.parquet",
    "eval.yaml",
    "provenance/ledger.parquet",
    "provenance/manifest.json",
    "provenance/recipe.toml",
    "provenance/row_digests.parquet",
    "provenance/statistics.json",
]
Make = Callable[..., Path]
Pairs = Callable[..., pl.DataFrame]


def front_matter(directory: Path) -> dict[str, Any]:
    """The YAML of the card, as the Hub's own library reads it."""
    values: dict[str, Any] = DatasetCard.load(directory / "README.md").data.to_dict()
    return values


def card_text(directory: Path) -> str:
    return (directory / "README.md").read_text(encoding="utf-8")


@pytest.mark.smoke
def test_a_release_has_these_files_and_verifies(release: Make) -> None:
    directory = release()
    assert sorted(files_of(directory)) == FILES
    assert verify(directory) == []


def test_the_manifest_says_what_is_there(release: Make, pairs: Pairs) -> None:
    directory = release(licenses=("mit", "cc-by-4.0"))
    manifest = read_manifest(directory)
    assert [(table.config, table.split, table.path, table.rows) for table in manifest.tables] == [
        ("Art", "test", "data/Art/test.parquet", 4),
        ("no", "test", "data/no/test.parquet", 2),
    ]
    assert manifest.tables[0].digest == content_digest(pairs("q1", "q2", "q3", "q4"))
    assert manifest.recipe == tomllib.loads((directory / RECIPE).read_text(encoding="utf-8"))
    assert manifest.recipe == {"name": "tiny", "version": "0.1.0", "seed": 42, "note": "中文"}
    assert (manifest.ledger.path, manifest.ledger.calls) == (LEDGER, 12)
    assert [source.license for source in manifest.sources] == ["mit", "cc-by-4.0"]
    assert sorted(manifest.software) == ["pluralbench-release", "polars", "pyarrow"]


def test_two_writes_give_the_same_bytes(release: Make, pairs: Pairs) -> None:
    rows = pairs(*(f"q{number}" for number in range(50)))
    in_pieces = pl.concat([rows[:7], rows[7:30], rows[30:]], rechunk=False)
    assert files_of(release("one/name", rows)) == files_of(release("two/name", in_pieces))


def test_the_card_is_what_the_hub_reads(release: Make) -> None:
    directory = release()
    values = front_matter(directory)
    assert values["configs"] == [
        {"config_name": "Art", "data_files": [{"split": "test", "path": "data/Art/test.parquet"}]},
        {"config_name": "no", "data_files": [{"split": "test", "path": "data/no/test.parquet"}]},  # not False
    ]
    assert values["pretty_name"] == 'Tiny: "benchmark" 中文'
    assert values["language"] == ["en", "zh"]
    assert values["size_categories"] == "n<1K"
    assert values["task_categories"] == ["text-generation"]
    assert values["tags"] == ["reward-model"]
    assert (values["annotations_creators"], values["source_datasets"]) == (["found"], ["somewhere"])
    for part in (
        '# Tiny: "benchmark" 中文\n',
        "मैं चाय पीता हूँ 🍵👨‍👩‍👧",
        "Version 0.1.0, 6 rows in 2 tables, built by `pluralbench-release`",
        'load_dataset("release", "Art", split="test")',
        "| `id` | string | the row |\n| `chosen` | string | the better answer |\n",
        "## Uses\n\nNot for {{ training }} <b>&amp;</b>.\n",
        "(`somewhere` at revision `abc123`), 4 rows",
        "the 12 recorded calls",
    ):
        assert part in card_text(directory)


@pytest.mark.parametrize(
    ("licenses", "values"),
    [
        (["cc-by-4.0", "CC-BY-4.0"], {"license": "cc-by-4.0"}),
        (["mit, cc-by-sa-4.0"], {"license": ["cc-by-sa-4.0", "mit"]}),
        (
            ["cc-by-sa-2.5", "mit"],
            {
                "license": ["mit", "other"],
                "license_name": "cc-by-sa-2.5",
                "license_link": "https://creativecommons.org/licenses/by-sa/2.5/",
            },
        ),
        (
            ["Terms of Use (2024)", "b"],
            {
                "license": "other",
                "license_name": "b-and-terms-of-use-2024",
                "license_link": "https://huggingface.co/datasets/somewhere",
            },
        ),
    ],
)
def test_a_license_that_the_hub_does_not_know_is_named_beside(
    release: Make, licenses: list[str], values: dict[str, Any]
) -> None:
    directory = release(licenses=licenses)
    assert {name: value for name, value in front_matter(directory).items() if "license" in name} == values
    names = values["license"] if isinstance(values["license"], list) else [values["license"]]
    read = read_tables(str(directory)).license
    assert read == ", ".join(values["license_name"] if name == "other" else name for name in names)


def test_the_card_has_bibtex_of_the_paper_the_release_and_the_software(release: Make) -> None:
    entries = re.findall(r"^@\w+\{([^,]+),$", card_text(release()), re.MULTILINE)
    assert entries == ["paper", "tiny", "pluralbench"]
    assert r"  title = {100\% \& more}," in card_text(release("more", title="100% & more"))


def test_rows_that_break_their_schema_are_no_release(release: Make, pairs: Pairs, tmp_path: Path) -> None:
    broken = pairs("x1", "x2").with_columns(chosen=pl.when(pl.col("id") != "x2").then("chosen"))
    with pytest.raises(TableError) as caught:
        release("broken", pairs("q1"), broken)
    assert str(caught.value) == (
        "data/no/test.parquet, row 2 (id 'x2'): column `chosen` must not be missing, got null."
    )
    with pytest.raises(ReleaseError, match=r"is not a release: it has no provenance/manifest\.json\.$"):
        read_manifest(tmp_path / "broken")
    assert not (tmp_path / "broken" / "README.md").exists()


def test_the_digest_is_of_every_value(pairs: Pairs) -> None:
    rows = pairs("q1", "q2")
    others = [
        pairs("q1", "q3"),
        rows[:1],
        rows.drop("generator"),
        pairs("q1", "q2", chosen=None),
        pairs("q1", "q2", chosen=""),
        pairs("q1", "q2", profile=[]),
        pairs("q1", "q2", profile=None),
    ]
    assert len({content_digest(frame) for frame in [rows, *others]}) == 8
    assert content_digest(rows) == content_digest(rows.rechunk())
    assert content_digest(pl.DataFrame({"id": ["b", "a"], "n": [1.0, None]})) == (
        "e5c677deab859bc3047071836df0dd1ff22b415f0981bb956c9014116f822866"
    )


@pytest.mark.parametrize("name", ["../../../x", "/tmp/x", "x[red]y", "a*b", "a\0b", "..", "x" * 300, "nul"])  # noqa: S108 - to refuse
@pytest.mark.parametrize("what", ["config", "split", "record", "file"])
def test_a_release_is_not_written_out_of_its_folder(
    release: Make, pairs: Pairs, tmp_path: Path, what: str, name: str
) -> None:
    given: dict[str, dict[str, Any]] = {
        "config": {"configs": (name,)},
        "split": {"split": name},
        "record": {"records": {name: pairs("q1")}},
        "file": {"files": {f"published/{name}": tmp_path / "ledger.parquet"}},
    }
    with pytest.raises(UserError) as caught:
        release("a/b/c/release", pairs("q1"), **given[what])
    assert "\n" not in str(caught.value)
    assert {path.name for path in tmp_path.rglob("*")} == {"a", "b", "c", "release", "ledger.parquet"}


def test_what_is_scored_are_the_tasks_of_the_hub(release: Make, pairs: Pairs) -> None:
    assert yaml.safe_load((release() / "eval.yaml").read_text(encoding="utf-8")) == {
        "name": 'Tiny: "benchmark" 中文',
        "description": f"A summary. {TEXTS[2]}",
        "evaluation_framework": "pluralbench",
        "tasks": [
            {"id": "overall", "split": "test"},
            {"id": "Art", "config": "Art", "split": "test"},
            {"id": "no", "config": "no", "split": "test"},
        ],
    }
    assert "eval.yaml" not in files_of(release("to-train-on", scored=False))
    assert verify(release("named-so", pairs("q1"), configs=["overall"], scored=False)) == []
    with pytest.raises(ReleaseError, match=r"^Two tasks of eval\.yaml are called overall; "):
        release("taken", pairs("q1"), configs=["overall"])


def test_rows_survive_in_every_script(release: Make, pairs: Pairs) -> None:
    directory = release()
    rows = pairs("q1", "q2", "q3", "q4")
    assert pl.read_parquet(directory / "data/Art/test.parquet").equals(rows)
    kinds = pq.read_schema(directory / "data/Art/test.parquet")
    assert kinds.field("id").type == pa.string()
    post = pa.struct([("id", pa.string()), ("category", pa.string()), ("text", pa.string())])
    assert kinds.field("profile").type == pa.list_(post)
    for name in ("provenance/statistics.json", "README.md", RECIPE):
        assert "中文" in (directory / name).read_text(encoding="utf-8")


@given(st.data())
def test_the_digest_is_of_the_rows_in_any_order(pairs: Pairs, data: st.DataObject) -> None:
    ids = data.draw(st.lists(st.text(st.characters(codec="utf-8"), min_size=1), min_size=1, max_size=5, unique=True))
    text, numbers = st.text(st.characters(codec="utf-8")), st.integers(1 - 2**53, 2**53 - 1)
    values = st.one_of(st.lists(numbers | st.none()), st.lists(st.lists(text) | st.none()), numbers, st.floats(0, 1))
    column = [data.draw(values)] * (len(ids) - 1) + [None]
    name = data.draw(st.sampled_from(["value", "\uffff", "\U00010000"]))  # the last two are in another order in UTF-16
    rows = pairs(*ids).with_columns(
        pl.Series(name, column), zz=pl.lit("."), own=pl.struct(b=pl.lit("x"), a=pl.col("id"))
    )
    shuffled = rows[data.draw(st.permutations(range(len(ids))))].select(data.draw(st.permutations(rows.columns)))
    assert content_digest(shuffled) == sha256(rfc8785.dumps([*rows.sort("id").iter_rows(named=True)])).hexdigest()

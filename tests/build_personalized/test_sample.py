"""The sample in the package: 24 invented people whose answers show what a good pair is."""

import polars as pl
import pytest
from build_personalized.recipe import SourceTable
from build_personalized.sources import load


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    loaded = load(SourceTable(locations=["sample"]), tmp_path_factory.mktemp("scratch"))
    assert loaded.drops.is_empty()
    assert [(source.location, source.license) for source in loaded.sources] == [("sample", "apache-2.0")]
    return loaded.questions


def test_each_evidence_is_quoted_letter_for_letter(questions: pl.DataFrame) -> None:
    for row in questions.iter_rows(named=True):
        for aspect in row["rubric_aspects"]:
            assert aspect["evidence"] in row["narrative"], row["id"]
            assert aspect["evidence"].strip()
            assert 2 <= len(aspect["aspect"].split()) <= 10, aspect["aspect"]
            assert aspect["reason"].strip()
        titles = [aspect["aspect"].lower() for aspect in row["rubric_aspects"]]
        assert len(titles) == len({*titles})

"""Evaluation files of models: what could be of any length or cannot be written is refused."""

import pytest
from pluralbench.errors import RunError
from pluralbench.publishing.evaluation_file import READ_ERRORS, read_entries, with_entries


@pytest.mark.parametrize(
    "text",
    [
        "- &a0 [lol, lol]\n" + "".join(f"- &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)),
        "- &a0 {b: 1}\n" + "".join(f"- &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}\n" for n in range(1, 12)),
        "- {}\n" * 300_000,
        "[" * 100_000,
        "a: 1",
    ],
)
def test_entries_that_could_be_of_any_length_are_refused(text: str) -> None:
    with pytest.raises(READ_ERRORS):
        read_entries(text)


def test_an_evaluation_file_with_a_number_that_cannot_be_written_is_refused() -> None:
    text = "- {dataset: {id: a/b, task_id: c}, value: 0x" + "f" * 6000 + "}\n"
    with pytest.raises(RunError, match=r"m cannot be read \(Exceeds the limit"):
        with_entries(text, [], "m")

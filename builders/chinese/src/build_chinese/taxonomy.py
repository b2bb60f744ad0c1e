"""The taxonomy of prompts: main categories, sub-categories, and the judge's criteria for each main category."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pluralbench_release.errors import SourceError
from pluralbench_runs import FrozenModel, RecipeError, check_recipe, parse_toml
from pluralbench_tables import read_text
from pydantic import Field

JUDGE_PROMPTS: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("judge_prompts.toml").read_text(encoding="utf-8")
)


class SubCategory(FrozenModel):
    """A sub-category.

    Attributes:
        english: Its English name.
    """

    name: str = Field(min_length=1)
    english: str = ""


class Category(FrozenModel):
    """A main category.

    Attributes:
        criteria: A key of the `criteria` in judge_prompts.toml, or the text of the criteria in Chinese.
        sub: Its sub-categories.
    """

    name: str = Field(min_length=1)
    english: str = ""
    description: str = ""
    criteria: str = Field(min_length=1)
    sub: list[SubCategory] = Field(default_factory=list)


class _File(FrozenModel):
    category: list[Category] = Field(min_length=1)


@dataclass(frozen=True)
class Taxonomy:
    """The categories of a set of prompts.

    Attributes:
        path: File of the taxonomy, for errors.
        categories: Main categories by name.
    """

    path: Path
    categories: dict[str, Category]

    def criteria(self, main: str) -> str:
        """Return the judge's criteria for a main category. Raises `SourceError` if it does not exist."""
        criteria = self.get(main).criteria
        return str(JUDGE_PROMPTS["criteria"].get(criteria, criteria))

    def get(self, main: str) -> Category:
        """Return a main category. Raises `SourceError` if it does not exist."""
        if main not in self.categories:
            raise SourceError(f"{self.path} has no category {main!r}; it has {', '.join(self.categories)}.")
        return self.categories[main]

    def check(self, prompt: str, category: list[str]) -> None:
        """Raise `SourceError` if a prompt's [main, sub] is not in the taxonomy. The sub-category is optional."""
        subs = [entry.name for entry in self.get(category[0]).sub]
        if len(category) > 1 and category[1] not in subs:
            raise SourceError(
                f"The prompt {prompt} has the category {' / '.join(category)}, but {category[0]} in {self.path} has no "
                f"sub-category {category[1]!r}; it has {', '.join(subs) or 'none'}."
            )


def read_taxonomy(path: Path) -> Taxonomy:
    """Read a taxonomy, a TOML file with a `[[category]]` for each main category. Raises `SourceError`."""
    try:
        values = parse_toml(read_text(path, SourceError))
    except ValueError as error:
        raise SourceError(f"{path} is not valid TOML: {error}.") from None
    try:
        categories = check_recipe(_File, values, str(path)).category
    except RecipeError as error:
        raise SourceError(str(error).replace("Recipe ", "The taxonomy ", 1)) from None
    for category in categories:
        if (
            category.criteria.isascii()
            and category.criteria.isidentifier()
            and category.criteria not in JUDGE_PROMPTS["criteria"]
        ):
            raise SourceError(
                f"{path}: the criteria {category.criteria!r} of {category.name} do not exist; use one of "
                f"{', '.join(JUDGE_PROMPTS['criteria'])}, or write your own in Chinese."
            )
    by_name = {category.name: category for category in categories}
    if len(by_name) < len(categories):
        raise SourceError(f"{path} has two categories of one name; remove or rename one.")
    return Taxonomy(path, by_name)

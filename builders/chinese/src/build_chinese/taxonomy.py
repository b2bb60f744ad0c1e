"""The categories of prompts: main and sub-categories, and by which criteria a judge weighs answers in each."""

from dataclasses import dataclass
from pathlib import Path

from pluralbench_release.errors import SourceError
from pluralbench_runs import FrozenModel, RecipeError, check_recipe, parse_toml
from pluralbench_tables import read_text
from pydantic import Field

from build_chinese.judge_prompts import CRITERIA


class SubCategory(FrozenModel):
    """A sub-category. english: its name for readers without Chinese."""

    name: str = Field(min_length=1)
    english: str = ""


class Category(FrozenModel):
    """A main category. criteria: a key of `judge_prompts.CRITERIA`, or the criteria themselves, in Chinese."""

    name: str = Field(min_length=1)
    english: str = ""
    description: str = ""
    criteria: str = Field(min_length=1)
    sub: list[SubCategory] = Field(default_factory=list)


class _File(FrozenModel):
    category: list[Category] = Field(min_length=1)


@dataclass(frozen=True)
class Taxonomy:
    """The categories of a set of prompts, by name. path: where they were read, for errors."""

    path: Path
    categories: dict[str, Category]

    def criteria(self, main: str) -> str:
        """What a judge weighs in a main category. Raises `SourceError` for one that is not there."""
        given = self.known(main).criteria
        return CRITERIA.get(given, given)

    def known(self, main: str) -> Category:
        """The main category of this name. Raises `SourceError`."""
        if main not in self.categories:
            raise SourceError(f"There is no category {main!r} in {self.path}; it has {', '.join(self.categories)}.")
        return self.categories[main]

    def check(self, prompt: str, category: list[str]) -> None:
        """Raise `SourceError` where a prompt's [main, sub] is not in the taxonomy. Without a sub-category is fine."""
        subs = [entry.name for entry in self.known(category[0]).sub]
        if len(category) > 1 and category[1] not in subs:
            raise SourceError(
                f"The prompt {prompt} is of {' / '.join(category)}, and {self.path} has no sub-category "
                f"{category[1]!r} there; it has {', '.join(subs) or 'none'}."
            )


def read_taxonomy(path: Path) -> Taxonomy:
    """Read a taxonomy: TOML with a `[[category]]` for each main category. Raises `SourceError`."""
    try:
        values = parse_toml(read_text(path, SourceError))
    except ValueError as error:
        raise SourceError(f"{path} is not valid TOML: {error}.") from None
    try:
        found = check_recipe(_File, values, str(path)).category
    except RecipeError as error:
        raise SourceError(str(error).replace("Recipe ", "The taxonomy ", 1)) from None
    for category in found:
        if category.criteria.isascii() and category.criteria.isidentifier() and category.criteria not in CRITERIA:
            raise SourceError(
                f"{path}: there are no criteria {category.criteria!r} for {category.name}; name some of "
                f"{', '.join(CRITERIA)}, or write your own in Chinese."
            )
    by_name = {category.name: category for category in found}
    if len(by_name) < len(found):
        raise SourceError(f"{path} has a category twice; give each name once.")
    return Taxonomy(path, by_name)

"""What of an item's person a method is shown, and what keeps a corpus from being used."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import torch
from pluralbench_runs import rng_for
from torch import Tensor

from pluralbench_local.errors import ModelError, TrainingError
from pluralbench_local.personal.contract import BackboneRecord
from pluralbench_local.personal.options import PersonalConfig
from pluralbench_local.personal.points import Corpus, Earlier, Points

NAMES = {"about": "context", "persona": "persona"}


def shown_points(
    corpus: Corpus,
    items: Sequence[int],
    responses: Sequence[Sequence[int]],
    earlier: Sequence[Sequence[Earlier]],
    options: PersonalConfig,
) -> Points:
    """The batch of these items (`Corpus.points`), with what the options' model reads of the person beside `earlier`."""
    told = [[getattr(corpus, slot)[item] for slot in options.context_sources] for item in items]
    return corpus.points(items, responses, told, earlier)


def latest(earlier: Sequence[Earlier], most: int) -> Sequence[Earlier]:
    """The latest `most` of these pairs."""
    return earlier[len(earlier) - most :] if most < len(earlier) else earlier


def standards(corpus: Corpus) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation, [2, width] each: of the prompts and responses, and of what is told of the persons.

    They are apart, so that a model reads the same of a response whether it is told of the person or not. Each different
    text counts once. Earlier pairs are left out: in training they are items themselves. A number that is the same for
    all texts has deviation 1, so that it is 0 when standardised.
    """
    asked = {*corpus.query, *(row for several in corpus.responses for row in several)}
    parts = [corpus.vectors[torch.tensor(sorted(rows), dtype=torch.long)] for rows in (asked, _told(corpus))]
    mean = [part.mean(dim=0) if len(part) else torch.zeros(corpus.width) for part in parts]
    deviation = torch.stack(
        [part.std(dim=0, correction=0) if len(part) else torch.ones(corpus.width) for part in parts]
    )
    return torch.stack(mean), torch.where(deviation > 0, deviation, 1.0)


def standardize(corpus: Corpus, mean: Tensor, deviation: Tensor) -> Corpus:
    """The corpus with its vectors less the mean, in standard deviations, both as `standards` gives them."""
    kind = torch.zeros(len(corpus.vectors), dtype=torch.long)
    kind[torch.tensor(sorted(_told(corpus)), dtype=torch.long)] = 1
    return replace(corpus, vectors=(corpus.vectors - mean[kind]) / deviation[kind])


def _told(corpus: Corpus) -> set[int]:
    """The rows of what is told of the persons."""
    return {row for row in (*corpus.about, *corpus.persona) if row is not None}


def shuffle_profiles(corpus: Corpus, seed: int = 0) -> Corpus:
    """The corpus with what is told of a person, and their earlier pairs, taken from another person's item."""
    whose = list(dict.fromkeys(corpus.persons))
    mixed = rng_for(seed, "others").sample(whose, len(whose))
    other = dict(zip(mixed, [*mixed[1:], *mixed[:1]], strict=True))  # so that nobody has their own
    of_person: dict[str, list[int]] = {}
    for item, person in enumerate(corpus.persons):
        of_person.setdefault(person, []).append(item)
    taken = []
    for item, person in enumerate(corpus.persons):
        theirs = of_person[other[person]]
        taken.append(theirs[of_person[person].index(item) % len(theirs)])
    return replace(
        corpus,
        about=[corpus.about[item] for item in taken],
        persona=[corpus.persona[item] for item in taken],
        earlier=[corpus.earlier[item] for item in taken],
    )


def check_user_context(corpus: Corpus, options: PersonalConfig) -> None:
    """Raise `ModelError` where a model that reads a profile is told nothing of an item's person."""
    for slot in options.context_sources:
        without = [name for name, row in zip(corpus.ids, getattr(corpus, slot), strict=True) if row is None]
        if without:
            raise ModelError(
                f"The {options.method} model reads a person's {NAMES[slot]}, and {len(without):,} of "
                f"{len(corpus.ids):,} items have none, {without[0]} among them; give each one, or use a model without "
                "a profile."
            )


def check_vectors(corpus: Corpus, backbone: BackboneRecord, what: str) -> None:
    """Raise `ModelError` for vectors of another width than the backbone's, and for numbers that are not finite."""
    if corpus.width != backbone.width:
        raise ModelError(
            f"The vectors of the {what} have {corpus.width} numbers, and those of {backbone.name} have "
            f"{backbone.width}; embed the texts with {backbone.name}."
        )
    finite = corpus.vectors.isfinite().all(dim=1)
    if not finite.all():
        broken = set(torch.nonzero(~finite).flatten().tolist())
        named = next((name for item, name in enumerate(corpus.ids) if _rows(corpus, item) & broken), None)
        where = "" if named is None else f", of item {named} among them"
        raise ModelError(
            f"{len(broken):,} of the {len(finite):,} vectors of the {what} hold numbers that are not finite{where}; "
            "embed these texts again, in float32."
        )


def _rows(corpus: Corpus, item: int) -> set[int | None]:
    earlier = {row for pair in corpus.earlier[item] for row in pair}
    return {corpus.query[item], *corpus.responses[item], corpus.about[item], corpus.persona[item], *earlier}


def check_pairs(corpus: Corpus, what: str) -> None:
    """Raise `TrainingError` where there is no pair to learn from, or nothing by which a pair's responses differ."""
    twice = next((name for name, times in Counter(corpus.ids).items() if times > 1), None)
    if twice is not None:
        raise TrainingError(f"Two of the {what} have the id {twice}; give each an id of its own.")
    pairs = corpus.pairs()
    if not pairs:
        raise TrainingError(
            f"None of the {len(corpus.ids):,} {what} has two responses of different rank, so there is no pair."
        )
    if bool((corpus.vectors == corpus.vectors[0]).all()):
        raise TrainingError(
            f"All {len(corpus.vectors):,} vectors of the {what} are the same, so there is nothing to learn; look at "
            "what the backbone makes of two different texts."
        )
    better, worse = (
        torch.tensor([corpus.responses[item][places[side]] for item, *places in pairs]) for side in range(2)
    )
    if torch.equal(corpus.vectors[better], corpus.vectors[worse]):
        raise TrainingError(
            f"In each of the {len(pairs):,} pairs of the {what} both responses have the same vector, so there is "
            "nothing to learn; look whether the backbone reads the responses, and not only what precedes them."
        )


def check_disjoint_users(corpus: Corpus, held_out: Corpus) -> None:
    """Raise `TrainingError` where a person has both items to train on and held-out ones."""
    persons = set(corpus.persons)
    both = next((person for person in held_out.persons if person in persons), None)
    if both is not None:
        raise TrainingError(
            f"User {both} has both items to train on and held-out items, so the held-out accuracy would not be that of "
            "new users; split the items by user."
        )

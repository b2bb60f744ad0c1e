"""A card that is published over another: what people wrote on the Hub by hand stays.

What is written by hand stands at the card's end, below a line that says so (`BY_HAND`). All above it is made from the
release each time anew. So of the card on the Hub these parts are kept:

- what stands below that line;
- a section (a heading of the second level) above it that neither the new card has nor the last published version made;
- keys of the YAML that no release writes, and `tags` beside its own.
"""

from collections.abc import Sequence

from huggingface_hub import CardData

from pluralbench_release.card import FRONT, checked_yaml
from pluralbench_release.markdown import Part, parts

BY_HAND = "<!-- Written by hand. What is below this line stays when this is published again. -->"
OWN_KEYS = ("pretty_name", "license", "language", "task_categories", "tags", "size_categories", "configs")
"""The keys of the YAML that come from the release (`card.write_card`)."""


def merged(card: str, there: str | None, published: str | None) -> str:
    """The card of a release with what people wrote by hand on the card that is on the Hub.

    there: the card on the Hub now, None without one. published: that of the last published version, None before the
    first. What the release's own folder has by hand stays too, unless a section of the same heading is on the Hub.

    Raises `ReleaseError` for a card whose YAML cannot be read.
    """
    made, own = _cut(card)
    if there is None:
        return card
    above, below = _cut(there)
    generated = {part.title for part in made} | {part.title for part in (_cut(published)[0] if published else [])}
    kept = [part for part in above if part.title is not None and part.title not in generated] + below
    titles = {part.title for part in kept}
    kept = [part for part in own if part.title not in titles] + kept
    body = "".join(part.text for part in made).rstrip() + "\n"
    if any(part.text.strip() for part in kept):
        body += "\n" + BY_HAND + "\n\n" + "\n\n".join(part.text.strip() for part in kept if part.text.strip()) + "\n"
    return f"---\n{_metadata(card, there)}\n---\n{body}"


def _cut(card: str) -> tuple[list[Part], list[Part]]:
    """The sections of a card without its YAML, above and below the line."""
    above, _, below = FRONT.sub("", card, count=1).removeprefix("\n").partition(BY_HAND)
    return parts(above), [part for part in parts(below.strip()) if part.text]


def _metadata(card: str, there: str) -> CardData:
    ours, theirs = vars(checked_yaml(card)), vars(checked_yaml(there))
    own = {key: value for key, value in ours.items() if key in OWN_KEYS}
    tags = [*_list(ours.get("tags")), *_list(theirs.get("tags"))]
    more = {key: value for key, value in {**ours, **theirs}.items() if key not in OWN_KEYS}
    return CardData(**own | ({"tags": [*dict.fromkeys(tags)]} if tags else {}), **more)


def _list(value: object) -> Sequence[str]:
    return [str(one) for one in value] if isinstance(value, list) else []

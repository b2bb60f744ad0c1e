"""Tables to a versioned dataset directory that is already a Hub repository."""

from pluralbench_release.building import Building, building, known_ledgers
from pluralbench_release.card import Card, Section, markdown_table, read_card
from pluralbench_release.content import ReleaseTable, content_digest
from pluralbench_release.diff import TableDiff, diff
from pluralbench_release.errors import ReleaseError, TablesError
from pluralbench_release.manifest import LEDGER, RECIPE, Built, Manifest, Source, read_manifest
from pluralbench_release.publishing import check_publishable, push_to_hub
from pluralbench_release.rebuild import rebuild
from pluralbench_release.summary import tell, tell_table
from pluralbench_release.tables import Tables, pinned, read_tables
from pluralbench_release.verify import verify
from pluralbench_release.write import Builder, Contents, ReleaseName, ReleaseRecipe, write

__all__ = [
    "LEDGER",
    "RECIPE",
    "Builder",
    "Building",
    "Built",
    "Card",
    "Contents",
    "Manifest",
    "ReleaseError",
    "ReleaseName",
    "ReleaseRecipe",
    "ReleaseTable",
    "Section",
    "Source",
    "TableDiff",
    "Tables",
    "TablesError",
    "building",
    "check_publishable",
    "content_digest",
    "diff",
    "known_ledgers",
    "markdown_table",
    "pinned",
    "push_to_hub",
    "read_card",
    "read_manifest",
    "read_tables",
    "rebuild",
    "tell",
    "tell_table",
    "verify",
    "write",
]

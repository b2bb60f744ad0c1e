from .building import Building, building, known_ledgers
from .card import Card, Section, counted, markdown_table, read_card
from .checksums import release_digest
from .content import ReleaseTable, content_digest
from .diff import TableDiff, diff
from .errors import NoSplit, ReleaseError, TablesError
from .fetching import release_at
from .manifest import LEDGER, RECIPE, Built, Manifest, ReleaseName, Source, read_manifest
from .publishing import Published, check_publishable, publish
from .rebuild import Rebuild, rebuild, rebuild_of
from .summary import tell, tell_table
from .tables import Tables, manifest_at, pinned, read_tables
from .verify import verify
from .versions import Version
from .write import Builder, Contents, ReleaseRecipe, write

__all__ = [
    "LEDGER",
    "RECIPE",
    "Builder",
    "Building",
    "Built",
    "Card",
    "Contents",
    "Manifest",
    "NoSplit",
    "Published",
    "Rebuild",
    "ReleaseError",
    "ReleaseName",
    "ReleaseRecipe",
    "ReleaseTable",
    "Section",
    "Source",
    "TableDiff",
    "Tables",
    "TablesError",
    "Version",
    "building",
    "check_publishable",
    "content_digest",
    "counted",
    "diff",
    "known_ledgers",
    "manifest_at",
    "markdown_table",
    "pinned",
    "publish",
    "read_card",
    "read_manifest",
    "read_tables",
    "rebuild",
    "rebuild_of",
    "release_at",
    "release_digest",
    "tell",
    "tell_table",
    "verify",
    "write",
]

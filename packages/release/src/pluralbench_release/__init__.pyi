from .building import Building, building, reusable_ledgers
from .card import Card, Section, card_from, markdown_table, read_card
from .checksums import release_digest
from .content import ReleaseTable, content_digest
from .diff import TableDiff, diff
from .errors import AuditFailed, BuildError, NoSplit, ReleaseError, SourceError, TablesError
from .figures import count_by, entries_table, share_text, text_table
from .manifest import LEDGER, Built, Manifest, Source, read_manifest
from .publishing import Published, check_publishable, publish
from .rebuild import Rebuild, rebuild, rebuild_of
from .recipe import LICENSE, RECIPE, SOURCE_NAME, PairLimits, ReleaseName, ReleaseRecipe, read_release_recipe
from .summary import print_summary, print_table
from .table_files import concat_tables
from .tables import Tables, manifest_at, pinned, read_tables, release_at
from .verify import verify
from .versions import Version
from .write import Builder, Contents, write

__all__ = [
    "LEDGER",
    "LICENSE",
    "RECIPE",
    "SOURCE_NAME",
    "AuditFailed",
    "BuildError",
    "Builder",
    "Building",
    "Built",
    "Card",
    "Contents",
    "Manifest",
    "NoSplit",
    "PairLimits",
    "Published",
    "Rebuild",
    "ReleaseError",
    "ReleaseName",
    "ReleaseRecipe",
    "ReleaseTable",
    "Section",
    "Source",
    "SourceError",
    "TableDiff",
    "Tables",
    "TablesError",
    "Version",
    "building",
    "card_from",
    "check_publishable",
    "concat_tables",
    "content_digest",
    "count_by",
    "diff",
    "entries_table",
    "manifest_at",
    "markdown_table",
    "pinned",
    "print_summary",
    "print_table",
    "publish",
    "read_card",
    "read_manifest",
    "read_release_recipe",
    "read_tables",
    "rebuild",
    "rebuild_of",
    "release_at",
    "release_digest",
    "reusable_ledgers",
    "share_text",
    "text_table",
    "verify",
    "write",
]

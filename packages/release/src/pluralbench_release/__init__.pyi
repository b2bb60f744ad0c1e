from .card import Card, Section, markdown_table, read_card
from .content import Table, content_digest
from .diff import TableDiff, diff
from .errors import ReleaseError, TablesError
from .manifest import LEDGER, RECIPE, Built, Manifest, Source, known_ledgers, read_manifest
from .publishing import check_publishable, publish
from .rebuild import rebuild
from .summary import tell, tell_table
from .tables import Tables, pinned, read_tables
from .verify import verify
from .write import write

__all__ = [
    "LEDGER",
    "RECIPE",
    "Built",
    "Card",
    "Manifest",
    "ReleaseError",
    "Section",
    "Source",
    "Table",
    "TableDiff",
    "Tables",
    "TablesError",
    "check_publishable",
    "content_digest",
    "diff",
    "known_ledgers",
    "markdown_table",
    "pinned",
    "publish",
    "read_card",
    "read_manifest",
    "read_tables",
    "rebuild",
    "tell",
    "tell_table",
    "verify",
    "write",
]

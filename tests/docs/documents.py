"""The schemas of what commands print, and their table in docs/operations.md. Write them anew: make schemas"""

from __future__ import annotations

from tests.docs.document_schemas import DOCUMENTS, documents_table, file_name, schema_text
from tests.docs.flow import ROOT

OPERATIONS = ROOT / "docs" / "operations.md"
SCHEMAS = ROOT / "docs" / "schemas"
BEGIN, END = "<!-- documents -->", "<!-- end of documents -->"


def with_table(document: str) -> str:
    """The document with the present table between its marks."""
    head, _, rest = document.partition(BEGIN)
    return f"{head}{BEGIN}\n\n{documents_table()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    for document in DOCUMENTS:
        (SCHEMAS / file_name(document)).write_text(schema_text(document))
    OPERATIONS.write_text(with_table(OPERATIONS.read_text()))

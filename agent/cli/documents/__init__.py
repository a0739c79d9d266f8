"""Types of the documents that commands print; `tests.docs.document_schemas` makes their JSON Schemas.

Commands import these under TYPE_CHECKING only.
"""

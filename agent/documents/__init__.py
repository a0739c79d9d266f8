"""Documents that commands print with ``-o json`` and the API answers: their types, and the functions that make them.

Types are in the files named by subject (`cluster`, `groups`, `plan`, `proposals`, `config`), which commands import
under TYPE_CHECKING only; `tests.docs.document_schemas` makes their JSON Schemas.
"""

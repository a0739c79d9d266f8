"""Documents that commands print: their types, and the JSON Schemas made of them.

Commands import these for their types only, so that they cost nothing at start.
"""

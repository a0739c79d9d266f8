"""Texts that a stranger may choose, and what must not be found in anything that is written of them."""

from __future__ import annotations

import re
import unicodedata

LONG = "l" + "o" * 4_998 + "g"
POISONS: dict[str, str] = {
    "a screen that is cleared": "\x1b[2J\x1b[H",
    "a title that is set": "\x1b]0;owned\x07",
    "NUL": "nul\x00nul",
    "DEL": "del\x7fdel",
    "a C1 control": "\x9b31mred",
    "NEL": "nel\x85ok  fake line",
    "text that runs backwards": "\u202egnp.exe",
    "an isolate": "\u2066isolated",
    "a zero-width space": "zero\u200bwidth",
    "a soft hyphen": "soft\xadhyphen",
    "a byte order mark": "\ufeffbom",
    "a line feed": "\nok  fake line",
    "a carriage return": "over\rwritten",
    "a tab": "\tcolumn",
    "a line separator": "line\u2028separated",
    "a formula": '=HYPERLINK("http://x")',
    "a formula that adds": "+1+cmd|' /C calc'!A0",
    "a formula of Lotus": "@SUM(1)",
    "markup of rich": "[red]markup[/red]",
    "a script": "<script>alert(1)</script>",
    "markup of Markdown": "| md | `x` **b** [l](http://x)",
    "quotes": "\"double\" 'single' \\back",
    "5,000 characters": LONG,
    "5,000 controls": "\x1b" * 5_000,
    "a lone surrogate": "\ud800half",
    "a tag character": "tag\U000e0041ged",
    "a variation selector": "v\ufe0fs\U000e0101",
    "a filler": "\u3164\u115f\uffa0",
    "marks over marks": "z" + "\u0301" * 60,
    "marks of Thai": "\u0e01" + "\u0e47" * 60,
    "a mark over nothing": "\u0338\u20dd",
    "vowels over vowels": "\u1100" + "\u1161" * 60,
    "an interlinear note": "\ufff9anchor\ufffb",
    "a private character": "p\ue000\U000f0000",
    "a noncharacter": "n\uffff\U0010ffff",
    "a family": "\U0001f468\u200d\U0001f469\u200d\U0001f467" * 80,
    "wide letters": "\u6ce8\u6587" * 200,
    "a small formula": "\ufe66MAX(2)",
    "blanks": "  two  blanks  ",
}


_UNSEEN = "\u034f\u115f\u1160\u180b\u3164\uffa0\u2800\ufe0f\U000e0101"


def spelled(text: str) -> list[str]:
    """The characters of a text that must not be there; line feeds are the writer's own. Told apart from the code's."""
    found = []
    signs = sorted(set(text))
    for char in signs:
        kind = unicodedata.category(char)
        if char != "\n" and (kind in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"} or (kind == "Zs" and char != " ")):
            found.append(f"U+{ord(char):04X}")
    found += [f"U+{ord(char):04X}" for char in signs if char in _UNSEEN]
    kinds = text.translate({ord(char): _kind(char) for char in signs})
    if re.search("m{5}", kinds) or re.search("(^|[^lm])m", kinds):
        found.append("marks over marks")
    return found


def _kind(char: str) -> str:
    """``m`` for what is drawn over the character before it, ``l`` for what it may be drawn over."""
    if unicodedata.category(char) in {"Mn", "Me"} or ord(char) in range(0x1160, 0x1200):
        return "m"
    return "l" if char.isalnum() or unicodedata.category(char) == "Mc" else "-"


def formulas(cells: list[str]) -> list[str]:
    """Cells of CSV that a spreadsheet would work out."""
    number = re.compile(r"[+-]?[\d,]+(\.\d+)?")
    signs = {*"=+-@\t\r\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b"}
    begun = [cell for cell in cells if cell.strip(" ")[:1] in signs]
    return [cell for cell in begun if cell != "-" and not number.fullmatch(cell)]

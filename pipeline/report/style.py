"""Style of a report's page: light and dark, for a wide screen, a phone, and paper (A4).

On a phone tables and plots scroll by themselves, never the page, and the rows of the leading table are cards. On paper
every table fits the width, rows are never cut, and what is folded on the screen stays in its CSV file.
"""

from __future__ import annotations

STYLE = """
:root { color-scheme: light dark; --ink: #1b1b1b; --page: #ffffff; --soft: #5b5b5b; --line: #d6d6d6; --band: #f4f6f8;
  --mark: #0072B2; }
@media screen and (prefers-color-scheme: dark) {
  :root { --ink: #ececec; --page: #16181b; --soft: #b0b0b0; --line: #3a3d42; --band: #1f2226; --mark: #56B4E9; }
}
body { margin: 0 auto; max-width: 1180px; padding: 1.2rem; font: 15px/1.45 system-ui, sans-serif;
  color: var(--ink); background: var(--page); overflow-wrap: break-word; }
.first { font-size: 1.35rem; font-weight: 600; border-left: 6px solid var(--mark); padding: .6rem 1rem;
  margin: 0 0 1rem; background: var(--band); overflow-wrap: anywhere; }
h1 { font-size: 1.25rem; } h2 { font-size: 1.1rem; margin-top: 2.2rem; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); gap: .6rem; margin: 0 0 1rem; }
.figures div { border: 1px solid var(--line); border-radius: 6px; padding: .5rem .8rem; }
.figures dt { color: var(--soft); font-size: .85rem; }
.figures dd { margin: 0; font-size: 1.4rem; font-weight: 600; font-variant-numeric: tabular-nums; }
.figures dd.about { font-size: .8rem; font-weight: 400; }
.about, nav, figcaption, .more, summary { color: var(--soft); font-size: .9rem; }
nav a { display: inline-block; margin-right: 1rem; padding: .15rem 0; }
a { color: inherit; }
code { font: .95em ui-monospace, monospace; }
.table, .plot { overflow-x: auto; }
details { margin-top: .4rem; } summary { cursor: pointer; padding: .3rem 0; }
details .table { max-height: 34rem; overflow-y: auto; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
th { position: sticky; top: 0; background: var(--band); }
td { white-space: nowrap; }
td.long { white-space: normal; min-width: 16rem; overflow-wrap: anywhere; }
td.n, th.n { text-align: right; }
td.unknown { color: var(--soft); font-style: italic; }
td:target { outline: 2px solid var(--mark); }
figure { margin: .8rem 0; }
figure svg { max-width: 100%; height: auto; background: #ffffff; border-radius: 4px; stroke-linejoin: round; }
@media screen and (min-width: 641px) {
  .cards table { width: 100%; }
  .cards th, .cards td { padding: .25rem .4rem; }
  .cards td { white-space: normal; overflow-wrap: anywhere; min-width: 4rem; }
  .cards td.n, td a { white-space: nowrap; }
  .cards td.long { min-width: 9rem; } .cards td code { display: block; min-width: 10rem; }
}
@media screen and (max-width: 640px) {
  body { padding: .8rem; } .first { font-size: 1.1rem; padding: .5rem .8rem; }
  .figures { grid-template-columns: repeat(2, 1fr); } .figures dd { font-size: 1.15rem; }
  figure svg { max-width: none; width: 40rem; }
  .cards .table { overflow: visible; max-height: none; }
  .cards table, .cards tbody, .cards tr, .cards td { display: block; }
  .cards thead { display: none; }
  .cards tr { border: 1px solid var(--line); border-radius: 6px; padding: .4rem .7rem; margin: 0 0 .7rem; }
  .cards td, .cards td.n, .cards td.long { display: grid; grid-template-columns: 9rem 1fr; gap: .6rem; border: 0;
    padding: .15rem 0; text-align: left; white-space: normal; min-width: 0; overflow-wrap: anywhere; }
  .cards td:empty { display: none; }
  .cards td::before { content: attr(data-head); color: var(--soft); font-style: normal; }
}
@page { size: A4 landscape; margin: 12mm; }
@media print {
  body { max-width: none; padding: 0; font-size: 9.5pt; }
  nav, details .table { display: none; }
  summary { list-style: none; }
  .table, .plot { overflow: visible; }
  table { width: 100%; font-size: 7.5pt; }
  thead { display: table-header-group; }
  th { position: static; }
  th, td { padding: .12rem .25rem; }
  td, td.long, th { white-space: normal; min-width: 0; overflow-wrap: anywhere; }
  td.n { white-space: nowrap; }
  tr, figure, .figures div, .first { break-inside: avoid; }
  h2, h2 + p { break-after: avoid; }
  .figures { grid-template-columns: repeat(5, 1fr); } .figures dd { font-size: 11pt; }
  a { text-decoration: none; }
}
"""

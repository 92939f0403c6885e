"""A table as one HTML page that can be searched and sorted, with nothing outside the file.

Pages stand in the report, in a frame of their own, and open in any browser by themselves.
"""

from collections.abc import Mapping
from html import escape

import pandas as pd

_STYLE = """
body { font: 13px/1.4 system-ui, sans-serif; margin: 0; color: #1a1a1a; background: #fff }
header { position: sticky; top: 0; padding: 8px 12px; background: #fff; z-index: 1 }
h1 { font-size: 15px; margin: 0 0 6px }
input { font: inherit; padding: 3px 8px; width: 24em; max-width: 60% }
table { border-collapse: collapse; margin: 0 12px 12px }
th, td { padding: 3px 10px; text-align: left; border-bottom: 1px solid #ddd; white-space: nowrap }
th { position: sticky; top: 68px; background: #f3f4f6 }
th button { font: inherit; font-weight: 600; border: 0; background: none; padding: 0 }
th button { cursor: pointer }
th[aria-sort=ascending] button::after { content: " ▲" }
th[aria-sort=descending] button::after { content: " ▼" }
td.number { text-align: right; font-variant-numeric: tabular-nums }
small { color: #555; font-weight: 400 }
"""

_SCRIPT = """
const body = document.querySelector("tbody"), rows = [...body.rows];
const search = document.querySelector("input"), count = document.querySelector("output");
function filter() {
  const words = search.value.toLowerCase().split(/\\s+/).filter(Boolean);
  let shown = 0;
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every(word => text.includes(word));
    shown += !row.hidden;
  }
  count.value = `${shown} of ${rows.length} rows`;
}
function sort(heading) {
  const column = heading.cellIndex, down = heading.getAttribute("aria-sort") === "ascending";
  const key = row => row.cells[column].dataset.value ?? row.cells[column].textContent;
  const order = (a, b) => key(a).localeCompare(key(b), "en", { numeric: true });
  const numeric = (a, b) => key(a) - key(b);
  const isNumber = rows.every(row => row.cells[column].classList.contains("number"));
  rows.sort(isNumber ? numeric : order);
  if (down) rows.reverse();
  for (const other of heading.parentNode.cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", down ? "descending" : "ascending");
  body.append(...rows);
}
search.addEventListener("input", filter);
for (const heading of document.querySelectorAll("th"))
  heading.querySelector("button").addEventListener("click", () => sort(heading));
filter();
"""


def page(frame: pd.DataFrame, title: str, units: Mapping[str, str]) -> str:
    """The HTML text of a page for ``frame``; ``units`` maps columns to what their values are in.

    Numbers are shown with four significant digits and sorted by their full value; missing ones are
    shown as a dash.
    """
    numbers = [name for name in frame if pd.api.types.is_numeric_dtype(frame[name])]
    head = "".join(_heading(name, units.get(name, "")) for name in frame)
    rows = "\n".join(
        "<tr>" + "".join(map(_cell, row, [name in numbers for name in frame])) + "</tr>"
        for row in frame.itertuples(index=False, name=None)
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{escape(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<header>
<h1>{escape(title)}</h1>
<label>Search <input type="search" placeholder="words that a row must hold"></label>
<output></output>
</header>
<table>
<thead><tr>{head}</tr></thead>
<tbody>
{rows}
</tbody>
</table>
<script>{_SCRIPT}</script>
</body>
</html>
"""


def _heading(name: str, unit: str) -> str:
    shown = "" if unit in ("", "1", "name") else f"<br><small>{escape(unit)}</small>"
    return f"<th><button>{escape(name)}</button>{shown}</th>"


def _cell(value: object, number: bool) -> str:
    if not number:
        return f"<td>{escape(str(value))}</td>"
    if pd.isna(value):
        return '<td class="number" data-value="-Infinity">–</td>'
    shown = f"{value:.4g}" if isinstance(value, float) else f"{value}"
    return f'<td class="number" data-value="{value}">{shown}</td>'

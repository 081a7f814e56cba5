"""The one page as a self-contained HTML file that prints on one sheet of A4."""

from html import escape

from markdown_it import MarkdownIt

from console.core.record.acceptance import Lang

_STYLE = """
@page { size: A4; margin: 11mm 12mm; }
body { font: 9pt/1.34 "Helvetica Neue", Arial, "Noto Sans CJK SC", "PingFang SC", sans-serif; color: #16191d;
  max-width: 186mm; margin: 6mm auto; }
h1 { font-size: 14.5pt; margin: 0 0 1.5mm; }
h2 { font-size: 10pt; margin: 2.6mm 0 .8mm; padding-bottom: .3mm; border-bottom: .3mm solid #9aa4af; }
p { margin: .7mm 0; }
table { border-collapse: collapse; width: 100%; font-size: 8.2pt; margin: 1mm 0;
  font-variant-numeric: tabular-nums; }
th, td { border-bottom: .2mm solid #d3d8dd; padding: .35mm 1.3mm; text-align: left; vertical-align: top; }
th { background: #f1f3f5; font-weight: 600; white-space: nowrap; }
em { color: #5a636d; font-style: normal; font-size: 8pt; }
@media print { body { margin: 0; max-width: none; font-size: 7.9pt; } table { font-size: 7.4pt; }
  h2 { break-after: avoid; } tr { break-inside: avoid; } }
"""


def html_page(markdown: str, lang: Lang) -> str:
    """Markdown as one HTML file: no script, nothing loaded from anywhere, raw HTML shown as text."""
    reader = MarkdownIt("commonmark", {"html": False}).enable("table").disable(["image", "link", "autolink"])
    body = reader.render(markdown)
    title = escape(markdown.partition("\n")[0].lstrip("# "))
    return (
        f'<!doctype html>\n<html lang="{lang}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width">\n<title>{title}</title>\n'
        f"<style>{_STYLE}</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
    )

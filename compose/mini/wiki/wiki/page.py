"""Pages, links between them, and the frame around each."""

import html
import random
import re
import zlib

FRAME = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><link rel="icon" href="../I/icon.png"><link rel="stylesheet" href="../style.css"></head>
<body class="mediawiki"><div id="content"><h1 id="firstHeading" class="firstHeading">{title}</h1>
<div id="siteSub">From Wikipedia, the free encyclopedia</div>
<div id="bodyContent" class="mw-parser-output">{body}</div>{categories}
<div id="footer">All that is told here is fiction. <a href="Larkmoor_County.html">Main page</a> &middot; <a href="Index.html">Index</a></div></div></body></html>
"""


class Dice:
    """Draws from Random.random() alone, whose sequence Python guarantees for a seed."""

    def __init__(self, section):
        self.real = random.Random(zlib.crc32(section.encode())).random

    def number(self, low, high):
        return low + int(self.real() * (high - low + 1))

    def pick(self, options):
        return options[int(self.real() * len(options))]


def file_name(title):
    """Returns a file name of plain characters: those that need escaping in HTML or in a URL lead to broken links."""
    return re.sub(r"[^\w.()-]+", "_", title.replace("&", "and").replace("'", "").replace(":", "-")) + ".html"


def infobox(title, rows, picture=None, caption=""):
    """Renders a table of facts. Rows without a value are omitted."""
    image = f'<tr><td colspan="2" class="infobox-image"><img src="../I/{picture}" alt="{html.escape(caption or title)}" width="220"><br>{html.escape(caption)}</td></tr>' if picture else ""
    cells = "".join(f'<tr><th scope="row">{label}</th><td>{value}</td></tr>' for label, value in rows if value not in (None, "", []))
    return f'<table class="infobox"><caption>{html.escape(title)}</caption>{image}{cells}</table>'


def thumb(picture, caption):
    """Renders a picture beside the text."""
    return f'<div class="thumb"><img src="../I/{picture}" alt="{html.escape(caption)}" width="220">{html.escape(caption)}</div>'


def table(head, rows):
    top = "".join(f"<th>{cell}</th>" for cell in head)
    return f'<table class="wikitable"><tr>{top}</tr>' + "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows) + "</table>"


def section(title, *parts):
    return f'<h2><span class="mw-headline" id="{title.replace(" ", "_")}">{title}</span></h2>' + "".join(f"<p>{part}</p>" if not part.startswith("<") else part for part in parts if part)


def bullets(items):
    return "<ul>" + "".join(f"<li>{item}</li>" for item in items) + "</ul>"


def joined(items):
    items = list(items)
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1] if items else ""


def number(value):
    return f"{value:,}"


class Wiki:
    def __init__(self, world):
        self.pages, self.categories, self.links, self.wanted = {}, {}, 0, set()
        self.world = world

    def link(self, title, text=None):
        """Renders a link by title; the existence of the page is checked when everything is written."""
        self.links += 1
        self.wanted.add(title)
        return f'<a href="{html.escape(file_name(title))}" title="{html.escape(title)}">{html.escape(text or title)}</a>'

    def address(self, address, town):
        """Renders a house number and a link to its street."""
        number, street = address.split(" ", 1)
        return f"{number} {self.link(f'{street} ({town})', street)}"

    def add(self, title, body, categories=()):
        assert title not in self.pages, f"two pages named {title}"
        self.pages[title] = (body, list(categories))
        for category in categories:
            self.categories.setdefault(category, []).append(title)

    def save(self, folder):
        missing = sorted(self.wanted - set(self.pages))
        assert not missing, f"links to nowhere: {missing}"
        (folder / "A").mkdir(parents=True, exist_ok=True)
        for title, (body, categories) in self.pages.items():
            listed = " | ".join(f'<a href="{file_name("Category:" + name)}">{html.escape(name)}</a>' for name in categories)
            foot = f'<div id="catlinks">Categories: {listed}</div>' if listed else ""
            text = FRAME.format(title=html.escape(title), body=body, categories=foot)
            (folder / "A" / file_name(title)).write_text(text, encoding="utf-8")

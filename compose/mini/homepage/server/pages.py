"""The pages that visitors see."""

import datetime as dt
import re
from html import escape
from pathlib import Path
from string import Template

from server import notes, sites
from server.calculator import NotArithmetic, calculate

PAGES = Path("/srv/homepage/pages")
TEMPLATES = {file.stem: Template(file.read_text(encoding="utf-8")) for file in PAGES.glob("*.html")}
# The manuals, in the order of the sites.
MANUALS = {site.manual: (PAGES / "manuals" / f"{site.manual}.html").read_text(encoding="utf-8") for site in sites.SITES}
TITLES = {name: re.search(r"<h1>(.*?)</h1>", text)[1] for name, text in MANUALS.items()}


def page(title, body):
    return TEMPLATES["frame"].substitute(title=escape(title), body=body)


def render(template, name, /, **parts):
    return page(name, TEMPLATES[template].substitute(parts))


def home(host):
    cards = "".join(
        f'<li class="card"><a class="name" href="{escape(url)}">{escape(site.name)}</a><p>{escape(site.about)}</p>'
        f'<p class="small"><code>{escape(url)}</code> &middot; <a href="/manuals/{site.manual}.html">manual</a></p></li>'
        for site in sites.SITES if (url := sites.url(site, host)))
    return render("home", "Homepage", cards=cards)


def passwords():
    rows = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in account) + "</tr>" for account in sites.ACCOUNTS)
    return render("password", "Accounts", rows=rows)


def calculator(expression):
    result = ""
    if expression.strip():
        try:
            result = f'<p>{escape(expression)} =</p><p id="value">{escape(calculate(expression))}</p>'
        except NotArithmetic as reason:
            result = f'<p class="wrong">{escape(str(reason))}</p>'
    return render("calculator", "Calculator", expression=escape(expression), result=result)


def moment(stored):
    """Returns a time in the format for people and in the format for programs."""
    when = dt.datetime.strptime(stored, notes.FORM)
    return f'<time datetime="{escape(stored)}">{when.day} {when:%B %Y, %H:%M} UTC</time>'


def scratchpad(chosen):
    kept = notes.all()
    note = next((note for note in kept if str(note["id"]) == chosen), {"id": "", "title": "", "text": ""})
    listed = "".join(
        f'<li class="note" id="note-{note["id"]}"><h2>{escape(note["title"])}</h2><pre>{escape(note["text"])}</pre>'
        f'<form method="post" action="/scratchpad.html"><input type="hidden" name="note" value="{note["id"]}">'
        f'<a class="button" href="/scratchpad.html?note={note["id"]}">Edit</a> <button name="action" value="delete">Delete</button>'
        f'<span class="small">changed on {moment(note["changed"])}</span></form></li>' for note in reversed(kept))
    # A line end directly after the tag is not part of a text area's value, so one is added.
    return render("scratchpad", "Scratchpad", id=note["id"], title=escape(note["title"]), text="\n" + escape(note["text"]),
                  heading=f'Edit note {note["id"]}' if note["id"] else "New note", notes=listed or "<li>There are no notes.</li>")


def search(words):
    """Returns the manuals that contain all words."""
    wanted = words.lower().split()
    plain = {name: re.sub(r"<[^>]+>", " ", text).lower() for name, text in MANUALS.items()}
    return [name for name in MANUALS if all(word in plain[name] for word in wanted)]


def manuals(words):
    found = search(words)
    listed = "".join(f'<li><a href="/manuals/{name}.html">{TITLES[name]}</a></li>' for name in found)
    return render("manuals", "Manuals", words=escape(words), manuals=listed or "<li>No manual has all these words.</li>")


def manual(name):
    return page(TITLES[name], f'{MANUALS[name]}<p><a href="/manuals/">All manuals</a></p>') if name in MANUALS else None


def pictures(names):
    listed = "".join(f'<li class="card"><a href="/static/input_images/{name}"><img src="/static/input_images/{name}" alt="{name}" width="240"></a>'
                     f'<p class="small">{name}</p></li>' for name in names)
    return render("pictures", "Pictures", pictures=listed)


def not_found():
    return page("Not found", "<h1>Not found</h1><p>There is no such page. Go to the <a href=\"/\">homepage</a>.</p>")


def failed():
    return page("Error", "<h1>Error</h1><p>This request cannot be answered.</p>")

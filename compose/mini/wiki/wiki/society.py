"""People, companies, their products, and events."""

from wiki.page import Dice, bullets, infobox, joined, number, section


def write(wiki, world):
    for person in world["people"]:
        write_person(wiki, world, person)
    for company in world["companies"]:
        write_company(wiki, world, company)
    for line in world["product_lines"]:
        write_line(wiki, line)
    for project in world["projects"]:
        write_project(wiki, world, project)
    for event in world["events"]:
        write_event(wiki, world, event)
    for work in world["works"]:
        write_work(wiki, world, work)
    for festival in world["festivals"]:
        write_festival(wiki, festival)
    for team in world["teams"]:
        write_team(wiki, world, team)


def article(word):
    return ("an " if word[0] in "aeiou" else "a ") + word


def write_person(wiki, world, p):
    link, dice, name = wiki.link, Dice(p["id"]), p["name"]
    she, her = ("She", "Her") if p["pronoun"] == "she" else ("He", "His")
    was = "was" if p["died"] else "is"
    founded = [c for c in world["companies"] if c["founder"] == name]
    leads = [c for c in world["companies"] if c["chief"] == name]
    events = [e for e in world["events"] if name in e["people"]]
    works = [w for w in world["works"] if w["creator"] == name]
    mayor = [t["name"] for t in world["towns"] if t["mayor"] == name]
    captain = [t["name"] for t in world["teams"] if t["captain"] == name]
    pupils = [o["name"] for o in world["people"] if o["mentor"] == name]
    projects = [x["name"] for x in world["projects"] if p.get("username") in x["maintainers"]]
    box = infobox(name, [
        ("Born", f"{p['born']}, {link(p['birthplace'])}"), ("Died", f"{p['died']} (aged {p['died'] - p['born']})" if p["died"] else None),
        ("Occupation", p["occupation"]), ("Education", link(p["school"])), ("Residence", link(p["home"])), ("Spouse", link(p["spouse"]) if p["spouse"] else None),
        ("Awards", "<br>".join(p["awards"])), ("Known online as", p.get("username")), ("Known for", "<br>".join(link(w["title"]) for w in works))],
        f"portrait-{p['id']}.png", name)
    years = f"{p['born']}–{p['died']}" if p["died"] else f"born {p['born']}"
    lead = f"<p><b>{name}</b> ({years}) {was} {article(p['occupation'])} from {link(p['birthplace'])} in {link('Larkmoor County')}.</p>"
    early = (f"{name} was born in {link(p['birthplace'])} in {p['born']} and went to {link(p['school'])}. "
             + dice.pick([f"{she} first worked on a ferry.", f"{her} first wages came from the salt pans.", f"{she} grew up above a shop.", f"{she} learned a trade before turning to another."]))
    if p["mentor"]:
        early += f" {she} learned much from {link(p['mentor'])}."
    career = [f"{she} settled in {link(p['home'])} and became known as {article(p['occupation'])}."]
    career += [f"In {c['founded']} {p['pronoun']} founded {link(c['name'])}." for c in founded]
    career += [f"{she} heads {link(c['name'])}." for c in leads]
    career += [f"{her} {w['kind']} {link(w['title'])} appeared in {w['year']}." for w in works]
    career += [f"{she} is mayor of {link(t)}." for t in mayor] + [f"{she} is captain of the {link(t)}." for t in captain]
    career += [f"{she} is a maintainer of {joined(link(x + ' (software)', x) for x in projects)}."] if projects else []
    career += [f"{she} took part in the {link(e['name'])} of {e['year']}." for e in events]
    career += [f"Among those {p['pronoun']} taught {'was' if p['died'] else 'is'} {joined(link(o) for o in pupils)}." if pupils else ""]
    private = (f"{she} {'was' if p['died'] else 'is'} married to {link(p['spouse'])}. " if p["spouse"] else "") + f"{she} {'liked' if p['died'] else 'likes'} {joined(p['interests'])}."
    body = box + lead + section("Early life", early) + section("Career", " ".join(career)) + section("Personal life", private)
    if p["awards"]:
        body += section("Awards", bullets(p["awards"]))
    century = "Historic people" if p["historic"] else "Living people"
    wiki.add(name, body, [century, f"People from {p['birthplace']}", f"{p['occupation'].capitalize()}s"])


def write_company(wiki, world, c):
    link, dice = wiki.link, Dice(c["id"])
    lines = [entry for entry in world["product_lines"] if entry["maker"] == c["name"]]
    projects = [entry for entry in world["projects"] if entry["owner"] == c["name"]]
    box = infobox(c["name"], [
        ("Industry", c["industry"]), ("Founded", str(c["founded"])), ("Founder", link(c["founder"]) if c["founder"] else None), ("Headquarters", f"{wiki.address(c['address'], c['town'])}, {link(c['town'])}"),
        ("Chief executive", link(c["chief"])), ("Employees", number(c["employees"])), ("Revenue (2022)", f"${c['revenue_musd']} million"), ("Slogan", f"“{c['slogan']}”")], f"logo-{c['id']}.png", f"Logo of {c['name']}")
    made = joined(name.lower() for name in c["categories"])
    body = (f"{box}<p><b>{c['name']}</b> is a company of {link('Larkmoor County')} in {c['industry']}" + (f", making {made}" if made else "") + f". It was founded in {c['founded']}"
            + (f" by {link(c['founder'])}" if c["founder"] else "") + f" and has its seat in {link(c['town'])}.</p>"
            + section("Business", f"The company had {number(c['employees'])} employees and a revenue of {c['revenue_musd']} million dollars in 2022. It is led by {link(c['chief'])}. "
                      + dice.pick(["Half of its goods leave the island by ferry.", "It pays its apprentices from the first day.", "It has never taken a loan.", "Its catalogue is printed by hand every spring."]),
                      f"Its line {joined(link(entry['name'] + ' (product line)', entry['name']) for entry in lines)} is sold by {link('One Stop Market')}." if lines else "",
                      f"It develops the projects {joined(link(entry['name'] + ' (software)', entry['name']) for entry in projects)}." if projects else "")
            + section("See also", bullets([link("List of companies of Larkmoor")])))
    wiki.add(c["name"], body, ["Companies of Larkmoor County", f"Companies based in {c['town']}"])


def write_line(wiki, x):
    link = wiki.link
    box = infobox(x["name"], [("Kind", x["description"]), ("Maker", link(x["maker"])), ("Launched", str(x["launched"])), ("Units sold", number(x["units_sold"])), ("Warranty", f"{x['warranty_years']} years")])
    body = (f"{box}<p><b>{x['name']}</b> is a line of {x['description']} by {link(x['maker'])}, launched in {x['launched']}. By 2023 {number(x['units_sold'])} pieces had been sold. "
            f"It comes with a warranty of {x['warranty_years']} years.</p>"
            + section("Market", f"{link('One Stop Market')} lists it under {x['category']} in the department {x['department']}. Its rival is made by {joined(link(r) for r in x['rivals'])}. See {link('List of product lines of Larkmoor')}."))
    wiki.add(x["name"] + " (product line)", body, ["Product lines of Larkmoor County"])


def write_project(wiki, world, x):
    link, people = wiki.link, {p.get("username"): p["name"] for p in world["people"]}
    box = infobox(x["name"], [("Developer", link(x["owner"])), ("Written in", x["language"]), ("Licence", x["licence"]), ("First release", str(x["started"])), ("Latest version", x["version"]), ("Stars", number(x["stars"])),
                              ("Maintainers", "<br>".join(link(people[m]) for m in x["maintainers"])), ("Issue labels", ", ".join(x["labels"]))])
    body = (f"{box}<p><b>{x['name']}</b> is free software that {x['description']}. It is written in {x['language']}, published under the {x['licence']} licence and developed by {link(x['owner'])} since {x['started']}.</p>".replace("that a ", "that provides a ").replace("that departure", "that drives departure").replace("that firmware", "that provides the firmware").replace("that the newspaper", "that runs the newspaper")
            + section("Development", f"The current version is {x['version']}. Maintainers are {joined(link(people[m]) for m in x['maintainers'])}. See {link('List of software projects of Larkmoor')}."))
    wiki.add(x["name"] + " (software)", body, ["Software of Larkmoor County", f"Software written in {x['language']}"])


def write_event(wiki, world, e):
    link, dice = wiki.link, Dice(e["id"])
    events = sorted(world["events"], key=lambda other: other["date"])
    place = events.index(e)
    around = [f"Before it: {link(events[place - 1]['name'])} ({events[place - 1]['year']})"] if place else []
    around += [f"After it: {link(events[place + 1]['name'])} ({events[place + 1]['year']})"] if place + 1 < len(events) else []
    box = infobox(e["name"], [("Date", e["date"]), ("Place", link(e["town"])), ("Kind", e["kind"]), ("People", "<br>".join(link(p) for p in e["people"]))])
    body = (f"{box}<p>The <b>{e['name']}</b> took place in {link(e['town'])} on {e['date']}. {e['summary']}.</p>"
            + section("Course", (f"{joined(link(p) for p in e['people'])} had a part in it. " if e["people"] else "") + dice.pick([
                "The county's records give it a page and a half.", "Songs about it are sung to this day.", "A stone in the market square recalls it.", "Children learn its date at school."]))
            + section("In context", bullets(around + [link("Timeline of Larkmoor history")])))
    wiki.add(e["name"], body, ["Events in Larkmoor County", f"{e['year'] // 100 + 1}th century in Larkmoor" if e["year"] < 2000 else "21st century in Larkmoor"])


def write_work(wiki, world, w):
    link, dice = wiki.link, Dice(w["id"])
    box = infobox(w["title"], [("Kind", w["kind"]), ("Creator", link(w["creator"])), ("Year", str(w["year"]))])
    subject = dice.pick(world["towns"])["name"]
    body = (f"{box}<p><b>{w['title']}</b> is a {w['kind']} of {w['year']} by {link(w['creator'])}.</p>"
            + section("Content", f"It is set in {link(subject)} and tells of {dice.pick(['a long winter', 'two families and one boat', 'a debt that cannot be paid', 'the sea and those who wait by it', 'a clock that stops'])}.")
            + section("Reception", f"{link('The Larkmoor Courier')} called it “{dice.pick(['quiet and exact', 'too long by half', 'the island as it is', 'a small wonder'])}”. See {link('List of works by Larkmoor artists')}."))
    wiki.add(w["title"], body, ["Works by Larkmoor artists", f"{w['year']} works"])


def write_festival(wiki, f):
    link = wiki.link
    box = infobox(f["name"], [("Town", link(f["town"])), ("Month", f["month"]), ("Since", str(f["since"])), ("Visitors", number(f["visitors"]))])
    wiki.add(f["name"] + " (festival)", f"{box}<p><b>{f['name']}</b> is a festival held in {link(f['town'])} every {f['month']} since {f['since']}. It draws about {number(f['visitors'])} visitors. See {link('List of festivals of Larkmoor')}.</p>", ["Festivals in Larkmoor County"])


def write_team(wiki, world, t):
    link = wiki.link
    box = infobox(t["name"], [("Sport", t["sport"]), ("Town", link(t["town"])), ("Founded", str(t["founded"])), ("Titles", str(t["titles"])), ("Captain", link(t["captain"]))])
    rivals = [o["name"] for o in world["teams"] if o["sport"] == t["sport"] and o is not t]
    wiki.add(t["name"], f"{box}<p>The <b>{t['name']}</b> are a {t['sport']} team from {link(t['town'])}, founded in {t['founded']}. They have won the county title {t['titles']} times; their captain is {link(t['captain'])}."
             + (f" Their rivals are the {joined(link(r) for r in rivals)}." if rivals else "") + f" See {link('List of sports teams of Larkmoor')}.</p>", ["Sports teams of Larkmoor County"])

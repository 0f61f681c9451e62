"""The county, its towns, and the buildings and rivers in them."""

from wiki.page import Dice, bullets, infobox, joined, number, section, table, thumb
from wiki.streets import place_title, street_title


def write(wiki, world):
    county(wiki, world)
    for town in world["towns"]:
        write_town(wiki, world, town)
        for landmark in town["landmarks"]:
            write_landmark(wiki, town, landmark)
        for museum in town["museums"]:
            write_museum(wiki, town, museum)
        for school in town["schools"]:
            write_school(wiki, world, town, school)
    for river in world["rivers"]:
        write_river(wiki, river)
    for park in world["parks"]:
        write_park(wiki, world, park)


def county(wiki, world):
    c, link = world["county"], wiki.link
    largest = sorted(world["towns"], key=lambda town: -town["population"])
    box = infobox(c["full_name"], [
        ("Motto", c["motto"]), ("County seat", link(c["seat"])), ("Chartered", str(c["chartered"])), ("Area", f"{number(c['area_km2'])} km²"),
        ("Population (2023)", number(c["population"])), ("Highest point", f"{c['highest_point']}, {c['highest_point_m']} m"),
        ("Towns", str(len(largest))), ("Rivers", str(len(world["rivers"])))], "county.png", "Map of Larkmoor with its towns and rivers")
    body = (
        f"{box}<p><b>{c['full_name']}</b> is an island county in the Atlantic Ocean. It covers {number(c['area_km2'])} square kilometres and had "
        f"{number(c['population'])} inhabitants in 2023, most of them in {joined(link(town['name']) for town in largest[:3])}. Its seat is "
        f"{link(c['seat'])}, its largest town {link(largest[0]['name'])}. The county is known for weaving, clocks, salt and a great number of small makers.</p>"
        + section("History", f"The first lasting settlement was {link('Port Elsing')}, {link('Founding of Port Elsing', 'founded in 1612')}. The towns joined under the "
                  f"{link('Charter of Larkmoor')} of 1668. Industry came with the {link('First Railway')} in 1851; see {link('Timeline of Larkmoor history')}.")
        + section("Geography", f"The island rises from the {link('Salt Flats')} in the south to {link(c['highest_point'])} ({c['highest_point_m']} m) on {link('Dunmore Moor')}. "
                  f"The longest river is the {link('River Lark')}. More in {link('List of rivers of Larkmoor')} and {link('List of parks in Larkmoor')}.")
        + section("Towns", table(["Town", "Population", "Founded", "Known for"], [
            [link(t["name"]), number(t["population"]), t["founded"], t["known_for"]] for t in largest]))
        + section("Economy", f"{link('One Stop Market')} sells the goods of about two dozen makers; see {link('List of companies of Larkmoor')} and "
                  f"{link('List of product lines of Larkmoor')}. Software from the county is collected in {link('List of software projects of Larkmoor')}, those who write it in {link('List of maintainers of software in Larkmoor')}.")
        + section("Culture", f"See {link('List of museums in Larkmoor')}, {link('List of festivals of Larkmoor')}, {link('List of works by Larkmoor artists')}, "
                  f"{link('List of people from Larkmoor')} and {link('List of sports teams of Larkmoor')}.")
        + section("See also", bullets([link("Index"), link("List of landmarks in Larkmoor"), link("List of schools in Larkmoor"), link("List of streets of Larkmoor"),
                                          link("List of places to eat, sleep and shop in Larkmoor"), link("List of public services of Larkmoor"), link("List of towns of Larkmoor by elevation")])))
    wiki.add(c["full_name"], body, ["Larkmoor County"])


def write_town(wiki, world, town):
    name, link, dice = town["name"], wiki.link, Dice(town["id"])
    firms = [c for c in world["companies"] if c["town"] == name]
    natives = [p for p in world["people"] if p["birthplace"] == name]
    events = [e for e in world["events"] if e["town"] == name]
    parks = [p for p in world["parks"] if p["town"] == name]
    festivals = [f for f in world["festivals"] if f["town"] == name]
    teams = [t for t in world["teams"] if t["town"] == name]
    lines = [entry for entry in world["product_lines"] if entry["maker"] in [c["name"] for c in firms]]
    box = infobox(name, [
        ("County", link("Larkmoor County")), ("Nickname", f"“{town['nickname']}”"), ("Founded", str(town["founded"])),
        ("Population (2023)", number(town["population"])), ("Area", f"{town['area_km2']} km²"), ("Elevation", f"{town['elevation_m']} m"),
        ("Density", f"{round(town['population'] / town['area_km2']):,}/km²"), ("Mayor", link(town["mayor"])), ("Postcode", town["postcode"]),
        ("Rivers", joined(link(r) for r in town["rivers"])), ("Coordinates", f"{town['lat']}° N, {-town['lon']}° W")], f"arms-{town['id']}.png", f"Coat of arms of {name}")
    opening = dice.pick(["lies", "is a town", "is situated"])
    where = joined(f"the {link(r)}" for r in town["rivers"]) or "the coast"
    lead = (f"<p><b>{name}</b> {opening} on {where} in {link('Larkmoor County')}. With {number(town['population'])} inhabitants (2023) on {town['area_km2']} square kilometres "
            f"it is {rank(world, town)} of the county. It is known for {town['known_for']} and is often called “{town['nickname']}”.</p>")
    past = [f"{name} was founded in {town['founded']}."] + [f"In {e['year']} came the {link(e['name'])}. {e['summary']}." for e in events]
    pictures = thumb(f"town-{town['id']}.png", f"View of {name}") + thumb(f"where-{town['id']}.png", f"Where {name} lies")
    body = box + pictures + lead + section("History", " ".join(past))
    body += section("Economy", f"{dice.pick(['The larger employers are', 'Work is given by', 'Companies of the town include'])} {joined(link(c['name']) for c in firms)}." if firms
                    else f"Most people work in {town['known_for']} or travel to {link('Port Elsing')}.",
                    f"From here come the product lines {joined(link(entry['name'] + ' (product line)', entry['name']) for entry in lines)}." if lines else "")
    body += section("Sights", f"Visitors come for the {joined(link(x['name']) for x in town['landmarks'])}"
                    + (f" and for the {joined(link(x['name']) for x in town['museums'])}." if town["museums"] else "."),
                    f"Near the town lies {joined(link(p['name']) for p in parks)}." if parks else "",
                    f"Every year there is {joined(link(f['name'] + ' (festival)', f['name']) for f in festivals)}." if festivals else "")
    body += section("Education and sport", f"The schools are {joined(link(x['name']) for x in town['schools'])}.",
                    f"The town is home to the {joined(link(t['name']) for t in teams)}." if teams else "")
    body += section("Streets and services", f"The main streets are {joined(link(street_title(s['name'], name), s['name']) for s in town['streets'][:6])}.",
                    table(["Name", "Kind", "Address", "Open"], [
                        [link(place_title(p, name), p["name"]), p["kind"], wiki.address(p["address"], name), f"{p['opens']}–{p['closes']}"] for p in town["pois"]]))
    if natives:
        body += section("People from " + name, bullets(f"{link(p['name'])} ({p['born']}{'–' + str(p['died']) if p['died'] else ' births'}), {p['occupation']}".replace(" births", "") for p in natives))
    wiki.add(name, body, ["Towns in Larkmoor County", f"Settlements founded in the {town['founded'] // 100 + 1}th century"])


def rank(world, town):
    place = 1 + sum(other["population"] > town["population"] for other in world["towns"])
    words = ["", "the largest town", "the second largest town", "the third largest town"]
    return words[place] if place < len(words) else f"number {place} among the {len(world['towns'])} towns"


def write_landmark(wiki, town, x):
    link, dice = wiki.link, Dice(x["id"])
    box = infobox(x["name"], [("Type", x["kind"]), ("Town", link(town["name"])), ("Address", wiki.address(x["address"], town["name"])), ("Built", str(x["built"])),
                              ("Height", f"{x['height_m']} m"), ("Visitors per year", number(x["visitors_per_year"]))],
                  f"landmark-{x['id']}.png", f"The {x['name']}")
    style = dice.pick(["rubble stone and slate", "red brick", "pale limestone", "granite from the moor", "timber on a stone base"])
    body = (f"{box}<p>The <b>{x['name']}</b> is a {x['kind']} in {link(town['name'])}, {link('Larkmoor County')}. It was built in {x['built']} of {style} "
            f"and is {x['height_m']} metres high. About {number(x['visitors_per_year'])} people visit it every year.</p>"
            + section("Building", f"The {x['kind']} stands at {wiki.address(x['address'], town['name'])}. {dice.pick(['Its roof was renewed after the storm of 1922.', 'The doors are of bog oak.', 'A tablet at the entrance names the builders.', 'It leans a little to the east, as every child in town knows.'])} "
                      f"It was restored in {dice.number(1948, 2016)}.")
            + section("Visiting", f"It is open {dice.pick(['daily', 'from April to October', 'at weekends', 'on the first Sunday of the month'])}; "
                      f"{dice.pick(['admission is free', 'tickets cost 3 dollars', 'tours start at eleven'])}. See also {link('List of landmarks in Larkmoor')}."))
    wiki.add(x["name"], body, ["Buildings in Larkmoor County", f"Buildings in {town['name']}"])


def write_museum(wiki, town, m):
    link, fee = wiki.link, f"${m['entry_fee_usd']}" if m["entry_fee_usd"] else "free"
    box = infobox(m["name"], [("Town", link(town["name"])), ("Address", wiki.address(m["address"], town["name"])), ("Opened", str(m["opened"])), ("Subject", m["subject"]),
                              ("Objects", number(m["objects"])), ("Visitors per year", number(m["visitors_per_year"])), ("Admission", fee), ("Closed on", m["closed_on"])],
                  f"museum-{m['id']}.png", f"The {m['name']}")
    body = (f"{box}<p>The <b>{m['name']}</b> is a museum of {m['subject']} in {link(town['name'])}. It opened in {m['opened']} and shows {number(m['objects'])} objects. "
            f"About {number(m['visitors_per_year'])} people visit it every year, which is {'more' if m['visitors_per_year'] > town['population'] else 'less'} than the town has inhabitants.</p>"
            + section("Visiting", f"The museum at {wiki.address(m['address'], town['name'])} is closed on {m['closed_on']}. Admission: {fee}. See {link('List of museums in Larkmoor')}."))
    wiki.add(m["name"], body, ["Museums in Larkmoor County", f"Buildings in {town['name']}"])


def write_school(wiki, world, town, s):
    link = wiki.link
    pupils = [p for p in world["people"] if p["school"] == s["name"]]
    box = infobox(s["name"], [("Type", s["kind"]), ("Town", link(town["name"])), ("Opened", str(s["opened"])), ("Students", number(s["students"])), ("Motto", f"“{s['motto']}”"), ("Address", wiki.address(s["address"], town["name"]))])
    body = (f"{box}<p><b>{s['name']}</b> is a {s['kind']} in {link(town['name'])}, opened in {s['opened']}. It has {number(s['students'])} students; its motto is “{s['motto']}”.</p>"
            + (section("Notable students", bullets(f"{link(p['name'])}, {p['occupation']}" for p in pupils)) if pupils else "")
            + section("See also", bullets([link("List of schools in Larkmoor")])))
    wiki.add(s["name"], body, ["Schools in Larkmoor County"])


def with_article(link, name):
    """Renders a link to a place whose name may have an article that its page title lacks."""
    return ("the " if name.startswith("the ") else "") + link(name.removeprefix("the "))


def write_river(wiki, r):
    link = wiki.link
    source, mouth = with_article(link, r["source"]), with_article(link, r["mouth"])
    box = infobox(r["name"], [("Source", source), ("Mouth", mouth), ("Length", f"{r['length_km']} km"), ("Discharge", f"{r['discharge_m3s']} m³/s"), ("Towns", joined(link(t) for t in r["towns"]))],
                  f"where-{r['id']}.png", f"Course of the {r['name']}")
    body = (f"{box}<p>The <b>{r['name']}</b> is a river in {link('Larkmoor County')}. It rises on {source}, flows for {r['length_km']} kilometres and ends in {mouth}"
            + (f" as a tributary of the {link(r['tributary_of'])}" if r["tributary_of"] else "") + f". On its way it passes {joined(link(t) for t in r['towns'])}.</p>"
            + section("Hydrology", f"The mean discharge at the mouth is {r['discharge_m3s']} cubic metres per second. See {link('List of rivers of Larkmoor')}."))
    wiki.add(r["name"], body, ["Rivers of Larkmoor County"])


def write_park(wiki, world, p):
    link = wiki.link
    box = infobox(p["name"], [("Nearest town", link(p["town"])), ("Established", str(p["established"])), ("Area", f"{number(p['area_ha'])} ha"),
                              ("Highest point", f"{p['highest_point_m']} m"), ("Footpaths", f"{p['paths_km']} km"), ("Wildlife", p["wildlife"])],
                  f"park-{p['id']}.png", f"In {p['name']}") + thumb(f"where-{p['id']}.png", f"Where {p['name']} lies")
    events = [e for e in world["events"] if e["town"] == p["town"] and e["kind"] in ("fire", "nature", "storm")]
    body = (f"{box}<p><b>{p['name']}</b> is a park near {link(p['town'])}. It was established in {p['established']} and covers {number(p['area_ha'])} hectares. "
            f"It is known for its {p['wildlife']}; {p['paths_km']} kilometres of footpaths lead through it.</p>"
            + (section("History", " ".join(f"{link(e['name'])} ({e['year']}): {e['summary']}." for e in events)) if events else "")
            + section("See also", bullets([link("List of parks in Larkmoor")])))
    wiki.add(p["name"], body, ["Parks in Larkmoor County"])

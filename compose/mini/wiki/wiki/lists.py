"""Lists by topic, one page per category, and the index of everything."""

from wiki.page import bullets, joined, number, table
from wiki.streets import place_title, street_title


def write(wiki, world):
    link, towns = wiki.link, world["towns"]

    def listing(title, head, rows):
        wiki.add(title, f"<p>This is a list with {len(rows)} entries about {link('Larkmoor County')}.</p>" + table(head, rows), ["Lists about Larkmoor County"])

    listing("List of towns of Larkmoor by elevation", ["Town", "Elevation (m)", "Rivers"], [
        [link(t["name"]), t["elevation_m"], ", ".join(t["rivers"])] for t in sorted(towns, key=lambda t: -t["elevation_m"])])
    listing("List of landmarks in Larkmoor", ["Name", "Town", "Built", "Height (m)", "Visitors per year"], [
        [link(x["name"]), link(t["name"]), x["built"], x["height_m"], number(x["visitors_per_year"])] for t in towns for x in t["landmarks"]])
    listing("List of museums in Larkmoor", ["Name", "Town", "Opened", "Objects", "Admission ($)", "Closed on"], [
        [link(x["name"]), link(t["name"]), x["opened"], number(x["objects"]), x["entry_fee_usd"], x["closed_on"]] for t in towns for x in t["museums"]])
    listing("List of schools in Larkmoor", ["Name", "Town", "Opened", "Students"], [
        [link(x["name"]), link(t["name"]), x["opened"], number(x["students"])] for t in towns for x in t["schools"]])
    listing("List of rivers of Larkmoor", ["River", "Length (km)", "Source", "Mouth", "Discharge (m³/s)"], [
        [link(r["name"]), r["length_km"], r["source"], r["mouth"], r["discharge_m3s"]] for r in world["rivers"]])
    listing("List of parks in Larkmoor", ["Park", "Nearest town", "Area (ha)", "Established", "Wildlife"], [
        [link(p["name"]), link(p["town"]), number(p["area_ha"]), p["established"], p["wildlife"]] for p in world["parks"]])
    listing("List of people from Larkmoor", ["Name", "Born", "Died", "Occupation", "Born in"], [
        [link(p["name"]), p["born"], p["died"] or "", p["occupation"], link(p["birthplace"])] for p in sorted(world["people"], key=lambda p: (p["last"], p["first"]))])
    listing("List of companies of Larkmoor", ["Company", "Industry", "Town", "Founded", "Employees", "Revenue ($ million)"], [
        [link(c["name"]), c["industry"], link(c["town"]), c["founded"], number(c["employees"]), c["revenue_musd"]] for c in sorted(world["companies"], key=lambda c: c["name"])])
    listing("List of product lines of Larkmoor", ["Line", "Maker", "Kind", "Launched", "Units sold"], [
        [link(x["name"] + " (product line)", x["name"]), link(x["maker"]), x["description"], x["launched"], number(x["units_sold"])] for x in world["product_lines"]])
    listing("List of software projects of Larkmoor", ["Project", "Language", "Developer", "Licence", "Stars"], [
        [link(x["name"] + " (software)", x["name"]), x["language"], link(x["owner"]), x["licence"], number(x["stars"])] for x in world["projects"]])
    listing("List of maintainers of software in Larkmoor", ["Name", "Known online as", "Residence", "Projects"], [
        [link(p["name"]), p["username"], link(p["home"]), joined(link(x["name"] + " (software)", x["name"]) for x in world["projects"] if p["username"] in x["maintainers"])]
        for p in world["people"] if any(p.get("username") in x["maintainers"] for x in world["projects"])])
    listing("List of streets of Larkmoor", ["Street", "Towns"], [
        [street, ", ".join(link(street_title(street, t["name"]), t["name"]) for t in towns if street in [s["name"] for s in t["streets"]])]
        for street in sorted({s["name"] for t in towns for s in t["streets"]})])
    places = [(t["name"], p) for t in towns for p in t["pois"]]
    listing("List of places to eat, sleep and shop in Larkmoor", ["Name", "Kind", "Town", "Address", "Open", "Rating"], [
        [link(place_title(p, t), p["name"]), p["kind"], link(t), p["address"], f"{p['opens']}–{p['closes']}", p["stars"] if p["kind"] in ("cafe", "restaurant", "hotel") else ""]
        for t, p in places if p["kind"] in ("cafe", "restaurant", "hotel", "pharmacy", "supermarket")])
    listing("List of public services of Larkmoor", ["Name", "Kind", "Town", "Address", "Telephone", "Open"], [
        [link(place_title(p, t), p["name"]), p["kind"], link(t), p["address"], p["phone"], f"{p['opens']}–{p['closes']}"]
        for t, p in places if p["kind"] in ("library", "station", "hospital")])
    listing("List of festivals of Larkmoor", ["Festival", "Town", "Month", "Since", "Visitors"], [
        [link(f["name"] + " (festival)", f["name"]), link(f["town"]), f["month"], f["since"], number(f["visitors"])] for f in world["festivals"]])
    listing("List of works by Larkmoor artists", ["Title", "Kind", "Creator", "Year"], [
        [link(w["title"]), w["kind"], link(w["creator"]), w["year"]] for w in sorted(world["works"], key=lambda w: w["year"])])
    listing("List of sports teams of Larkmoor", ["Team", "Sport", "Town", "Founded", "Titles"], [
        [link(t["name"]), t["sport"], link(t["town"]), t["founded"], t["titles"]] for t in world["teams"]])
    listing("Timeline of Larkmoor history", ["Date", "Event", "Town", "What happened"], [
        [e["date"], link(e["name"]), link(e["town"]), e["summary"]] for e in sorted(world["events"], key=lambda e: e["date"])])

    for name, titles in sorted(wiki.categories.items()):
        wiki.add("Category:" + name, f"<p>{len(titles)} pages belong to this category.</p>" + bullets(link(t) for t in sorted(titles)))
    letters = {}
    for title in sorted(wiki.pages):
        if not title.startswith("Category:"):
            letters.setdefault(title[0], []).append(title)
    index = "".join(f"<h2>{letter}</h2>" + bullets(link(t) for t in titles) for letter, titles in letters.items())
    categories = "<h2>Categories</h2>" + bullets(link(t) for t in sorted(wiki.pages) if t.startswith("Category:"))
    wiki.add("Index", f"<p>All {len(wiki.pages)} pages.</p>{index}{categories}")

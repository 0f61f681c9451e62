"""Streets with their buildings, and the places where people eat, sleep, read and travel."""

from wiki.page import Dice, bullets, infobox, joined, section, table

SERVICES = "Public services of Larkmoor County"
KINDS = {  # kind of place: its category, its description
    "cafe": ("Cafes in Larkmoor County", "a cafe"), "restaurant": ("Restaurants in Larkmoor County", "a restaurant"),
    "hotel": ("Hotels in Larkmoor County", "a hotel"), "pharmacy": ("Shops in Larkmoor County", "a pharmacy"),
    "supermarket": ("Shops in Larkmoor County", "a supermarket"), "library": (SERVICES, "the public library"),
    "station": (SERVICES, "the railway station"), "hospital": (SERVICES, "the hospital")}
REMARKS = {
    "cafe": ["Its cake is gone by noon.", "The newspaper lies on every table.", "Chess is played in the back room."],
    "restaurant": ["The fish comes from the morning's boats.", "The menu has one page and changes every week.", "Eel is served from September on."],
    "hotel": ["Half of the rooms look at the water.", "It has been in one family for three generations.", "Breakfast is served until eleven."],
    "pharmacy": ["The jars in the window are older than the house."], "supermarket": ["It sells what the farms around bring."],
    "library": ["Every first Saturday it sells books for a dollar.", "It keeps the town's newspapers since the first issue."],
    "station": ["Trains of the Larkmoor Railway stop here.", "The clock over the platform was made in Thornwick."],
    "hospital": ["It was paid for by a tax on salt.", "The old wing is a chapel now."]}


def street_title(street, town):
    return f"{street} ({town})"


def place_title(place, town):
    return place["name"] if place["name"].startswith(town) else f"{place['name']} ({town})"


def write(wiki, world):
    for town in world["towns"]:
        tenants = tenants_of(wiki, world, town)
        for street in town["streets"]:
            write_street(wiki, world, town, street["name"], tenants.get(street["name"], []))
        for place in town["pois"]:
            write_place(wiki, town, place)


def tenants_of(wiki, world, town):
    """Returns the occupants of the town's streets as (number, link, kind), by street."""
    found = [(x["address"], wiki.link(x["name"]), x["kind"]) for x in town["landmarks"] + town["schools"]]
    found += [(x["address"], wiki.link(x["name"]), "museum") for x in town["museums"]]
    found += [(x["address"], wiki.link(place_title(x, town["name"]), x["name"]), x["kind"]) for x in town["pois"]]
    found += [(x["address"], wiki.link(x["name"]), f"company ({x['industry']})") for x in world["companies"] if x["town"] == town["name"]]
    streets = {}
    for address, name, kind in found:
        number, street = address.split(" ", 1)
        streets.setdefault(street, []).append((int(number), name, kind))
    return {street: sorted(tenants) for street, tenants in streets.items()}


def write_street(wiki, world, town, street, tenants):
    link, name = wiki.link, town["name"]
    dice = Dice(f"{street} {name}")
    paved = dice.number(max(town["founded"] + 20, 1700), 1930)
    others = [other["name"] for other in world["towns"] if other is not town and street in [one["name"] for one in other["streets"]]]
    box = infobox(street, [("Town", link(name)), ("Postcode", town["postcode"]), ("Paved", str(paved))])
    body = (f"{box}<p><b>{street}</b> is a street in {link(name)}, {link('Larkmoor County')}. It was paved in {paved}. "
            + dice.pick(["Plane trees stand on its sunny side.", "The houses at its upper end are of slate.", "It is closed to cars on market days.",
                         "A brook runs below it.", "It was widened after a fire."]) + "</p>")
    if tenants:
        body += section("Addresses", table(["Number", "Name", "Kind"], tenants))
    if others:
        body += section("Streets of the same name", f"There is a {street} also in {joined(link(street_title(street, other), other) for other in others)}.")
    body += section("See also", bullets([link("List of streets of Larkmoor")]))
    wiki.add(street_title(street, name), body, ["Streets in Larkmoor County", f"Streets in {name}"])


def write_place(wiki, town, place):
    link, name, kind = wiki.link, town["name"], place["kind"]
    category, described = KINDS[kind]
    title, dice = place_title(place, name), Dice(f"{place['name']} {name}")
    address, hours = wiki.address(place["address"], name), f"{place['opens']}–{place['closes']}"
    box = infobox(place["name"], [("Kind", kind), ("Town", link(name)), ("Address", address), ("Telephone", place["phone"]), ("Open", hours),
                                  ("Rating", f"{place['stars']} of 5") if kind in ("cafe", "restaurant", "hotel") else ("", "")])
    body = (f"{box}<p><b>{place['name']}</b> is {described} {'of' if described.startswith('the ') else 'in'} {link(name)}. It is at {address} and open from "
            f"{place['opens']} to {place['closes']}; the telephone number is {place['phone']}. {dice.pick(REMARKS[kind])}</p>"
            + section("See also", bullets([link("List of public services of Larkmoor" if category == SERVICES else "List of places to eat, sleep and shop in Larkmoor")])))
    wiki.add(title, body, [category, f"Buildings in {name}"])

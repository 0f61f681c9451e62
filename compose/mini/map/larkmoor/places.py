"""Houses with numbers and their occupants: everything in world.json that has an address, and the places of everyday life."""

import math
import re

from larkmoor.geometry import Dice, Grid, along, distance, length, moved

# The import would use either of two main tags, so these put their kind beside tourism=attraction in a key that does not
# count as one.
LANDMARKS = {"guildhall": {"historic:kind": "building"}, "old lighthouse": {"man_made": "lighthouse"}, "clock tower": {"man_made": "tower", "tower:type": "clock"},
             "castle": {"historic:kind": "castle"}, "priory": {"historic:kind": "monastery"}, "signal tower": {"man_made": "tower", "tower:type": "signal"},
             "viaduct": {"historic:kind": "bridge"}, "aqueduct": {"historic:kind": "aqueduct"}, "windmill": {"man_made": "windmill"},
             "watermill": {"man_made": "watermill"}, "cathedral": {"amenity": "place_of_worship", "religion": "christian"},
             "town gate": {"historic:kind": "city_gate"}, "concert hall": {"amenity": "theatre", "theatre:type": "concert_hall"},
             "observatory": {"man_made": "observatory"}, "market cross": {"historic:kind": "wayside_cross"}}
POIS = {"cafe": {"amenity": "cafe"}, "restaurant": {"amenity": "restaurant"}, "hotel": {"tourism": "hotel"}, "pharmacy": {"amenity": "pharmacy"},
        "supermarket": {"shop": "supermarket"}, "library": {"amenity": "library"}, "hospital": {"amenity": "hospital", "emergency": "yes"},
        "station": {"railway": "station", "public_transport": "station", "train": "yes"}}
SCHOOLS = {"college": {"amenity": "college"}}
INDUSTRY = {"newspaper publishing": {"office": "newspaper"}, "software": {"office": "it"}, "banking": {"amenity": "bank"}, "brewing": {"craft": "brewery"},
            "retail": {"office": "company"}, "broadcasting": {"amenity": "studio", "studio": "radio"}, "printing": {"craft": "printer"}}
# Everyday life: tags, number of inhabitants per object, names (if there are none, objects have no name).
EVERYDAY = [({"amenity": "pub"}, 5200, "The Red Grouse, The Ship Prudence, The Shuttle, The Eel and Basket, The Long Winter, The Lamplighter, The Three Oars, The Pendulum"),
            ({"shop": "bakery"}, 6500, "Crust and Crumb, Morning Loaf, The Flour Sack, Tolliver's Bakery, Rye and Sons"),
            ({"amenity": "bank"}, 15000, "First Bank of Larkmoor"), ({"amenity": "post_office"}, 16000, "Post Office"),
            ({"amenity": "fuel"}, 12000, "Windward Fuel, Larkmoor Oil, Crossway Garage"), ({"amenity": "doctors"}, 11000, "Market Practice, Weaver Row Surgery, Dr Okafor, Dr Marchbanks"),
            ({"amenity": "dentist"}, 14000, "Bright Smile, Elsing Dental"), ({"shop": "convenience"}, 6000, "Corner Shop, Penny Saver, Lark Stores"),
            ({"shop": "clothes"}, 12000, "Millweave, Stormlark, Second Thread"), ({"shop": "books"}, 20000, "The Printed Page, Slate and Verse, Larkin's Books"),
            ({"shop": "hairdresser"}, 9000, "The Comb, Shear Delight, Fernwash Salon"), ({"shop": "bicycle"}, 22000, "Tailwind Cycles, Ashby Wheelers Workshop"),
            ({"shop": "florist"}, 20000, "Orchard Blooms, The Lime Avenue Florist"), ({"shop": "butcher"}, 17000, "Holloway Butchers, Dunmore Lamb"),
            ({"amenity": "fast_food", "cuisine": "fish_and_chips"}, 11000, "The Codfather, Harbour Chippy, Salt and Vinegar"),
            ({"amenity": "cinema"}, 30000, "The Lantern, Regent"), ({"amenity": "police"}, 60000, "Police Station"), ({"amenity": "fire_station"}, 60000, "Fire Station"),
            ({"amenity": "townhall"}, 99999, "Town Hall"), ({"amenity": "place_of_worship", "religion": "christian"}, 14000, "St Brendan's Church, St Agnes' Church, Chapel of the Three Herons"),
            ({"amenity": "kindergarten"}, 16000, "Little Larks, The Acorns"), ({"amenity": "vending_machine", "vending": "public_transport_tickets"}, 60000, ""),
            ({"amenity": "atm"}, 9000, ""), ({"amenity": "post_box"}, 4000, ""), ({"tourism": "information", "information": "office"}, 99999, "Visitor Centre"),
            ({"tourism": "guest_house"}, 13000, "Gull Cottage, The Old Forge, Heather House"), ({"leisure": "sports_centre"}, 30000, "Leisure Centre")]


def entries(world, town):
    """Returns everything in this town that has an address, as (street, number, tags or none, drawing).

    The drawing is `grounds` (the building itself is the object), `large` (a point in a large building), `inside` (a
    point in a house) or `house`. A search "near" an object looks inside its outline, so objects that people search near
    are points.
    """
    out = []

    def add(address, tags, drawn):
        number, street = re.fullmatch(r"(\d+) (.+)", address).groups()
        out.append((street, int(number), tags, drawn))

    for x in town["landmarks"]:
        tags = LANDMARKS.get(x["kind"], {"historic:kind": "building"})
        add(x["address"], {**tags, "tourism": "attraction", "name": x["name"], "start_date": str(x["built"]), "height": str(x["height_m"])}, "large")
    for x in town["museums"]:
        fee = {"fee": "no"} if x["entry_fee_usd"] == 0 else {"fee": "yes", "charge": f"{x['entry_fee_usd']} USD"}
        add(x["address"], {"tourism": "museum", "name": x["name"], "start_date": str(x["opened"]), "subject": x["subject"], **fee,
                           "opening_hours": f"Mo-Su 10:00-17:00; {x['closed_on'][:2]} off"}, "large")
    for x in town["schools"]:
        add(x["address"], {**SCHOOLS.get(x["kind"], {"amenity": "school"}), "name": x["name"], "start_date": str(x["opened"]), "capacity": str(x["students"])}, "grounds")
    for x in town["pois"]:
        tags = {**POIS[x["kind"]], "name": x["name"], "phone": x["phone"], "opening_hours": f"Mo-Su {x['opens']}-{x['closes']}"}
        if x["kind"] == "hotel":
            tags["stars"] = str(round(x["stars"]))
        if x["kind"] == "station":
            tags["operator"] = "Larkmoor Railway"
        add(x["address"], tags, "grounds" if x["kind"] in ("hospital", "station") else "large" if x["kind"] in ("library", "hotel", "supermarket") else "inside")
    for x in world["companies"]:
        if x["town"] == town["name"]:
            add(x["address"], {**INDUSTRY.get(x["industry"], {"office": "company"}), "name": x["name"], "start_date": str(x["founded"]),
                               "description": x["industry"]}, "large")
    for x in world["people"]:
        if x.get("address") and x["address"]["town"] == town["name"]:
            add(x["address"]["line"], None, "house")
    return out


class Houses:
    """Places houses along streets so that they overlap neither each other nor a road."""

    def __init__(self, map, network):
        self.map, self.network, self.taken = map, network, Grid(60)

    def free(self, point, reach):
        return all(distance(other[0], point) > reach + other[1] for other in self.taken.near(point, point, reach + 25))

    def stand(self, line, at, side, deep, wide, own_lines):
        """Returns the middle of a house beside a street, or None if the place is not free."""
        place, d = along(line, at)
        out = (d[1] * side, -d[0] * side)
        middle = moved(place, out, 11 + deep / 2)
        half = math.hypot(deep, wide) / 2
        if not self.free(middle, half * 0.8) or self.network.clearance(middle, half + 5, own_lines) < half + 4:
            return None
        return middle, d, out

    def build(self, spot, deep, wide, tags):
        middle, d, out = spot
        self.taken.add(middle, middle, (middle, math.hypot(deep, wide) / 2))
        corners = [moved(moved(middle, d, a * wide / 2), out, b * deep / 2) for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
        return self.map.area(corners, tags)


def settle(houses, world, town, keep_off):
    """Builds all houses of a town. Returns the place of its station, and the number of addresses that had no room for a
    house."""
    streets = {}
    for line in houses.network.lines:
        if line.town == town["name"] and "name" in line.tags and line.tags["highway"] not in ("cycleway", "path", "footway", "track"):
            streets.setdefault(line.tags["name"], []).append(line)
    tenants = {}
    for street, number, tags, drawn in entries(world, town):
        tenants.setdefault((street, number), []).append((tags, drawn))
    # The addresses of world.json come first, so that no other object takes their place.
    station, crowded = None, 0
    for (street, number), those in sorted(tenants.items(), key=lambda entry: entry[0]):
        spot, housed = move_in(houses, town, streets[street], street, number, those)
        crowded += not housed
        if any(tags and tags.get("railway") == "station" for tags, _ in those):
            station = spot[0]
    free = fill(houses, town, streets, tenants, keep_off)
    furnish(houses, town, free)
    return station, crowded


def postal(town, street, number):
    return {"addr:housenumber": str(number), "addr:street": street, "addr:city": town["name"], "addr:postcode": town["postcode"]}


def move_in(houses, town, own, street, number, tenants):
    """Builds a house at an address of world.json with its occupants. If no house fits, adds a door between two others."""
    points, total = own[0].points, length(own[0].points)
    address = postal(town, street, number)
    grounds = [tags for tags, drawn in tenants if drawn == "grounds"]
    wide, deep = (28, 19) if grounds else (22, 15) if any(drawn == "large" for _, drawn in tenants) else (12, 10)
    side, ideal = (1 if number % 2 else -1), house_at(number, total)
    housed = False
    for shift, size in ((shift, size) for shift in (0, 4, -4, 8, -8, 12, -12, 18, -18, 26, -26) for size in (1.0, 0.6)):
        spot = houses.stand(points, min(max(ideal + shift, 6), total - 6), side, deep * size, wide * size, own)
        if spot:
            houses.build(spot, deep * size, wide * size, {"building": "yes", **(grounds[0] if grounds else {}), **address})
            housed = True
            break
    if not housed:
        place, d = along(points, ideal)
        out = (d[1] * side, -d[0] * side)
        spot = (moved(place, out, 9), d, out)
        houses.map.node(spot[0], {"entrance": "yes", **address})
    inside = grounds[1 if housed else 0:] + [tags for tags, drawn in tenants if drawn == "inside" or drawn == "large"]
    for at, tags in enumerate(inside):
        houses.map.node(moved(spot[0], spot[1], 2.0 * at + 0.7), {**tags, **address})
    return spot, housed


def fill(houses, town, streets, taken, keep_off):
    """Builds houses at the remaining numbers, closer together in the well-known streets."""
    dice, known, free = Dice("houses " + town["id"]), {street["name"] for street in town["streets"]}, []
    for street, own in streets.items():
        line, total = own[0], length(own[0].points)
        last, sparse = (180, 1.0) if street in known else (max(4, int(total / 9)), 1.7)
        for side in (1, -1):
            reach, gap = -99.0, 0.0
            for number in range(1 if side == 1 else 2, last + 1, 2):
                at = house_at(number, total, last)
                if (street, number) in taken or at < 12 or at > total - 12 or at - reach < gap:
                    continue
                wide, deep = dice.real(11, 19), dice.real(9, 14)
                spot = houses.stand(line.points, at, side, deep, wide, own)
                if spot is None or keep_off(spot[0]):
                    continue
                reach, gap = at, sparse * dice.real(24, 52)
                address = postal(town, street, number)
                houses.build(spot, deep, wide, {"building": "house", **address})
                free.append((spot, address))
    return free


def house_at(number, total, last=180):
    """Returns the distance of a house along its street: odd numbers on the right, even on the left, rising."""
    return (number - 0.5) / last * total


def furnish(houses, town, free):
    """Puts shops, services and other places of daily life into houses near the market; the busiest come first."""
    dice = Dice("furnish " + town["id"])
    xs = [spot[0][0] for spot, _ in free]
    ys = [spot[0][1] for spot, _ in free]
    middle = (sum(xs) / len(xs), sum(ys) / len(ys))
    central = sorted(free, key=lambda entry: (distance(entry[0][0], middle) + dice.real(0, 900), entry[0][0]))
    taken = iter(central)
    for tags, share, names in EVERYDAY:
        choices = [name.strip() for name in names.split(",") if name.strip()]
        for at in range(max(1, round(town["population"] / share))):
            spot, address = next(taken)
            own = dict(tags)
            if choices:
                name = choices[at % len(choices)] if at < len(choices) else f"{dice.pick(choices)} {address['addr:street']}"
                own["name"] = f"{town['name']} {name}" if len(choices) == 1 and choices[0] != "First Bank of Larkmoor" else name
                own["phone"] = f"555-{dice.number(2000, 9999)}"
                if "amenity" not in tags or tags["amenity"] not in ("police", "fire_station", "place_of_worship"):
                    own["opening_hours"] = f"Mo-Sa {dice.number(7, 10):02}:00-{dice.number(17, 22)}:00"
            houses.map.node(moved(spot[0], spot[1], 1.0), {**own, **(address if choices else {})})
    # Some streets have room for cars and buses.
    for spot, address in central[-12:]:
        houses.map.node(moved(spot[0], spot[2], -9), {"highway": "bus_stop", "name": f"{address['addr:street']} {address['addr:housenumber']}", "operator": "Larkmoor Buses"})


def settle_hamlet(houses, name, town, keep_off):
    """Builds houses along the few streets of a hamlet, with postal addresses of the next town."""
    dice = Dice("houses " + name)
    for line in [line for line in houses.network.lines if line.town == name]:
        total, number = length(line.points), 0
        at = 20.0
        while at < total - 10:
            for side in (1, -1):
                number += 1
                wide, deep = dice.real(9, 15), dice.real(8, 12)
                spot = houses.stand(line.points, at, side, deep, wide, [line])
                if spot and not keep_off(spot[0]):
                    houses.build(spot, deep, wide, {"building": "house", "addr:housenumber": str(number), "addr:street": line.tags["name"],
                                                    "addr:city": town["name"], "addr:postcode": town["postcode"], "addr:hamlet": name})
            at += dice.real(24, 44)

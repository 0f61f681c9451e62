"""The shape of the island: coast, borders, rivers, lakes, parks, woods, fields."""

import math

from shapely.geometry import LineString, MultiPolygon, Point, Polygon
from shapely.ops import unary_union

from larkmoor.geometry import Dice, blob, crossing, direction, distance, metres, moved, smooth, snap, wandering

# Seas, bays and heights that only the map has: name, tags, lat, lon.
NAMES = [("Elsing Sound", {"natural": "bay"}, 47.272, -32.462), ("Kestrel Bay", {"natural": "bay"}, 47.366, -31.842),
         ("Windward Sea", {"place": "sea"}, 47.545, -31.815), ("The Salt Flats", {"natural": "wetland", "wetland": "saltmarsh"}, 47.246, -32.16),
         ("Dunmore Tor", {"natural": "peak", "ele": "703"}, 47.6585, -32.3165), ("Thorn Hill", {"natural": "peak", "ele": "288"}, 47.607, -31.992),
         ("Fern Hill", {"natural": "peak", "ele": "431"}, 47.640, -32.118), ("Bramble Top", {"natural": "peak", "ele": "214"}, 47.497, -32.482)]
LAKE = (47.331, -32.258, 1150)
SALT_PANS = [(47.2505, -32.135), (47.2485, -32.126), (47.2525, -32.145)]
PARK_TAGS = {"Weavers' Park": {"leisure": "park"}, "Elsing Common": {"leisure": "park"}, "Lime Avenue Gardens": {"leisure": "garden"}}


def polygons(shape):
    """Returns the pieces of a shape, largest first, all with the same orientation."""
    pieces = shape.geoms if isinstance(shape, MultiPolygon) else [shape] if isinstance(shape, Polygon) else \
        [piece for piece in getattr(shape, "geoms", []) if isinstance(piece, Polygon)]
    return sorted((piece for piece in pieces if piece.area > 1), key=lambda piece: -piece.area)


def ring(polygon):
    """Returns the outer ring as points: counterclockwise, starting at its westernmost point, without the repeated end."""
    points = [snap(point) for point in polygon.exterior.coords[:-1]]
    if not polygon.exterior.is_ccw:
        points.reverse()
    start = points.index(min(points))
    return points[start:] + points[:start]


def coast(world):
    """Returns the coast: land is near the towns and in the middle, with a roughened outline."""
    dice = Dice("coast")
    towns = [metres(town["lat"], town["lon"]) for town in world["towns"]]
    middle = Polygon([(20500 * math.cos(a / 40 * math.pi), 23000 * math.sin(a / 40 * math.pi)) for a in range(80)])
    disks = [Point(town).buffer(dice.real(5200, 6400), 16) for town in towns]
    # Growing and shrinking the shape closes narrow gaps and keeps round parts.
    land = unary_union([middle, *disks]).buffer(2500, 16).buffer(-4200, 16).buffer(1700, 16)
    outline = Polygon(land.exterior).exterior
    rough = wandering(dice, [outline.interpolate(step / 50, normalized=True).coords[0] for step in range(50)] + [outline.coords[0]], 0.24, 140)
    land = Polygon(rough).buffer(0)
    # Every street of world.json is on land, with a shore around it.
    streets = [LineString([metres(*point) for point in street["line"]]).buffer(650, 8) for town in world["towns"] for street in town["streets"]]
    harbours = unary_union(streets).buffer(300, 8).buffer(-300, 8)
    return polygons(unary_union([land, harbours]).buffer(0))[0].simplify(6)


def cells(world, island):
    """Divides the island among the towns: each point belongs to the nearest town."""
    towns = [metres(town["lat"], town["lon"]) for town in world["towns"]]
    out = []
    for town in towns:
        area = island
        for other in towns:
            if other != town:
                middle, d = ((town[0] + other[0]) / 2, (town[1] + other[1]) / 2), direction(town, other)
                side = (-d[1], d[0])
                far = 2e5
                half = Polygon([moved(middle, side, far), moved(moved(middle, side, far), d, -far),
                                moved(moved(middle, side, -far), d, -far), moved(middle, side, -far)])
                area = area.intersection(half)
        out.append(polygons(area)[0])
    return out


def rivers(world, island):
    """Returns the winding courses, from the source to the sea or to the river that they join."""
    out = []
    for river in world["rivers"]:
        dice = Dice("river " + river["id"])
        points = [metres(*point) for point in river["line"]]
        if river["source"] == "Lake Mere":
            points[0] = metres(LAKE[0], LAKE[1])
        elif not river["tributary_of"]:
            # The source is behind the first town, away from the sea.
            back = direction(points[1], (0, 0)) if distance(points[0], (0, 0)) < 9000 else direction(points[0], (0, 0))
            points.insert(0, moved(points[0], back, 3000))
        # The course passes slightly beside the market squares.
        points = [points[0], *(moved(point, (dice.real(-1, 1), dice.real(-1, 1)), 500) for point in points[1:-1]), points[-1]]
        if not river["tributary_of"]:
            points[-1] = moved(points[-1], (dice.real(-1, 1), dice.real(-1, 1)), 400)
            d, away = direction(points[-2], points[-1]), direction((0, 0), points[-1])
            points.append(moved(points[-1], direction((0, 0), (d[0] + 1.5 * away[0], d[1] + 1.5 * away[1])), 9000))
        line = LineString(smooth(wandering(dice, points, 0.13, 200))).intersection(island.buffer(60))
        # A spit of land may cut the mouth in two: the part from the source counts.
        parts = [line] if isinstance(line, LineString) else sorted(line.geoms, key=lambda part: -part.length)
        course = [snap(point) for point in parts[0].coords]
        if distance(course[0], points[0]) > distance(course[-1], points[0]):
            course.reverse()
        out.append((river, meet(course, out, river["tributary_of"])))
    return out


def meet(course, earlier, parent):
    """Ends a course where it meets another one; a tributary is led to its river."""
    for at, (a, b) in enumerate(zip(course, course[1:])):
        # Courses may be close in the first kilometre, so crossings there do not count.
        found = [crossing(a, b, c, d) for _, other in earlier for c, d in zip(other, other[1:])] if at > 8 else []
        found = sorted(cut for cut in found if cut)
        if found:
            return course[:at + 1] + [snap(found[0][2])]
    if parent:
        other = next(line for river, line in earlier if river["name"] == parent)
        return course[:-2] + [min(other, key=lambda point: distance(point, course[-2]))]
    return course


def draw_coast(map, island):
    """Draws the coast with the land on its left, divided into several ways."""
    points = ring(island)
    points.append(points[0])
    return [map.way(points[at:at + 400], {"natural": "coastline", "source": "Larkmoor County Survey"}) for at in range(0, len(points) - 1, 399)]


def draw_borders(map, world, island, towns):
    shore = draw_coast(map, island)
    county = world["county"]
    stamp = {"type": "boundary", "boundary": "administrative"}
    outer = [("w", way, "outer") for way in shore]
    map.relation(outer, {**stamp, "admin_level": "2", "name": "United States", "ISO3166-1": "US", "ISO3166-1:alpha2": "US"})
    seat = next(town for town in world["towns"] if town["name"] == county["seat"])
    map.relation(outer, {**stamp, "admin_level": "6", "name": county["full_name"], "short_name": county["name"], "border_type": "county",
                         "population": str(county["population"]), "start_date": str(county["chartered"]), "motto": county["motto"],
                         "capital_city": seat["name"]})
    for town, area in zip(world["towns"], towns):
        size = "city" if town["population"] > 40000 else "town" if town["population"] > 7000 else "village"
        place = {"place": size, "name": town["name"], "population": str(town["population"]), "alt_name": town["nickname"],
                 "postal_code": town["postcode"], "start_date": str(town["founded"]), "ele": str(town["elevation_m"]),
                 "description": f"Known for {town['known_for']}"}
        if town is seat:
            place["capital"] = "6"
        middle = map.node(moved(metres(town["lat"], town["lon"]), (1, 1), 7), place)
        way = map.area(ring(area), {"boundary": "administrative", "admin_level": "8"})
        map.relation([("w", way, "outer"), ("n", middle, "label")], {**stamp, "admin_level": "8", "name": town["name"],
                     "postal_code": town["postcode"], "population": str(town["population"])})
    for name, tags, lat, lon in NAMES:
        map.node(metres(lat, lon), {**tags, "name": name})


def parks(world, island):
    """Returns every park as a shape of the right size within the island."""
    out = []
    for park in world["parks"]:
        dice = Dice("park " + park["id"])
        middle = metres(park["lat"], park["lon"])
        radius = math.sqrt(park["area_ha"] * 1e4 / math.pi)
        shape = Polygon(blob(dice, middle, radius, 40, 0.16)).buffer(0).intersection(island.buffer(-90))
        out.append((park, polygons(shape)[0]))
    return out


def draw_parks(map, world, shapes):
    moors = ("Dunmore Moor", "Bramble Heath", "Fern Hills", "Wexcombe Downs")
    for park, shape in shapes:
        tags = dict(PARK_TAGS.get(park["name"], {"leisure": "nature_reserve", "boundary": "protected_area"}))
        tags |= {"name": park["name"], "start_date": str(park["established"]), "description": f"Known for {park['wildlife']}"}
        map.area(ring(shape), tags)
        if park["name"] in moors:
            map.area(ring(shape.buffer(-60)), {"natural": "heath" if park["name"] != "Wexcombe Downs" else "grassland"})
    lake = Polygon(blob(Dice("lake"), metres(LAKE[0], LAKE[1]), LAKE[2], 60, 0.18))
    map.area(ring(lake), {"natural": "water", "water": "lake", "name": "Lake Mere"})
    for at, place in enumerate(SALT_PANS):
        map.area(blob(Dice(f"pan {at}"), metres(*place), 210, 12, 0.1), {"landuse": "salt_pond", "name": f"Salt Pan {at + 1}"})
    return lake


def draw_rivers(map, courses):
    for river, course in courses:
        main = river["length_km"] >= 18
        map.way(course, {"waterway": "river" if main else "stream", "name": river["name"], "width": str(6 + river["length_km"] // 3)})


def draw_country(map, world, island, lake, built_up):
    """Draws woods, meadows and fields between the towns."""
    dice, inner = Dice("country"), island.buffer(-500)
    taken = unary_union([built_up.buffer(250), lake.buffer(150)])
    kinds = [({"natural": "wood", "leaf_type": "broadleaved"}, 300, 1500, 90), ({"landuse": "farmland"}, 300, 1100, 330),
             ({"landuse": "meadow"}, 200, 800, 160), ({"landuse": "forest", "leaf_type": "needleleaved"}, 300, 1100, 40)]
    west, south, east, north = island.bounds
    for tags, smallest, largest, count in kinds:
        drawn = 0
        while drawn < count:
            place = (dice.real(west, east), dice.real(south, north))
            shape = Polygon(blob(dice, place, dice.real(smallest, largest), 24, 0.3)).buffer(0).intersection(inner).difference(taken)
            pieces = [piece for piece in polygons(shape) if piece.area > 20000]
            if pieces:
                map.area(ring(pieces[0]), dict(tags))
                drawn += 1
                # Fields do not overlap; a wood may extend into a meadow.
                if tags.get("landuse") == "farmland":
                    taken = taken.union(pieces[0].buffer(25))
    specialities = [("Wexcombe", {"landuse": "orchard", "trees": "apple_trees"}, 420, 4), ("Fernhollow", {"landuse": "quarry", "resource": "slate",
                     "name": "Fernhollow Slate Quarry"}, 380, 1), ("Ashby Cross", {"landuse": "farmyard"}, 160, 1),
                    ("Kestrel Bay", {"leisure": "marina", "name": "Kestrel Bay Marina"}, 110, 1)]
    for town, tags, radius, count in specialities:
        centre = next(metres(known["lat"], known["lon"]) for known in world["towns"] if known["name"] == town)
        for _ in range(count):
            angle = dice.real(0, 2 * math.pi)
            shape = Polygon(blob(dice, moved(centre, (math.cos(angle), math.sin(angle)), 2900), radius, 20)).intersection(inner)
            for piece in polygons(shape)[:1]:
                map.area(ring(piece), dict(tags))

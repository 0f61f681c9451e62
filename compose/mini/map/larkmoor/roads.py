"""Streets of the towns, roads between them, hamlets on the way, cycleways, footpaths, the railway."""

import math

from shapely.geometry import LineString, Point

from larkmoor.geometry import Dice, along, direction, distance, length, metres, moved, nearest_on, smooth, snap, wandering

MAIN_STREETS = ("High Street", "Market Street", "Station Road", "Bridge Street", "Harbour Road", "Church Street")
STEMS = """Alder Anchor Ashlar Beacon Birch Bobbin Bracken Chalk Cider Cobble Corncrake Curlew Damson Eel Elder Falcon Fern Flax Gannet
    Garnet Hawthorn Hazel Heather Holly Ivy Kestrel Larch Lark Lime Linnet Loom Maple Marsh Mast Meadow Moor Oak Osprey Otter Pear Pebble
    Pippin Plover Poplar Quince Reed Rowan Rush Sail Shuttle Slate Sorrel Spindle Swan Teal Tern Thistle Thorn Tide Vane Weir Willow
    Wool Wren Yew""".split()
SUFFIXES = ["Close", "Court", "Rise", "Gardens", "Row", "Terrace", "Grove", "Place", "Drive", "Lane"]
HAMLETS = """Nether Wick, Lark's End, Coldharbour, Little Dunmore, Ashford Green, Eel Pie, Mereside, Salter's Cross, Thorn End, Bramley,
    Westing, Old Priory, Upper Fold, Hollow Oak, Gull Point, Sheepwash, Long Furrow, Clock Green, Windy Gap, Stony Ford, Applegarth,
    Kiln End, Peat Cross, Heron's Reach, Lower Bram""".replace("\n", " ").split(",")


def names_of(town, dice):
    """Returns an iterator of names for streets that world.json does not have, each once per town."""
    taken, out = {street["name"] for street in town["streets"]}, []
    for stem in sorted(STEMS, key=lambda stem: dice.real(0, 1)):
        for suffix in (dice.pick(SUFFIXES), dice.pick(SUFFIXES)):
            name = f"{stem} {suffix}"
            if name not in taken:
                taken.add(name)
                out.append(name)
    return iter(out)


def lay_town(network, town, open_ground):
    """Builds the streets of world.json, connects them, and adds side streets."""
    dice, lines = Dice("streets " + town["id"]), []
    names = names_of(town, dice)
    for street in town["streets"]:
        rank = "tertiary" if street["name"] in MAIN_STREETS else "residential"
        lines.append(network.add([metres(*point) for point in street["line"]],
                                 {"highway": rank, "name": street["name"], "maxspeed": "50", "surface": "asphalt", "lit": "yes"}, town["name"]))
    for line in lines:
        network.extend(line)
    network.cross()
    connect(network, lines, names, town)
    network.cross()
    # The second round grows streets from the side streets of the first.
    for spacing, limit in ((190, 420), (190, 260)):
        for line in [line for line in network.lines if line.town == town["name"]]:
            reach, side = dice.real(60, spacing), dice.pick([-1, 1])
            while reach < length(line.points) - 45:
                name = next(names, None)
                if name is None:
                    break
                tags = {"highway": "residential" if limit > 300 or dice.chance(0.6) else "living_street", "name": name,
                        "maxspeed": "30", "surface": "asphalt", "lit": "yes"}
                angle = side * (math.pi / 2 + dice.real(-0.18, 0.18))
                network.branch(line, reach, angle, limit * dice.real(0.6, 1.0), tags, open_ground)
                side = -side
                reach += spacing * dice.real(0.7, 1.2)
    return lines


def connect(network, lines, names, town):
    """Connects separate parts of the network by the shortest new street."""
    while len(parts := network.parts([line for line in network.lines if line.town == town["name"]])) > 1:
        best = None
        for line in parts[1]:
            for point in line.points:
                for other in parts[0]:
                    for a, b in other.segments():
                        there = nearest_on(a, b, point)
                        if best is None or distance(there, point) < best[0]:
                            best = (distance(there, point), point, other, there)
        _, point, other, there = best
        vertex = other.insert(there)
        network.add([point, vertex], {"highway": "residential", "name": next(names), "maxspeed": "30", "surface": "asphalt", "lit": "yes"}, town["name"])


def neighbours(world):
    """Returns pairs of towns without a third one between them (a Gabriel graph), busiest first."""
    towns = world["towns"]
    at = {town["name"]: metres(town["lat"], town["lon"]) for town in towns}
    pairs = []
    for first, one in enumerate(towns):
        for two in towns[first + 1:]:
            a, b = at[one["name"]], at[two["name"]]
            middle, radius = ((a[0] + b[0]) / 2, (a[1] + b[1]) / 2), distance(a, b) / 2
            if all(distance(at[third["name"]], middle) >= radius for third in towns if third not in (one, two)):
                pairs.append((one, two))
    return sorted(pairs, key=lambda pair: (-min(pair[0]["population"], pair[1]["population"]), pair[0]["name"]))


def lay_roads(network, world, island, lake):
    """Builds trunk and country roads from square to square. Each is named after the other town
    inside a town and has a number outside."""
    dry, counts, roads = island.buffer(-150).difference(lake.buffer(120)), {"A": 0, "B": 0, "C": 0}, []
    for rank, (one, two) in enumerate(neighbours(world)):
        dice = Dice(f"road {one['id']} {two['id']}")
        letter, kind, speed = ("A", "trunk", "100") if rank < 3 else ("A", "primary", "90") if rank < 8 else ("B", "secondary", "80") if rank < 14 \
            else ("C", "tertiary", "70")
        counts[letter] += 1
        ref = f"{letter}{counts[letter]}"
        a, b = metres(one["lat"], one["lon"]), metres(two["lat"], two["lon"])
        d = direction(a, b)
        start = town_vertex(network, one["name"], moved(a, d, 500))
        end = town_vertex(network, two["name"], moved(b, d, -500))
        for swing in (0.09, 0.06, 0.03, 0.0):
            points = wandering(dice, [start, end], swing, 420)
            if dry.contains(LineString(points)):
                break
        else:
            points = around(points, dry)
        points = smooth(points)
        # Inside a town the road is a street with houses; outside it is a fast road.
        reach, total = 0.0, length(points)
        inner = [0]
        for at, (p, q) in enumerate(zip(points, points[1:]), 1):
            reach += distance(p, q)
            if min(reach, total - reach) < 1900 and min(reach, total - reach) > 0:
                inner.append(at)
        first = max((at for at in inner if at < len(points) / 2), default=1) or 1
        last = min((at for at in inner if at > len(points) / 2), default=len(points) - 2)
        base = {"highway": kind, "ref": ref, "surface": "asphalt"}
        street = {"highway": "primary" if kind == "trunk" else kind, "maxspeed": "50", "lit": "yes", "sidewalk": "both"}
        network.add(points[:first + 1], {**base, **street, "name": f"{two['name']} Road"}, one["name"])
        roads.append((network.add(points[first:last + 1], {**base, "maxspeed": speed, **({"foot": "no", "bicycle": "no"} if kind == "trunk" else {})}), one, two))
        network.add(points[last:], {**base, **street, "name": f"{one['name']} Road"}, two["name"])
    return roads


def around(points, dry):
    """Moves the points of a road that are in water to the nearest land."""
    out = []
    for point in points:
        if not dry.contains(Point(point)):
            edge = dry.boundary
            near = edge.interpolate(edge.project(Point(point)))
            point = (near.x, near.y)
        out.append(point)
    return out


def town_vertex(network, town, point):
    """Returns the nearest vertex of the town's streets."""
    return min((vertex for line in network.lines if line.town == town for vertex in line.points), key=lambda vertex: (distance(vertex, point), vertex))


def lay_hamlets(network, roads, world, keep_off):
    """Builds a few houses half-way along the roads that are not trunk roads."""
    out, names = [], iter([name.strip() for name in HAMLETS])
    for road, one, two in roads:
        total = length(road.points)
        if road.tags["highway"] == "trunk" or total < 3500:
            continue
        name = next(names)
        dice = Dice("hamlet " + name)
        middle, _ = along(road.points, total / 2)
        village = []
        for step in range(-2, 3):
            tags = {"highway": "residential", "name": f"{dice.pick(STEMS)} {dice.pick(SUFFIXES)}", "maxspeed": "30", "surface": "asphalt"}
            if any(line.tags["name"] == tags["name"] for line in village):
                continue
            line = network.branch(road, total / 2 + step * 130, (1 if step % 2 else -1) * (math.pi / 2 + dice.real(-0.2, 0.2)), dice.real(160, 330), tags, keep_off)
            if line:
                line.town = name
                village.append(line)
        if village:
            out.append((name, middle, min((one, two), key=lambda town: distance(metres(town["lat"], town["lon"]), middle))))
    return out


def lay_lanes(network, roads, keep_off):
    """Builds unpaved lanes to the farms."""
    for road, one, two in roads:
        if road.tags["highway"] == "trunk":
            continue
        dice = Dice("lanes " + road.tags["ref"])
        reach = dice.real(300, 700)
        while reach < length(road.points) - 250:
            tags = {"highway": "track" if dice.chance(0.6) else "unclassified", "tracktype": "grade2", "surface": "gravel"}
            if tags["highway"] == "unclassified":
                tags = {"highway": "unclassified", "surface": "asphalt", "maxspeed": "60", "name": f"{dice.pick(STEMS)} Farm Lane"}
            network.branch(road, reach, dice.pick([-1, 1]) * (math.pi / 2 + dice.real(-0.5, 0.5)), dice.real(500, 1500), tags, keep_off)
            reach += dice.real(500, 1400)


def lay_cycleways(network, courses, island):
    """Builds cycleways along the rivers, close to the bank, between points where they meet other roads."""
    named = {"River Lark": "Lark Valley Cycleway", "River Ash": "Ash Valley Cycleway", "River Salt": "Salt Coast Cycleway", "River Bram": "Bram Valley Cycleway"}
    for river, course in courses:
        if river["name"] in named:
            line = LineString(course).simplify(40)
            bank = line.parallel_offset(85, "left", join_style=1).intersection(island.buffer(-60))
            pieces = sorted(getattr(bank, "geoms", [bank]), key=lambda piece: -piece.length)
            points = [snap(point) for point in pieces[0].simplify(8).coords]
            way = network.add(points, {"highway": "cycleway", "name": named[river["name"]], "surface": "compacted", "foot": "yes", "bicycle": "designated"})
            for end in (0, -1):
                join(network, way, way.points[end], {"highway": "cycleway", "surface": "compacted", "foot": "yes", "bicycle": "designated"})


def lay_paths(network, parks, lake):
    """Builds a circular walk in each park, and a path to it from the next street."""
    for park, shape in parks:
        dice = Dice("paths " + park["id"])
        outline = shape.buffer(-0.3 * math.sqrt(shape.area / math.pi))
        outline = outline.difference(lake.buffer(80))
        if outline.is_empty:
            continue
        outline = max(getattr(outline, "geoms", [outline]), key=lambda piece: piece.area).simplify(15)
        points = [snap(point) for point in outline.exterior.coords]
        points = smooth(wandering(dice, points, 0.12, 200))
        tags = {"highway": "path", "name": f"{park['name']} Walk", "foot": "designated", "surface": "ground"} if park["area_ha"] > 100 else \
            {"highway": "footway", "name": f"{park['name']} Walk", "surface": "gravel"}
        walk = network.add(points, tags)
        for share in (0.0, 0.25, 0.5, 0.75):
            start, _ = along(walk.points, share * length(walk.points))
            join(network, walk, start, {**tags, "name": f"{park['name']} Access"} if share else tags)


def join(network, line, point, tags):
    """Adds a short piece from a line to the nearest street or road, unless that is far."""
    found = network.nearest(point, 1800.0, lambda other: other is not line and other.tags["highway"] not in ("trunk", "path", "footway", "cycleway", "track"))
    if found and found[0] > 8:
        vertex, own = found[1].insert(found[2]), line.insert(point)
        network.add([own, vertex], tags)


def railway(world, stations, island):
    """Builds one line through most stations, and a branch. Returns the ordered towns and the tracks between their
    stations."""
    routes = [("Larkmoor Main Line", ["Brambleford", "Port Elsing", "Lowmere", "Harrowgate Mills", "Ashby Cross", "Thornwick"]),
              ("Windward Branch", ["Ashby Cross", "Stonebridge", "Kestrel Bay"]), ("Dunmore Branch", ["Harrowgate Mills", "Wexcombe", "Upper Dunmore"]),
              ("Salt Line", ["Lowmere", "Saltmarsh"]), ("Slate Line", ["Ashby Cross", "Fernhollow"])]
    out = []
    for name, towns in routes:
        for one, two in zip(towns, towns[1:]):
            out.append((name, smooth(wandering(Dice(f"rail {one} {two}"), [stations[one], stations[two]], 0.05, 900))))
    return out

"""python3 -m larkmoor WORLD.json COUNTY.osm.pbf"""

import json
import sys

from shapely.geometry import LineString, Point
from shapely.ops import unary_union
from shapely.prepared import prep

from larkmoor import land, places, roads
from larkmoor.geometry import length
from larkmoor.network import Network
from larkmoor.osm import Map


def draw_network(map, network):
    """Writes each line as one way, or as several if it has bridges."""
    for line in network.lines:
        run, on_bridge = [line.points[0]], None
        for a, b in line.segments():
            bridge = (a, b) in line.bridges
            if on_bridge is not None and bridge != on_bridge:
                map.way(run, bridged(line.tags, on_bridge))
                run = [a]
            on_bridge = bridge
            run.append(b)
        map.way(run, bridged(line.tags, on_bridge))


def bridged(tags, bridge):
    return {**tags, "bridge": "yes", "layer": "1"} if bridge else tags


def main(source, target):
    with open(source, encoding="utf-8") as file:
        world = json.load(file)
    map, network = Map(), Network()
    island = land.coast(world)
    parks = land.parks(world, island)
    courses = land.rivers(world, island)
    land.draw_borders(map, world, island, land.cells(world, island))
    lake = land.draw_parks(map, world, parks)
    land.draw_rivers(map, courses)
    greens = unary_union([shape.buffer(15) for park, shape in parks if park["area_ha"] < 100] + [lake.buffer(60)])
    water = unary_union([LineString(course).buffer(28) for _, course in courses])

    ground, green, wet = prep(island), prep(greens), prep(water)

    def on_green(point):
        return green.contains(Point(point)) or not ground.contains(Point(point))

    def unfit(point):
        return on_green(point) or wet.contains(Point(point))

    for town in world["towns"]:
        roads.lay_town(network, town, on_green)
    built_up = unary_union([LineString(line.points).buffer(140) for line in network.lines]).buffer(-40).simplify(12)
    between = roads.lay_roads(network, world, island, lake)
    network.cross()
    hamlets = roads.lay_hamlets(network, between, world, unfit)
    roads.lay_lanes(network, between, unfit)
    network.cross()
    roads.lay_cycleways(network, courses, island)
    roads.lay_paths(network, parks, lake)
    network.cross()
    network.bridge([course for _, course in courses])
    loose = network.parts(network.lines)[1:]
    if loose:
        print(f"larkmoor: {len(loose)} groups of lines hang on nothing, {sum(map_length(part) for part in loose):.0f} m", file=sys.stderr)

    houses, stations, crowded = places.Houses(map, network), {}, 0
    for town in world["towns"]:
        stations[town["name"]], without = places.settle(houses, world, town, unfit)
        crowded += without
    print(f"larkmoor: {crowded} addresses are doors without a house", file=sys.stderr)
    for name, middle, town in hamlets:
        map.node(middle, {"place": "hamlet", "name": name})
        places.settle_hamlet(houses, name, town, unfit)
    draw_network(map, network)
    for name, points in roads.railway(world, stations, island):
        map.way(points, {"railway": "rail", "name": name, "operator": "Larkmoor Railway", "gauge": "1435", "usage": "main"})
    for piece in land.polygons(built_up.difference(unary_union([greens, *[LineString(course).buffer(30) for _, course in courses]]))):
        map.area(land.ring(piece), {"landuse": "residential"})
    land.draw_country(map, world, island, lake, built_up)
    map.write(target, f"{world['now']}T00:00:00Z")
    print(f"larkmoor: {len(map.nodes)} nodes, {len(map.ways)} ways, {len(map.relations)} relations", file=sys.stderr)


def map_length(part):
    return sum(length(line.points) for line in part)


if __name__ == "__main__":
    main(*sys.argv[1:])

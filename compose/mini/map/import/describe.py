"""describe.py EXTRACT MAP.json: writes the map's area, its first view, and the values that the health probe expects."""

import json
import os
import sys
import time
import urllib.error
import urllib.request

import osmium

RANKS = {"city": 100000, "town": 10000, "village": 1000, "hamlet": 100}
PORTS = {"car": 5000, "bike": 5001, "foot": 5002}


class Survey(osmium.SimpleHandler):
    """The places by size, and the bounding box of all roads and paths."""

    def __init__(self):
        super().__init__()
        self.places, self.west, self.south, self.east, self.north = [], 180.0, 90.0, -180.0, -90.0

    def node(self, node):
        kind, name = node.tags.get("place"), node.tags.get("name")
        if kind in RANKS and name:
            population = node.tags.get("population", "")
            size = int(population) if population.isdigit() else RANKS[kind]
            self.places.append((-size, name, node.location.lat, node.location.lon))

    def way(self, way):
        if "highway" in way.tags:
            for node in way.nodes:
                if node.location.valid():
                    self.west, self.east = min(self.west, node.location.lon), max(self.east, node.location.lon)
                    self.south, self.north = min(self.south, node.location.lat), max(self.north, node.location.lat)


def metres(profile, start, end):
    """Returns the length of the best route; waits for the server, which has just been started."""
    address = f"http://127.0.0.1:{PORTS[profile]}/route/v1/driving/{start[1]},{start[0]};{end[1]},{end[0]}?overview=false"
    for _ in range(100):
        try:
            with urllib.request.urlopen(address, timeout=10) as answer:
                return json.load(answer)["routes"][0]["distance"]
        except urllib.error.HTTPError as error:
            sys.exit(f"describe: {profile}: no route from {start} to {end}: {error.read().decode()}")
        except OSError:
            time.sleep(0.1)
    sys.exit(f"describe: {profile}: osrm-routed does not answer")


def main(extract, target):
    survey = Survey()
    survey.apply_file(extract, locations=True)
    places = sorted(survey.places)
    if len(places) < 2:
        sys.exit(f"describe: {extract} has fewer than two named places; expected an extract of a region")
    start, end = places[0][2:], places[1][2:]
    fictional = not os.environ.get("MAP_PBF")
    result = {
        "title": "Larkmoor Map" if fictional else "Map",
        "attribution": "Larkmoor County Survey (a fictional place)" if fictional else "&copy; OpenStreetMap contributors",
        "bounds": [[round(survey.south, 5), round(survey.west, 5)], [round(survey.north, 5), round(survey.east, 5)]],
        "probe": {"place": places[0][1], "from": start, "to": end, "metres": {profile: metres(profile, start, end) for profile in PORTS}}}
    with open(target, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1, ensure_ascii=False)
    print(json.dumps(result, ensure_ascii=False))


main(*sys.argv[1:])

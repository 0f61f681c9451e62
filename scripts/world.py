#!/usr/bin/env python3
"""Generates the fictional world that all sites of the mini environment describe.

A fixed seed always yields the same world: Larkmoor, an island county with towns, people, makers, events and software
projects. Shop, wiki and the other sites read the same facts, so a task may cross sites.

    scripts/world.py          writes world.json into the build contexts that read it
    scripts/world.py --check  fails if one of those files is missing or stale
"""

import json
import math
import random
import re
import sys
import zlib
from pathlib import Path

SEED = 20230601
NOW = "2023-06-01"
ROOT = Path(__file__).resolve().parent.parent
TARGETS = [
    "compose/mini/shop/world.json",
    "compose/mini/wiki/world.json",
    "compose/mini/forum/world.json",
    "compose/mini/turkle/world.json",
    "compose/mini/map/world.json",
    "compose/mini/forge/world.json",
]

# Far out in the Atlantic: no real place shares these coordinates.
WEST, SOUTH, EAST, NORTH = -32.60, 47.20, -31.80, 47.75


class Dice:
    """Draws from Random.random() alone, whose sequence Python guarantees for a seed.

    Each section of the world has a generator of its own, so that a change to one section does not affect the others.
    """

    def __init__(self, section):
        self._random = random.Random(SEED ^ zlib.crc32(section.encode())).random

    def number(self, low, high):
        return low + int(self._random() * (high - low + 1))

    def real(self, low, high):
        return low + self._random() * (high - low)

    def pick(self, options):
        return options[int(self._random() * len(options))]

    def some(self, options, count):
        left = list(options)
        return [left.pop(int(self._random() * len(left))) for _ in range(min(count, len(left)))]

    def chance(self, probability):
        return self._random() < probability


def words(text):
    return text.split()


def phrases(text):
    return [part.strip() for part in text.split(",") if part.strip()]


def slug(text):
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def place(dice, lat, lon, spread):
    return {"lat": round(lat + dice.real(-spread, spread), 5), "lon": round(lon + dice.real(-spread, spread) * 1.4, 5)}


TOWNS = [  # name, population, founded, lat, lon, known for, nickname
    ("Harrowgate Mills", 48200, 1641, 47.462, -32.215, "weaving mills", "the Loom"),
    ("Port Elsing", 61750, 1612, 47.318, -32.402, "its harbour and shipyards", "the Front Door"),
    ("Saltmarsh", 9340, 1688, 47.268, -32.118, "salt pans and seabirds", "the White Town"),
    ("Wexcombe", 22810, 1703, 47.545, -32.330, "orchards and cider", "the Apple Barrel"),
    ("Stonebridge", 31460, 1659, 47.421, -32.052, "its seven-arched bridge", "the Crossing"),
    ("Fernhollow", 6120, 1744, 47.622, -32.151, "slate quarries", "the Grey Village"),
    ("Kestrel Bay", 14980, 1719, 47.389, -31.903, "lighthouses and regattas", "the Windward"),
    ("Ashby Cross", 17650, 1670, 47.512, -32.077, "livestock fairs", "the Market"),
    ("Lowmere", 11230, 1731, 47.360, -32.245, "Lake Mere and its eels", "the Lakeside"),
    ("Thornwick", 8470, 1692, 47.583, -31.966, "clockmakers", "the Ticking Town"),
    ("Brambleford", 19890, 1665, 47.474, -32.446, "paper and printing", "the Printed Page"),
    ("Upper Dunmore", 4560, 1782, 47.680, -32.268, "sheep, wool and the observatory", "the Roof"),
]
RIVERS = [  # name, length, source, mouth, towns in order of flow, tributary of
    ("River Lark", 71, "Dunmore Moor", "Elsing Sound", [11, 3, 0, 8, 1], None),
    ("River Ash", 44, "Fern Hills", "Kestrel Bay", [5, 7, 4, 6], None),
    ("River Bram", 29, "Bramble Heath", "Elsing Sound", [10, 1], None),
    ("River Salt", 18, "Lake Mere", "the Salt Flats", [8, 2], None),
    ("Thorn Beck", 15, "Thorn Hill", "River Ash", [9, 4], "River Ash"),
    ("Wex Water", 12, "Wexcombe Downs", "River Lark", [3, 0], "River Lark"),
]
STREETS = phrases("""Market Street, High Street, Mill Lane, Harbour Road, Church Street, Station Road, Weaver Row, Orchard Way,
    Castle Street, Bridge Street, Chandler Lane, Quarry Road, Kiln Street, Lantern Walk, Fleet Street, Meadow Lane, Rope Walk,
    Tanner Street, Clock Lane, Juniper Road, Heron Way, Granary Street, Abbey Road, Cooper Lane, Linden Avenue, Observatory Hill""")
LANDMARKS = phrases("""Guildhall, Old Lighthouse, Clock Tower, Corn Exchange, Priory, Signal Tower, Castle, Viaduct, Customs House,
    Market Cross, Aqueduct, Windmill, Cathedral, Granary, Watermill, Town Gate, Concert Hall, Observatory""")
# Museums are assigned in the order of the towns; the last two are in the first two towns.
MUSEUMS = phrases("""Weaving, Shipbuilding, Salt, Cider, Bridges, Slate, Lighthouses, Farming, Fishing, Clocks, Printing, Astronomy,
    Toys, Railways""")
POIS = [("cafe", phrases("Copper Kettle, Second Cup, Daily Grind, Window Seat, Blue Saucer, Penny Bun")),
        ("restaurant", phrases("Salted Anchor, Three Herons, Old Granary, Olive Lantern, Paper Crane, Hearth and Vine")),
        ("hotel", phrases("Larkmoor Arms, Harbour View, White Hart, Station Hotel, Grand, Coach House")),
        ("pharmacy", phrases("Mortar and Pestle, Green Cross, Town Pharmacy")),
        ("supermarket", phrases("Basket and Co, Fairfield Foods, Corner Market")),
        ("library", phrases("Public Library")), ("station", phrases("Railway Station")), ("hospital", phrases("General Hospital"))]
FIRST_HER = words("Emma Olivia Ava Mia Grace Chloe Ruby Ella Nora Ivy Clara Hazel Edith Maud Beatrix Agnes Rosa Lydia Greta Imogen "
                  "Tamsin Freya Willa Orla Petra Sylvie Anita Mei Leila Priya")
FIRST_HIM = words("Liam Noah James Lucas Henry Jack Owen Leo Adam Max Silas Edmund Tobias Arthur Felix Hugo Rufus Jonas Conrad Amos "
                  "Gareth Emil Piers Rowan Bertram Omar Ravi Kenji Marco Declan")
LAST = words("Smith Chen Garcia Patel Kim Rossi Novak Haddad Silva Brown Wilson Nguyen Murphy Weber Ashdown Penrose Tolliver "
             "Marchbanks Quill Fairweather Holloway Brandt Stanhope Larkin Okafor Thackeray Winslow Hartley Crane Pemberton Vance "
             "Ellery Rooke Sorensen Dunmore Alder Kestrel Byrne Mather Lindqvist")
OCCUPATIONS = phrases("""botanist, painter, shipwright, novelist, architect, astronomer, engineer, composer, physician, politician,
    clockmaker, journalist, chef, geologist, photographer, poet, weaver, historian, entrepreneur, software developer, cyclist,
    mountaineer, schoolteacher, sculptor, ornithologist, sailor""")
INTERESTS = phrases("""cycling, photography, baking, hill walking, board games, gardening, birdwatching, sailing, chess, pottery,
    running, home brewing, astronomy, model railways, cooking, climbing, reading crime novels, playing the fiddle""")
CATEGORIES = [  # leaf category of the shop, top category, flagship line, what it is
    ("Headphones", "Electronics", "Skylark", "over-ear and in-ear headphones"),
    ("Cameras", "Electronics", "Obscura", "compact and instant cameras"),
    ("Smart Watches", "Electronics", "Meridian", "watches that count steps and show messages"),
    ("Lamps", "Home & Kitchen", "Lanternfish", "desk and floor lamps"),
    ("Cookware", "Home & Kitchen", "Ironbark", "pans and pots"),
    ("Bedding", "Home & Kitchen", "Nightmoor", "duvets, sheets and pillows"),
    ("Storage", "Home & Kitchen", "Stackwell", "boxes and baskets"),
    ("Oral Care", "Beauty & Personal Care", "Pearlwash", "toothbrushes and mouthwash"),
    ("Skin Care", "Beauty & Personal Care", "Saltrose", "creams and soaps"),
    ("Hair Care", "Beauty & Personal Care", "Fernwash", "shampoos and brushes"),
    ("Shoes", "Clothing", "Moorwalker", "boots and shoes"),
    ("Jackets", "Clothing", "Stormlark", "rain and winter jackets"),
    ("Shirts", "Clothing", "Millweave", "shirts of linen and cotton"),
    ("Cycling", "Sports & Outdoors", "Tailwind", "bicycle parts and clothing"),
    ("Camping", "Sports & Outdoors", "Farcamp", "tents and stoves"),
    ("Yoga", "Sports & Outdoors", "Stillwater", "mats and blocks"),
    ("Coffee", "Grocery", "Harbour Roast", "beans and ground coffee"),
    ("Tea", "Grocery", "Lakeleaf", "black and herbal teas"),
    ("Snacks", "Grocery", "Orchard Crisp", "dried fruit and crackers"),
    ("Board Games", "Toys & Games", "Long Winter", "games for two to six players"),
]
MAKERS = phrases("""Elsing Audio, Penrose Optical, Thornwick Time, Beacon Lighting, Harrow Ironworks, Dunmore Wool, Boxwright,
    Brightwater Labs, Saltmarsh Soapworks, Fern & Hollow, Moorland Boots, Kestrel Outerwear, Mill Street Shirts, Ashby Cycles,
    Highfell Equipment, Quiet Mat Company, Port Elsing Coffee Roasters, Lowmere Tea, Wexcombe Orchards, Paper Crane Games""")
GENERAL_MAKERS = phrases("Tolliver & Sons, Northlight & Co, Stonebridge Goods, Larkmoor Homewares")
SERVICES = [  # name, industry, founded (as the events tell it)
    ("Larkmoor Railway", "rail transport", 1851), ("Elsing Shipyards", "shipbuilding", 1786),
    ("The Larkmoor Courier", "newspaper publishing", 1834), ("Bramble Press", "printing", 1812), ("Fernhollow Slate", "quarrying", 1803),
    ("Lark Valley Power", "electricity", 1929), ("Saltmarsh Salt Company", "salt making", 1758),
    ("Windward Ferries", "ferry transport", 1897), ("First Bank of Larkmoor", "banking", 1846), ("Wexcombe Cider", "brewing", 1879),
    ("Mooring Software", "software", 2004), ("Gridlark", "software", 2011), ("Slate & Signal", "software", 1996),
    ("Tidepool Systems", "software", 2008), ("One Stop Market", "retail", 1999), ("Radio Larkmoor", "broadcasting", 1938)]
PROJECTS = [  # name, language, what it does
    ("tidegauge", "Rust", "reads tide gauges and publishes water levels"), ("larkmap", "TypeScript", "draws slippy maps of the county"),
    ("loomctl", "Go", "drives automatic looms over the network"), ("saltpan", "Python", "schedules evaporation in salt pans"),
    ("clockwork", "Rust", "a job scheduler with time zones done right"), ("ferryboard", "Ruby", "departure boards for ferry terminals"),
    ("gridlark", "Python", "forecasts electricity demand"), ("papermill", "JavaScript", "turns text files into printable books"),
    ("beacon", "C", "firmware of the Beacon desk lamp"), ("heronry", "Python", "counts birds on photographs"),
    ("quarry", "Go", "a small column store"), ("switchyard", "Java", "plans locomotive rosters"),
    ("mooring", "Go", "keeps long-lived connections open"), ("orchardist", "Ruby", "keeps records of fruit trees"),
    ("skyplate", "Python", "measures stars on glass plates"), ("courier-cms", "PHP", "the newspaper's publishing system"),
    ("ropewalk", "Rust", "a library for ropes, the text kind"), ("kilnlog", "JavaScript", "records kiln temperatures"),
    ("penny-bank", "Java", "teaches double-entry bookkeeping"), ("windward", "TypeScript", "a sailing race tracker")]
EVENTS = [  # name, year, town, kind, what happened
    ("Founding of Port Elsing", 1612, 1, "settlement", "Forty settlers landed from the ship Prudence and built a stockade above the sound"),
    ("Charter of Larkmoor", 1668, 0, "law", "The towns agreed on a common law and a yearly assembly"),
    ("Great Salt Strike", 1741, 2, "strike", "Salt workers laid down their rakes for eleven weeks and won a fixed wage"),
    ("Opening of the Seven Arches", 1763, 4, "construction", "A stone bridge replaced the ferry over the Ash"),
    ("Great Flood of 1787", 1787, 0, "flood", "The Lark rose four metres in one night and carried away three mills"),
    ("Wreck of the Corncrake", 1802, 6, "shipwreck", "A grain ship struck the Needle Rocks in fog; the whole crew was saved by rowing boats"),
    ("Founding of the Larkmoor Courier", 1834, 10, "press", "The first issue of four pages was sold for a halfpenny"),
    ("First Railway", 1851, 0, "railway", "A train ran from Harrowgate Mills to Port Elsing in fifty-two minutes"),
    ("Fernhollow Quarry Collapse", 1869, 5, "disaster", "The upper gallery fell in; new safety rules followed within a year"),
    ("Elsing Exhibition", 1884, 1, "exhibition", "Makers of the whole county showed their goods in a glass hall by the harbour"),
    ("Discovery of Comet Penrose", 1897, 11, "astronomy", "A new comet was found on a plate exposed at the Dunmore observatory"),
    ("Weavers' March", 1906, 0, "protest", "Three thousand weavers walked to the county assembly and asked for a ten-hour day"),
    ("Great Storm of 1922", 1922, 6, "storm", "Winds uprooted the lime avenue and put out the lighthouse for two nights"),
    ("Electrification of the Lark Valley", 1931, 8, "construction", "A dam above Lowmere brought electric light to five towns"),
    ("Opening of Radio Larkmoor", 1938, 1, "broadcasting", "The first broadcast was a concert by the harbour band"),
    ("Moor Fire", 1955, 11, "fire", "Heather burned for nine days; afterwards the moor became a protected park"),
    ("County Cycling Tour", 1962, 7, "sport", "Twenty-six riders took part in the first tour around the island"),
    ("Closing of the Last Loom", 1979, 0, "industry", "The last steam loom stopped and the mill became a museum"),
    ("Ferry Tunnel Vote", 1988, 1, "election", "Voters turned down a tunnel to Kestrel Bay by 212 votes"),
    ("Thornwick Clock Restoration", 1996, 9, "restoration", "The town clock struck thirteen for a year before it was put right"),
    ("Founding of Mooring Software", 2004, 4, "industry", "Four graduates began to write software for harbours in a former granary"),
    ("Flood of 2011", 2011, 0, "flood", "New barriers held, and the old town stayed dry"),
    ("Larkmoor Lights", 2015, 6, "festival", "A festival of lanterns drew forty thousand visitors in its first year"),
    ("Return of the Ospreys", 2019, 8, "nature", "A pair of ospreys nested at Lake Mere for the first time in 140 years")]
PARKS = [  # name, town, area in hectares, established, wildlife
    ("Dunmore Moor", 11, 8400, 1956, "red grouse and mountain hares"), ("Lake Mere Reserve", 8, 1260, 1948, "ospreys and eels"),
    ("Salt Flats Bird Sanctuary", 2, 930, 1934, "avocets and terns"), ("Fern Hills", 5, 3100, 1961, "pine martens"),
    ("Lime Avenue Gardens", 6, 18, 1871, "red squirrels"), ("Weavers' Park", 0, 42, 1909, "swans"),
    ("Elsing Common", 1, 75, 1822, "fallow deer"), ("Wexcombe Downs", 3, 540, 1974, "orchids and blue butterflies"),
    ("Bramble Heath", 10, 660, 1968, "nightjars"), ("Ashby Water Meadows", 7, 210, 1983, "otters")]
FESTIVALS = [("Cider Week", 3, "October", 1926), ("Larkmoor Lights", 6, "December", 2015), ("Harbour Regatta", 1, "July", 1873),
             ("Paper Fair", 10, "March", 1958), ("Night of the Clocks", 9, "February", 1997), ("Sheep Day", 11, "August", 1903),
             ("Bridge Run", 4, "May", 1985), ("Salt and Song", 2, "June", 1977)]
TEAMS = [("Harrowgate Weavers", 0, "football"), ("Elsing Mariners", 1, "football"), ("Stonebridge Arches", 4, "football"),
         ("Wexcombe Pippins", 3, "cricket"), ("Kestrel Bay Rowing Club", 6, "rowing"), ("Ashby Wheelers", 7, "cycling"),
         ("Thornwick Pendulums", 9, "cricket"), ("Lowmere Eels", 8, "swimming")]
WORKS = [("novel", phrases("The Salt Road, A Winter at Thornwick, The Ferryman's Daughter, Nine Days of Heather, The Thirteenth Stroke, "
                           "Letters from the Windward, The Weaver's Ledger")),
         ("painting", phrases("Seven Arches at Dusk, The Eel Fishers, Harbour in Snow, Portrait of a Shipwright, Women at the Loom")),
         ("poem", phrases("Ode to the Lark, On the Needle Rocks, Slate, Low Water")),
         ("symphony", phrases("The Larkmoor Symphony, Tidal Variations, Lantern Music")),
         ("film", phrases("The Quarrymen, Signal Tower, One Summer in Wexcombe")),
         ("history", phrases("A History of Larkmoor, Clocks and Their Makers, The County Railways"))]


def make_towns():
    dice, towns = Dice("towns"), []
    for index, (name, population, founded, lat, lon, known_for, nickname) in enumerate(TOWNS):
        streets = []
        for street in dice.some(STREETS, 14):
            angle, middle = dice.real(0, math.pi), place(dice, lat, lon, 0.012)
            half = dice.real(0.003, 0.009)
            dy, dx = half * math.sin(angle), half * math.cos(angle) * 1.45
            streets.append({"name": street, "line": [[round(middle["lat"] + k * dy, 5), round(middle["lon"] + k * dx, 5)] for k in (-1, 0, 1)]})

        def address():
            return f"{dice.number(1, 180)} {dice.pick(streets)['name']}"

        landmarks = [{"id": slug(f"{name} {kind}"), "name": f"{name} {kind}", "kind": kind.lower(), "built": dice.number(founded + 10, 1935),
                      "height_m": dice.number(9, 74), "visitors_per_year": dice.number(4, 190) * 1000, "address": address(),
                      **place(dice, lat, lon, 0.01)} for kind in dice.some(LANDMARKS, 3)]
        subjects = MUSEUMS[index::len(TOWNS)]
        town_museums = [{"id": slug(f"{name} museum of {subject}"), "name": f"{name} Museum of {subject}", "subject": subject.lower(),
                         "opened": dice.number(1880, 2008), "objects": dice.number(3, 95) * 200, "visitors_per_year": dice.number(6, 120) * 1000,
                         "entry_fee_usd": dice.pick([0, 4, 5, 7, 9, 12]), "closed_on": dice.pick(["Monday", "Tuesday", "Wednesday"]),
                         "address": address(), **place(dice, lat, lon, 0.009)} for subject in subjects]
        schools = [{"id": slug(f"{name} {kind}"), "name": f"{name} {kind}", "kind": kind.lower(), "opened": dice.number(1790, 1975),
                    "students": dice.number(180, 1400) if kind != "College" else dice.number(900, 6200), "motto": motto,
                    "address": address(), **place(dice, lat, lon, 0.011)}
                   for kind, motto in dice.some([("Grammar School", "Patience and proof"), ("College", "Look again"),
                                                 ("Academy", "By work, light"), ("School of Crafts", "Measure twice")], 2)]
        pois = []
        for kind, names in POIS:
            for title in dice.some(names, 2 if len(names) > 3 else 1):
                if kind in ("library", "station", "hospital"):
                    title = f"{name} {title}"
                pois.append({"kind": kind, "name": title, "address": address(), "phone": f"555-{index + 10:02}{dice.number(10, 99)}",
                             "opens": f"{dice.number(6, 10):02}:00", "closes": f"{dice.number(17, 23)}:00", "stars": dice.number(20, 50) / 10,
                             **place(dice, lat, lon, 0.011)})
        towns.append({"id": slug(name), "name": name, "population": population, "founded": founded, "lat": lat, "lon": lon,
                      "area_km2": round(dice.real(11, 96), 1), "elevation_m": dice.number(2, 60) if index != 11 else 412,
                      "known_for": known_for, "nickname": nickname, "postcode": f"00{107 + index * 7}",
                      "rivers": [river[0] for river in RIVERS if index in river[4]], "streets": streets, "landmarks": landmarks,
                      "museums": town_museums, "schools": schools, "pois": pois})
    return towns


def make_people(towns):
    dice, people, taken = Dice("people"), [], set()
    while len(people) < 80:
        her = len(people) % 2 == 0
        first, last = dice.pick(FIRST_HER if her else FIRST_HIM), dice.pick(LAST)
        if not people:
            first, last = "Emma", "Lopez"
        if (first, last) in taken:
            continue
        taken.add((first, last))
        # Every fourth person is historical; the others could be today's customers and forum members.
        historic = len(people) % 4 == 3
        home, origin = dice.pick(towns), dice.pick(towns)
        born = dice.number(1720, 1905) if historic else dice.number(1948, 2001)
        school = dice.pick(dice.pick(towns)["schools"])
        person = {"id": slug(f"{first} {last}"), "first": first, "last": last, "name": f"{first} {last}",
                  "pronoun": "she" if her else "he", "born": born, "died": born + dice.number(48, 91) if historic else None,
                  "birthplace": origin["name"], "home": home["name"], "occupation": dice.pick(OCCUPATIONS), "school": school["name"],
                  "interests": dice.some(INTERESTS, 2), "historic": historic, "awards": [], "works": [], "spouse": None, "mentor": None}
        if not historic:
            person["username"] = dice.pick([f"{first}{last}", f"{first[0]}{last}{born % 100:02}", f"{first}_{last}", f"{last}{first[0]}"]).lower()
            person["email"] = "emma.lopez@gmail.com" if not people else f"{slug(first)}.{slug(last)}@{dice.pick(['larkmail', 'islandpost', 'courier'])}.test"
            person["address"] = {"line": f"{dice.number(1, 180)} {dice.pick(home['streets'])['name']}", "town": home["name"], "postcode": home["postcode"]}
            person["phone"] = f"555-{dice.number(1000, 9999)}"
        if dice.chance(0.4):
            start = born + 30
            person["awards"] = [f"{dice.pick(['Larkmoor Medal', 'Golden Shuttle', 'Order of the Heron', 'County Prize'])} ({dice.number(start, min(start + 25, 2022))})"]
        people.append(person)
    for group in ([p for p in people if p["historic"]], [p for p in people if not p["historic"]]):
        for one in group:
            match = next((o for o in group if o is not one and not o["spouse"] and o["pronoun"] != one["pronoun"] and abs(o["born"] - one["born"]) < 9), None)
            if match and not one["spouse"] and dice.chance(0.5):
                one["spouse"], match["spouse"] = match["name"], one["name"]
            older = [o for o in group if 15 < one["born"] - o["born"] < 45]
            if older and dice.chance(0.5):
                one["mentor"] = dice.pick(older)["name"]
    return people


def make_companies(towns, people):
    dice, companies = Dice("companies"), []
    living = [p for p in people if not p["historic"]]
    entries = [(name, "maker", None, None) for name in MAKERS + GENERAL_MAKERS]
    entries += [(name, "service", industry, founded) for name, industry, founded in SERVICES]
    for index, (name, kind, industry, founded) in enumerate(entries):
        founded = founded or dice.number(1972, 2018)
        adults = [p for p in people if 20 <= founded - p["born"] <= 60 and founded < (p["died"] or 9999)]
        founder = dice.pick(adults)["name"] if adults else None
        home = next((town for town in towns if name.startswith(town["name"].split()[0])), None) or dice.pick(towns)
        leaves = [entry[0] for entry in CATEGORIES]
        # Each category of the shop has one specialist, in the same order, and one generalist competes with them.
        categories = [leaves[index]] if name in MAKERS else leaves[GENERAL_MAKERS.index(name)::4] if name in GENERAL_MAKERS else []
        companies.append({"id": slug(name), "name": name, "kind": kind, "industry": industry or "consumer goods", "founded": founded,
                          "founder": founder, "chief": dice.pick(living)["name"], "town": home["name"],
                          "address": f"{dice.number(1, 120)} {dice.pick(home['streets'])['name']}", "employees": dice.number(8, 1900),
                          "revenue_musd": round(dice.real(0.6, 240), 1), "slogan": dice.pick(phrases(
                              "Made to be mended, From the moor to the door, Quietly good, Good work keeps, Built for weather, Nothing left over")),
                          "categories": categories})
    return companies


def make_product_lines(companies):
    dice, lines = Dice("lines"), []
    for leaf, top, name, description in CATEGORIES:
        makers = [c["name"] for c in companies if leaf in c["categories"]]
        lines.append({"id": slug(name), "name": name, "category": leaf, "department": top, "maker": makers[0], "rivals": makers[1:],
                      "description": description, "launched": dice.number(1996, 2022), "units_sold": dice.number(9, 940) * 1000,
                      "warranty_years": dice.pick([1, 2, 3, 5, 10])})
    return lines


def make_projects(companies, people):
    dice, living = Dice("projects"), [p for p in people if not p["historic"]]
    software = [c["name"] for c in companies if c["industry"] == "software"]
    return [{"id": slug(name), "name": name, "language": language, "description": description, "owner": dice.pick(software),
             "started": dice.number(2009, 2022), "licence": dice.pick(["MIT", "Apache-2.0", "GPL-3.0", "BSD-3-Clause"]),
             "maintainers": [p["username"] for p in dice.some(living, 3)], "stars": dice.number(4, 4100),
             "version": f"{dice.number(0, 4)}.{dice.number(0, 12)}.{dice.number(0, 9)}",
             "labels": dice.some(["bug", "feature", "documentation", "performance", "security", "good first issue"], 4)}
            for name, language, description in PROJECTS]


def make_works(people):
    dice, works = Dice("works"), []
    trades = {"novel": "novelist", "painting": "painter", "poem": "poet", "symphony": "composer", "film": "photographer", "history": "historian"}
    for kind, titles in WORKS:
        makers = [p for p in people if p["occupation"] == trades[kind]] or dice.some(people, 2)
        for title in titles:
            maker = dice.pick([p for p in makers if kind != "film" or p["born"] > 1880] or people[:1])
            year = min(maker["born"] + dice.number(26, 55), 2022)
            maker["works"].append(title)
            works.append({"id": slug(title), "title": title, "kind": kind, "creator": maker["name"], "year": year})
    return works


def make_world():
    dice, towns = Dice("rest"), make_towns()
    people = make_people(towns)
    companies = make_companies(towns, people)
    living = [p for p in people if not p["historic"]]
    for town in towns:
        town["mayor"] = dice.pick(living)["name"]
    rivers = [{"id": slug(name), "name": name, "length_km": length, "source": source, "mouth": mouth, "tributary_of": parent,
               "towns": [TOWNS[i][0] for i in course], "line": [[TOWNS[i][3], TOWNS[i][4]] for i in course],
               "discharge_m3s": round(length * dice.real(0.2, 0.5), 1)} for name, length, source, mouth, course, parent in RIVERS]
    parks = [{"id": slug(name), "name": name, "town": TOWNS[town][0], "area_ha": area, "established": year, "wildlife": wildlife,
              "highest_point_m": dice.number(8, 690), "paths_km": dice.number(3, 120), **place(dice, TOWNS[town][3], TOWNS[town][4], 0.03)}
             for name, town, area, year, wildlife in PARKS]
    events = [{"id": slug(name), "name": name, "year": year, "date": f"{year}-{dice.number(1, 12):02}-{dice.number(1, 28):02}",
               "town": TOWNS[town][0], "kind": kind, "summary": summary, "people": [p["name"] for p in dice.some(
                   [p for p in people if p["born"] + 18 < year < (p["died"] or 2023)], 2)]} for name, year, town, kind, summary in EVENTS]
    festivals = [{"id": slug(f"{name} festival"), "name": name, "town": TOWNS[town][0], "month": month, "since": since,
                  "visitors": dice.number(2, 60) * 1000} for name, town, month, since in FESTIVALS]
    teams = [{"id": slug(name), "name": name, "town": TOWNS[town][0], "sport": sport, "founded": dice.number(1868, 1970),
              "titles": dice.number(0, 14), "captain": dice.pick(living)["name"]} for name, town, sport in TEAMS]
    county = {"name": "Larkmoor", "full_name": "Larkmoor County", "seat": "Harrowgate Mills", "chartered": 1668, "area_km2": 2140,
              "population": sum(town["population"] for town in towns), "highest_point": "Dunmore Tor", "highest_point_m": 703,
              "motto": "Wind and Patience", "bbox": [WEST, SOUTH, EAST, NORTH], "state_code": "LM"}
    return {"seed": SEED, "now": NOW, "county": county, "towns": towns, "rivers": rivers, "parks": parks, "people": people,
            "companies": companies, "product_lines": make_product_lines(companies), "projects": make_projects(companies, people),
            "events": events, "works": make_works(people), "festivals": festivals, "teams": teams}


def main():
    text = json.dumps(make_world(), indent=1, ensure_ascii=False) + "\n"
    stale = [name for name in TARGETS if not (ROOT / name).is_file() or (ROOT / name).read_text(encoding="utf-8") != text]
    if sys.argv[1:] == ["--check"]:
        for name in stale:
            print(f"world: {name} is stale; run scripts/world.py", file=sys.stderr)
        return 1 if stale else 0
    if sys.argv[1:]:
        print(__doc__, file=sys.stderr)
        return 2
    for name in stale:
        (ROOT / name).write_text(text, encoding="utf-8")
        print(f"world: wrote {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

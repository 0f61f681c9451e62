"""Hills, waters and shores that other pages mention."""

from wiki.page import Dice, bullets, infobox, joined, section

FEATURES = [  # name, kind, height in metres, nearest town, description
    ("Dunmore Tor", "hill", 703, "Upper Dunmore", "the highest point of the county, a heap of granite above the heather"),
    ("Fern Hill", "hill", 431, "Fernhollow", "the highest of the Fern Hills, with slate quarries on its western side"),
    ("Thorn Hill", "hill", 288, "Thornwick", "a round hill from which the clock of Thornwick can be read with a telescope"),
    ("Bramble Top", "hill", 214, "Brambleford", "the highest point of Bramble Heath"),
    ("Lake Mere", "lake", None, "Lowmere", "the largest lake of the county, known for eels and ospreys"),
    ("Elsing Sound", "bay", None, "Port Elsing", "the sheltered bay in which the River Lark and the River Bram end"),
    ("Salt Flats", "marsh", None, "Saltmarsh", "the marsh and the salt pans on the southern coast"),
    ("Needle Rocks", "rocks", None, "Kestrel Bay", "a row of rocks off the eastern coast, marked by a lighthouse"),
]


def write(wiki, world):
    link = wiki.link
    for name, kind, height, town, what in FEATURES:
        dice = Dice(name)
        rising = [r["name"] for r in world["rivers"] if r["source"].removeprefix("the ") == name]
        ending = [r["name"] for r in world["rivers"] if r["mouth"].removeprefix("the ") == name]
        events = [e for e in world["events"] if name in e["summary"]]
        box = infobox(name, [("Kind", kind), ("Height", f"{height} m" if height else None), ("Nearest town", link(town))])
        body = f"{box}<p><b>{name}</b> is {what}. The nearest town is {link(town)}. {dice.pick(['A path leads there from the market square.', 'Painters have been coming here for two centuries.', 'In fog it is best avoided.'])}</p>"
        if rising or ending:
            body += section("Rivers", (f"Here rises {joined(f'the {link(r)}' for r in rising)}. " if rising else "") + (f"Here ends {joined(f'the {link(r)}' for r in ending)}." if ending else ""))
        if events:
            body += section("History", " ".join(f"{link(e['name'])} ({e['year']}): {e['summary']}." for e in events))
        body += section("See also", bullets([link("List of rivers of Larkmoor"), link("List of parks in Larkmoor")]))
        wiki.add(name, body, ["Nature of Larkmoor County"])

"""The topics of discussion: the things of the world, each with the words that a sentence may contain."""

from seed.common import WORLD, Dice

dice = Dice("facts")
TOWNS = {town["name"]: town for town in WORLD["towns"]}


def in_town(key, town, **words):
    return {key: words.pop("name"), "town": town["name"], **words}


def visits():
    for town in TOWNS.values():
        for museum in town["museums"]:
            fee = f"${museum['entry_fee_usd']}" if museum["entry_fee_usd"] else "nothing"
            yield in_town("museum", town, name=museum["name"], subject=museum["subject"], fee=fee, closed=museum["closed_on"],
                          address=museum["address"], opened=museum["opened"], objects=museum["objects"])


def landmarks():
    for town in TOWNS.values():
        for one in town["landmarks"]:
            yield in_town("landmark", town, name=one["name"], kind=one["kind"], built=one["built"], height=one["height_m"], address=one["address"])


def pois(*kinds):
    for town in TOWNS.values():
        for poi in town["pois"]:
            if poi["kind"] in kinds:
                yield in_town("place", town, name=poi["name"], kind=poi["kind"], address=poi["address"], phone=poi["phone"],
                              opens=poi["opens"], closes=poi["closes"], stars=poi["stars"])


def streets():
    for town in TOWNS.values():
        for street in town["streets"]:
            yield in_town("street", town, name=street["name"], school=town["schools"][0]["name"], mayor=town["mayor"])


def towns():
    for town in TOWNS.values():
        cafe, hotel = (next(poi for poi in town["pois"] if poi["kind"] == kind) for kind in ("cafe", "hotel"))
        yield {"town": town["name"], "nickname": town["nickname"], "known_for": town["known_for"], "mayor": town["mayor"], "cafe": cafe["name"],
               "hotel": hotel["name"], "street": town["streets"][0]["name"], "landmark": town["landmarks"][0]["name"],
               "museum": town["museums"][0]["name"], "population": town["population"], "founded": town["founded"]}


def parks():
    for park in WORLD["parks"]:
        yield {"park": park["name"], "town": park["town"], "wildlife": park["wildlife"], "area": park["area_ha"], "paths": park["paths_km"],
               "established": park["established"]}


def rivers():
    for river in WORLD["rivers"]:
        yield {"river": river["name"], "length": river["length_km"], "source": river["source"], "mouth": river["mouth"], "town": river["towns"][-1]}


def events():
    for event in WORLD["events"]:
        witness = event["people"][0] if event["people"] else "nobody by name"
        yield {"event": event["name"], "year": event["year"], "date": event["date"], "town": event["town"], "summary": event["summary"], "witness": witness}


def works(*kinds):
    for work in WORLD["works"]:
        if work["kind"] in kinds:
            yield {"work": work["title"], "creator": work["creator"], "year": work["year"], "kind": work["kind"], "town": dice.pick(list(TOWNS))}


def festivals():
    for one in WORLD["festivals"]:
        yield {"festival": one["name"], "town": one["town"], "month": one["month"], "since": one["since"], "visitors": one["visitors"]}


def teams():
    for team in WORLD["teams"]:
        yield {"team": team["name"], "town": team["town"], "sport": team["sport"], "captain": team["captain"], "founded": team["founded"],
               "titles": team["titles"]}


def companies(*industries):
    for one in WORLD["companies"]:
        if one["kind"] == "service" and (not industries or one["industry"] in industries):
            yield {"company": one["name"], "town": one["town"], "industry": one["industry"], "founded": one["founded"], "chief": one["chief"],
                   "employees": one["employees"]}


def lines(*departments):
    makers = {company["name"]: company for company in WORLD["companies"]}
    for line in WORLD["product_lines"]:
        if not departments or line["department"] in departments:
            maker = makers[line["maker"]]
            yield {"line": line["name"], "maker": line["maker"], "category": line["category"].lower(), "rival": line["rivals"][0],
                   "warranty": f"{line['warranty_years']} year" + ("s" if line["warranty_years"] > 1 else ""), "launched": line["launched"],
                   "town": maker["town"], "slogan": maker["slogan"]}


def projects():
    for project in WORLD["projects"]:
        yield {"project": project["name"], "language": project["language"], "does": project["description"], "owner": project["owner"],
               "version": project["version"], "licence": project["licence"], "maintainer": project["maintainers"][0], "stars": project["stars"],
               "town": dice.pick(list(TOWNS))}


def things(names):
    for name in names.split(", "):
        yield {"thing": name, "Thing": name[0].upper() + name[1:], "town": dice.pick(list(TOWNS)), "park": dice.pick(WORLD["parks"])["name"]}


def only(town, facts):
    return [fact for fact in facts if fact["town"] == town]

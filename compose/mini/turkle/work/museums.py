"""Descriptions of the county's museums, some with wrong facts, to be checked against the encyclopaedia."""

from work.common import Dice, save

PROJECT = "Check a museum description"
FACTS = ["opened", "objects", "admission", "closed", "address"]
OPENINGS = ["Welcome to the {name}!", "A morning at the {name} is well spent.", "Everybody knows the {name}.", "The {name} is worth a detour."]


def admission(dollars):
    return f"${dollars}" if dollars else "free of charge"


def falsified(dice, fact, value, streets):
    """Returns a value that differs from the true one but is plausible."""
    if fact == "opened":
        return value + dice.pick([-20, -11, -3, 2, 9, 14])
    if fact == "objects":
        return value + dice.pick([-200, 400, 1200])
    if fact == "admission":
        return value + dice.pick([2, 3, 6])
    if fact == "closed":
        return dice.pick([day for day in ("Monday", "Tuesday", "Wednesday", "Thursday") if day != value])
    number, street = value.split(" ", 1)
    return f"{number} {dice.pick([other for other in streets if other != street])}"


def write(world, target):
    dice, rows = Dice(PROJECT), []
    for town in world["towns"]:
        streets = [street["name"] for street in town["streets"]]
        for museum in town["museums"]:
            true = {"opened": museum["opened"], "objects": museum["objects"], "admission": museum["entry_fee_usd"],
                    "closed": museum["closed_on"], "address": museum["address"]}
            wrong = sorted(dice.some(FACTS, dice.pick([0, 0, 1, 1, 2, 3])), key=FACTS.index)
            shown = {**true, **{fact: falsified(dice, fact, true[fact], streets) for fact in wrong}}
            text = (dice.pick(OPENINGS).format(name=museum["name"]) + f" You find it at {shown['address']}. Since {shown['opened']} it has told of "
                    f"{museum['subject']}, today with {shown['objects']:,} objects. Admission is {admission(shown['admission'])}; it is closed on {shown['closed']}.")
            rows.append({"museum": museum["name"], "description": text,
                         "Answer.correct": "no" if wrong else "yes", "Answer.wrong": "|".join(sorted(wrong)),
                         "Answer.right_facts": len(FACTS) - len(wrong), "Answer.opened": museum["opened"], "Answer.town": town["name"],
                         "Answer.corrections": " ".join(f"{fact}: {true[fact]}" for fact in wrong)})
    save(target / PROJECT / "Museums of Larkmoor.csv", rows)


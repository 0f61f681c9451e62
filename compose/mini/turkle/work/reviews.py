"""Review cards that customers of One Stop Market sent by post, to be typed in and sorted."""

import textwrap

from PIL import Image, ImageDraw, ImageFont

from work.common import Dice, save

PROJECT = "Transcribe a shop review"
FONT = "/usr/share/fonts/truetype/breip/Breip.ttf"
BATCHES = [("Reviews of April 2023", 18, 11), ("Reviews of May 2023", 20, 0)]  # name, cards, of which done by another worker
WORKER = "worker2"
SAID = {  # topic: (kind words, unkind words)
    "quality": (["It is well made.", "Nothing rattles and nothing creaks.", "Better than what I had for ten years."],
                ["It broke within a week.", "The seams came apart.", "It looks tired after three days."]),
    "price": (["Worth every dollar.", "I paid less than I feared."], ["Far too dear for what it is.", "Half of it would be a fair price."]),
    "delivery": (["It came a day early.", "The carrier was quick and kind."], ["It took three weeks to arrive.", "The ferry was on time, the parcel was not."]),
    "packaging": (["Packed in straw and paper, not a scratch.", "The box alone is a gift."], ["The box was torn and wet.", "Too much plastic around it."]),
    "service": (["My letter was answered on the same day.", "They sent a spare part without asking."], ["Nobody answered my letter.", "I was told to read the manual."]),
}
MARKS = {"positive": [4, 5], "negative": [1, 2]}


def review(dice, world):
    line, person = dice.pick(world["product_lines"]), dice.pick([p for p in world["people"] if not p["historic"]])
    sentiment = dice.pick(["positive", "negative"])
    topics = sorted(dice.some(SAID, dice.number(1, 3)))
    stars = dice.pick(MARKS[sentiment])
    sentences = [dice.pick(SAID[topic][sentiment == "negative"]) for topic in topics]
    text = f"I bought the {line['name']} by {line['maker']}. {' '.join(sentences)} {stars} of 5 stars. {person['first']} from {person['home']}"
    return {"department": line["department"], "product": line["name"], "sentiment": sentiment, "stars": stars,
            "topics": "|".join(topics), "transcription": text}


def card(text, dice):
    """Draws a card with ruled lines and handwriting, slightly tilted."""
    lines = textwrap.wrap(text, 38)
    image = Image.new("L", (620, 70 + 44 * len(lines)), 250)
    pen, font = ImageDraw.Draw(image), ImageFont.truetype(FONT, 32)
    for row, line in enumerate(lines):
        pen.line((30, 68 + 44 * row, 590, 68 + 44 * row), 205, 1)
        pen.text((40 + dice.number(0, 8), 30 + 44 * row + dice.number(-2, 2)), line, 40, font)
    pen.rectangle((4, 4, image.width - 5, image.height - 5), None, 170, 2)
    return image.rotate(dice.real() * 2 - 1, Image.BICUBIC, fillcolor=235).quantize(8)


def write(world, target):
    dice, number = Dice(PROJECT), 0
    pictures = target / "cards"
    pictures.mkdir(parents=True, exist_ok=True)
    for batch, cards, done in BATCHES:
        rows = []
        for place in range(cards):
            number += 1
            answers = review(dice, world)
            card(answers["transcription"], dice).save(pictures / f"card-{number:02}.png", optimize=True)
            rows.append({"number": f"{number:02}", "month": batch.split(" ", 2)[2], "WorkerId": WORKER if place < done else "",
                         **{f"Answer.{field}": value for field, value in answers.items()}})
        save(target / PROJECT / f"{batch}.csv", rows)

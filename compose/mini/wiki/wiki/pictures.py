"""Coats of arms, logos, the map of the county and the icon, all drawn from the facts."""

from PIL import Image, ImageDraw, ImageFilter

from wiki.page import Dice

COLOURS = [(31, 58, 104), (158, 44, 40), (42, 98, 62), (196, 148, 36), (84, 48, 96), (40, 44, 48), (32, 118, 124)]
# The size of the map of the county before it is shrunk.
MAP = (1000, 1040)
STYLE = """body { font-family: sans-serif; color: #202122; margin: 0; background: #f6f6f6; }
#content { max-width: 1000px; margin: 0 auto; padding: 1.2em 1.6em; background: #fff; border: 1px solid #c8ccd1; line-height: 1.55; font-size: 15px; }
h1, h2 { font-family: Georgia, serif; font-weight: normal; border-bottom: 1px solid #a2a9b1; padding-bottom: .15em; overflow: hidden; }
#siteSub { font-size: 13px; color: #54595d; margin-bottom: 1em; }
a { color: #3366cc; text-decoration: none; } a:hover { text-decoration: underline; }
.infobox { float: right; clear: right; width: 270px; margin: 0 0 1em 1.4em; border: 1px solid #a2a9b1; background: #f8f9fa; font-size: 13px; border-spacing: 4px; }
.infobox caption { font-weight: bold; font-size: 15px; padding: .3em; } .infobox th { text-align: left; vertical-align: top; width: 40%; }
.infobox-image { text-align: center; color: #54595d; }
.thumb { float: right; clear: right; width: 242px; margin: 0 0 1em 1.4em; padding: 5px; border: 1px solid #c8ccd1; background: #f8f9fa; color: #54595d; font-size: 13px; }
.thumb img { display: block; margin: 0 auto 4px; border: 1px solid #c8ccd1; }
.wikitable { border-collapse: collapse; background: #f8f9fa; margin: 1em 0; } .wikitable th, .wikitable td { border: 1px solid #a2a9b1; padding: .25em .5em; text-align: left; }
.wikitable th { background: #eaecf0; }
#catlinks { clear: both; border: 1px solid #a2a9b1; background: #f8f9fa; padding: .4em; margin-top: 1.5em; font-size: 13px; }
#footer { clear: both; margin-top: 1em; font-size: 12px; color: #54595d; }
"""


def arms(town):
    dice = Dice("arms " + town["id"])
    first, second = dice.pick(COLOURS), dice.pick(COLOURS)
    metal = dice.pick([(240, 236, 224), (228, 196, 88)])
    image = Image.new("RGB", (440, 520), "white")
    field, draw = Image.new("RGB", image.size, first), ImageDraw.Draw(image)
    pen, pattern = ImageDraw.Draw(field), dice.number(0, 4)
    if pattern == 0:
        pen.rectangle((0, 200, 440, 320), metal)
    elif pattern == 1:
        pen.rectangle((220, 0, 440, 520), second if second != first else metal)
    elif pattern == 2:
        pen.polygon((0, 0, 130, 0, 440, 400, 440, 520, 0, 60), metal)
    elif pattern == 3:
        pen.polygon((0, 520, 220, 180, 440, 520), metal)
    else:
        pen.rectangle((0, 0, 440, 150), metal)
    for x, y in [(130, 110), (310, 110), (220, 350)][: dice.number(1, 3)]:
        if dice.number(0, 1):
            pen.ellipse((x - 42, y - 42, x + 42, y + 42), second, metal, 8)
        else:
            pen.polygon((x, y - 55, x + 45, y, x, y + 55, x - 45, y), second, metal)
    if town["rivers"]:
        for row in (0, 26):
            pen.line([(x, 430 + row + (12 if (x // 40) % 2 else -12)) for x in range(0, 441, 40)], (236, 240, 248), 10)
    mask = Image.new("L", image.size, 0)
    shield = [(20, 20), (420, 20), (420, 300), (380, 400), (310, 460), (220, 505), (130, 460), (60, 400), (20, 300)]
    ImageDraw.Draw(mask).polygon(shield, 255)
    image.paste(field, mask=mask)
    draw.line([*shield, shield[0]], (30, 30, 30), 7)
    return image.resize((220, 260), Image.LANCZOS)


def logo(company):
    dice = Dice("logo " + company["id"])
    image = Image.new("RGB", (440, 240), "white")
    pen, colour, other = ImageDraw.Draw(image), dice.pick(COLOURS), dice.pick(COLOURS)
    for step in range(dice.number(2, 4)):
        inset = step * 26
        shape = (120 + inset, 20 + inset, 320 - inset, 220 - inset)
        ink = colour if step % 2 == 0 else "white" if step == 1 else other
        if dice.number(0, 1):
            pen.ellipse(shape, ink)
        else:
            pen.rounded_rectangle(shape, 24, ink)
    initials = "".join(word[0] for word in company["name"].split() if word[0].isupper())[:3]
    small = Image.new("L", (6 * len(initials) + 1, 12), 0)
    ImageDraw.Draw(small).text((1, 0), initials, 255)
    image.paste(other if other != colour else (60, 60, 60), (350, 90), small.resize((small.width * 4, small.height * 4), Image.LANCZOS))
    return image.resize((220, 120), Image.LANCZOS)


def position(world, lat, lon):
    """Returns the position of a place on the map of the county."""
    west, south, east, north = world["county"]["bbox"]
    width, height = MAP
    return 40 + (lon - west) / (east - west) * (width - 80), 40 + (north - lat) / (north - south) * (height - 80)


def county(world, river=None):
    """Draws the map of the county in its full size. With a river's name, that river is marked and the towns have no names;
    with an empty name, nothing is marked."""
    width, height = MAP

    def at(lat, lon):
        return position(world, lat, lon)

    # Land is near the towns: blurring the shape and cutting it at a level gives a coast.
    land, dice = Image.new("L", (width, height), 0), Dice("coast")
    pen = ImageDraw.Draw(land)
    pen.ellipse((270, 200, 740, 800), 255)
    for town in world["towns"]:
        x, y = at(town["lat"], town["lon"])
        for _ in range(6):
            dx, dy, reach = dice.number(-60, 60), dice.number(-60, 60), dice.number(35, 90)
            pen.ellipse((x + dx - reach, y + dy - reach, x + dx + reach, y + dy + reach), 255)
    land = land.filter(ImageFilter.GaussianBlur(16)).point(lambda level: 255 if level > 110 else 0)
    image = Image.new("RGB", (width, height), (196, 220, 236))
    image.paste((224, 234, 240), mask=land.filter(ImageFilter.GaussianBlur(14)))
    image.paste((236, 233, 214), mask=land)
    pen = ImageDraw.Draw(image)
    for park in world["parks"]:
        x, y = at(park["lat"], park["lon"])
        reach = 14 + park["area_ha"] ** 0.5 / 2
        pen.ellipse((x - reach, y - reach, x + reach, y + reach), (188, 212, 164))
    for each in sorted(world["rivers"], key=lambda each: each["name"] == river):
        is_marked = each["name"] == river
        pen.line([at(*point) for point in each["line"]], (190, 30, 30) if is_marked else (96, 150, 204), (10 if is_marked else 3) + each["length_km"] // 14, joint="curve")
    for town in world["towns"]:
        x, y = at(town["lat"], town["lon"])
        reach = 6 + town["population"] / 9000
        pen.ellipse((x - reach, y - reach, x + reach, y + reach), (158, 44, 40), (255, 255, 255), 2)
        if river is not None:
            continue
        label = Image.new("L", (len(town["name"]) * 7, 14), 0)
        ImageDraw.Draw(label).text((0, 1), town["name"], 255)
        label = label.resize((label.width * 2, label.height * 2), Image.LANCZOS)
        image.paste((32, 33, 34), (int(x + reach + 5), int(y - 14)), label)
    return image


def save(world, folder):
    (folder / "I").mkdir(exist_ok=True)
    (folder / "style.css").write_text(STYLE, encoding="utf-8")
    county(world).resize((500, 520), Image.LANCZOS).save(folder / "I" / "county.png")
    for town in world["towns"]:
        arms(town).save(folder / "I" / f"arms-{town['id']}.png")
    for company in world["companies"]:
        logo(company).save(folder / "I" / f"logo-{company['id']}.png")
    icon = Image.new("RGB", (48, 48), "white")
    ImageDraw.Draw(icon).polygon((6, 8, 14, 40, 24, 18, 34, 40, 42, 8, 36, 8, 32, 26, 24, 8, 16, 26, 12, 8), (32, 33, 34))
    # The icons of the file and of its pages.
    icon.save(folder / "icon.png")
    icon.save(folder / "I" / "icon.png")

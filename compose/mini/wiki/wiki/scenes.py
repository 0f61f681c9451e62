"""Drawings of towns, buildings, parks and people, and small maps that show locations. Each drawing follows from the name
of its subject."""

import hashlib

from PIL import Image, ImageDraw

from wiki.page import Dice
from wiki.pictures import county, position

# Drawn larger than shown: shrinking smooths the edges.
SCALE = 3
SKIES = [((150, 190, 226), (232, 238, 238)), ((118, 150, 196), (246, 214, 178)), ((168, 196, 204), (238, 236, 220)), ((98, 140, 188), (206, 228, 240))]
WALLS = [(196, 160, 128), (178, 96, 78), (214, 204, 186), (150, 152, 156), (206, 178, 132), (232, 224, 208)]
ROOFS = [(92, 64, 58), (70, 78, 92), (128, 62, 48), (86, 92, 84)]
GREENS = [(124, 152, 92), (104, 136, 84), (146, 164, 104), (88, 118, 76)]
SKINS = [(246, 215, 195), (238, 193, 162), (217, 160, 102), (185, 122, 75), (141, 90, 59), (95, 61, 42)]
HAIRS = [(43, 35, 32), (74, 50, 34), (122, 74, 33), (181, 129, 61), (216, 181, 106), (154, 154, 154), (140, 59, 31)]
GLASS, WATER, DARK = (70, 84, 100), (118, 158, 190), (46, 44, 48)


class Scene:
    """A picture of 220 by 150 units with a sky."""

    width, height = 220, 150

    def __init__(self, name):
        self.dice = Dice("scene " + name)
        high, low = self.dice.pick(SKIES)
        fade = Image.linear_gradient("L").resize((self.width * SCALE, self.height * SCALE))
        self.image = Image.composite(Image.new("RGB", fade.size, low), Image.new("RGB", fade.size, high), fade)
        self.pen = ImageDraw.Draw(self.image)

    def box(self, left, top, right, bottom, colour):
        self.pen.rectangle((left * SCALE, top * SCALE, right * SCALE, bottom * SCALE), colour)

    def shape(self, colour, *points):
        self.pen.polygon([(x * SCALE, y * SCALE) for x, y in points], colour)

    def oval(self, left, top, right, bottom, colour):
        self.pen.ellipse((left * SCALE, top * SCALE, right * SCALE, bottom * SCALE), colour)

    def arch(self, left, top, right, bottom, colour):
        """Draws a door or a window with a round top."""
        reach = (right - left) / 2
        self.oval(left, top, right, top + 2 * reach, colour)
        self.box(left, top + reach, right, bottom, colour)

    def line(self, colour, width, *points):
        self.pen.line([(x * SCALE, y * SCALE) for x, y in points], colour, int(width * SCALE), joint="curve")

    def hills(self, top, colour):
        points = [(x, top + self.dice.number(-9, 9)) for x in range(-20, self.width + 41, 30)]
        self.shape(colour, (-20, self.height), *points, (self.width + 40, self.height))

    def tree(self, x, ground, size):
        colour = self.dice.pick(GREENS)
        self.box(x - 1, ground - size, x + 1, ground, (90, 66, 50))
        if self.dice.number(0, 1):
            self.oval(x - size * 0.45, ground - size * 1.7, x + size * 0.45, ground - size * 0.5, colour)
        else:
            self.shape(colour, (x, ground - size * 1.9), (x + size * 0.45, ground - size * 0.3), (x - size * 0.45, ground - size * 0.3))

    def windows(self, left, top, right, bottom, columns, rows, colour=GLASS):
        across, down = (right - left) / columns, (bottom - top) / rows
        for column in range(columns):
            for row in range(rows):
                x, y = left + column * across, top + row * down
                self.box(x + across * 0.28, y + down * 0.22, x + across * 0.72, y + down * 0.78, colour)

    def house(self, x, ground, wide, high):
        wall, roof = self.dice.pick(WALLS), self.dice.pick(ROOFS)
        self.box(x, ground - high, x + wide, ground, wall)
        self.shape(roof, (x - 1.5, ground - high), (x + wide / 2, ground - high - wide * 0.5), (x + wide + 1.5, ground - high))
        self.windows(x, ground - high, x + wide, ground, max(1, int(wide // 9)), max(1, int(high // 12)))

    def done(self):
        return self.image.resize((self.width * 2, self.height * 2), Image.LANCZOS).quantize(96)


def town(facts):
    scene = Scene("town " + facts["id"])
    dice = scene.dice
    scene.hills(78, (150, 168, 150)), scene.hills(92, dice.pick(GREENS))
    spire = dice.number(50, 160)
    scene.box(spire, 62, spire + 13, 116, (172, 164, 152)), scene.shape((80, 84, 96), (spire - 2, 62), (spire + 6.5, 26), (spire + 15, 62)), scene.oval(spire + 2.5, 68, spire + 10.5, 76, (240, 236, 224))
    for ground, smallest, largest in ((112, 12, 20), (122, 16, 26)):
        x = -6
        while x < scene.width:
            wide = dice.number(smallest, largest)
            scene.house(x, ground, wide, dice.number(12, 16 + facts["population"] // 3000))
            x += wide + dice.number(0, 5)
    if facts["rivers"]:
        scene.box(0, 122, 220, 150, WATER)
        for _ in range(14):
            x, y = dice.number(0, 200), dice.number(126, 147)
            scene.line((166, 196, 216), 0.8, (x, y), (x + dice.number(6, 18), y))
    else:
        scene.box(0, 122, 220, 150, (150, 160, 112)), scene.shape((206, 196, 172), (96, 122), (124, 122), (150, 150), (66, 150))
    return scene.done()


def museum(facts):
    scene = Scene("museum " + facts["id"])
    dice, wall = scene.dice, scene.dice.pick(WALLS)
    scene.hills(98, dice.pick(GREENS)), scene.box(0, 126, 220, 150, (184, 180, 170))
    if dice.number(0, 1):
        scene.box(34, 62, 186, 126, wall), scene.box(30, 56, 190, 64, (222, 216, 204)), scene.shape((222, 216, 204), (60, 57), (110, 30), (160, 57)), scene.shape(wall, (72, 54), (110, 35), (148, 54))
        for x in range(64, 157, 23):
            scene.box(x, 64, x + 8, 126, (236, 232, 222))
        scene.arch(98, 86, 122, 126, DARK)
    else:
        scene.box(30, 48, 190, 126, wall), scene.shape(dice.pick(ROOFS), (24, 48), (54, 28), (166, 28), (196, 48)), scene.windows(34, 54, 186, 88, 9, 1), scene.windows(34, 88, 96, 122, 4, 1), scene.windows(124, 88, 186, 122, 4, 1)
        scene.box(96, 84, 124, 126, (222, 216, 204)), scene.arch(101, 92, 119, 126, DARK)
    scene.box(84, 126, 136, 129, (206, 202, 192)), scene.box(78, 129, 142, 132, (196, 192, 182))
    for x in (14, 206):
        scene.tree(x, 130, dice.number(22, 34))
    return scene.done()


def _mill(scene, wall, roof):
    scene.shape(wall, (92, 60), (128, 60), (138, 128), (82, 128)), scene.shape(roof, (88, 61), (110, 40), (132, 61)), scene.arch(103, 104, 117, 128, DARK)


def landmark(facts):
    scene = Scene("landmark " + facts["id"])
    dice, wall, roof, kind = scene.dice, scene.dice.pick(WALLS), scene.dice.pick(ROOFS), facts["kind"]
    scene.hills(96, dice.pick(GREENS)), scene.box(0, 128, 220, 150, (138, 156, 104))
    if kind == "windmill":
        _mill(scene, wall, roof)
        for x, y in ((-34, -26), (26, -34), (34, 26), (-26, 34)):
            scene.line((240, 236, 224), 5, (110, 54), (110 + x, 54 + y)), scene.line(DARK, 1, (110, 54), (110 + x * 1.15, 54 + y * 1.15))
    elif kind == "watermill":
        scene.house(70, 128, 62, 44), scene.box(132, 122, 220, 150, WATER)
        scene.oval(128, 82, 176, 130, DARK), scene.oval(133, 87, 171, 125, (150, 168, 150))
        for x, y in ((0, 24), (24, 0), (17, 17), (17, -17)):
            scene.line(DARK, 2.4, (152 - x, 106 - y), (152 + x, 106 + y))
    elif kind in ("aqueduct", "viaduct"):
        scene.box(0, 62, 220, 72, wall), scene.box(0, 70, 220, 128, wall)
        for x in range(-14, 220, 36):
            scene.arch(x, 76, x + 27, 128, (172, 190, 176))
        if kind == "viaduct":
            scene.line(DARK, 1.6, (0, 60), (220, 60)), scene.box(60, 48, 84, 60, (150, 44, 40)), scene.box(88, 50, 112, 60, (60, 70, 84)), scene.box(116, 50, 140, 60, (60, 70, 84))
        else:
            scene.box(0, 59, 220, 62, WATER)
    elif kind in ("signal tower", "clock tower", "old lighthouse"):
        scene.shape(wall, (98, 40), (122, 40), (128, 128), (92, 128)), scene.arch(104, 106, 116, 128, DARK)
        if kind == "clock tower":
            scene.shape(roof, (94, 40), (110, 12), (126, 40)), scene.oval(101, 46, 119, 64, (244, 240, 228)), scene.line(DARK, 1.2, (110, 55), (110, 48)), scene.line(DARK, 1.2, (110, 55), (115, 57))
        elif kind == "old lighthouse":
            scene.shape((176, 52, 44), (96.6, 62), (123.4, 62), (124.8, 78), (95.2, 78)), scene.shape((176, 52, 44), (94.2, 94), (125.8, 94), (126.8, 108), (93.2, 108)), scene.arch(104, 110, 116, 128, DARK)
            scene.box(101, 28, 119, 40, (250, 226, 130)), scene.shape(DARK, (98, 29), (110, 18), (122, 29)), scene.box(94, 39, 126, 42, DARK), scene.box(0, 130, 220, 150, WATER)
        else:
            scene.box(94, 34, 126, 42, wall), scene.windows(98, 48, 122, 100, 2, 3), scene.line(DARK, 1.4, (110, 34), (110, 8)), scene.shape((176, 52, 44), (110, 9), (128, 14), (110, 19))
    elif kind in ("cathedral", "priory"):
        scene.box(64, 76, 172, 128, wall), scene.shape(roof, (60, 77), (76, 54), (160, 54), (176, 77))
        for x in range(72, 166, 16):
            scene.arch(x, 86, x + 8, 116, GLASS)
        scene.box(38, 48, 66, 128, wall), scene.arch(46, 102, 58, 128, DARK), scene.arch(48, 60, 56, 82, GLASS)
        scene.shape(roof, (36, 49), (52, 4 if kind == "cathedral" else 30), (68, 49))
    elif kind == "town gate":
        scene.box(50, 40, 84, 128, wall), scene.box(136, 40, 170, 128, wall), scene.box(84, 58, 136, 128, wall), scene.arch(94, 80, 126, 128, DARK)
        for x in (50, 62, 74, 136, 148, 160):
            scene.box(x, 33, x + 7, 41, wall)
        scene.windows(52, 52, 82, 96, 2, 2), scene.windows(138, 52, 168, 96, 2, 2)
    elif kind == "market cross":
        scene.shape((176, 172, 164), (70, 128), (80, 112), (140, 112), (150, 128)), scene.box(86, 102, 134, 112, (190, 186, 176)), scene.box(105, 34, 115, 104, wall), scene.box(92, 44, 128, 53, wall), scene.oval(103, 22, 117, 36, (210, 176, 84))
    elif kind == "granary":
        scene.box(52, 52, 168, 128, wall), scene.shape(roof, (46, 53), (110, 16), (174, 53)), scene.windows(56, 58, 164, 126, 6, 4, DARK), scene.box(104, 24, 116, 128, (120, 84, 60))
    else:  # a hall, an exchange or a customs house
        scene.box(36, 56, 184, 128, wall), scene.shape(roof, (30, 57), (56, 36), (164, 36), (190, 57)), scene.windows(40, 60, 180, 92, 8, 1)
        for x in range(44, 172, 22):
            scene.arch(x, 96, x + 13, 128, DARK)
        if kind in ("guildhall", "corn exchange"):
            scene.box(102, 22, 118, 38, wall), scene.shape(roof, (99, 23), (110, 6), (121, 23))
        else:
            scene.line(DARK, 1.2, (110, 37), (110, 12)), scene.shape((40, 84, 140), (110, 13), (126, 18), (110, 23))
    for x in (dice.number(6, 22), dice.number(196, 212)):
        scene.tree(x, 132, dice.number(14, 26))
    return scene.done()


def park(facts):
    scene = Scene("park " + facts["id"])
    dice = scene.dice
    scene.hills(66 - facts["highest_point_m"] // 16, (142, 158, 156)), scene.hills(84, dice.pick(GREENS)), scene.hills(104, dice.pick(GREENS))
    scene.shape((214, 200, 164), (112, 104), (118, 104), (92, 126), (140, 150), (96, 150), (70, 128))
    if dice.number(0, 1):
        scene.oval(132, 112, 206, 134, WATER)
    for _ in range(dice.number(8, 15)):
        x, depth = dice.number(4, 216), dice.number(0, 34)
        scene.tree(x, 104 + depth, 12 + depth // 2)
    return scene.done()


def portrait(person):
    """Draws an oval portrait on a plain background, in a different colour for each person; people who died long ago are in
    sepia."""
    digest = hashlib.sha256((person.get("email") or person["id"]).encode()).digest()
    image = Image.new("RGB", (200 * SCALE, 240 * SCALE), (246, 246, 246))
    pen = ImageDraw.Draw(image)

    def oval(x, y, across, down, colour):
        pen.ellipse([unit * SCALE for unit in (x - across, y - down, x + across, y + down)], colour)

    skin, hair = SKINS[digest[2] % len(SKINS)], HAIRS[digest[3] % len(HAIRS)]
    is_long = person["pronoun"] == "she"
    pen.rectangle((0, 0, *image.size), (150 + digest[0] % 60, 156 + digest[1] % 50, 160 + digest[4] % 40))
    if is_long:
        oval(100, 110, 58, 66, hair)
    oval(100, 252, 86, 74, (40 + digest[5] % 90, 44 + digest[6] % 80, 60 + digest[7] % 90))
    pen.rectangle([unit * SCALE for unit in (86, 140, 114, 186)], skin)
    oval(100, 184, 18, 10, skin), oval(100, 108, 42, 52, skin)
    if digest[8] % 3 == 0 and not is_long:
        pen.chord([unit * SCALE for unit in (58, 60, 142, 162)], 12, 168, hair)
    if digest[9] % 4 or is_long:
        pen.chord([unit * SCALE for unit in (55, 50, 145, 156)], 196, 344, hair)
    for x in (84, 116):
        oval(x, 108, 4, 4.4, DARK)
        if digest[10] % 4 == 0:
            pen.ellipse([unit * SCALE for unit in (x - 13, 95, x + 13, 121)], outline=DARK, width=2 * SCALE)
    pen.arc([unit * SCALE for unit in (84, 118, 116, 138)], 25, 155, (122, 46, 46), 3 * SCALE)
    if person["historic"]:
        grey = image.convert("L")
        image = Image.merge("RGB", [grey.point(lambda level, part=part: int(level * part)) for part in (1.0, 0.88, 0.7)])
    return image.resize((220, 264), Image.LANCZOS).quantize(96)


def locator(world, lat, lon, name=""):
    """Draws the map of the county with a mark."""
    image = county(world, river=name)
    if lat is not None:
        x, y = position(world, lat, lon)
        pen = ImageDraw.Draw(image)
        pen.ellipse((x - 26, y - 26, x + 26, y + 26), None, (190, 30, 30), 6), pen.ellipse((x - 11, y - 11, x + 11, y + 11), (190, 30, 30), (255, 255, 255), 3)
    return image.resize((330, 343), Image.LANCZOS).quantize(64, Image.Quantize.MAXCOVERAGE)


def save(world, folder):
    """Saves the drawings under the names that the pages use: kind and id."""
    for place in world["towns"]:
        town(place).save(folder / f"town-{place['id']}.png")
        locator(world, place["lat"], place["lon"]).save(folder / f"where-{place['id']}.png")
        for building in place["landmarks"]:
            landmark(building).save(folder / f"landmark-{building['id']}.png")
        for house in place["museums"]:
            museum(house).save(folder / f"museum-{house['id']}.png")
    for place in world["parks"]:
        park(place).save(folder / f"park-{place['id']}.png")
        locator(world, place["lat"], place["lon"]).save(folder / f"where-{place['id']}.png")
    for river in world["rivers"]:
        locator(world, None, None, river["name"]).save(folder / f"where-{river['id']}.png")
    for person in world["people"]:
        portrait(person).save(folder / f"portrait-{person['id']}.png")

"""Product pictures: a simple drawing of the product in its colour, on a softly lit table."""

import io

from PIL import Image, ImageDraw, ImageFilter

COLOURS = {"Midnight Blue": (38, 56, 104), "Moss Green": (84, 110, 62), "Brick Red": (158, 62, 48), "Slate Grey": (92, 102, 112),
           "Ivory": (222, 212, 186), "Black": (40, 40, 44), "Teal": (32, 124, 128), "Mustard": (204, 156, 44),
           "Plum": (110, 56, 98), "Copper": (178, 106, 62)}
SIZE, SCALE = 480, 2


def shade(colour, factor):
    return tuple(max(0, min(255, int(part * factor))) for part in colour)


class Sketch:
    """Draws in a square of 100 units at twice the size; shrinking smooths the edges."""

    def __init__(self, colour):
        self.colour, side = colour, SIZE * SCALE
        self.image = Image.new("RGBA", (side, side), (0, 0, 0, 0))
        self.pen = ImageDraw.Draw(self.image)

    def at(self, *units):
        return [unit * SIZE * SCALE / 100 for unit in units]

    def box(self, x1, y1, x2, y2, factor=1.0, radius=3):
        self.pen.rounded_rectangle(self.at(x1, y1, x2, y2), radius * SIZE * SCALE / 100, shade(self.colour, factor))

    def oval(self, x1, y1, x2, y2, factor=1.0):
        self.pen.ellipse(self.at(x1, y1, x2, y2), shade(self.colour, factor))

    def shape(self, *points, factor=1.0):
        self.pen.polygon(self.at(*points), shade(self.colour, factor))

    def arc(self, x1, y1, x2, y2, start, end, width, factor=1.0):
        self.pen.arc(self.at(x1, y1, x2, y2), start, end, shade(self.colour, factor), int(width * SIZE * SCALE / 100))

    def line(self, x1, y1, x2, y2, width, factor=1.0):
        self.pen.line(self.at(x1, y1, x2, y2), shade(self.colour, factor), int(width * SIZE * SCALE / 100))


def headphones(s, d):
    s.arc(24, 18, 76, 82, 180, 360, 5 + d.number(0, 3), 0.8)
    s.box(19, 48, 33, 78, 1.0, 6), s.box(67, 48, 81, 78, 1.0, 6), s.box(29, 52, 36, 74, 0.6), s.box(64, 52, 71, 74, 0.6)


def camera(s, d):
    s.box(16, 34, 84, 76, 1.0, 5), s.box(32, 26, 54, 36, 0.8), s.box(16, 46, 84, 62, 0.75, 0)
    s.oval(36, 38, 66, 72, 0.5), s.oval(42, 44, 60, 66, 1.3), s.oval(46, 49, 56, 61, 0.3), s.box(68, 38, 78, 43, 1.6, 1)


def watch(s, d):
    s.box(40, 10, 60, 90, 0.75, 4), s.box(28, 28, 72, 72, 1.0, 16 if d.chance(0.5) else 7), s.oval(34, 34, 66, 66, 0.3)
    s.line(50, 50, 50, 39, 1.6, 3), s.line(50, 50, 59, 54, 1.6, 3), s.box(72, 46, 75, 54, 0.6, 1)


def lamp(s, d):
    lean = d.number(-8, 8)
    s.line(50, 84, 50 + lean, 44, 3, 0.6), s.oval(32, 80, 68, 90, 0.8)
    s.shape(36 + lean, 20, 64 + lean, 20, 76 + lean, 48, 24 + lean, 48), s.oval(44 + lean, 45, 56 + lean, 53, 1.9)


def pan(s, d):
    s.box(66, 50, 94, 57, 0.5, 3), s.box(14, 44, 70, 72, 1.0, 9), s.oval(14, 36, 70, 54, 0.75), s.oval(18, 39, 66, 52, 0.45)


def bedding(s, d):
    for row in range(3 + d.number(0, 2)):
        s.box(18, 72 - row * 11, 82, 82 - row * 11, 1.0 + 0.12 * (row % 2), 5)
    s.box(24, 24, 76, 40, 1.35, 8)


def storage(s, d):
    s.shape(20, 40, 50, 30, 80, 40, 50, 50, factor=1.3), s.shape(20, 40, 50, 50, 50, 86, 20, 74), s.shape(80, 40, 50, 50, 50, 86, 80, 74, factor=0.75)
    s.box(28, 54, 40, 59, 1.5, 2)


def brush(s, d):
    s.box(46, 34, 54, 90, 1.0, 4), s.box(43, 14, 57, 36, 0.85, 3)
    for row in range(5):
        s.box(57, 15 + row * 4, 64 + d.number(0, 2), 17 + row * 4, 1.5, 1)


def jar(s, d):
    s.box(26, 42, 74, 84, 1.0, 7), s.box(30, 28, 70, 42, 0.6, 3), s.box(32, 52, 68, 72, 1.5, 1), s.line(38, 60, 62, 60, 1.5, 0.6), s.line(42, 65, 58, 65, 1.2, 0.6)


def bottle(s, d):
    s.box(34, 36, 66, 90, 1.0, 7), s.box(44, 22, 56, 38, 0.8, 1), s.box(40, 14, 60, 24, 0.5, 2), s.box(37, 52, 63, 76, 1.5, 1), s.line(42, 60, 58, 60, 1.5, 0.6)


def shoe(s, d):
    s.shape(22, 34, 46, 34, 52, 52, 78, 60, 84, 74, 20, 74), s.box(17, 73, 86, 80, 0.5, 3)
    for step in range(4):
        s.line(44 + step * 4, 42 + step * 5, 52 + step * 4, 40 + step * 5, 1.2, 1.7)


def jacket(s, d):
    s.shape(36, 18, 64, 18, 86, 34, 80, 66, 70, 62, 70, 88, 30, 88, 30, 62, 20, 66, 14, 34), s.line(50, 20, 50, 88, 1.4, 0.5)
    s.shape(40, 18, 60, 18, 50, 32, factor=0.6), s.box(35, 62, 45, 66, 0.6, 1), s.box(55, 62, 65, 66, 0.6, 1)


def shirt(s, d):
    s.shape(36, 20, 64, 20, 86, 34, 78, 48, 70, 42, 70, 86, 30, 86, 30, 42, 22, 48, 14, 34), s.shape(41, 20, 59, 20, 50, 34, factor=0.65)
    for row in range(5):
        s.oval(49, 40 + row * 9, 51.6, 42.6 + row * 9, 0.5)


def wheel(s, d):
    s.arc(16, 16, 84, 84, 0, 360, 5), s.arc(23, 23, 77, 77, 0, 360, 1.5, 1.5)
    for angle in range(0, 360, 30):
        s.pen.arc(s.at(22, 22, 78, 78), angle, angle + 1, shade(s.colour, 0.6), int(27 * SIZE * SCALE / 100))
    s.oval(45, 45, 55, 55, 0.5)


def tent(s, d):
    s.shape(50, 20, 92, 82, 8, 82), s.shape(50, 20, 64, 82, 36, 82, factor=0.45), s.shape(50, 20, 50, 82, 36, 82, factor=0.65), s.line(50, 14, 50, 22, 1.5, 0.4)


def mat(s, d):
    s.box(12, 58, 78, 74, 1.0, 2), s.oval(66, 44, 92, 76, 0.8), s.oval(71, 50, 87, 70, 1.2), s.oval(76, 56, 82, 64, 0.5)


def bag(s, d):
    s.shape(30, 22, 70, 22, 76, 88, 24, 88), s.box(30, 16, 70, 26, 0.7, 1), s.box(34, 44, 66, 70, 1.6, 2), s.oval(44, 50, 50, 64, 0.6), s.oval(51, 50, 57, 64, 0.6)


def tin(s, d):
    s.box(28, 34, 72, 84, 1.0, 3), s.oval(28, 78, 72, 90, 1.0), s.oval(28, 28, 72, 42, 0.7), s.box(28, 50, 72, 68, 1.5, 0), s.shape(50, 52, 58, 59, 50, 66, 42, 59, factor=0.6)


def packet(s, d):
    s.shape(26, 18, 74, 18, 70, 26, 74, 84, 26, 84, 30, 26), s.oval(36, 36, 64, 62, 1.6), s.oval(41, 41, 59, 57, 0.7), s.box(36, 68, 64, 72, 1.6, 1)


def game(s, d):
    s.box(18, 28, 74, 82, 1.0, 2), s.shape(74, 30, 84, 24, 84, 76, 74, 82, factor=0.6), s.shape(18, 28, 28, 22, 84, 22, 74, 30, factor=1.3)
    for x in range(4):
        for y in range(4):
            s.box(28 + x * 9, 38 + y * 9, 36 + x * 9, 46 + y * 9, 1.6 if (x + y) % 2 else 0.5, 0)


def earbuds(s, d):
    for x in (24, 56):
        s.oval(x, 30, x + 20, 52), s.oval(x + 5, 35, x + 15, 47, 0.45), s.box(x + 7, 46, x + 13, 74, 0.85, 3)
    s.box(28, 78, 72, 90, 0.7, 6), s.line(28, 84, 72, 84, 0.8, 1.5)


def headset(s, d):
    headphones(s, d)
    s.arc(26, 56, 74, 94, 90, 178, 2, 0.5), s.oval(48, 90, 58, 96, 0.4)


def instant_camera(s, d):
    s.box(22, 28, 78, 68, 1.0, 6), s.box(22, 44, 78, 50, 1.5, 0), s.oval(38, 36, 62, 60, 0.5), s.oval(43, 41, 57, 55, 0.25)
    s.box(27, 33, 36, 40, 1.7, 1), s.oval(66, 33, 73, 40, 0.4), s.box(30, 66, 70, 70, 0.4, 1)
    s.pen.rectangle(s.at(32, 69, 68, 92), (244, 242, 236, 255)), s.box(36, 71, 64, 86, 0.7, 0)


def floor_lamp(s, d):
    lean = d.number(-4, 4)
    s.oval(36, 86, 64, 93, 0.8), s.line(50, 90, 50, 30, 2, 0.6), s.shape(42 + lean, 8, 58 + lean, 8, 68 + lean, 32, 32 + lean, 32), s.oval(45 + lean, 30, 55 + lean, 35, 1.9)


def saucepan(s, d):
    s.box(62, 46, 96, 52, 0.5, 2), s.box(16, 40, 66, 82, 1.0, 6), s.oval(16, 33, 66, 48, 0.75), s.oval(20, 36, 62, 46, 0.4), s.box(16, 60, 66, 63, 1.3, 0)


def casserole(s, d):
    s.box(8, 52, 92, 60, 0.6, 4), s.box(16, 44, 84, 84, 1.0, 10), s.oval(14, 32, 86, 52, 1.25), s.box(44, 26, 56, 35, 0.5, 3), s.line(16, 47, 84, 47, 1.4, 0.6)


def pillow(s, d):
    s.box(14, 36, 86, 78, 0.85, 16), s.box(18, 34, 82, 74, 1.0, 15), s.box(26, 40, 74, 66, 1.2, 12), s.line(18, 76, 82, 76, 1.2, 0.6)


def basket(s, d):
    s.arc(24, 14, 76, 82, 180, 360, 4, 0.6), s.shape(14, 46, 86, 46, 78, 86, 22, 86)
    for row in range(4):
        for column in range(8):
            x = 20 + row * 1.6 + column * (7.8 - row * 0.4)
            s.box(x, 49 + row * 9, x + 4.5, 56 + row * 9, 1.35 if (row + column) % 2 else 0.7, 1)
    s.box(12, 42, 88, 49, 0.8, 3)


def crate(s, d):
    s.box(14, 34, 86, 84, 0.35, 1)
    for row in range(3):
        s.box(12, 36 + row * 16, 88, 48 + row * 16, 1.0 + 0.12 * (row % 2), 1)
    s.box(12, 32, 19, 86, 0.8, 1), s.box(81, 32, 88, 86, 0.8, 1), s.box(40, 39, 60, 45, 0.3, 3)


def tube(s, d):
    s.shape(32, 16, 68, 16, 62, 74, 38, 74), s.box(31, 12, 69, 18, 0.7, 0), s.box(41, 74, 59, 88, 0.5, 2), s.box(39, 34, 61, 54, 1.6, 1), s.line(43, 42, 57, 42, 1.4, 0.6), s.line(45, 47, 55, 47, 1.2, 0.6)


def soap(s, d):
    s.oval(10, 62, 90, 90, 0.5), s.oval(14, 60, 86, 84, 0.75), s.box(22, 42, 78, 74, 1.0, 12), s.box(27, 44, 73, 62, 1.25, 9), s.box(38, 50, 62, 57, 0.8, 3)


def boot(s, d):
    s.shape(28, 14, 56, 14, 56, 50, 80, 62, 86, 78, 24, 78), s.box(22, 77, 88, 86, 0.5, 3), s.box(26, 12, 58, 20, 0.7, 3), s.box(22, 84, 40, 90, 0.5, 1)
    for step in range(5):
        s.line(46, 24 + step * 7, 57, 22 + step * 7, 1.4, 1.7)


def helmet(s, d):
    s.pen.chord(s.at(14, 22, 86, 98), 180, 360, shade(s.colour, 1.0)), s.box(12, 57, 88, 64, 0.6, 3)
    for x in (26, 43, 60):
        s.shape(x + 4, 32, x + 10, 32, x + 14, 52, x, 52, factor=0.35)
    s.line(24, 64, 44, 86, 1.6, 0.4), s.line(76, 64, 48, 86, 1.6, 0.4), s.box(42, 84, 50, 89, 0.3, 1)


def pannier(s, d):
    s.box(24, 34, 76, 88, 1.0, 6), s.shape(22, 34, 78, 34, 74, 56, 26, 56, factor=0.8), s.box(22, 24, 78, 36, 0.65, 3), s.box(30, 18, 38, 27, 0.4, 1), s.box(62, 18, 70, 27, 0.4, 1)
    s.line(36, 36, 36, 70, 2, 0.45), s.line(64, 36, 64, 70, 2, 0.45), s.box(33, 54, 39, 59, 1.7, 1), s.box(61, 54, 67, 59, 1.7, 1), s.box(24, 76, 76, 80, 2.2, 0)


def stove(s, d):
    s.box(34, 56, 66, 88, 1.0, 8), s.box(44, 44, 56, 58, 0.5, 1), s.box(56, 48, 76, 51, 0.5, 1), s.oval(73, 45, 81, 54, 0.4)
    s.box(30, 38, 70, 45, 0.6, 2), s.line(22, 30, 34, 42, 2, 0.5), s.line(78, 30, 66, 42, 2, 0.5), s.line(18, 30, 82, 30, 2, 0.5)
    for x in (38, 46, 54):
        s.pen.polygon(s.at(x, 38, x + 4, 22, x + 8, 38), (72, 132, 214, 255))
    s.box(40, 66, 60, 76, 1.6, 1)


def sleeping_bag(s, d):
    s.shape(38, 12, 62, 12, 74, 34, 68, 82, 58, 92, 42, 92, 32, 82, 26, 34), s.oval(36, 14, 64, 42, 0.5), s.oval(40, 18, 60, 38, 1.6), s.line(50, 42, 50, 90, 1.2, 0.4)
    for row in range(4):
        s.line(29 + row, 48 + row * 10, 71 - row, 48 + row * 10, 0.9, 0.7)


def blocks(s, d):
    for x, y, factor in ((12, 58, 1.0), (52, 58, 0.9), (32, 32, 1.1)):
        s.box(x, y, x + 36, y + 24, factor, 2), s.shape(x, y + 1, x + 8, y - 6, x + 42, y - 6, x + 36, y + 1, factor=1.4)


def bolster(s, d):
    s.box(16, 42, 84, 76, 1.0, 10), s.oval(70, 42, 92, 76, 0.8), s.oval(75, 48, 88, 70, 1.2), s.oval(79, 55, 84, 63, 0.5), s.line(30, 42, 30, 76, 1.2, 0.7), s.line(24, 34, 40, 44, 2.4, 0.6)


def cards(s, d):
    for x, y, factor in ((16, 32, 0.7), (30, 26, 0.85), (44, 20, 1.0)):
        s.box(x, y, x + 36, y + 54, factor, 4), s.pen.rounded_rectangle(s.at(x + 3, y + 3, x + 33, y + 51), s.at(3)[0], (244, 242, 236, 255))
    s.shape(62, 32, 72, 47, 62, 62, 52, 47), s.oval(49, 25, 53, 29), s.oval(71, 65, 75, 69)


def puzzle(s, d):
    for x in range(2):
        for y in range(2):
            factor = 1.2 if (x + y) % 2 else 0.8
            s.box(18 + x * 33, 24 + y * 33, 50 + x * 33, 56 + y * 33, factor, 1)
    s.oval(44, 34, 57, 46, 0.8), s.oval(44, 67, 57, 79, 1.2), s.oval(28, 50, 40, 63, 0.8), s.oval(61, 50, 73, 63, 1.2)


def draw(dice, shape, colour):
    """Returns the JPEG of one product."""
    sketch, side = Sketch(colour), SIZE * SCALE
    globals()[shape](sketch, dice)
    warmth, light = dice.number(-10, 10), dice.number(228, 244)
    ground = Image.linear_gradient("L").resize((side, side)).point(lambda level: light - level // (7 + abs(warmth) // 3))
    picture = Image.merge("RGB", (ground.point(lambda v: min(255, v + warmth)), ground, ground.point(lambda v: max(0, v - warmth))))
    shadow = Image.new("L", (side, side), 0)
    ImageDraw.Draw(shadow).ellipse(sketch.at(14, 80, 86, 94), 90)
    picture.paste((60, 56, 52), mask=shadow.filter(ImageFilter.GaussianBlur(side // 40)))
    # The light comes from the left: the drawing grows darker to the right.
    light_map = Image.linear_gradient("L").rotate(90).resize((side, side)).point(lambda level: 255 - level // 4)
    lit = Image.composite(sketch.image.convert("RGB"), Image.new("RGB", (side, side), (20, 20, 24)), light_map)
    picture.paste(lit, mask=sketch.image.getchannel("A"))
    out = io.BytesIO()
    picture.resize((SIZE, SIZE), Image.LANCZOS).save(out, "JPEG", quality=84)
    return out.getvalue()

import math

from PIL import Image, ImageDraw, ImageFont

FONTS = "/usr/share/fonts/truetype/dejavu/DejaVu{}.ttf"
INK = (32, 42, 51)


class Canvas:
    """A picture drawn at twice its size and halved at the end, so that edges are smooth."""

    def __init__(self, width=640, height=480, ground=(255, 255, 255)):
        self.image = Image.new("RGB", (width * 2, height * 2), ground)
        self.pen = ImageDraw.Draw(self.image)

    def box(self, x, y, width, height, colour, radius=0, edge=None):
        self.pen.rounded_rectangle((2 * x, 2 * y, 2 * (x + width), 2 * (y + height)), 2 * radius, colour, edge, 3 if edge else 0)

    def disc(self, x, y, radius, colour, edge=None, squeeze=1.0):
        self.pen.ellipse((2 * (x - radius), 2 * (y - radius * squeeze), 2 * (x + radius), 2 * (y + radius * squeeze)), colour, edge, 6 if edge else 0)

    def shape(self, points, colour):
        self.pen.polygon([(2 * x, 2 * y) for x, y in points], colour)

    def line(self, points, colour=INK, width=2):
        self.pen.line([(2 * x, 2 * y) for x, y in points], colour, 2 * width, joint="curve")

    def text(self, x, y, words, size=18, colour=INK, face="Sans", anchor="la"):
        self.pen.text((2 * x, 2 * y), words, colour, ImageFont.truetype(FONTS.format(face), 2 * size), anchor)

    def hand(self, x, y, length, turn, width):
        """Draws the hand of a clock; a whole turn is 1."""
        angle = turn * 2 * math.pi
        self.line([(x, y), (x + length * math.sin(angle), y - length * math.cos(angle))], width=width)

    def done(self):
        return self.image.resize((self.image.width // 2, self.image.height // 2), Image.LANCZOS)

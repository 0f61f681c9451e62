"""Pictures of members who have not uploaded one of their own. A face follows from the e-mail address, so that members look
different. The forge draws the same faces (forge/app/forge/avatars.py)."""

import colorsys
import hashlib

from PIL import Image, ImageDraw

SKINS = ["#f6d7c3", "#eec1a2", "#d9a066", "#b97a4b", "#8d5a3b", "#5f3d2a"]
HAIRS = ["#2b2320", "#4a3222", "#7a4a21", "#b5813d", "#d8b56a", "#9a9a9a", "#8c3b1f"]
# Drawn larger than shown: shrinking smooths the edges.
UNITS, SCALE = 100, 8


def colour(hue, saturation, lightness):
    return "#" + "".join(f"{round(part * 255):02x}" for part in colorsys.hls_to_rgb(hue / 256, lightness, saturation))


class Face:
    """The features of a face; each byte of the digest determines one of them."""

    def __init__(self, email):
        digest = hashlib.sha256(email.encode()).digest()
        self.ground, self.shirt = colour(digest[0], 0.45, 0.75), colour(digest[1], 0.42, 0.42)
        self.skin, self.hair = SKINS[digest[2] % len(SKINS)], HAIRS[digest[3] % len(HAIRS)]
        self.style, self.has_glasses, self.has_beard = digest[4] % 6, digest[5] % 4 == 0, digest[6] % 3 == 0 and digest[4] % 6 < 3
        self.smile = 8 + digest[7] % 3 * 3


def draw(user):
    face, side = Face(user.email or user.username), UNITS * SCALE
    image = Image.new("RGBA", (side, side), face.ground)
    pen = ImageDraw.Draw(image)

    def at(*units):
        return [unit * SCALE for unit in units]

    def oval(x, y, across, down, fill):
        pen.ellipse(at(x - across, y - down, x + across, y + down), fill)

    if face.style in (3, 4):  # long hair behind the head
        pen.rounded_rectangle(at(25, 22, 75, 84), 20 * SCALE, face.hair)
    oval(50, 108, 40, 32, face.shirt)
    pen.rectangle(at(42, 60, 58, 80), face.skin)
    oval(50, 80, 8, 5, face.skin)
    oval(50, 46, 21, 25, face.skin)
    if face.has_beard:
        pen.chord(at(29, 21, 71, 73), 10, 170, face.hair)
    if face.style in (0, 3):  # parted in the middle
        pen.pieslice(at(26, 17, 74, 67), 180, 270, face.hair)
        pen.pieslice(at(26, 17, 74, 67), 270, 360, face.hair)
        pen.polygon(at(50, 30, 40, 43, 60, 43), face.skin)
    elif face.style in (1, 4):  # a fringe
        pen.chord(at(27, 17, 73, 69), 190, 350, face.hair)
    elif face.style == 5:  # curls
        for x, y in [(30, 36), (34, 26), (42, 20), (50, 18), (58, 20), (66, 26), (70, 36)]:
            oval(x, y, 9, 9, face.hair)
    if face.style == 3:  # and a bun
        oval(50, 14, 10, 9, face.hair)
    for x in (41, 59):
        oval(x, 47, 2.6, 2.8, "#2b2320")
        if face.has_glasses:
            pen.ellipse(at(x - 7, 40, x + 7, 54), outline="#333333", width=2 * SCALE)
    if face.has_glasses:
        pen.line(at(48, 46, 52, 46), "#333333", 2 * SCALE)
    pen.arc(at(41, 62 - face.smile, 59, 62), 20, 160, "#7a2e2e", 2 * SCALE)
    return image

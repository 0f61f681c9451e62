"""Pictures of things to count, recognise and compare."""

from pictures.canvas import INK, Canvas

SKY, SEA, GRASS = (205, 226, 240), (96, 140, 176), (150, 185, 118)


def harbour():
    canvas = Canvas(ground=SKY)
    canvas.box(0, 280, 640, 200, SEA)
    canvas.box(560, 110, 40, 180, (235, 235, 230))
    for y in (140, 190, 240):
        canvas.box(560, y, 40, 22, (190, 40, 40))
    canvas.box(552, 88, 56, 24, (60, 60, 60))
    for x, y, hull, sail in [(90, 330, (150, 60, 40), (255, 255, 255)), (250, 380, (40, 70, 110), (250, 220, 120)),
                             (400, 320, (60, 110, 70), (255, 255, 255)), (500, 410, (150, 60, 40), (230, 120, 100))]:
        canvas.shape([(x - 50, y), (x + 50, y), (x + 34, y + 28), (x - 34, y + 28)], hull)
        canvas.line([(x, y), (x, y - 90)], (90, 70, 50), 4)
        canvas.shape([(x + 4, y - 88), (x + 46, y - 12), (x + 4, y - 12)], sail)
    return canvas.done()


def clock_tower():
    canvas = Canvas(420, 560, SKY)
    canvas.box(0, 480, 420, 80, GRASS)
    canvas.box(140, 150, 140, 350, (196, 178, 150))
    canvas.shape([(125, 150), (210, 50), (295, 150)], (110, 60, 50))
    canvas.disc(210, 235, 56, (250, 250, 245), INK)
    for mark in range(12):
        canvas.hand(210, 235, 50, mark / 12, 2)
    canvas.disc(210, 235, 42, (250, 250, 245))
    canvas.hand(210, 235, 26, (4 + 35 / 60) / 12, 6)
    canvas.hand(210, 235, 42, 35 / 60, 4)
    canvas.box(190, 420, 40, 80, (90, 60, 40), 18)
    return canvas.done()


def sheep():
    canvas = Canvas(ground=SKY)
    canvas.shape([(0, 200), (220, 150), (460, 190), (640, 140), (640, 480), (0, 480)], GRASS)
    for x, y, is_black in [(90, 260, 0), (210, 320, 0), (330, 240, 1), (450, 300, 0), (560, 240, 0), (140, 410, 1), (380, 410, 0)]:
        wool = (50, 50, 54) if is_black else (246, 244, 238)
        for leg in (-20, -8, 10, 22):
            canvas.line([(x + leg, y + 10), (x + leg, y + 38)], INK, 5)
        for dx, dy in [(-22, 0), (0, -10), (20, 0), (0, 8)]:
            canvas.disc(x + dx, y + dy, 22, wool)
        canvas.disc(x + 42, y - 8, 13, (60, 52, 48))
    return canvas.done()


def lamp():
    canvas = Canvas(420, 460, (250, 250, 250))
    canvas.box(110, 390, 200, 26, (40, 70, 110), 10)
    canvas.line([(210, 395), (150, 260), (250, 150)], (40, 70, 110), 12)
    canvas.disc(150, 260, 12, (220, 180, 80))
    canvas.shape([(220, 130), (300, 170), (340, 120), (256, 78)], (40, 70, 110))
    canvas.shape([(300, 172), (340, 122), (420, 230), (330, 280)], (255, 240, 170))
    return canvas.done()


def fruit():
    canvas = Canvas(ground=(232, 222, 204))
    canvas.box(60, 220, 520, 180, (150, 110, 70), 8)
    colours = {"red": (190, 40, 40), "green": (120, 170, 60), "yellow": (230, 190, 60)}
    row = ["red", "red", "green", "yellow", "red", "green", "red"]
    for place, colour in enumerate(row + row[:5]):
        x, y = (110 + 70 * place, 200) if place < 7 else (145 + 85 * (place - 7), 140)
        canvas.disc(x, y, 34, colours[colour])
        canvas.line([(x, y - 30), (x + 8, y - 46)], (90, 60, 30), 4)
    canvas.box(60, 220, 520, 180, (164, 122, 80), 8)
    canvas.text(320, 310, "WEXCOMBE ORCHARDS", 30, (70, 44, 24), "Sans-Bold", "mm")
    return canvas.done()


def boots():
    canvas = Canvas(560, 400, (250, 250, 250))
    for x, colour in [(70, (128, 74, 40)), (310, (128, 74, 40))]:
        canvas.box(x, 80, 90, 200, colour, 12)
        canvas.shape([(x, 240), (x + 90, 240), (x + 180, 290), (x + 185, 320), (x, 320)], colour)
        canvas.box(x - 6, 316, 196, 22, (40, 34, 30), 6)
        for y in range(110, 250, 28):
            canvas.line([(x + 60, y), (x + 94, y + 8)], (220, 50, 40), 4)
    return canvas.done()


PICTURES = {"harbour": harbour, "clock-tower": clock_tower, "sheep": sheep, "desk-lamp": lamp, "fruit-crate": fruit, "boots": boots}

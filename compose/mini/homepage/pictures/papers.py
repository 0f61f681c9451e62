"""Pictures with words and figures."""

from pictures.canvas import Canvas


def receipt():
    canvas = Canvas(420, 560, (250, 248, 240))
    canvas.text(210, 40, "ONE STOP MARKET", 24, face="Sans-Bold", anchor="mm")
    canvas.text(210, 70, "34 Station Road, Wexcombe", 14, anchor="mm")
    canvas.text(210, 92, "2023-05-27 16:42", 14, anchor="mm")
    goods = [("Lanternfish desk lamp", 1, 3490), ("Lakeleaf black tea", 3, 620), ("Orchard Crisp apples", 2, 415), ("Saltrose hand soap", 1, 575)]
    for row, (name, count, cents) in enumerate(goods):
        canvas.text(30, 140 + 40 * row, f"{count} x {name}", 16, face="SansMono")
        canvas.text(390, 140 + 40 * row, f"{count * cents / 100:.2f}", 16, face="SansMono", anchor="ra")
    canvas.line([(30, 310), (390, 310)])
    canvas.text(30, 330, "TOTAL", 20, face="SansMono-Bold")
    canvas.text(390, 330, f"${sum(count * cents for _, count, cents in goods) / 100:.2f}", 20, face="SansMono-Bold", anchor="ra")
    canvas.text(30, 380, "Receipt no. 48213", 14, face="SansMono")
    canvas.text(30, 405, "Return within 30 days", 14, face="SansMono")
    canvas.text(210, 490, "Thank you!", 20, anchor="mm")
    return canvas.done()


def departures():
    canvas = Canvas(640, 420, (24, 28, 34))
    canvas.text(30, 22, "PORT ELSING   Departures", 24, (250, 210, 70), "Sans-Bold")
    rows = [("14:05", "Harrowgate Mills", "1", "on time"), ("14:20", "Brambleford", "3", "on time"), ("14:35", "Lowmere", "2", "15 min late"),
            ("14:52", "Wexcombe", "1", "on time"), ("15:10", "Upper Dunmore", "4", "cancelled"), ("15:25", "Harrowgate Mills", "1", "on time")]
    for column, head in zip((30, 130, 390, 480), ("Time", "To", "Track", "Remark")):
        canvas.text(column, 72, head, 15, (160, 170, 180))
    for number, row in enumerate(rows):
        for column, cell in zip((30, 130, 400, 480), row):
            colour = (255, 120, 90) if row[3] != "on time" and column == 480 else (245, 245, 235)
            canvas.text(column, 108 + 48 * number, cell, 20, colour)
    return canvas.done()


def poster():
    canvas = Canvas(460, 620, (20, 30, 70))
    for x, y, colour in [(90, 150, (255, 190, 80)), (230, 110, (255, 120, 90)), (370, 160, (250, 230, 120)), (150, 240, (140, 220, 160)), (310, 245, (190, 150, 240))]:
        canvas.line([(x, 0), (x, y - 40)], (120, 130, 170), 1)
        canvas.disc(x, y, 36, colour, squeeze=1.15)
    canvas.text(230, 340, "LARKMOOR LIGHTS", 38, (255, 240, 200), "Sans-Bold", "mm")
    canvas.text(230, 395, "Festival of lanterns", 22, (220, 225, 250), anchor="mm")
    canvas.text(230, 450, "Kestrel Bay, 8 to 10 December", 22, (255, 255, 255), anchor="mm")
    canvas.text(230, 490, "Admission $6, children free", 20, (255, 255, 255), anchor="mm")
    canvas.text(230, 570, "Doors open at 17:30", 18, (220, 225, 250), anchor="mm")
    return canvas.done()


def chart():
    canvas = Canvas(640, 440)
    canvas.text(320, 30, "Visitors of the Saltmarsh Museum of Salt in 2022, by quarter", 18, face="Sans-Bold", anchor="mm")
    for level in range(0, 40, 10):
        canvas.line([(80, 380 - 9 * level), (600, 380 - 9 * level)], (215, 220, 225), 1)
        canvas.text(70, 380 - 9 * level, f"{level},000" if level else "0", 13, anchor="rm")
    for column, (quarter, thousands) in enumerate([("Jan-Mar", 9), ("Apr-Jun", 19), ("Jul-Sep", 31), ("Oct-Dec", 12)]):
        canvas.box(115 + 125 * column, 380 - 9 * thousands, 70, 9 * thousands, (31, 95, 139))
        canvas.text(150 + 125 * column, 368 - 9 * thousands, f"{thousands},000", 14, anchor="mm")
        canvas.text(150 + 125 * column, 402, quarter, 15, anchor="mm")
    return canvas.done()


def signpost():
    canvas = Canvas(520, 480, (205, 226, 240))
    canvas.shape([(0, 400), (520, 370), (520, 480), (0, 480)], (140, 175, 110))
    canvas.box(250, 60, 18, 380, (110, 84, 60))
    for y, words, right in [(90, "Guildhall  350 m", True), (150, "Clock Tower  600 m", False), (210, "Harbour  1.2 km", True), (270, "Old Lighthouse  4 km", False)]:
        x = 262 if right else 16
        tip = [(x + 240, y), (x + 262, y + 20), (x + 240, y + 40)] if right else [(x, y), (x - 14, y + 20), (x, y + 40)]
        canvas.box(x, y, 240, 40, (36, 92, 62))
        canvas.shape(tip, (36, 92, 62))
        canvas.text(x + 14, y + 20, words, 17, (255, 255, 255), "Sans-Bold", "lm")
    return canvas.done()


def label():
    canvas = Canvas(460, 340, (244, 236, 214))
    canvas.box(14, 14, 432, 312, None, 12, (120, 60, 40))
    canvas.text(230, 60, "WEXCOMBE CIDER", 30, (120, 40, 30), "Serif-Bold", "mm")
    canvas.text(230, 100, "dry, from windfall apples", 18, face="Serif", anchor="mm")
    for x in (150, 230, 310):
        canvas.disc(x, 165, 28, (178, 40, 36))
        canvas.line([(x, 140), (x + 8, 124)], (90, 60, 30), 4)
    canvas.text(230, 230, "750 ml     5.4 % vol     vintage 2021", 18, face="Serif", anchor="mm")
    canvas.text(230, 275, "bottle no. 1178", 16, face="Serif", anchor="mm")
    return canvas.done()


PICTURES = {"receipt": receipt, "departures": departures, "festival-poster": poster, "museum-visitors": chart, "signpost": signpost,
            "cider-label": label}

"""Lengths and angles on a flat island, in metres east and north of its middle."""

import math
import random
import zlib

MIDDLE_LAT, MIDDLE_LON = 47.475, -32.2
NORTH = 111195.0
EAST = NORTH * math.cos(math.radians(MIDDLE_LAT))


class Dice:
    """Draws from Random.random() alone, whose sequence Python guarantees for a seed; one per purpose."""

    def __init__(self, purpose):
        self._random = random.Random(zlib.crc32(purpose.encode())).random

    def number(self, low, high):
        return low + int(self._random() * (high - low + 1))

    def real(self, low, high):
        return low + self._random() * (high - low)

    def pick(self, options):
        return options[int(self._random() * len(options))]

    def chance(self, probability):
        return self._random() < probability


def metres(lat, lon):
    return snap(((lon - MIDDLE_LON) * EAST, (lat - MIDDLE_LAT) * NORTH))


def degrees(point):
    return round(MIDDLE_LON + point[0] / EAST, 7), round(MIDDLE_LAT + point[1] / NORTH, 7)


def snap(point):
    """Rounds a point to a decimetre; lines meet at equal points, which become one node."""
    return round(point[0], 1), round(point[1], 1)


def distance(a, b):
    return math.hypot(a[0] - b[0], a[1] - b[1])


def direction(a, b):
    length = distance(a, b) or 1.0
    return (b[0] - a[0]) / length, (b[1] - a[1]) / length


def length(line):
    return sum(distance(a, b) for a, b in zip(line, line[1:]))


def along(line, reach):
    """Returns the point after `reach` metres of the line, and the direction there."""
    for a, b in zip(line, line[1:]):
        step = distance(a, b)
        if reach <= step and step > 0:
            d = direction(a, b)
            return (a[0] + d[0] * reach, a[1] + d[1] * reach), d
        reach -= step
    return line[-1], direction(line[-2], line[-1])


def moved(point, d, reach):
    return point[0] + d[0] * reach, point[1] + d[1] * reach


def turned(d, angle):
    c, s = math.cos(angle), math.sin(angle)
    return d[0] * c - d[1] * s, d[0] * s + d[1] * c


def crossing(a, b, c, d):
    """Returns the intersection of the segments ab and cd as (part of ab, part of cd, point), or None."""
    rx, ry, sx, sy = b[0] - a[0], b[1] - a[1], d[0] - c[0], d[1] - c[1]
    across = rx * sy - ry * sx
    if abs(across) < 1e-9:
        return None
    t = ((c[0] - a[0]) * sy - (c[1] - a[1]) * sx) / across
    u = ((c[0] - a[0]) * ry - (c[1] - a[1]) * rx) / across
    if -1e-9 <= t <= 1 + 1e-9 and -1e-9 <= u <= 1 + 1e-9:
        return t, u, (a[0] + t * rx, a[1] + t * ry)
    return None


def nearest_on(a, b, point):
    """Returns the point of the segment ab that is nearest."""
    step = distance(a, b)
    if step == 0:
        return a
    share = ((point[0] - a[0]) * (b[0] - a[0]) + (point[1] - a[1]) * (b[1] - a[1])) / step ** 2
    share = min(1.0, max(0.0, share))
    return a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])


def wandering(dice, line, swing, shortest):
    """Moves the middle of each piece aside, repeatedly, until no piece is longer than `shortest`."""
    out = [line[0]]
    for a, b in zip(line, line[1:]):
        step = distance(a, b)
        if step <= shortest:
            out.append(b)
            continue
        d = direction(a, b)
        push = dice.real(-swing, swing) * step
        middle = ((a[0] + b[0]) / 2 - d[1] * push, (a[1] + b[1]) / 2 + d[0] * push)
        out += wandering(dice, [a, middle, b], swing, shortest)[1:]
    return out


def smooth(line):
    """Returns the line with its corners cut off; both ends stay."""
    out = [line[0]]
    for a, b in zip(line, line[1:]):
        d, step = direction(a, b), distance(a, b)
        out += [moved(a, d, step * 0.25), moved(a, d, step * 0.75)]
    return [*out, line[-1]]


def blob(dice, middle, radius, points=28, roughness=0.22):
    """Returns a closed, irregular ring around a point, like the outline of a field or wood."""
    waves = [(wave, dice.real(0, 2 * math.pi), dice.real(0, roughness) / wave ** 0.7) for wave in range(2, 7)]
    ring = []
    for step in range(points):
        angle = 2 * math.pi * step / points
        reach = radius * (1 + sum(size * math.sin(wave * angle + shift) for wave, shift, size in waves))
        ring.append((middle[0] + reach * math.cos(angle), middle[1] + reach * math.sin(angle)))
    return ring


class Grid:
    """A spatial index that finds items near a point."""

    def __init__(self, size=250.0):
        self.size, self.cells = size, {}

    def _span(self, a, b, reach):
        low = (math.floor((min(a[0], b[0]) - reach) / self.size), math.floor((min(a[1], b[1]) - reach) / self.size))
        high = (math.floor((max(a[0], b[0]) + reach) / self.size), math.floor((max(a[1], b[1]) + reach) / self.size))
        return ((x, y) for x in range(low[0], high[0] + 1) for y in range(low[1], high[1] + 1))

    def add(self, a, b, item):
        for cell in self._span(a, b, 0):
            self.cells.setdefault(cell, []).append(item)

    def near(self, a, b, reach=0.0):
        """Returns the items whose cells touch the box around a and b, each once, in the order of insertion."""
        found = {}
        for cell in self._span(a, b, reach):
            for item in self.cells.get(cell, ()):
                found[id(item)] = item
        return found.values()

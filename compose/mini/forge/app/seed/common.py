import datetime as dt
import hashlib
import json
import random
import re
import zlib

NOW = dt.datetime(2023, 6, 1, 12)
EPOCH = dt.datetime(1970, 1, 1)

with open("/srv/forge/world.json", encoding="utf-8") as file:
    WORLD = json.load(file)


class Dice:
    """Draws from Random.random() alone, whose sequence Python guarantees for a seed."""

    def __init__(self, section):
        self.real = random.Random(WORLD["seed"] ^ zlib.crc32(section.encode())).random

    def number(self, low, high):
        return low + int(self.real() * (high - low + 1))

    def pick(self, options):
        return options[int(self.real() * len(options))]

    def some(self, options, count):
        left = list(options)
        return [left.pop(int(self.real() * len(left))) for _ in range(min(count, len(left)))]

    def chance(self, probability):
        return self.real() < probability

    def moment(self, start, end):
        """Returns a moment between the two, during waking hours."""
        day = start + (end - start) * self.real()
        moment = day.replace(hour=self.number(7, 21), minute=self.number(0, 59), second=self.number(0, 59), microsecond=0)
        return min(max(moment, start), end)


def digest(*parts, length=32):
    """Replaces the application's random values: keys, tokens, identifiers."""
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:length]


def slug(text):
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")

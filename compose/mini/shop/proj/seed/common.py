import datetime as dt
import json
import random
import zlib

NOW = dt.datetime(2023, 6, 1, 12, tzinfo=dt.timezone.utc)

with open("/srv/shop/world.json", encoding="utf-8") as file:
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


def password(text):
    from django.contrib.auth.hashers import make_password

    return make_password(text, salt="arenadarenadarenadarena")

import csv
import random
import zlib


class Dice:
    """Draws from Random.random() alone, whose sequence Python guarantees for a seed."""

    def __init__(self, section):
        self.real = random.Random(zlib.crc32(section.encode())).random

    def number(self, low, high):
        return low + int(self.real() * (high - low + 1))

    def pick(self, options):
        return options[int(self.real() * len(options))]

    def some(self, options, count):
        left = list(options)
        return [left.pop(int(self.real() * len(left))) for _ in range(min(count, len(left)))]


def save(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)

"""The network of roads and paths, as lines that share a vertex wherever they meet."""

import math

from larkmoor.geometry import Grid, along, crossing, direction, distance, length, moved, nearest_on, snap, turned

# An intersection within this distance of a vertex is placed at the vertex.
TOLERANCE = 4.0


class Line:
    def __init__(self, points, tags, town=None):
        self.points, self.tags, self.town = [snap(point) for point in points], tags, town
        self.bridges = set()

    def insert(self, point):
        """Inserts a vertex at a point on the line, and returns it, or a vertex that is close enough."""
        at, best, gap = 0, None, math.inf
        for index, (a, b) in enumerate(zip(self.points, self.points[1:])):
            there = distance(nearest_on(a, b, point), point)
            if there < gap:
                at, gap = index, there
                best = min((a, b), key=lambda end: distance(end, point))
        if distance(best, point) <= TOLERANCE:
            return best
        point = snap(point)
        self.points.insert(at + 1, point)
        return point

    def segments(self):
        return zip(self.points, self.points[1:])


class Network:
    def __init__(self):
        self.lines, self.grid = [], Grid()

    def add(self, points, tags, town=None):
        line = Line(points, tags, town)
        self.lines.append(line)
        for a, b in line.segments():
            self.grid.add(a, b, line)
        return line

    def hit(self, start, d, reach, own):
        """Returns the first line that a ray meets as (distance, line, point)."""
        end, first = moved(start, d, reach), None
        for line in self.grid.near(start, end):
            if line is own:
                continue
            for a, b in line.segments():
                found = crossing(start, end, a, b)
                if found and found[0] * reach > 1.0 and (first is None or found[0] * reach < first[0]):
                    first = (found[0] * reach, line, found[2])
        return first

    def clearance(self, point, reach, own=()):
        """Returns the distance of the nearest line, at most `reach`."""
        best = reach
        for line in self.grid.near(point, point, reach):
            if line not in own:
                for a, b in line.segments():
                    best = min(best, distance(nearest_on(a, b, point), point))
        return best

    def nearest(self, point, reach=2500.0, among=None):
        """Returns the line nearest to a point, and the nearest place on it."""
        best = None
        for line in self.grid.near(point, point, reach):
            if among is None or among(line):
                for a, b in line.segments():
                    there = nearest_on(a, b, point)
                    gap = distance(there, point)
                    if gap <= reach and (best is None or gap < best[0]):
                        best = (gap, line, there)
        return best

    def extend(self, line, limit=700.0):
        """Extends a street to the next one, if there is one ahead."""
        for end, before in ((0, 1), (-1, -2)):
            d = direction(line.points[before], line.points[end])
            found = self.hit(line.points[end], d, limit, line)
            if found:
                vertex = found[1].insert(found[2])
                old = line.points[end]
                line.points.insert(len(line.points) if end else 0, vertex)
                self.grid.add(old, vertex, line)

    def branch(self, line, reach, angle, limit, tags, keep_off):
        """Grows a street from another one until it meets a third or reaches its length. Returns None if there is no room."""
        start, d = along(line.points, reach)
        d = turned(d, angle)
        found = self.hit(moved(start, d, 2.0), d, limit, line)
        if found and found[0] < 70:
            return None
        total = found[0] + 2.0 if found else limit
        # A new street must not be close to a parallel street or lead through a park.
        for part in (0.35, 0.6, 0.85) if found else (0.35, 0.6, 0.85, 1.0):
            middle = moved(start, d, total * part)
            if self.clearance(middle, 48.0, own=(line, found[1]) if found else (line,)) < 48.0 or keep_off(middle):
                return None
        first = line.insert(start)
        last = found[1].insert(found[2]) if found else moved(start, d, total)
        middle = moved(first, d, total / 2)
        if found:
            return self.add([first, last], tags, line.town)
        return self.add([first, middle, last], tags, line.town)

    def cross(self):
        """Gives crossing lines a common vertex."""
        for line in self.lines:
            others = {}
            for a, b in list(line.segments()):
                for other in self.grid.near(a, b):
                    if other is not line:
                        others[id(other)] = other
            for other in others.values():
                cuts = []
                for a, b in line.segments():
                    for c, d in other.segments():
                        found = crossing(a, b, c, d)
                        if found and not {a, b} & {c, d}:
                            cuts.append(found[2])
                for cut in cuts:
                    mine = line.insert(cut)
                    theirs = other.insert(mine)
                    # Both lines have a vertex near by, perhaps shared with a third line: this line is led through both.
                    if theirs not in line.points:
                        line.points.insert(line.points.index(mine) + 1, theirs)

    def bridge(self, rivers):
        """Marks the pieces of lines that cross water as bridges."""
        water = Grid()
        for river in rivers:
            for a, b in zip(river, river[1:]):
                water.add(a, b, (a, b))
        for line in self.lines:
            points = [line.points[0]]
            for a, b in line.segments():
                step, d = distance(a, b), direction(a, b)
                cuts = sorted(found[0] * step for c, e in water.near(a, b) if (found := crossing(a, b, c, e)))
                if cuts:
                    low, high = max(cuts[0] - 18, 0), min(cuts[-1] + 18, step)
                    start = a if low < 6 else snap(moved(a, d, low))
                    end = b if high > step - 6 else snap(moved(a, d, high))
                    points += [start] if start != a else []
                    line.bridges.add((start, end))
                    points += [end] if end != b else []
                points.append(b)
            line.points = points

    def parts(self, lines):
        """Returns the connected groups of lines, largest first."""
        group = {}

        def root(key):
            while group[key] != key:
                group[key] = group[group[key]]
                key = group[key]
            return key

        for line in lines:
            for point in line.points:
                group.setdefault(point, point)
            for a, b in line.segments():
                group[root(a)] = root(b)
        parts = {}
        for line in lines:
            parts.setdefault(root(line.points[0]), []).append(line)
        return sorted(parts.values(), key=lambda part: (-sum(length(line.points) for line in part), part[0].points[0]))

"""Collects nodes, ways and relations and writes them as .osm.pbf, the same bytes for the same input."""

import osmium
from osmium.osm.mutable import Node, Relation, Way

from larkmoor.geometry import degrees, snap


class Map:
    def __init__(self):
        self.nodes, self.tags, self.ways, self.relations = {}, {}, [], []

    def vertex(self, point):
        """Returns the node at a place; lines that pass the same place share it."""
        return self.nodes.setdefault(snap(point), len(self.nodes) + 1)

    def node(self, point, tags):
        """Adds a node with tags, on an existing vertex if that has none."""
        number = self.vertex(point)
        if number in self.tags:
            number = self.vertex((point[0] + 0.3, point[1] + 0.3))
        self.tags[number] = tags
        return number

    def tag(self, point, tags):
        self.tags.setdefault(self.vertex(point), {}).update(tags)

    def way(self, line, tags):
        numbers = [self.vertex(point) for point in line]
        numbers = [number for at, number in enumerate(numbers) if at == 0 or number != numbers[at - 1]]
        if len(numbers) < 2:
            return None
        self.ways.append((numbers, tags))
        return len(self.ways)

    def area(self, ring, tags):
        return self.way([*ring, ring[0]], tags)

    def relation(self, members, tags):
        """Adds a relation. Members are (type, number, role) with the type n, w or r."""
        self.relations.append((members, tags))
        return len(self.relations)

    def write(self, path, stamp):
        header = osmium.io.Header()
        header.set("generator", "larkmoor")
        header.set("osmosis_replication_timestamp", stamp)
        writer = osmium.SimpleWriter(path, 4 << 20, header)
        for point, number in self.nodes.items():
            writer.add_node(Node(id=number, version=1, timestamp=stamp, location=degrees(point), tags=self.tags.get(number, {})))
        for number, (nodes, tags) in enumerate(self.ways, 1):
            writer.add_way(Way(id=number, version=1, timestamp=stamp, nodes=nodes, tags=tags))
        for number, (members, tags) in enumerate(self.relations, 1):
            writer.add_relation(Relation(id=number, version=1, timestamp=stamp, members=members, tags=tags))
        writer.close()

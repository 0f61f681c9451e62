"""The style of the map: Mapnik's XML, generated from a few tables."""

from xml.sax.saxutils import escape, quoteattr

SEA, LAND = "#aad3df", "#f2efe9"
AREAS = {  # kind: fill
    "reserve": "#dcebcf", "residential": "#e4e1dc", "industrial": "#ebdbe8", "farmyard": "#ead8bd", "farmland": "#eef0d5", "meadow": "#d6e8b8",
    "grass": "#d3e7b0", "orchard": "#b9dd9d", "heath": "#dcd9a0", "wood": "#b2d3a2", "park": "#c6f0c6", "pitch": "#a9dfca", "wetland": "#d5e5dc",
    "beach": "#fdf1c2", "rock": "#cfcbc6", "salt": "#e3eef0", "water": SEA}
ROADS = {  # kind: (fill, casing, {zoom: width}), drawn in the order of their rank
    "motorway": ("#e892a2", "#c24e6b", {7: 1.2, 9: 2, 11: 3.4, 12: 4.5, 13: 6, 14: 8, 15: 10, 16: 14, 17: 19, 18: 26}),
    "trunk": ("#f9b29c", "#c84e2f", {8: 1.0, 9: 1.8, 11: 3, 12: 4, 13: 5.5, 14: 7.5, 15: 10, 16: 14, 17: 19, 18: 26}),
    "primary": ("#fcd6a4", "#a06b00", {9: 1.2, 10: 1.8, 11: 2.6, 12: 3.8, 13: 5, 14: 7, 15: 9.5, 16: 13, 17: 18, 18: 25}),
    "secondary": ("#f7fabf", "#707d05", {10: 1.1, 11: 1.8, 12: 3, 13: 4.6, 14: 6.4, 15: 9, 16: 12.5, 17: 17, 18: 24}),
    "tertiary": ("#ffffff", "#8f8f8f", {10: 0.6, 11: 1.1, 12: 2.4, 13: 3.8, 14: 5.6, 15: 8, 16: 11.5, 17: 16, 18: 23}),
    "unclassified": ("#ffffff", "#a9a9a9", {12: 1, 13: 2.4, 14: 3.8, 15: 6, 16: 9, 17: 13, 18: 19}),
    "residential": ("#ffffff", "#b6b6b6", {12: 0.7, 13: 1.9, 14: 3.3, 15: 6, 16: 9, 17: 13, 18: 19}),
    "living_street": ("#ededed", "#b6b6b6", {13: 1.5, 14: 2.8, 15: 5, 16: 8, 17: 12, 18: 17}),
    "pedestrian": ("#dddde8", "#999999", {13: 1.5, 14: 2.8, 15: 5, 16: 8, 17: 12, 18: 17}),
    "service": ("#ffffff", "#bbbbbb", {14: 1.4, 15: 2.6, 16: 4, 17: 6.5, 18: 10})}
PATHS = {  # kind: (colour, dashes, first zoom)
    "track": ("#996600", "8,4", 13), "cycleway": ("#4455ee", "5,3", 12), "path": ("#e0604c", "4,3", 13), "footway": ("#e0604c", "2,3", 14),
    "bridleway": ("#339933", "4,3", 14), "steps": ("#e0604c", "1,1", 15)}
RANKS = ["service", "pedestrian", "living_street", "residential", "unclassified", "tertiary", "secondary", "primary", "trunk", "motorway"]
CLASSES = {"sight": "#734a08", "shop": "#ac39ac", "service": "#c77400", "office": "#4863a0", "transport": "#0092da", "nature": "#2e7d5b"}
PLACES = [  # kind, first zoom, last zoom, [(from zoom, size)]
    ("city", 7, 15, [(7, 11), (9, 13), (11, 15), (13, 18)]), ("town", 9, 16, [(9, 10), (11, 12), (13, 15)]), ("village", 10, 17, [(10, 9), (12, 11), (14, 13)]),
    ("suburb", 13, 17, [(13, 11)]), ("hamlet", 12, 17, [(12, 9), (14, 11)]), ("neighbourhood", 15, 18, [(15, 10)]), ("isolated_dwelling", 14, 18, [(14, 9)]),
    ("locality", 14, 18, [(14, 9)])]
REGULAR, BOLD, ITALIC = "DejaVu Sans Book", "DejaVu Sans Bold", "DejaVu Sans Oblique"


def scale(zoom):
    return 559082264.028 / 2 ** zoom


def zooms(first=0, last=None):
    """Returns the scale denominators from one zoom level to another, both included."""
    highest = f"<MaxScaleDenominator>{scale(first - 0.5):.0f}</MaxScaleDenominator>" if first > 0 else ""
    lowest = f"<MinScaleDenominator>{scale(last + 0.5):.0f}</MinScaleDenominator>" if last is not None else ""
    return highest + lowest


def rule(symbols, wanted="", first=0, last=None):
    condition = f"<Filter>{escape(wanted)}</Filter>" if wanted else ""
    return f"<Rule>{condition}{zooms(first, last)}{symbols}</Rule>"


def style(name, rules, **attributes):
    extra = "".join(f" {key.replace('_', '-')}={quoteattr(str(value))}" for key, value in attributes.items())
    return f'<Style name="{name}"{extra}>{"".join(rules)}</Style>'


def fill(colour, **extra):
    return f'<PolygonSymbolizer fill="{colour}"{attributes(extra)}/>'


def stroke(colour, width, **extra):
    return f'<LineSymbolizer stroke="{colour}" stroke-width="{width}"{attributes(extra)}/>'


def text(field, size, colour="#333333", face=REGULAR, halo="#ffffff", **extra):
    return (f'<TextSymbolizer face-name="{face}" size="{size}" fill="{colour}" halo-radius="1.4" halo-fill="{halo}"{attributes(extra)}>'
            f"{escape(field)}</TextSymbolizer>")


def attributes(extra):
    return "".join(f" {key.replace('_', '-')}={quoteattr(str(value))}" for key, value in extra.items())


def steps(table):
    """Converts {zoom: value} to rows of (first zoom, last zoom, value); the last value holds for all higher zooms."""
    known = sorted(table)
    return [(zoom, known[at + 1] - 1 if at + 1 < len(known) else None, table[zoom]) for at, zoom in enumerate(known)]


def road_styles():
    casing, inner, bridges = [], [], []
    round_line = {"stroke_linecap": "round", "stroke_linejoin": "round"}
    for kind in RANKS:
        colour, edge, widths = ROADS[kind]
        for first, last, width in steps(widths):
            wanted = f"[kind] = '{kind}'"
            if width > 2:
                casing.append(rule(stroke(edge, round(width + 1.4, 1), stroke_linejoin="round"), wanted, first, last))
                bridges.append(rule(stroke("#555555", round(width + 3, 1), stroke_linecap="butt"), wanted + " and [bridge] = 'yes'", first, last))
            thin = colour if width > 1.5 or colour != "#ffffff" else "#cfcbc4"
            inner.append(rule(stroke(edge if width <= 1.5 and colour != "#ffffff" else thin, width, **round_line), wanted, first, last))
    paths = [rule(stroke("#ffffff", 3, stroke_opacity=0.5) + stroke(colour, 1.3, stroke_dasharray=dashes), f"[kind] = '{kind}'", first)
             for kind, (colour, dashes, first) in PATHS.items()]
    return [style("paths", paths), style("casings", casing), style("bridges", bridges), style("roads", inner)]


def label_styles():
    along = {"placement": "line", "spacing": 350, "minimum_distance": 40, "max_char_angle_delta": 30}
    shields = [rule(text("[ref]", 9, "#ffffff", BOLD, {"trunk": "#c84e2f", "motorway": "#c24e6b", "primary": "#a06b00"}.get(kind, "#707d05"),
                         placement="line", spacing=500, upright="auto", halo_opacity=1, minimum_distance=60),
                    f"[kind] = '{kind}' and [ref] != ''", first) for kind, first in (("motorway", 9), ("trunk", 10), ("primary", 11), ("secondary", 12), ("tertiary", 13))]
    names = [rule(text("[name]", size, face=REGULAR, **along), wanted, first, last) for wanted, first, last, size in (
        ("[rank] >= 8 and [name] != ''", 14, 15, 9), ("[rank] >= 8 and [name] != ''", 16, None, 11), ("[rank] < 8 and [rank] > 2 and [name] != ''", 15, 16, 8.5),
        ("[rank] < 8 and [rank] > 2 and [name] != ''", 17, None, 10), ("[rank] <= 2 and [name] != ''", 15, None, 9))]
    waters = [rule(text("[name]", 9, "#4a80b8", ITALIC, **along), "[name] != ''", 12)]
    greens = [rule(text("[name]", 10, colour, ITALIC, wrap_width=70), wanted, first, last) for wanted, colour, first, last in (
        ("[kind] = 'reserve' and [size] > 8000000", "#3f7a3f", 11, 14), ("[kind] = 'reserve' and [size] <= 8000000", "#3f7a3f", 12, None),
        ("[kind] = 'park'", "#3f7a3f", 14, None), ("[kind] = 'water'", "#4a80b8", 11, None), ("[kind] = 'salt' or [kind] = 'rock'", "#666666", 14, None))]
    numbers = [rule(text("[number]", 8, "#777777", halo="#e4e1dc"), "[number] != ''", 17)]
    places = []
    for kind, first, last, sizes in PLACES:
        for start, (zoom, size) in enumerate(sizes):
            end = sizes[start + 1][0] - 1 if start + 1 < len(sizes) else last
            face = BOLD if kind in ("city", "town") and zoom > 10 else REGULAR
            dot = ('<MarkersSymbolizer marker-type="ellipse" width="5" height="5" fill="#ffffff" stroke="#333333" stroke-width="1.2" allow-overlap="true"/>'
                   if end < 11 and kind in ("city", "town") else "")
            places.append(rule(dot + text("[name]", size, "#222222", face, wrap_width=90, allow_overlap="false", dy=-8 if dot else 0, margin=2),
                               f"[kind] = '{kind}'", zoom, end))
    places.append(rule(text("[name]", 12, "#4a80b8", ITALIC, wrap_width=60), "[kind] = 'sea'", 8, 14))
    regions = [rule(text("[name]", 12, "#6b4a6b", BOLD, wrap_width=80), "", 4, 8)]
    return [style("shields", shields), style("road-names", names), style("water-names", waters), style("green-names", greens),
            style("house-numbers", numbers), style("places", places), style("regions", regions)]


def point_styles():
    def dot(size, colour):
        return (f'<MarkersSymbolizer marker-type="ellipse" width="{size}" height="{size}" fill="{colour}" stroke="#ffffff" stroke-width="1" '
                'allow-overlap="false" ignore-placement="false"/>')

    rules = [rule(dot(9, CLASSES["transport"]) + text("[name]", 9, "#0d6ea8", dy=8, wrap_width=70), "[kind] = 'station'", 13),
             rule(dot(5, "#7a5a3a") + text("[name]", 9, "#7a5a3a", dy=7, wrap_width=70), "[kind] = 'peak'", 12),
             rule(text("[name]", 11, "#4a80b8", ITALIC, wrap_width=70), "[kind] = 'bay' or [kind] = 'wetland'", 11)]
    important = "[kind] = 'museum' or [kind] = 'attraction' or [kind] = 'hospital' or [kind] = 'college' or [kind] = 'townhall'"
    for name, colour in CLASSES.items():
        mine = f"[class] = '{name}' and not ([kind] = 'station' or [kind] = 'peak' or [kind] = 'bay' or [kind] = 'wetland')"
        rules += [rule(dot(6, colour) + text("[name]", 8.5, colour, dy=7, wrap_width=60), f"{mine} and ({important})", 15, 15),
                  rule(dot(4, colour), f"{mine} and not ({important})", 16, 16),
                  rule(dot(7, colour) + text("[name]", 9, colour, dy=7, wrap_width=70), f"{mine} and ({important})", 16, 16),
                  rule(dot(7, colour) + text("[name]", 9.5, colour, dy=8, wrap_width=70), mine, 17)]
    return [style("points", rules)]


def layer(name, query, styles, database, first=0):
    names = "".join(f"<StyleName>{style}</StyleName>" for style in styles)
    limits = f' maximum-scale-denominator="{scale(first - 0.5):.0f}"' if first else ""
    source = {"type": "postgis", "table": f"({query}) AS data", "geometry_field": "geom", "srid": 3857, "key_field": "", "estimate_extent": "false",
              "extent": "-20037508.35,-20037508.35,20037508.35,20037508.35", "max_size": 2, "initial_size": 1, **database}
    parameters = "".join(f'<Parameter name="{key}">{escape(str(value))}</Parameter>' for key, value in source.items())
    return f'<Layer name="{name}" srs="epsg:3857"{limits}>{names}<Datasource>{parameters}</Datasource></Layer>'


def build(database):
    """Returns the whole style sheet; `database` contains the parameters of the connection."""
    plain = [style("land", [rule(fill(LAND))]), style("coast", [rule(stroke("#7fb0c8", 0.8), "", 8)]),
             style("areas", [rule(fill(colour, fill_opacity=0.75 if kind == "reserve" else 1), f"[kind] = '{kind}'", 8) for kind, colour in AREAS.items()]),
             style("reserve-edges", [rule(stroke("#5fa85f", 1.2, stroke_opacity=0.6, stroke_dasharray="6,3"), "", 11)]),
             style("waterways", [rule(stroke(SEA, width, stroke_linejoin="round", stroke_linecap="round"), wanted, first, last) for wanted, first, last, width in (
                 ("[kind] = 'river'", 8, 10, 1.4), ("[kind] = 'river'", 11, 12, 3), ("[kind] = 'river'", 13, 14, 6), ("[kind] = 'river'", 15, 16, 13),
                 ("[kind] = 'river'", 17, None, 26), ("[kind] != 'river'", 12, 13, 1.4), ("[kind] != 'river'", 14, 15, 3), ("[kind] != 'river'", 16, None, 7))]),
             style("borders", [rule(stroke("#9a6fb0", 1.6, stroke_dasharray="10,4,2,4", stroke_opacity=0.6), "[level] = '2' or [level] = '4' or [level] = '6'", 7),
                               rule(stroke("#9a6fb0", 1, stroke_dasharray="6,4", stroke_opacity=0.5), "[level] = '8'", 11)]),
             style("rails", [rule(stroke("#777777", 1), "", 9, 12), rule(stroke("#707070", 3) + stroke("#ffffff", 1.6, stroke_dasharray="8,8"), "", 13)]),
             style("buildings", [rule(fill("#d9d0c9") + stroke("#c0b2a6", 0.6), "[kind] = 'house'", 15),
                                 rule(fill("#cfc0b2") + stroke("#a5907c", 0.7), "[kind] != 'house'", 14)])]
    layers = [
        layer("land", "SELECT geom FROM land", ["land"], database),
        layer("areas", "SELECT geom, kind, name, size FROM areas ORDER BY kind <> 'residential', kind <> 'reserve', kind = 'water', size DESC", ["areas"], database, 8),
        layer("reserve-edges", "SELECT geom FROM areas WHERE kind = 'reserve'", ["reserve-edges"], database, 11),
        layer("waterways", "SELECT geom, kind, name FROM waterways", ["waterways"], database, 8),
        layer("coast", "SELECT geom FROM coast", ["coast"], database, 8),
        layer("borders", "SELECT geom, level FROM borders", ["borders"], database, 7),
        layer("buildings", "SELECT geom, kind FROM buildings", ["buildings"], database, 14),
        layer("paths", "SELECT geom, kind FROM roads WHERE rank <= 3", ["paths"], database, 12),
        layer("rails", "SELECT geom FROM rails", ["rails"], database, 9),
        layer("roads", "SELECT geom, kind, coalesce(bridge, '') AS bridge FROM roads WHERE rank > 3 ORDER BY rank", ["bridges", "casings", "roads"], database, 7),
        layer("places", "SELECT geom, kind, name FROM places ORDER BY rank DESC, name", ["places"], database, 7),
        layer("regions", "SELECT ST_PointOnSurface(ST_BuildArea(geom)) AS geom, name FROM borders WHERE level = "
                         "(SELECT max(level) FROM borders WHERE level IN ('2', '4', '6'))", ["regions"], database, 4),
        layer("shields", "SELECT geom, kind, coalesce(ref, '') AS ref FROM roads WHERE ref <> '' ORDER BY rank DESC", ["shields"], database, 9),
        layer("green-names", "SELECT ST_PointOnSurface(geom) AS geom, kind, name, size FROM areas WHERE name <> '' ORDER BY size DESC", ["green-names"], database, 11),
        layer("road-names", "SELECT geom, coalesce(name, '') AS name, rank FROM roads WHERE name <> '' ORDER BY rank DESC, name", ["road-names"], database, 14),
        layer("water-names", "SELECT geom, kind, coalesce(name, '') AS name FROM waterways WHERE name <> ''", ["water-names"], database, 12),
        layer("points", "SELECT geom, kind, class, coalesce(name, '') AS name FROM points ORDER BY kind <> 'museum', class <> 'sight', class, name", ["points"], database, 11),
        layer("house-numbers", "SELECT ST_PointOnSurface(geom) AS geom, coalesce(number, '') AS number FROM buildings WHERE number <> ''", ["house-numbers"], database, 17)]
    styles = "".join(plain + road_styles() + label_styles() + point_styles())
    return f'<Map srs="epsg:3857" background-color="{SEA}" buffer-size="128">{styles}{"".join(layers)}</Map>'

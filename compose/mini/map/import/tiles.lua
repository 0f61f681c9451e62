-- The objects that the tiles show, with a table for each kind. osm2pgsql runs this file with its flex output.

local function columns(...)
    local list = { ... }
    for at, name in ipairs(list) do list[at] = { column = name, type = 'text' } end
    return list
end

local function with(list, column, type)
    table.insert(list, { column = column, type = type, not_null = true })
    return list
end

local areas = osm2pgsql.define_area_table('areas', with(with(columns('kind', 'name'), 'geom', 'geometry'), 'size', 'area'))
local buildings = osm2pgsql.define_area_table('buildings', with(columns('kind', 'number'), 'geom', 'geometry'))
local roads = osm2pgsql.define_way_table('roads', with(with(columns('kind', 'name', 'ref', 'bridge'), 'rank', 'int'), 'geom', 'linestring'))
local rails = osm2pgsql.define_way_table('rails', with(columns('kind', 'name'), 'geom', 'linestring'))
local waterways = osm2pgsql.define_way_table('waterways', with(columns('kind', 'name'), 'geom', 'linestring'))
local coast = osm2pgsql.define_way_table('coast', with(columns('name'), 'geom', 'linestring'))
local borders = osm2pgsql.define_relation_table('borders', with(columns('level', 'name'), 'geom', 'multilinestring'))
local places = osm2pgsql.define_node_table('places', with(with(columns('kind', 'name'), 'rank', 'int'), 'geom', 'point'))
-- Points of interest are nodes or areas; an area is shown at its middle.
local points = osm2pgsql.define_table({ name = 'points', ids = { type = 'any', id_column = 'osm_id', type_column = 'osm_type' },
    columns = with(columns('kind', 'class', 'name', 'number'), 'geom', 'point') })

-- Higher ranks are drawn over lower ones.
local ROADS = { motorway = 12, trunk = 11, primary = 10, secondary = 9, tertiary = 8, unclassified = 7, residential = 6, living_street = 5,
    pedestrian = 5, service = 4, track = 3, cycleway = 2, path = 1, footway = 1, bridleway = 1, steps = 1 }
local LINKS = { motorway_link = 'motorway', trunk_link = 'trunk', primary_link = 'primary', secondary_link = 'secondary',
    tertiary_link = 'tertiary', road = 'unclassified' }
local PLACES = { city = 9, town = 8, village = 6, suburb = 5, hamlet = 4, neighbourhood = 3, sea = 2, isolated_dwelling = 1, locality = 1 }
local AREAS = {
    natural = { water = 'water', wood = 'wood', heath = 'heath', grassland = 'grass', scrub = 'heath', wetland = 'wetland', beach = 'beach',
        bare_rock = 'rock', glacier = 'rock' },
    landuse = { forest = 'wood', residential = 'residential', farmland = 'farmland', meadow = 'meadow', grass = 'grass', orchard = 'orchard',
        vineyard = 'orchard', quarry = 'rock', salt_pond = 'salt', farmyard = 'farmyard', reservoir = 'water', basin = 'water', industrial = 'industrial',
        commercial = 'industrial', retail = 'industrial', cemetery = 'grass', allotments = 'farmland' },
    leisure = { park = 'park', garden = 'park', pitch = 'pitch', nature_reserve = 'reserve', marina = 'water', golf_course = 'park', playground = 'pitch' },
    waterway = { riverbank = 'water' },
}
local AREA_KEYS = { 'natural', 'landuse', 'leisure', 'waterway' }
-- The symbol of an object: its class determines the colour, its kind the letter or shape.
local CLASSES = { tourism = 'sight', historic = 'sight', man_made = 'sight', shop = 'shop', amenity = 'service', office = 'office', craft = 'office',
    leisure = 'sight', railway = 'transport', highway = 'transport', natural = 'nature' }
local ORDER = { 'tourism', 'amenity', 'shop', 'railway', 'man_made', 'historic', 'craft', 'office', 'leisure', 'natural', 'highway' }
local WANTED = { railway = { station = true, halt = true }, highway = { bus_stop = true }, natural = { peak = true, bay = true, wetland = true },
    leisure = { sports_centre = true, park = true, garden = true, playground = true, marina = true, nature_reserve = true } }

local function point_of_interest(tags)
    for _, key in ipairs(ORDER) do
        local value = tags[key]
        if value and value ~= 'no' and (not WANTED[key] or WANTED[key][value]) then return value, CLASSES[key] end
    end
end

local function add_point(object, geometry)
    local kind, class = point_of_interest(object.tags)
    if kind then
        points:insert({ kind = kind, class = class, name = object.tags.name, number = object.tags['addr:housenumber'], geom = geometry })
    end
end

function osm2pgsql.process_node(object)
    local tags = object.tags
    if PLACES[tags.place] and tags.name then
        places:add_row({ kind = tags.place, name = tags.name, rank = PLACES[tags.place], geom = { create = 'point' } })
    end
    add_point(object, object:as_point())
end

local function add_area(object)
    local tags = object.tags
    for _, key in ipairs(AREA_KEYS) do
        local kind = AREAS[key][tags[key]]
        if kind then areas:add_row({ kind = kind, name = tags.name, geom = { create = 'area' } }) end
    end
    if tags.building and tags.building ~= 'no' then
        buildings:add_row({ kind = tags.building, number = tags['addr:housenumber'], geom = { create = 'area' } })
    end
end

function osm2pgsql.process_way(object)
    local tags = object.tags
    if object.is_closed and tags.area ~= 'no' and not (tags.highway and tags.area ~= 'yes') then
        add_area(object)
        add_point(object, object:as_polygon():centroid())
    end
    local kind = LINKS[tags.highway] or tags.highway
    if ROADS[kind] then
        roads:add_row({ kind = kind, name = tags.name, ref = tags.ref, bridge = tags.bridge, rank = ROADS[kind], geom = { create = 'line' } })
    end
    if tags.railway == 'rail' or tags.railway == 'light_rail' or tags.railway == 'narrow_gauge' then
        rails:add_row({ kind = tags.railway, name = tags.name, geom = { create = 'line' } })
    end
    if tags.waterway == 'river' or tags.waterway == 'stream' or tags.waterway == 'canal' or tags.waterway == 'ditch' then
        waterways:add_row({ kind = tags.waterway, name = tags.name, geom = { create = 'line' } })
    end
    if tags.natural == 'coastline' then coast:add_row({ name = tags.name, geom = { create = 'line' } }) end
end

function osm2pgsql.process_relation(object)
    local tags = object.tags
    if tags.type == 'multipolygon' then
        add_area(object)
        add_point(object, object:as_multipolygon():centroid())
    end
    if tags.boundary == 'administrative' and tags.admin_level then
        borders:add_row({ level = tags.admin_level, name = tags.name, geom = { create = 'line' } })
    end
end

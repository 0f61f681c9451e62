#!/bin/sh
# Builds a routing graph per profile, then describes the map for the page and the health probe. Usage: build-routes.sh
# EXTRACT.osm.pbf. Result: /srv/map/routes/{car,bike,foot}/, /srv/map/map.json
set -eu
extract=$1 osrm=/opt/osrm/osrm
rm -rf /srv/map/routes
port=5000
for pair in car:car bike:bicycle foot:foot; do
    folder=/srv/map/routes/${pair%:*}
    mkdir -p "$folder"
    ln -s "$extract" "$folder/map.osm.pbf"
    "$osrm/bin/osrm-extract" --verbosity WARNING --threads 1 --profile "$osrm/share/profiles/${pair#*:}.lua" "$folder/map.osm.pbf"
    "$osrm/bin/osrm-contract" --verbosity WARNING --threads 1 "$folder/map.osrm"
    rm "$folder/map.osm.pbf"
    "$osrm/bin/osrm-routed" --verbosity WARNING --algorithm ch --ip 127.0.0.1 --port "$port" "$folder/map.osrm" &
    port=$((port + 1))
done
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
python3 -B "$(dirname "$0")/describe.py" "$extract" /srv/map/map.json

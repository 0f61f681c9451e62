#!/bin/sh
# Wipes /data and builds it from scratch: database `gis` for the tiles, database `nominatim` for the search. Usage:
# build-db.sh EXTRACT.osm.pbf. Equal extracts give equal dumps.
set -eu
extract=$1
here=$(dirname "$0")
export PATH=/usr/lib/postgresql/15/bin:$PATH PGHOST=/tmp PGUSER=map

rm -rf /data/postgres
initdb --pgdata=/data/postgres --username=map --auth=trust --encoding=UTF8 --locale=C.UTF-8 --wal-segsize=1 >/dev/null
# The copies of these files in the data directory are never read.
rm /data/postgres/postgresql.conf /data/postgres/pg_hba.conf /data/postgres/pg_ident.conf
postgres -c config_file=/srv/map-db/postgresql.conf -c listen_addresses= -c max_wal_size=1GB -c track_counts=on >/tmp/postgres.log 2>&1 &
server=$!
trap 'kill -INT $server 2>/dev/null || true' EXIT
tries=200
until pg_isready -q -d postgres; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || { cat /tmp/postgres.log >&2; exit 1; }
    sleep 0.1
done
psql -q -d postgres -c "CREATE ROLE reader LOGIN PASSWORD 'reader'" -c "ALTER ROLE reader SET default_transaction_read_only = on"

echo "build-db: tiles"
createdb gis
psql -q -d gis -c "CREATE EXTENSION postgis"
osm2pgsql --log-level=warn --database=gis --output=flex --style="$here/tiles.lua" --number-processes=1 "$extract"
psql -q -v ON_ERROR_STOP=1 -d gis -f "$here/tiles.sql"

echo "build-db: search"
# With one thread, places are numbered in the order of the extract.
rm -rf /tmp/nominatim && mkdir /tmp/nominatim
nominatim() {
    (cd /tmp/nominatim && NOMINATIM_DATABASE_DSN="pgsql:dbname=nominatim;host=/tmp;user=map" NOMINATIM_DATABASE_WEBUSER=reader \
        NOMINATIM_IMPORT_STYLE=extratags NOMINATIM_LANGUAGES=en PYTHONHASHSEED=0 PYTHONPATH=/opt/import \
        /opt/map/bin/python -c "from nominatim_db.cli import nominatim; exit(nominatim())" "$@")
}
nominatim import --quiet --osm-file "$extract" --threads 1 --offline
# Postcodes need the countries of their places, which only the import determines.
nominatim refresh --quiet --postcodes
nominatim index --quiet --threads 1
nominatim freeze --quiet
awk -f "$here/phrases.awk" "$here/phrases.txt" >/tmp/nominatim/phrases.csv
nominatim special-phrases --quiet --import-from-csv /tmp/nominatim/phrases.csv
psql -q -v ON_ERROR_STOP=1 -d nominatim -f "$here/search.sql"

for database in gis nominatim; do
    psql -q -d "$database" -c "GRANT pg_read_all_data TO reader" -c "REVOKE TEMPORARY ON DATABASE $database FROM PUBLIC" -c "VACUUM FULL" -c "VACUUM (FREEZE, ANALYZE)"
done
psql -q -d postgres -c CHECKPOINT
kill -INT $server
wait $server
trap - EXIT
rm -rf /tmp/postgres.log /tmp/nominatim

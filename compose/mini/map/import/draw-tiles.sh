#!/bin/sh
# Renders the tiles that visitors see first from the database in /data/postgres: draw-tiles.sh MAP.json TARGET
set -eu
export PATH=/usr/lib/postgresql/15/bin:$PATH
postgres -c config_file=/srv/map-db/postgresql.conf -c listen_addresses= >/tmp/postgres.log 2>&1 &
server=$!
trap 'kill -INT $server 2>/dev/null || true' EXIT
tries=200
until pg_isready -q -h /tmp -d postgres; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || { cat /tmp/postgres.log >&2; exit 1; }
    sleep 0.1
done
cd /srv/map
python3 -m tiles.ahead "$1" "$2"

#!/bin/sh
# Wipes /data and builds database and pictures from scratch. Equal inputs give equal dumps.
set -eu
mkdir -p /data/postgres /data/media
find /data/postgres /data/media -mindepth 1 -delete
chmod 0700 /data/postgres

# Log files have 1 MB instead of 16, because each instance has its own.
initdb --username=postgres --encoding=UTF8 --locale=C.UTF-8 --auth=trust --wal-segsize=1 --no-sync --no-instructions -D /data/postgres >/dev/null
# The configuration is in the image; the copies that initdb creates would be misleading.
rm /data/postgres/postgresql.conf /data/postgres/pg_hba.conf

export PGHOST=/run/forum PGUSER=postgres
postgres --config-file=/srv/forum/postgresql.conf -c listen_addresses= >/tmp/postgres.log 2>&1 &
server=$!
trap 'kill -INT $server 2>/dev/null || true' EXIT
tries=200
until pg_isready -q; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || { cat /tmp/postgres.log >&2; exit 1; }
    sleep 0.1
done

psql -qX -v ON_ERROR_STOP=1 <<'SQL'
CREATE ROLE forum LOGIN PASSWORD 'forum';
CREATE DATABASE forum OWNER forum;
CREATE ROLE reader LOGIN PASSWORD 'reader';
GRANT pg_read_all_data TO reader;
ALTER ROLE reader SET default_transaction_read_only = on;
REVOKE TEMPORARY ON DATABASE forum FROM PUBLIC;
\connect forum
REVOKE EXECUTE ON FUNCTION lo_create(oid), lo_creat(integer), lo_from_bytea(oid, bytea) FROM PUBLIC;
SQL

cd /srv/forum
# Migrations that replace others are found through a set of strings; a fixed hash seed gives them a stable order.
PYTHONHASHSEED=0 python -m seed

# Rewrites the tables without gaps, marks all rows as visible and updates the statistics, so that instances have no
# maintenance to do.
psql -qX -v ON_ERROR_STOP=1 forum -c "VACUUM FULL" -c "VACUUM FREEZE ANALYZE" -c "CHECKPOINT"
kill -INT $server
wait $server
trap - EXIT
rm -f /tmp/postgres.log

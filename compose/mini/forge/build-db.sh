#!/bin/sh
# Wipes /data and builds database, repositories and queue from scratch. Equal inputs give equal dumps.
set -eu
bin=/usr/lib/postgresql/17/bin
rm -rf /data/* /run/forge/*
mkdir -p /data/repositories /data/remotes /data/attachments /data/releases /data/archives /data/pseudo /data/sshkeys /data/queue

"$bin/initdb" -D /data/postgres -U postgres --encoding=UTF8 --locale=C.UTF-8 --auth=trust --wal-segsize=4 --no-instructions >/dev/null
rm /data/postgres/*.conf
"$bin/postgres" -c config_file=/srv/forge/conf/postgresql.conf -c listen_addresses= -c fsync=off >/tmp/postgres.log 2>&1 &
server=$!
trap 'kill $server 2>/dev/null || true' EXIT
tries=200
until "$bin/pg_isready" -q -h /run/forge; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || { cat /tmp/postgres.log >&2; exit 1; }
    sleep 0.05
done

"$bin/psql" -q -h /run/forge -U postgres -v ON_ERROR_STOP=1 -c "CREATE ROLE forge LOGIN PASSWORD 'forge'" -c "CREATE ROLE reader LOGIN PASSWORD 'reader'" \
    -c "CREATE DATABASE forge OWNER forge" -c "GRANT pg_read_all_data TO reader" -c "ALTER ROLE reader SET default_transaction_read_only = on"
cd /srv/forge/app
python3 -m seed
rm -f /tmp/marks

"$bin/psql" -q -h /run/forge -U postgres -d forge -c "VACUUM (FREEZE, ANALYZE)"
kill -INT $server
wait $server
trap - EXIT
rm -f /tmp/postgres.log

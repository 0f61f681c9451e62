#!/bin/sh
# Wipes /data and builds database, pictures and search index from scratch. Equal inputs give equal dumps.
set -eu
mkdir -p /data/mysql /data/media /data/search
rm -rf /data/mysql/* /data/media/* /data/search/*

# "normal": root needs no password on the socket, because everything here runs as one account.
mariadb-install-db --auth-root-authentication-method=normal --skip-test-db >/dev/null
mariadbd --skip-networking --innodb-flush-log-at-trx-commit=0 >/tmp/mariadbd.log 2>&1 &
server=$!
trap 'kill $server 2>/dev/null || true' EXIT
tries=200
until mariadb-admin ping >/dev/null 2>&1; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || { cat /tmp/mariadbd.log >&2; exit 1; }
    sleep 0.1
done

# The installer also creates root accounts for this machine's name, which differs between builds.
mariadb -e "DELETE FROM mysql.global_priv WHERE User = '' OR (User = 'root' AND Host <> 'localhost');
  DELETE FROM mysql.proxies_priv WHERE Host <> 'localhost'; FLUSH PRIVILEGES;
  CREATE DATABASE shop CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci;
  CREATE USER shop@'%' IDENTIFIED BY 'shop'; GRANT ALL ON shop.* TO shop@'%';
  CREATE USER shop@localhost IDENTIFIED BY 'shop'; GRANT ALL ON shop.* TO shop@localhost;
  CREATE USER reader@'%' IDENTIFIED BY 'reader'; GRANT SELECT ON shop.* TO reader@'%';"

cd /srv/shop
# sorl-thumbnail stores lists made from sets of strings; a fixed hash seed gives them a stable order.
PYTHONHASHSEED=0 SEEDING=1 python -m seed

mariadb-check --analyze --silent shop
# A slow shutdown leaves nothing to purge or merge, so instances do not spend their first seconds on it.
mariadb -e "SET GLOBAL innodb_fast_shutdown = 0"
mariadb-admin shutdown
wait $server
trap - EXIT
rm -f /tmp/mariadbd.log

#!/bin/sh
# Wipes /data and builds schema and accounts from scratch. The batches come later, from `publish`.
set -eu
mkdir -p /data
rm -rf /data/* /data/.[!.]*
cd /srv/turkle
exec python -m seed

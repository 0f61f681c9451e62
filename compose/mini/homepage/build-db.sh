#!/bin/sh
# Wipes /data and builds the notes of the scratchpad from scratch.
set -eu
mkdir -p /data
rm -rf /data/* /data/.[!.]*
cd /srv/homepage
exec python3 -m server.notes

#!/bin/sh
# Wipes /data and builds it from nothing: the notes of the scratchpad.
set -eu
mkdir -p /data
rm -rf /data/* /data/.[!.]*
cd /srv/homepage
exec python3 -m server.notes

#!/bin/sh
# Runs every benchmark, one after the other. Each of them measures its alternative in the same run.
set -eu

cd "$(dirname -- "$0")/.."
echo "machine: $(nproc) processors, $(awk '/MemTotal/ { printf "%.0f GiB", $2 / 1048576 }' /proc/meminfo), kernel $(uname -r), Docker $(docker version --format '{{.Server.Version}}')"
cargo bench --locked --bench reset
cargo bench --locked --bench episodes
cargo bench --locked --bench openenv
cargo bench --locked --bench gateway
cargo bench --locked --bench storage
cargo bench --locked --bench evaluators
cargo bench --locked --bench locators
# The program of `make up`, for the comparison.
cargo build --locked --profile quick
cargo bench --locked --bench profiles

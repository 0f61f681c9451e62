#!/bin/sh
# Dependencies point downward only. What each folder may not name is listed here; ARCHITECTURE.md says why.
set -eu

cd "$(dirname -- "$0")/../src"
bad=0

# forbid FOLDER PATTERN WHY
forbid() {
    found=$(grep -rnE --include='*.rs' "$2" "$1" | grep -vE '^[^:]+:[0-9]+:\s*//' || true)
    if [ -n "$found" ]; then
        echo "$1: $3"
        echo "$found" | sed 's/^/    /'
        bad=1
    fi
}

forbid domain '\b(tokio|async |serde|sqlx|reqwest|hyper|axum|bollard)\b|SystemTime|Instant::now|Timestamp::now|std::(fs|net::Tcp|process)' \
    'domain decides; it does no I/O, reads no clock and knows no library that does'
forbid domain 'crate::(export|doctor|digest|definition|engine|storage|images|launch|probes|accounts|locators|reset|daemon|cli|wire)' 'domain stands below everything else'
forbid definition 'crate::(export|doctor|digest|engine|storage|images|launch|probes|accounts|locators|reset|daemon|cli|wire)' 'definition knows domain alone'
forbid storage 'crate::(export|doctor|digest|definition|engine|images|launch|probes|accounts|locators|reset|daemon|cli|wire)' 'storage knows domain alone'
forbid engine 'crate::(export|doctor|digest|definition|storage|images|launch|probes|accounts|locators|reset|daemon|cli|wire)' 'engine knows domain alone'
forbid launch 'crate::(export|doctor|digest|definition|images|probes|accounts|locators|reset|daemon|cli|wire)' 'launch knows domain and engine'
forbid probes 'crate::(export|doctor|digest|definition|storage|images|accounts|locators|reset|daemon|cli|wire)' 'probes know domain, engine and launch'
forbid images 'crate::(export|doctor|digest|definition|storage|launch|accounts|locators|reset|daemon|cli|wire)' 'images know domain and engine, and how probes put errors into words'
forbid export 'crate::(doctor|digest|definition|engine|storage|launch|probes|accounts|locators|evaluators|reset|daemon|cli|wire)' 'an export knows domain, and how images look into archives'
forbid evaluators '\b(tokio|async |reqwest|sqlx|bollard)\b|SystemTime|Instant::now|std::(fs|env|net|process)|crate::(evaluation::|export|judge|outbound|doctor|digest|definition|engine|storage|images|launch|probes|accounts|locators|reset|daemon|cli|wire)' \
    'evaluators judge what they are told; they look at nothing'
forbid evaluation '\b(tokio|async |reqwest|sqlx|bollard)\b|SystemTime|Instant::now|Timestamp::now|crate::(export|judge|outbound|doctor|digest|definition|engine|storage|images|launch|probes|accounts|locators|reset|daemon|cli|wire)' \
    'evaluation knows domain and evaluators; it reads files and asks nobody'
forbid judge 'crate::(evaluation|accounts|doctor|digest|definition|engine|storage|images|launch|locators|probes|reset|daemon|cli|wire)' 'a judge knows the evaluators'\'' questions, the domain and connections'
forbid folders.rs 'crate::' 'it depends on no other module'
forbid outbound.rs 'crate::' 'connections know nobody'
forbid json_path.rs 'crate::' 'it depends on no other module'
forbid jq.rs 'crate::' 'filters are read for whoever has them'
forbid har.rs 'crate::' 'recordings are read by whoever has them'
forbid confined 'crate::(domain|export|doctor|digest|definition|engine|storage|images|launch|probes|accounts|locators|reset|daemon|cli|wire)' 'a confined process is told by others what it is for'
forbid fault.rs 'crate::' 'points are reached by everybody and know nobody'
forbid accounts 'crate::(export|doctor|digest|definition|engine|storage|images|launch|locators|reset|daemon|cli|wire)' 'accounts know domain and probes'
forbid digest 'crate::(export|doctor|definition|images|accounts|locators|reset|daemon|cli|wire)' 'digest knows domain, engine, launch and probes'
forbid locators 'crate::(export|digest|doctor|definition|storage|images|evaluators|reset|daemon|cli|wire)' 'locators know domain, engine, launch, probes and accounts; they judge nothing'
forbid reset 'crate::(export|doctor|definition|images|accounts|locators|daemon|cli|wire)' 'reset knows domain, engine, storage, launch, probes and digest'
forbid doctor 'crate::(export|digest|definition|images|launch|accounts|reset|daemon|cli|wire)' 'the doctor knows domain, engine, how storage tries a folder, how locators start a browser and how probes describe errors'
forbid doctor/judge '\b(tokio|async |procfs|rustix)\b|SystemTime|Instant::now|Timestamp::now|std::(fs|env|net::Tcp|process)|doctor::gather' \
    'judge decides on facts; it looks at nothing'
forbid daemon 'crate::cli' 'the daemon does not know the command line'
forbid daemon/gateway 'crate::(domain|digest|doctor|definition|engine|storage|images|launch|probes|accounts|locators|reset|wire|cli|daemon::[a-fh-z])' 'the gateway stands alone'

for file in $(grep -rlE '\bbollard\b' --include='*.rs' . | grep -v '^./engine/docker/' | xargs -r grep -lE '^\s*use bollard|bollard::' || true); do
    echo "$file: only engine/docker/ names bollard"
    bad=1
done
for file in $(grep -rlE '\baxum::' --include='*.rs' . | grep -vE '^./daemon/(api/|server.rs$)' || true); do
    echo "$file: only daemon/api and daemon/server.rs name axum"
    bad=1
done
for file in $(grep -rlE '\bsqlx::' --include='*.rs' . | grep -vE '^./(daemon/store/|probes/sql_worker.rs$|digest/sqlite_worker.rs$|locators/sql/)' || true); do
    echo "$file: only daemon/store, probes/sql_worker.rs, digest/sqlite_worker.rs and locators/sql/ name sqlx"
    bad=1
done
exit "$bad"

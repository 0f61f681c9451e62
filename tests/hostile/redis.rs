//! Redis servers, when digests are compared.

use std::path::Path;

use arenad_digest::{self as digest, DigestError, Known, StoreConnections, Subject};
use arenad_engine::docker::DockerEngine;

use super::bounded;
use crate::alone::is_alone;
use crate::hostile_servers::{Hostile, Visited, redis};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_redis_servers_are_refused_in_time() {
    if !is_alone(hostile_redis_servers_are_refused_in_time) {
        return;
    }
    arenad_confined::set_program(env!("CARGO_BIN_EXE_arenad").into());
    for (name, script) in redis::attacks() {
        let server = Hostile::start(script);
        let stores = format!(
            "stores: {{ cache: {{ kind: redis, path: /data, port: {}, timeout: 1s }} }}",
            server.address.port()
        );
        let visited = Visited::at(server.address, &stores);
        let engine = DockerEngine::new("unix:///nowhere");
        let subject = Subject {
            engine: &engine,
            site: &visited.site,
            incarnation: &visited.incarnation,
            folders: &Default::default(),
            copies: Path::new("/nowhere"),
            lines: &StoreConnections::passing(),
            started: None,
        };
        let taken = bounded(name, digest::take(&subject, Known::default())).await;
        let error = taken.err().unwrap_or_else(|| panic!("{name}: it was believed"));
        println!("{name}: {error}");
        assert!(
            matches!(error, DigestError::Redis { .. } | DigestError::TimedOut { .. } | DigestError::Answer { .. }),
            "{name}: {error}"
        );
    }
}

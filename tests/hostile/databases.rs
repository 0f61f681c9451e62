//! Database servers that a locator queries. Their answers can end only a confined process. Probes and digests are
//! covered in `tests/digest/hostile.rs`.

use std::sync::Arc;

use arenad_engine::docker::DockerEngine;
use arenad_locators::{LocateError, Locators};
use arenad_model::locator::parse;
use arenad_site_client::SiteClient;
use arenad_site_client::dial::Dialer;

use super::bounded;
use crate::alone::is_alone;
use crate::hostile_servers::{Hostile, Visited, mysql, postgres};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_databases_have_no_value() {
    if !is_alone(hostile_databases_have_no_value) {
        return;
    }
    arenad_confined::set_program(env!("CARGO_BIN_EXE_arenad").into());
    let folder = tempfile::tempdir().expect("a folder");
    let engine = Arc::new(DockerEngine::new("unix:///nowhere"));
    let locators = Locators::new(engine, SiteClient::new(Dialer::tcp()), folder.path().to_owned()).expect("a client");
    let of = |engine: &'static str, attacks: Vec<_>| attacks.into_iter().map(move |attack| (engine, attack));
    for (engine, (name, script)) in of("postgres", postgres::attacks()).chain(of("mysql", mysql::attacks())) {
        let server = Hostile::start(script);
        let (port, account) = (server.address.port(), "user: a, password: b, database: c");
        let keys = format!("databases: {{ shop: {{ engine: {engine}, port: {port}, {account} }} }}");
        let visited = Visited::at(server.address, &keys);
        // An unoptimized build takes a few seconds to read a long answer.
        let limit = if name.starts_with("a chain") { "30s" } else { "1s" };
        let locator = parse(&format!("sql(shop, timeout={limit}): SELECT 1")).expect("a locator");
        let found = bounded(name, locators.locate(&visited.scene(), &locator)).await;
        let error = found.err().unwrap_or_else(|| panic!("{engine}, {name}: it has a value"));
        println!("{engine}, {name}: {error}");
        if name.starts_with("a chain") {
            // The whole answer was read: the error reports the end of the connection, not the limit.
            assert!(matches!(error, LocateError::Unavailable(_)), "{name}: {error}");
        }
    }
}

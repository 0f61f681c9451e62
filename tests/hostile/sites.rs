//! Sites that probes and locators read.

use std::sync::Arc;
use std::time::Duration;

use arenad_engine::docker::DockerEngine;
use arenad_locators::Locators;
use arenad_model::locator::{Value, parse};
use arenad_probes::Prober;
use arenad_site_client::SiteClient;
use arenad_site_client::dial::Dialer;

use super::bounded;
use crate::alone::is_alone;
use crate::hostile_servers::{Hostile, Visited, http};

/// The time limit of a locator.
const LIMIT: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_sites_are_not_ready() {
    if !is_alone(hostile_sites_are_not_ready) {
        return;
    }
    let prober = Prober::new(Arc::new(DockerEngine::new("unix:///nowhere")), Dialer::tcp());
    for (name, script) in http::attacks() {
        let visited = Visited::at(Hostile::start(script).address, "");
        let probes = &visited.site.readiness.probes;
        let round = bounded(name, prober.round(probes, &visited.site, &visited.incarnation, Some(LIMIT))).await;
        let failure = round.err().unwrap_or_else(|| panic!("{name}: it is ready"));
        println!("{name}: {}", failure.reason);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_answers_have_no_value() {
    if !is_alone(hostile_answers_have_no_value) {
        return;
    }
    arenad_confined::set_program(env!("CARGO_BIN_EXE_arenad").into());
    let folder = tempfile::tempdir().expect("a folder");
    let engine = Arc::new(DockerEngine::new("unix:///nowhere"));
    let locators = Locators::new(engine, SiteClient::new(Dialer::tcp()), folder.path().to_owned()).expect("a client");
    for (name, script) in http::attacks() {
        let visited = Visited::at(Hostile::start(script).address, "");
        let locator = parse("http(timeout=1s): GET /").expect("a locator");
        let found = bounded(name, locators.locate(&visited.scene(), &locator)).await;
        match found {
            Err(error) => println!("{name}: {error}"),
            // An answer that changes the protocol has no body, whatever follows it.
            Ok(found) => assert_eq!((name, found.value), ("another protocol", Value::Text(String::new()))),
        }
    }
    for (name, script) in http::bodies() {
        for selection in ["jsonpath: $..a..b", "jsonpath: $[0].a", "jq: .[0]", "css: b p b p b"] {
            let visited = Visited::at(Hostile::start(script.clone()).address, "");
            let locator = parse(&format!("http(timeout=1s): GET / | {selection}")).expect("a locator");
            let found = bounded(name, locators.locate(&visited.scene(), &locator)).await;
            println!("{name}, {selection}: {:?}", found.map(|found| found.value.type_name()));
        }
    }
}

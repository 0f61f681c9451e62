//! The agent's own browser. The server at the address that the user passes may answer anything.

use std::sync::Arc;

use arenad_engine::docker::DockerEngine;
use arenad_locators::Locators;
use arenad_model::locator::{Locator, parse};
use arenad_site_client::SiteClient;
use arenad_site_client::dial::Dialer;

use super::bounded;
use crate::alone::is_alone;
use crate::hostile_servers::{Hostile, Move, Visited, http, websocket};

/// Locators and their folder, which is removed with them.
struct Looking(Locators, #[expect(dead_code, reason = "removed when it is dropped")] tempfile::TempDir);

fn looking() -> Looking {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = Arc::new(DockerEngine::new("unix:///nowhere"));
    let locators = Locators::new(engine, SiteClient::new(Dialer::tcp()), folder.path().to_owned());
    Looking(locators.expect("a client"), folder)
}

fn locator() -> Locator {
    parse("js(timeout=1s): document.title @ live").expect("a locator")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_of_pages_that_mean_harm_are_refused_in_time() {
    if !is_alone(lists_of_pages_that_mean_harm_are_refused_in_time) {
        return;
    }
    let looking = looking();
    for (name, script) in http::attacks().into_iter().chain(http::bodies()) {
        let visited = Visited::at(Hostile::start(script).address, "");
        let found = bounded(name, looking.0.locate(&visited.scene(), &locator())).await;
        let error = found.err().unwrap_or_else(|| panic!("{name}: it has a value"));
        println!("{name}: {error}");
        assert!(error.is_environment_fault(), "{name}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_mean_harm_are_refused_in_time() {
    if !is_alone(connections_that_mean_harm_are_refused_in_time) {
        return;
    }
    let looking = looking();
    let page = r#"[{"type": "page", "url": "http://a/", "webSocketDebuggerUrl": "ws://a/devtools/page/1"}]"#;
    for (name, script) in websocket::attacks() {
        let browser = Hostile::answering(move |heard| match websocket::taken(heard) {
            Some(taken) => [vec![Move::Say(taken)], script.clone()].concat(),
            None => http::page("application/json", page).split_off(1),
        });
        let visited = Visited::at(browser.address, "");
        let found = bounded(name, looking.0.locate(&visited.scene(), &locator())).await;
        let error = found.err().unwrap_or_else(|| panic!("{name}: it has a value"));
        println!("{name}: {error}");
        assert!(error.is_environment_fault(), "{name}: {error}");
    }
}

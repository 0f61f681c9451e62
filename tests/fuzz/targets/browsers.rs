//! Answers of the agent's own browser: first its list of pages, then a message for each command; the last part is sent
//! as raw bytes.

use std::sync::{Arc, Mutex};

use arenad_engine::docker::DockerEngine;
use arenad_locators::Locators;
use arenad_model::locator::parse;
use arenad_site_client::SiteClient;
use arenad_site_client::dial::Dialer;

use crate::hostile::{Hostile, Move, Visited, http, websocket};
use crate::target::{DIVIDER, FuzzTarget, InputCheck, pieces, scratch};

pub const TARGET: FuzzTarget = FuzzTarget {
    words: &[
        DIVIDER,
        "{\"id\":1,\"result\":{",
        "{\"id\":2,\"result\":{}}",
        "\"result\":",
        "\"error\":{\"message\":\"Cannot find context\"}",
        "\"frameTree\":{\"frame\":{\"id\":\"A\"}}",
        "\"executionContextId\":1",
        "\"exceptionDetails\":{",
        "\"value\":\"http://a/\\nj[1]\"",
        "\\nt",
        "\\nl9999999",
        "\\nb1",
        "\\nnInfinity",
        "\"method\":\"Page.loadEventFired\"",
        "\"sessionId\":\"A\"",
        "\"type\":\"page\"",
        "\"webSocketDebuggerUrl\":\"ws://a/devtools/page/1\"",
        "null",
        "\\ud800",
        "\u{1}\u{0}",
    ],
    ..FuzzTarget::new("browsers", open)
};

fn open() -> InputCheck {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let input: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
    let served = Arc::clone(&input);
    let browser = Hostile::answering(move |heard| {
        let parts = served.lock().expect("no panic").clone();
        match websocket::taken(heard) {
            Some(taken) => commands(taken, &parts[1..]),
            None => http::page("application/json", &String::from_utf8_lossy(&parts[0])).split_off(1),
        }
    });
    let visited = Visited::at(browser.address, "");
    let engine = Arc::new(DockerEngine::new("unix:///nowhere"));
    let locators = Locators::new(engine, SiteClient::new(Dialer::tcp()), scratch()).expect("a client");
    let locator = parse("js(timeout=100ms): document.title @ live").expect("a locator");
    Box::new(move |bytes| {
        *input.lock().expect("no panic") = pieces(bytes);
        match runtime.block_on(locators.locate(&visited.scene(), &locator)) {
            Ok(found) => found.value.type_name().to_owned(),
            Err(error) => error.to_string().chars().filter(|c| c.is_ascii_alphabetic() || *c == ' ').take(60).collect(),
        }
    })
}

fn commands(taken: Vec<u8>, answers: &[Vec<u8>]) -> Vec<Move> {
    let mut script = vec![Move::Say(taken)];
    for (number, answer) in answers.iter().enumerate() {
        let bytes = if number + 1 == answers.len() { answer.clone() } else { websocket::text(answer) };
        script.extend([Move::Hear, Move::Say(bytes)]);
    }
    script
}

//! Answers of a Redis server when states are compared: the parts of an input, one after the other.

use std::path::Path;
use std::sync::{Arc, Mutex};

use arenad_digest::{self as digest, Known, StoreConnections, Subject};
use arenad_engine::docker::DockerEngine;

use crate::hostile::{Hostile, Move, Visited};
use crate::target::{DIVIDER, FuzzTarget, InputCheck, pieces};

pub const TARGET: FuzzTarget = FuzzTarget {
    words: &[
        "$",
        "$-1\r\n",
        "$0\r\n\r\n",
        "$16777217\r\n",
        "$99999999999\r\n",
        "-ERR\r\n",
        "+OK\r\n",
        "*1\r\n",
        ":1\r\n",
        "_\r\n",
        "\r\n",
        "\n",
        DIVIDER,
        "ok run/1/2 0",
        "ok ",
        "# Keyspace\r\ndb0:keys=1\r\ndb1:keys=2\r\n",
        "db15:",
        "\n61 string abc -1",
        "\n6 ",
        "\n\u{e9}",
        " ",
        "\0",
    ],
    ..FuzzTarget::new("redis", open)
};

fn open() -> InputCheck {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let input: Arc<Mutex<Vec<u8>>> = Arc::default();
    let served = Arc::clone(&input);
    let server = Hostile::answering(move |_| answers(&served.lock().expect("no panic")));
    let stores =
        format!("stores: {{ cache: {{ kind: redis, path: /data, port: {}, timeout: 300ms }} }}", server.address.port());
    let visited = Visited::at(server.address, &stores);
    let engine = DockerEngine::new("unix:///nowhere");
    // The connections are kept, as in the daemon: one on which an answer was misread must not be used again.
    Box::new(move |bytes| {
        *input.lock().expect("no panic") = bytes.to_vec();
        let lines = StoreConnections::kept();
        let subject = Subject {
            engine: &engine,
            site: &visited.site,
            incarnation: &visited.incarnation,
            folders: &Default::default(),
            copies: Path::new("/nowhere"),
            lines: &lines,
            started: None,
        };
        match runtime.block_on(digest::take(&subject, Known::default())) {
            Ok(taken) => format!("{} keys", taken.digest.stores["cache"].keys.len().min(9)),
            Err(error) => error.to_string().chars().filter(|c| c.is_ascii_alphabetic() || *c == ' ').take(60).collect(),
        }
    })
}

/// The client has requested the first part; each further part waits for its command.
fn answers(input: &[u8]) -> Vec<Move> {
    let mut script: Vec<Move> = pieces(input).into_iter().flat_map(|piece| [Move::Say(piece), Move::Hear]).collect();
    script.pop();
    script
}

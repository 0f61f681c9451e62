//! Clients connected before a reset: whatever the way of the reset, their pending requests end, they receive no data of
//! the new containers, and the new containers receive none of theirs.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use super::standbys::{await_standbys, rewindable, used};
use crate::support::wait::PATIENCE;
use crate::support::{World, within};

const BASELINE: &str = "toy\nconfigured\n";

/// A connection to the gateway.
struct GatewayConnection(TcpStream);

impl GatewayConnection {
    fn connect(world: &World) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", world.port)).expect("connect");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        Self(stream)
    }

    fn send(&mut self, request: &str) {
        self.0.write_all(request.as_bytes()).expect("send");
    }

    /// Reads until a text has arrived.
    #[track_caller]
    fn read_to(&mut self, wanted: &str) -> String {
        let mut text = String::new();
        while !text.contains(wanted) {
            let mut bytes = [0; 512];
            let count = self.0.read(&mut bytes).expect("an answer in time");
            assert!(count > 0, "it ended without {wanted:?}: {text}");
            text.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
        text
    }

    /// Reads to the end of the connection, which must come; returns the text that was read.
    #[track_caller]
    fn rest(&mut self) -> String {
        let mut bytes = Vec::new();
        let ended = self.0.read_to_end(&mut bytes);
        let is_open = ended.is_err_and(|error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut));
        assert!(!is_open, "the connection to the old container is still open");
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Requests a page on a persistent connection.
fn kept_get(client: &mut GatewayConnection) -> String {
    client.send("GET /cgi-bin/page HTTP/1.1\r\nHost: localhost\r\n\r\n");
    // The site closes the connection after its answer, so the gateway marks the end with the last chunk.
    client.read_to("\r\n0\r\n\r\n")
}

/// Resets the site while clients hold connections to the old containers.
#[track_caller]
fn assert_past_is_past(world: &World, way: &str) {
    let word = format!("before-{way}");
    world.write(&word);

    let mut idle = GatewayConnection::connect(world);
    assert!(kept_get(&mut idle).contains(&word));
    let mut half = GatewayConnection::connect(world);
    half.send("POST /cgi-bin/write?half HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n12345");
    within("the request to arrive", PATIENCE, || world.page().contains("half").then_some(()));
    let mut socket = GatewayConnection::connect(world);
    socket.send("GET /cgi-bin/socket HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    let agreed = socket.read_to(&word);
    assert!(agreed.starts_with("HTTP/1.1 101 "), "{agreed}");

    assert_eq!(world.reset(), way);
    let told = socket.rest();
    // Each message ends with the whole stored text; the text of the baseline would end earlier.
    assert!(!told.contains("configured>"), "{way}: the old socket shows the new state: {told}");
    // The gateway may have closed the connection already.
    let _ = half.0.write_all(b"67890");
    // The old container may have answered before the request was complete; no other container answers.
    let answer = half.rest();
    assert!(answer.matches("HTTP/1.1 ").count() <= 1, "{way}: the past is answered: {answer}");
    // An idle connection serves as a new one would and shows nothing of the old state.
    let page = kept_get(&mut idle);
    assert!(page.contains("configured\n") && !page.contains(&word), "{way}: {page}");
    assert_eq!(world.page(), BASELINE, "{way}: no old request writes to the new containers");
}

#[test]
fn clients_of_the_past_are_cut_off_by_a_recreate_and_a_swap() {
    let world = used("past", 0);
    assert_past_is_past(&world, "recreate");
    world.edit("environment", "standby: 0", "standby: 1");
    world.up();
    world.reset();
    await_standbys(&world, 1);
    assert_past_is_past(&world, "swap");
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[test]
fn clients_of_the_past_are_cut_off_by_a_rewind() {
    let world = rewindable("past-rewind", 0, "true");
    assert_past_is_past(&world, "rewind");
    world.run(&["down"]).code(0);
    world.assert_down();
}

//! The bodies of requests at slots' own ports: addresses of slots become canonical, however the body is sent.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use arenad_gateway::{RecordedBody, SlotPort};

use super::arena::{open, route_to};
use super::slot_ports::{TestSlot, local, slot_of};
use super::support::*;

/// A site that keeps the requests that it gets.
fn keeping() -> (ScriptedSite, Arc<Mutex<Vec<SentMessage>>>) {
    let seen: Arc<Mutex<Vec<SentMessage>>> = Arc::default();
    let kept = Arc::clone(&seen);
    let site = ScriptedSite::start(move |visit| {
        loop {
            let request = visit.request()?;
            kept.lock().expect("no panic").push(request);
            visit.send(ok("taken"))?;
        }
    });
    (site, seen)
}

fn only(seen: &Mutex<Vec<SentMessage>>) -> SentMessage {
    let mut seen = seen.lock().expect("no panic");
    assert_eq!(seen.len(), 1);
    seen.remove(0)
}

/// Sends a POST request whose length is declared, and expects that the site takes it.
fn post(port: &SlotPort, headers: &str, body: &str) {
    let mut client = RawClient::connect(port.local_addr());
    let head = format!("POST / HTTP/1.1\r\nHost: {}\r\n{headers}Content-Length: {}\r\n\r\n", local(port), body.len());
    client.send(format!("{head}{body}")).expect("sent");
    let answer = client.answer().expect("an answer");
    assert_eq!((answer.status(), answer.text().as_str()), (200, "taken"));
}

/// The same text as a page of the port sends it, and as the site gets it.
fn both(port: &SlotPort, text: &str) -> (String, String) {
    let sent = text.replace("OWN", &format!("localhost:{}", port.local_addr().port()));
    let sent = sent.replace("PORT", &port.local_addr().port().to_string());
    (
        sent.replace("OTHER", "localhost:9998"),
        text.replace("OWN", "localhost:7770").replace("PORT", "7770").replace("OTHER", "localhost:9999"),
    )
}

const FORM: (&str, &str) = (
    "application/x-www-form-urlencoded",
    "next=http%3A%2F%2Flocalhost%3APORT%2Fcart&from=http://OTHER/&twice=http%253A%252F%252Flocalhost%253APORT&x=1",
);
const JSON: (&str, &str) =
    ("application/json; charset=utf-8", "{\"a\":\"http://OWN/x\",\"b\":\"http:\\/\\/OTHER\\/\",\"c\":\"//OWN\"}");

#[test]
fn a_site_gets_its_own_addresses_and_the_right_length() {
    let gateway = gateway();
    let (site, seen) = keeping();
    let route = open(&gateway);
    route.serve(target(&site, 1));
    let (port, slot) = slot_of(&gateway, &route, true);
    slot.grant("e1", 1);
    for (kind, text) in [FORM, JSON, ("text/plain", "see http://OWN/")] {
        let (sent, expected) = both(&port, text);
        assert_ne!(sent.len(), expected.len(), "the length changes");
        post(&port, &format!("Content-Type: {kind}\r\nContent-MD5: x\r\n"), &sent);
        let request = only(&seen);
        assert_eq!(request.text(), expected, "{kind}");
        assert_eq!(request.header("content-length"), Some(expected.len().to_string().as_str()), "{kind}");
        assert_eq!((request.header("transfer-encoding"), request.header("content-md5")), (None, None), "{kind}");
        eventually("the exchange has ended", || route.stats().in_flight == 0);
        let recording = route.recorder().expect("a recorder").recording().expect("a recording");
        let recorded = &recording.exchanges.last().expect("an exchange").sent;
        let RecordedBody::Whole(recorded) = recorded else { panic!("the body is lost") };
        assert_eq!(String::from_utf8_lossy(recorded), expected, "recordings of all slots are the same");
    }
    // A body without addresses keeps all of its headers.
    post(&port, "Content-Type: application/json\r\nContent-MD5: x\r\n", "{\"url\":\"http://elsewhere.test/\"}");
    let request = only(&seen);
    assert_eq!((request.header("content-length"), request.header("content-md5")), (Some("32"), Some("x")));
}

#[test]
fn a_body_arrives_whole_however_the_client_divides_it() {
    let gateway = gateway();
    let (site, seen) = keeping();
    let route = route_to(&gateway, &site, 1);
    let (port, slot) = slot_of(&gateway, &route, true);
    slot.grant("e1", 1);
    for (kind, text) in [FORM, JSON] {
        let (sent, expected) = both(&port, text);
        for size in 1..sent.len() {
            let parts = || sent.as_bytes().chunks(size).map(String::from_utf8_lossy);
            let head = format!("POST / HTTP/1.1\r\nHost: {}\r\nContent-Type: {kind}\r\n", local(&port));
            let mut client = RawClient::connect(port.local_addr());
            client.send(format!("{head}Transfer-Encoding: chunked\r\n\r\n")).expect("sent");
            for part in parts() {
                client.send(format!("{:x}\r\n{part}\r\n", part.len())).expect("sent");
            }
            client.send("0\r\n\r\n").expect("sent");
            assert_eq!(client.answer().expect("an answer").text(), "taken");
            let request = only(&seen);
            assert_eq!(request.text(), expected, "{kind} in chunks of {size}");
            assert_eq!(request.header("content-length"), None);

            // A chunked request is the last on its connection.
            let mut client = RawClient::connect(port.local_addr());
            client.send(format!("{head}Content-Length: {}\r\n\r\n", sent.len())).expect("sent");
            for part in parts() {
                client.send(part.into_owned()).expect("sent");
            }
            assert_eq!(client.answer().expect("an answer").text(), "taken");
            let request = only(&seen);
            assert_eq!(request.text(), expected, "{kind} in parts of {size}");
            assert_eq!(request.header("content-length"), Some(expected.len().to_string().as_str()));
        }
    }
    assert_eq!(route.stats().target_failures, 0);
}

#[test]
fn a_long_body_is_mapped_as_it_arrives() {
    let gateway = gateway();
    let (site, seen) = keeping();
    let route = route_to(&gateway, &site, 1);
    let (port, slot) = slot_of(&gateway, &route, true);
    slot.grant("e1", 1);
    // More than the gateway reads ahead.
    let (sent, expected) = both(&port, &"http://OWN/cart http://OTHER/f ".repeat(60_000));
    post(&port, "Content-Type: application/json\r\n", &sent);
    let request = only(&seen);
    assert!(request.text() == expected, "{} bytes instead of {}", request.body.len(), expected.len());
    assert_eq!((request.header("content-length"), request.header("transfer-encoding")), (None, Some("chunked")));
}

#[test]
fn bodies_of_other_types_pass_as_they_are() {
    let gateway = gateway();
    let (site, seen) = keeping();
    let route = route_to(&gateway, &site, 1);
    let is_unchanged = |port: &SlotPort, headers: &str| {
        let (sent, _) = both(port, "--x\r\nurl=http://OWN/ http%3A%2F%2FOTHER");
        post(port, &format!("{headers}Content-MD5: x\r\n"), &sent);
        let request = only(&seen);
        assert_eq!(request.text(), sent, "{headers}");
        assert_eq!(request.header("content-length"), Some(sent.len().to_string().as_str()), "{headers}");
        assert_eq!(request.header("content-md5"), Some("x"), "{headers}");
    };
    let (port, slot) = slot_of(&gateway, &route, true);
    slot.grant("e1", 1);
    for headers in [
        "Content-Type: multipart/form-data; boundary=x\r\n",
        "Content-Type: application/octet-stream\r\n",
        "Content-Type: application/json\r\nContent-Encoding: gzip\r\n",
        "",
    ] {
        is_unchanged(&port, headers);
    }
    let (port, slot) = slot_of(&gateway, &route, false);
    slot.grant("e1", 1);
    is_unchanged(&port, "Content-Type: application/json\r\n");
}

/// Sends the beginning of a body, and waits until the gateway reads the rest.
fn begun(port: &SlotPort, slot: &TestSlot) -> RawClient {
    slot.grant("e1", 1);
    let mut client = RawClient::connect(port.local_addr());
    let head = format!("POST / HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n", local(port));
    client.send(format!("{head}Content-Length: 100\r\n\r\n{{\"a\":")).expect("sent");
    eventually("the request is read", || port.stats().requests == 1);
    client
}

#[test]
fn an_unfinished_body_reaches_no_site() {
    let gateway = gateway();
    let (site, _) = keeping();
    let route = route_to(&gateway, &site, 1);
    let (port, slot) = slot_of(&gateway, &route, true);
    let mut client = begun(&port, &slot);
    slot.end();
    let answer = client.answer().expect("an answer before the client has sent everything");
    assert_eq!((answer.status(), answer.header("connection")), (410, Some("close")));
    assert!(client.is_ended());

    let (port, slot) = slot_of(&gateway, &route, true);
    drop(begun(&port, &slot));
    eventually("the client is forgotten", || port.stats().connections == 0 && route.stats().in_flight == 0);
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!((site.visits(), route.stats().target_failures), (0, 0));
}

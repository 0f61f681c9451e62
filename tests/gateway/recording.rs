//! The gateway records every exchange, under the right generation, before the client can ask for the record.

use arenad_gateway::{Exchange, Gateway, Loss, RecordedBody, Recording, RecordingFilter, Route, WriteRules};

use super::support::*;

fn recorded_by(records: RecordingFilter) -> (Gateway, Route) {
    let gateway = gateway();
    let route = gateway.open(loopback(), hold_limits(), WriteRules::default(), records, "shop");
    let route = route.expect("a free port");
    (gateway, route)
}

fn recording(route: &Route) -> Recording {
    route.recorder().expect("it records").recording().expect("a generation serves")
}

fn only(route: &Route) -> Exchange {
    let mut exchanges = recording(route).exchanges;
    assert_eq!(exchanges.len(), 1);
    exchanges.remove(0)
}

fn text(body: &RecordedBody) -> String {
    match body {
        RecordedBody::Whole(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        RecordedBody::None => "none".to_owned(),
        RecordedBody::Lost { why, size } => format!("{why:?} after {size}"),
    }
}

#[test]
fn an_answer_that_was_read_is_recorded() {
    let site = ScriptedSite::answering(|request| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n";
        let text = request.text();
        match request.path() {
            "/chunked" => format!("{head}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"),
            _ => format!("{head}Content-Length: {}\r\n\r\n{text}", text.len()),
        }
    });
    let (_gateway, route) = recorded_by(RecordingFilter::All);
    route.serve(target(&site, 1));
    let mut client = RawClient::connect(route.local_addr());
    for number in 0..50 {
        let body = "x".repeat(number);
        client
            .send(format!(
                "POST /{number}?a=b HTTP/1.1\r\nHost: shop.test:80\r\nContent-Length: {number}\r\n\r\n{body}"
            ))
            .expect("sent");
        client.answer().expect("an answer");
        let last = recording(&route).exchanges.pop().expect("an exchange");
        assert_eq!(last.request.url, format!("http://shop.test:80/{number}?a=b"));
        let expected = if number == 0 { "none".to_owned() } else { body };
        assert_eq!((text(&last.sent), text(&last.received)), (expected.clone(), expected));
        assert!(last.took.is_some());
        client.get("/chunked").expect("an answer");
        let last = recording(&route).exchanges.pop().expect("an exchange");
        assert_eq!((text(&last.sent).as_str(), text(&last.received).as_str()), ("none", "hello world"));
    }
    // An HTTP/1.0 client may omit Host.
    let mut old = RawClient::connect(route.local_addr());
    old.send("GET /old HTTP/1.0\r\n\r\n").expect("sent");
    old.answer().expect("an answer");
    let last = recording(&route).exchanges.pop().expect("an exchange");
    assert_eq!(last.request.url, format!("http://{}/old", route.local_addr()));
    assert!(!last.request.headers.contains_key("x-forwarded-for"), "the head is the client's");
    assert_eq!(recording(&route).exchanges.len(), 101);
}

#[test]
fn each_generation_has_its_own_recording() {
    let (silent, new) = (
        ScriptedSite::start(|visit| {
            loop {
                visit.request()?;
            }
        }),
        ScriptedSite::echoing(),
    );
    let (_gateway, route) = recorded_by(RecordingFilter::All);
    assert!(route.recorder().is_some_and(|recorder| recorder.recording().is_none()), "nothing serves yet");
    // A held request is recorded only once it is sent to a target.
    route.hold("starting");
    let mut client = RawClient::connect(route.local_addr());
    client.send("GET /held HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    eventually("it is held", || route.stats().held == 1);
    route.serve(target(&silent, 1));
    eventually("it is sent", || !recording(&route).exchanges.is_empty());
    let waiting = only(&route);
    assert!(waiting.answer.is_none() && waiting.took.is_none(), "nothing has come of it yet");
    route.serve(target(&new, 2));
    client.answer().expect("an answer of the new target");
    let recording = recording(&route);
    assert_eq!((recording.generation, recording.exchanges.len(), recording.is_late), (2, 1, false));
    route.hold("a snapshot");
    route.serve(target(&new, 2));
    assert_eq!(only(&route).request.url, "http://a/held", "the same generation goes on");
    route.forget_recorded();
    assert!(recording_is_empty(&route));
    route.take_up(3);
    route.serve(target(&new, 3));
    let late = route.recorder().and_then(|recorder| recorder.recording()).expect("it serves");
    assert_eq!((late.generation, late.is_late), (3, true));
}

fn recording_is_empty(route: &Route) -> bool {
    recording(route).exchanges.is_empty()
}

#[test]
fn what_breaks_is_recorded_as_broken() {
    let site = ScriptedSite::start(|visit| {
        visit.request()?;
        visit.send("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n\r\nabc")
    });
    let (_gateway, route) = recorded_by(RecordingFilter::All);
    route.serve(target(&site, 1));
    let mut client = RawClient::connect(route.local_addr());
    assert!(client.get("/").is_err(), "the answer ends too early");
    eventually("its end", || only(&route).took.is_some());
    let broken = only(&route).received;
    assert!(matches!(broken, RecordedBody::Lost { why: Loss::CutOff, size: 3 }), "{}", text(&broken));
    // The target cannot be reached: the gateway's own answer is recorded, as the client received it.
    let gone = ScriptedSite { address: free_address(), visits: std::sync::Arc::default() };
    route.serve(target(&gone, 2));
    assert_eq!(RawClient::connect(route.local_addr()).get("/x").expect("an answer").status(), 502);
    assert_eq!(only(&route).answer.map(|answer| answer.status.as_u16()), Some(502));
}

fn free_address() -> std::net::SocketAddr {
    std::net::TcpListener::bind(loopback()).and_then(|listener| listener.local_addr()).expect("a free port")
}

#[test]
fn only_what_is_wanted_is_recorded() {
    let site = ScriptedSite::echoing();
    let (_gateway, route) = recorded_by(RecordingFilter::Writes);
    route.serve(target(&site, 1));
    let mut client = RawClient::connect(route.local_addr());
    client.get("/").expect("an answer");
    client.send("DELETE /1 HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    client.answer().expect("an answer");
    assert_eq!(only(&route).request.method, "DELETE");
    let (_gateway, route) = recorded_by(RecordingFilter::Nothing);
    assert!(route.recorder().is_none());
}

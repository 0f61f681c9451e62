//! Requests that two parsers could understand differently. `/smuggled` never arrives at the site.

use std::io::{BufRead, Read};
use std::sync::{Arc, Mutex};

use super::support::*;

through_doors! {
    ambiguous_heads_are_refused_and_end_the_connection,
    badly_framed_chunks_never_make_a_whole_request,
    what_follows_a_chunked_request_is_not_looked_at,
    a_sound_request_before_a_refused_one_is_answered_first,
    an_answer_in_a_coding_that_would_go_unnamed_is_not_passed_on,
    a_body_that_a_site_ignores_is_nobodys_request,
}

/// A site that records every request, complete or not.
fn recording() -> (ScriptedSite, Arc<Mutex<Vec<String>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let record = Arc::clone(&seen);
    let site = ScriptedSite::start(move |visit| {
        loop {
            let mut request = read_head(&mut visit.reader)?;
            record.lock().expect("no panic").push(request.first.clone());
            read_body(&mut visit.reader, &mut request, false)?;
            record.lock().expect("no panic").push(format!("whole {}", request.first));
            visit.answer("fine")?;
        }
    });
    (site, seen)
}

/// Sends the text, followed by a sound request, and returns everything that comes back until the gateway closes.
fn exchange(entrance: &Entrance, text: &str) -> String {
    let mut client = entrance.client();
    client.send(format!("{}{}", client.door.requests(text), client.door.requests(SMUGGLED))).expect("sent");
    let mut all = Vec::new();
    if let Err(error) = client.reader.read_to_end(&mut all).map_err(in_time) {
        panic!("the answer was lost to {error} for {text:?}");
    }
    String::from_utf8_lossy(&all).into_owned()
}

const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";

fn ambiguous_heads_are_refused_and_end_the_connection(door: Door) {
    let (site, seen) = recording();
    let (_gateway, _route, entrance) = serving_through(door, &site);
    let corpus: &[(&str, &[u16])] = &[
        // Two statements of the body's length.
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", &[400]),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", &[400]),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 40\r\n\r\n", &[400]),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4, 5\r\n\r\nabcd", &[400]),
        // Invalid lengths.
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +4\r\n\r\nabcd", &[400]),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x4\r\n\r\nabcd", &[400]),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", &[400]),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n", &[400]),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551616\r\n\r\n", &[400]),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4 4\r\n\r\nabcd", &[400]),
        // Codings that are not exactly chunked.
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", &[501]),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", &[501]),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", &[501]),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n", &[501]),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n", &[400, 501]),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            &[400],
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n",
            &[400, 501],
        ),
        ("POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", &[400]),
        // Names and lines that parsers split differently.
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length : 4\r\n\r\nabcd", &[400]),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n", &[400]),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent\rLength: 4\r\n\r\nabcd", &[400]),
        ("POST / HTTP/1.1\r\nHost: a\r\n Content-Length: 4\r\n\r\nabcd", &[400]),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n\tfolded\r\n\r\n", &[400]),
        ("GET / HTTP/1.1\r\n Host: a\r\nHost: a\r\n\r\n", &[400]),
        ("GET / HTTP/1.1\nHost: a\n\n", &[400]),
        ("GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n", &[400]),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: y\rZ: w\r\n\r\n", &[400]),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: y\0\r\n\r\n", &[400]),
        ("GET / HTTP/1.1\r\nHost: a\r\nNoColon\r\n\r\n", &[400]),
        ("GET / HTTP/1.1\r\nHost: a\r\n: empty\r\n\r\n", &[400]),
        ("GET / HTTP/1.1\r\nHost: a\r\nX(Y): z\r\n\r\n", &[400]),
        ("GET  / HTTP/1.1\r\nHost: a\r\n\r\n", &[400]),
        ("GET / HTTP/1.1 \r\nHost: a\r\n\r\n", &[400]),
        ("GET / x HTTP/1.1\r\nHost: a\r\n\r\n", &[400]),
        ("GET /\r\nHost: a\r\n\r\n", &[400]),
        ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", &[400]),
        ("\0GET / HTTP/1.1\r\nHost: a\r\n\r\n", &[400]),
        // Missing, repeated and invalid hosts.
        ("GET / HTTP/1.1\r\n\r\n", &[400]),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", &[400]),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", &[400]),
        ("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", &[400]),
        ("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", &[400]),
        ("GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", &[400]),
        ("GET / HTTP/1.1\r\nHost:\r\n\r\n", &[400]),
        ("GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n", &[400]),
        ("GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n", &[400]),
        ("GET a:80 HTTP/1.1\r\nHost: a\r\n\r\n", &[400]),
        ("GET * HTTP/1.1\r\nHost: a\r\n\r\n", &[400]),
        // A tunnel needs credentials, and does not lead through a site.
        ("CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n", if door == Door::Proxy { &[407] } else { &[405] }),
        ("CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\nContent-Length: 4\r\n\r\nabcd", &[400]),
        // TLS.
        ("\x16\x03\x01\x02\0\x01\0\x01\u{7f}\x03\x03", &[400]),
        ("TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", &[405]),
    ];
    for (request, statuses) in corpus {
        let all = exchange(&entrance, request);
        let status: u16 = all.get(9..12).and_then(|status| status.parse().ok()).unwrap_or(0);
        assert!(statuses.contains(&status), "{request:?} was answered {all:?}");
        assert_eq!(all.matches("HTTP/1.").count(), 1, "{request:?} was answered more than once: {all:?}");
        assert!(all.to_ascii_lowercase().contains("\r\nconnection: close\r\n"), "{request:?}: {all:?}");
    }
    assert_eq!(*seen.lock().expect("no panic"), Vec::<String>::new(), "the site saw something");
}

fn badly_framed_chunks_never_make_a_whole_request(door: Door) {
    let (site, seen) = recording();
    let (_gateway, _route, entrance) = serving_through(door, &site);
    let corpus = [
        "5\nhello\r\n0\r\n\r\n",
        "5\r\nhello\n0\r\n\r\n",
        "5\r\nhelloX0\r\n\r\n",
        "5\r\nhell\r\n0\r\n\r\n",
        "-5\r\nhello\r\n0\r\n\r\n",
        "0x5\r\nhello\r\n0\r\n\r\n",
        "g\r\nhello\r\n0\r\n\r\n",
        "\r\nhello\r\n0\r\n\r\n",
        "5;a\nb\r\nhello\r\n0\r\n\r\n",
        "fffffffffffffffff\r\nhello\r\n0\r\n\r\n",
        "5\r\nhello\r\n0\r\nbad trailer\r\n\r\n",
    ];
    for chunks in corpus {
        let request = format!("POST /chunks HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}");
        let all = exchange(&entrance, &request);
        assert!(all.starts_with("HTTP/1.1 400 "), "{chunks:?} was answered {all:?}");
        assert_eq!(all.matches("HTTP/1.").count(), 1, "{chunks:?} was answered more than once: {all:?}");
    }
    let seen = seen.lock().expect("no panic");
    assert!(!seen.iter().any(|line| line.starts_with("whole") || line.contains("smuggled")), "{seen:?}");
}

fn what_follows_a_chunked_request_is_not_looked_at(door: Door) {
    let (site, seen) = recording();
    let (_gateway, _route, entrance) = serving_through(door, &site);
    let request = "POST /first HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    let all = exchange(&entrance, request);
    assert!(all.starts_with("HTTP/1.1 200 ") && all.contains("connection: close"), "{all:?}");
    assert_eq!(*seen.lock().expect("no panic"), ["POST /first HTTP/1.1", "whole POST /first HTTP/1.1"]);
}

fn a_sound_request_before_a_refused_one_is_answered_first(door: Door) {
    let (site, seen) = recording();
    let (_gateway, _route, entrance) = serving_through(door, &site);
    let bad = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n";
    let all = exchange(&entrance, &format!("GET /good HTTP/1.1\r\nHost: a\r\n\r\n{bad}"));
    let statuses: Vec<&str> = all.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect();
    assert_eq!(statuses, ["200", "400"], "{all:?}");
    assert_eq!(*seen.lock().expect("no panic"), ["GET /good HTTP/1.1", "whole GET /good HTTP/1.1"]);
}

fn an_answer_in_a_coding_that_would_go_unnamed_is_not_passed_on(door: Door) {
    let site = ScriptedSite::answering(|_| {
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n".to_owned()
    });
    let (_gateway, _route, entrance) = serving_through(door, &site);
    assert_eq!(entrance.client().get("/").expect("an answer").status(), 502);
}

fn a_body_that_a_site_ignores_is_nobodys_request(door: Door) {
    // A server that expects no body with a GET takes the bytes after the head as the next request. It answers that
    // request only when more bytes arrive, so the idle connection does not reveal that the answers are one ahead.
    let site = ScriptedSite::start(move |visit| {
        loop {
            let request = read_head(&mut visit.reader)?;
            if request.path() == "/smuggled" {
                visit.reader.fill_buf()?;
            }
            visit.answer(request.path())?;
        }
    });
    let (_gateway, _route, entrance) = serving_through(door, &site);
    let mut attacker = entrance.client();
    let head = format!("GET /first HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", SMUGGLED.len());
    attacker.send(format!("{}{SMUGGLED}", door.requests(&head))).expect("sent");
    assert_eq!(attacker.answer().expect("an answer").text(), "/first");
    // Each worker has its own connections, and the kernel chooses the worker.
    for number in 0..20 {
        let path = format!("/victim/{number}");
        let mut victim = entrance.client();
        assert_eq!(victim.get(&path).expect("an answer").text(), path, "the answer to another's request");
    }
}

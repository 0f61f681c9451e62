//! Upgraded connections, which leave HTTP.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::support::*;

through_doors! {
    bytes_pass_both_ways_and_ends_are_passed_on,
    much_passes_through_a_tunnel,
    a_switch_cuts_a_tunnel_on_both_sides,
    an_upgrade_that_the_site_declines_is_an_ordinary_answer,
    a_request_with_a_body_may_offer_an_upgrade,
    an_upgrade_that_nobody_asked_for_is_not_passed_on,
    an_upgrade_is_held_like_any_request,
}

const UPGRADE: &str = "GET /socket HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\n";

/// A site that echoes all bytes after the upgrade.
fn echo() -> ScriptedSite {
    ScriptedSite::start(|visit| {
        let request = visit.request()?;
        if request.header("upgrade") != Some("websocket") || request.header("connection") != Some("upgrade") {
            return visit.answer("no upgrade arrived");
        }
        // The first frame is sent together with the answer.
        visit.send(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\nhi!",
        )?;
        let mut buffer = [0; 4096];
        loop {
            let count = visit.reader.read(&mut buffer)?;
            if count == 0 {
                return visit.send("bye");
            }
            visit.send(&buffer[..count])?;
        }
    })
}

fn read(client: &mut RawClient, count: usize) -> String {
    let mut bytes = vec![0; count];
    client.reader.read_exact(&mut bytes).map_err(in_time).expect("bytes");
    String::from_utf8(bytes).expect("text")
}

fn bytes_pass_both_ways_and_ends_are_passed_on(door: Door) {
    let site = echo();
    let (_gateway, route, entrance) = serving_through(door, &site);
    let mut client = entrance.client();
    // The client sends data before the server agrees to the upgrade.
    client.request(format!("{UPGRADE}early")).expect("sent");
    let head = client.head().expect("an answer");
    assert_eq!(head.status(), 101);
    assert_eq!((head.header("upgrade"), head.header("connection")), (Some("websocket"), Some("upgrade")));
    assert_eq!(read(&mut client, 8), "hi!early");
    for number in 0..100 {
        let frame = format!("frame {number:04}\0\r\n\r\n");
        client.send(&frame).expect("sent");
        assert_eq!(read(&mut client, frame.len()), frame);
    }
    assert_eq!(route.stats().in_flight, 1, "a tunnel is a request in flight");
    assert_eq!(route.stats().unsafe_requests, 1, "the content of a tunnel is unknown");
    client.stream().shutdown(Shutdown::Write).expect("half closed");
    assert_eq!(read(&mut client, 3), "bye");
    assert!(client.is_ended());
    eventually("the tunnel is gone", || route.stats().in_flight == 0 && entrance.connections() == 0);
}

fn much_passes_through_a_tunnel(door: Door) {
    const SIZE: usize = 8 << 20;
    let site = echo();
    let (_gateway, _route, entrance) = serving_through(door, &site);
    let mut client = entrance.client();
    client.request(UPGRADE).expect("sent");
    client.head().expect("an answer");
    assert_eq!(read(&mut client, 3), "hi!");
    let mut sender = client.stream().try_clone().expect("a second handle");
    let sending = std::thread::spawn(move || sender.write_all(&vec![b'z'; SIZE]).expect("sent"));
    assert!(read(&mut client, SIZE).bytes().all(|byte| byte == b'z'));
    sending.join().expect("no panic");
}

fn a_switch_cuts_a_tunnel_on_both_sides(door: Door) {
    let is_past = Arc::new(AtomicBool::new(false));
    let has_ended = Arc::new(AtomicBool::new(false));
    let (past, ended) = (Arc::clone(&is_past), Arc::clone(&has_ended));
    let site = ScriptedSite::start(move |visit| {
        visit.request()?;
        visit.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")?;
        let sent = loop {
            let word = if past.load(Ordering::SeqCst) { "late" } else { "fine" };
            if let Err(error) = visit.send(word) {
                break Err(error);
            }
        };
        ended.store(true, Ordering::SeqCst);
        sent
    });
    let (_gateway, route, entrance) = serving_through(door, &site);
    let mut client = entrance.client();
    client.request(UPGRADE).expect("sent");
    client.head().expect("an answer");
    assert_eq!(read(&mut client, 4), "fine");
    route.hold("reset");
    is_past.store(true, Ordering::SeqCst);
    let mut rest = Vec::new();
    let end = client.reader.read_to_end(&mut rest).map_err(in_time);
    assert!(end.is_err(), "the client sees a reset");
    assert!(!String::from_utf8_lossy(&rest).contains('l'), "a byte of the old container after the hold");
    eventually("the site sees the end", || has_ended.load(Ordering::SeqCst));
    eventually("the tunnel is gone", || entrance.connections() == 0);
}

fn an_upgrade_that_the_site_declines_is_an_ordinary_answer(door: Door) {
    let site = ScriptedSite::answering(|request| {
        assert_eq!(request.header("upgrade"), Some("websocket"));
        "HTTP/1.1 426 Upgrade Required\r\nUpgrade: other\r\nConnection: upgrade\r\nContent-Length: 2\r\n\r\nno"
            .to_owned()
    });
    let (_gateway, _route, entrance) = serving_through(door, &site);
    let mut client = entrance.client();
    client.request(UPGRADE).expect("sent");
    let answer = client.answer().expect("an answer");
    assert_eq!((answer.status(), answer.header("upgrade"), answer.text().as_str()), (426, Some("other"), "no"));
}

fn a_request_with_a_body_may_offer_an_upgrade(door: Door) {
    let site = ScriptedSite::answering(|request| ok(&request.text()));
    let (_gateway, _route, entrance) = serving_through(door, &site);
    for body in ["Content-Length: 5\r\n\r\nhello", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"] {
        let mut client = entrance.client();
        client
            .request(format!("POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n{body}"))
            .expect("sent");
        let answer = client.answer().expect("an answer");
        assert_eq!((answer.text().as_str(), answer.header("connection")), ("hello", Some("close")));
        assert!(client.is_ended());
    }
}

fn an_upgrade_that_nobody_asked_for_is_not_passed_on(door: Door) {
    let site = ScriptedSite::answering(|_| {
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n".to_owned()
    });
    let (_gateway, _route, entrance) = serving_through(door, &site);
    assert_eq!(entrance.client().get("/").expect("an answer").status(), 502);
}

fn an_upgrade_is_held_like_any_request(door: Door) {
    let site = echo();
    let (_gateway, route, entrance) = serving_through(door, &site);
    route.hold("reset");
    let mut client = entrance.client();
    client.request(UPGRADE).expect("sent");
    eventually("it is held", || route.stats().held == 1);
    route.serve(target(&site, 2));
    assert_eq!(client.head().expect("an answer").status(), 101);
    assert_eq!(read(&mut client, 3), "hi!");
}

//! Requests, responses and bodies that the gateway forwards, and how it forwards them.

use arenad_gateway::{RecordingFilter, WriteRules};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use super::support::*;

#[test]
fn a_request_arrives_with_the_gateways_account_of_its_origin() {
    let site = ScriptedSite::answering(|request| {
        let lines: Vec<String> = request.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        ok(&format!("{}\n{}\n", request.first, lines.join("\n")))
    });
    let (_gateway, route) = serving(&site);
    let mut client = RawClient::connect(route.local_addr());
    client
        .send(
            "GET /a%20b?c=d&e HTTP/1.1\r\nHost: shop.test:7770\r\nX-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Host: evil\r\n\
             Forwarded: for=6.6.6.6\r\nConnection: keep-alive, X-Private\r\nX-Private: 1\r\nKeep-Alive: timeout=9\r\n\
             Proxy-Authorization: x\r\nCookie: a=b\r\n\r\n",
        )
        .expect("sent");
    let seen = client.answer().expect("an answer").text();
    assert!(seen.starts_with("GET /a%20b?c=d&e HTTP/1.1\n"), "{seen}");
    for line in [
        "host: shop.test:7770",
        "cookie: a=b",
        "x-forwarded-for: 127.0.0.1",
        "x-forwarded-host: shop.test:7770",
        "x-forwarded-port: 7770",
        "x-forwarded-proto: http",
        "forwarded: for=127.0.0.1;host=\"shop.test:7770\";proto=http",
    ] {
        assert!(seen.lines().any(|found| found == line), "{line} is missing in {seen}");
    }
    for gone in ["6.6.6.6", "evil", "x-private", "keep-alive", "proxy-authorization"] {
        assert!(!seen.contains(gone), "{gone} is left in {seen}");
    }
}

#[test]
fn an_absolute_target_for_the_same_host_becomes_a_path() {
    let site = ScriptedSite::echoing();
    let (_gateway, route) = serving(&site);
    let mut client = RawClient::connect(route.local_addr());
    client.send("GET http://shop.test/x?y HTTP/1.1\r\nHost: shop.test\r\n\r\n").expect("sent");
    assert_eq!(client.answer().expect("an answer").text(), "GET /x?y HTTP/1.1");
    client.send("GET http://shop.test?y HTTP/1.1\r\nHost: shop.test\r\n\r\n").expect("sent");
    assert_eq!(client.answer().expect("an answer").text(), "GET /?y HTTP/1.1");
    for scheme in ["https", "ftp", ""] {
        let mut client = RawClient::connect(route.local_addr());
        client.send(format!("GET {scheme}://shop.test/x HTTP/1.1\r\nHost: shop.test\r\n\r\n")).expect("sent");
        assert_eq!(client.answer().expect("an answer").status(), 400, "{scheme}");
    }
}

#[test]
fn connections_are_kept_on_both_sides() {
    let site = ScriptedSite::echoing();
    let (_gateway, route) = serving(&site);
    let mut client = RawClient::connect(route.local_addr());
    for number in 0..50 {
        let answer = client.get(&format!("/{number}")).expect("an answer");
        assert_eq!(answer.text(), format!("GET /{number} HTTP/1.1"));
    }
    assert_eq!(site.visits(), 1);
    assert_eq!(route.stats().requests, 50);
    assert_eq!(route.stats().unsafe_requests, 0);
    assert_eq!(route.stats().connections, 1);
    eventually("no request in flight", || route.stats().in_flight == 0);
}

#[test]
fn unsafe_requests_are_counted_per_target() {
    let site = ScriptedSite::echoing();
    let (_gateway, route) = serving(&site);
    let mut client = RawClient::connect(route.local_addr());
    for _ in 0..3 {
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi").expect("sent");
        assert_eq!(client.answer().expect("an answer").status(), 200);
    }
    client.get("/").expect("an answer");
    assert_eq!(route.stats().unsafe_requests, 3);
    assert_eq!(route.stats().bytes_to_site, 6);
    route.serve(target(&site, 2));
    assert_eq!(route.stats().unsafe_requests, 0);
}

#[test]
fn a_target_that_no_request_can_have_reached_is_known_as_such() {
    let site = ScriptedSite::echoing();
    let (_gateway, route) = serving(&site);
    route.serve(target(&site, 2));
    assert!(!route.stats().was_reached);
    RawClient::connect(route.local_addr()).get("/").expect("an answer");
    route.hold("it is being reset".to_owned());
    route.serve(target(&site, 3));
    assert!(route.stats().was_reached, "a hold in between changes nothing");
    route.serve(target(&site, 4));
    assert!(!route.stats().was_reached, "what was reached is the one before");
}

/// A paused container is the same generation: the knowledge about its clients is kept.
#[test]
fn a_generation_that_serves_again_keeps_what_is_known_of_its_clients() {
    let site = ScriptedSite::echoing();
    let (_gateway, route) = serving(&site);
    let mut client = RawClient::connect(route.local_addr());
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi").expect("sent");
    assert_eq!(client.answer().expect("an answer").status(), 200);
    route.refuse("its container is paused", std::time::Duration::from_secs(1));
    route.serve(target(&site, 1));
    assert_eq!(route.stats().unsafe_requests, 1);
    assert!(route.stats().is_reached);
    route.serve(target(&site, 2));
    assert!(route.stats().was_reached);
    assert!(!route.stats().is_reached);
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let site = ScriptedSite::echoing();
    let (_gateway, route) = serving(&site);
    let mut client = RawClient::connect(route.local_addr());
    let mut all = String::new();
    for number in 0..40 {
        // Every other request has a body, and the next head follows in the same packet.
        if number % 2 == 0 {
            all.push_str(&format!("GET /{number} HTTP/1.1\r\nHost: a\r\n\r\n"));
        } else {
            all.push_str(&format!("POST /{number} HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nGET "));
        }
    }
    client.send(all).expect("sent");
    for number in 0..40 {
        let answer = client.answer().expect("an answer");
        assert!(answer.text().contains(&format!(" /{number} ")), "{} at {number}", answer.text());
    }
}

#[test]
fn a_head_may_arrive_byte_by_byte() {
    let site = ScriptedSite::echoing();
    let (_gateway, route) = serving(&site);
    let mut client = RawClient::connect(route.local_addr());
    for byte in b"\r\nPOST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc" {
        client.send([*byte]).expect("sent");
    }
    assert_eq!(client.answer().expect("an answer").text(), "POST /slow HTTP/1.1");
}

#[test]
fn old_clients_get_no_chunks_and_a_closed_connection() {
    let site = ScriptedSite::answering(|_| {
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n".to_owned()
    });
    let (_gateway, route) = serving(&site);
    let mut client = RawClient::connect(route.local_addr());
    client.send("GET / HTTP/1.0\r\n\r\n").expect("sent");
    let answer = client.answer().expect("an answer");
    assert_eq!(answer.header("transfer-encoding"), None);
    assert_eq!(answer.text(), "hello world");
}

#[test]
fn old_clients_may_keep_their_connection_when_the_length_is_known() {
    let site = ScriptedSite::echoing();
    let (_gateway, route) = serving(&site);
    let mut client = RawClient::connect(route.local_addr());
    for _ in 0..3 {
        client.send("GET /old HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").expect("sent");
        let answer = client.answer().expect("an answer");
        assert_eq!(answer.text(), "GET /old HTTP/1.1");
        assert_eq!(answer.header("connection"), Some("keep-alive"));
    }
}

#[test]
fn answers_without_bodies_leave_the_connection_in_step() {
    let site = ScriptedSite::answering(|request| match request.path() {
        "/204" => "HTTP/1.1 204 No Content\r\n\r\n".to_owned(),
        "/304" => "HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n".to_owned(),
        "/head" => "HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n".to_owned(),
        _ => ok("body"),
    });
    let (_gateway, route) = serving(&site);
    let mut client = RawClient::connect(route.local_addr());
    for _ in 0..3 {
        assert_eq!(client.get("/204").expect("an answer").status(), 204);
        assert_eq!(client.get("/304").expect("an answer").header("etag"), Some("\"x\""));
        client.send("HEAD /head HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
        assert_eq!(client.head().expect("a head").header("content-length"), Some("1234"));
        assert_eq!(client.get("/").expect("an answer").text(), "body");
    }
    assert_eq!(site.visits(), 1);
}

#[test]
fn chunks_and_trailers_pass_in_both_directions() {
    let site = ScriptedSite::answering(|request| {
        let trailer = request.trailers.iter().map(|(name, value)| format!("{name}={value}")).collect::<String>();
        let text = format!("{}|{trailer}", request.text());
        format!(
            "HTTP/1.1 200 OK\r\nTrailer: x-sum\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{text}\r\n0\r\nx-sum: 7\r\n\r\n",
            text.len()
        )
    });
    let (_gateway, route) = serving(&site);
    let mut client = RawClient::connect(route.local_addr());
    client
        .send(
            "POST / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: TE\r\nTrailer: x-up\r\n\
             Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;ext=1\r\nde\r\n0\r\nx-up: 9\r\n\r\n",
        )
        .expect("sent");
    let answer = client.answer().expect("an answer");
    assert_eq!(answer.text(), "abcde|x-up=9");
    assert_eq!(answer.trailers, [("x-sum".to_owned(), "7".to_owned())]);
}

#[test]
fn a_client_is_told_to_continue_once_the_site_takes_the_body() {
    let site = ScriptedSite::answering(|request| {
        assert_eq!(request.header("expect"), None);
        ok(&request.text())
    });
    let gateway = gateway();
    let route = gateway
        .open(loopback(), hold_limits(), WriteRules::default(), RecordingFilter::Nothing, "shop")
        .expect("a free port");
    route.hold("not yet");
    let mut client = RawClient::connect(route.local_addr());
    client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n").expect("sent");
    eventually("the request is held", || route.stats().held == 1);
    client.stream().set_read_timeout(Some(Duration::from_millis(50))).expect("a timeout");
    assert!(client.reader.get_mut().read(&mut [0]).is_err(), "nothing is said while the request is held");
    client.stream().set_read_timeout(Some(DEADLINE)).expect("a timeout");
    route.serve(target(&site, 1));
    assert_eq!(client.answer().expect("a go-ahead").status(), 100);
    client.send("body").expect("sent");
    assert_eq!(client.answer().expect("an answer").text(), "body");
}

#[test]
fn an_early_answer_reaches_a_client_that_is_still_sending() {
    let site = ScriptedSite::start(|visit| {
        read_head(&mut visit.reader)?;
        visit.send("HTTP/1.1 413 Payload Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig")?;
        let mut rest = Vec::new();
        visit.reader.read_to_end(&mut rest).map(|_| ())
    });
    let (_gateway, route) = serving(&site);
    let mut client = RawClient::connect(route.local_addr());
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nsome").expect("sent");
    let answer = client.answer().expect("an answer");
    assert_eq!((answer.status(), answer.text().as_str()), (413, "big"));
    assert!(client.is_ended(), "an unread body ends the connection");
}

#[test]
fn large_bodies_pass_whole_in_both_directions() {
    const SIZE: usize = 32 << 20;
    let site = ScriptedSite::answering(|request| {
        let sum: u64 = request.body.iter().map(|byte| u64::from(*byte)).sum();
        ok(&format!("{sum}{}", "x".repeat(SIZE)))
    });
    let (_gateway, route) = serving(&site);
    let body: Vec<u8> = (0..SIZE).map(|at| (at % 251) as u8).collect();
    let sum: u64 = body.iter().map(|byte| u64::from(*byte)).sum();
    let mut client = RawClient::connect(route.local_addr());
    client.send(format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {SIZE}\r\n\r\n")).expect("sent");
    client.send(&body).expect("sent");
    let answer = client.answer().expect("an answer");
    assert_eq!(answer.body.len(), sum.to_string().len() + SIZE);
    assert!(answer.body.starts_with(sum.to_string().as_bytes()));
    assert_eq!(route.stats().bytes_to_site, SIZE as u64);
    assert_eq!(route.stats().bytes_from_site, answer.body.len() as u64);
}

/// A generous bound for the kernel's buffers on both sides of the gateway, in bytes.
const STALLED: usize = 64 << 20;

#[test]
fn a_client_that_does_not_read_stops_the_site() {
    let written = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&written);
    let site = ScriptedSite::start(move |visit| {
        visit.request()?;
        visit.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
        let chunk = [b"10000\r\n".as_slice(), &[b'x'; 65536], b"\r\n"].concat();
        loop {
            visit.send(&chunk)?;
            counter.fetch_add(chunk.len(), Ordering::SeqCst);
        }
    });
    let (_gateway, route) = serving(&site);
    let mut client = RawClient::connect(route.local_addr());
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    assert_stalls(&written);
    // The transfer continues when the client reads again.
    let before = written.load(Ordering::SeqCst);
    client.head().expect("a head");
    let mut taken = 0;
    while taken < STALLED {
        taken += read_chunk(&mut client.reader).expect("a chunk").len();
    }
    assert!(written.load(Ordering::SeqCst) > before);
}

#[test]
fn a_site_that_does_not_read_stops_the_client() {
    let site = ScriptedSite::start(|visit| {
        read_head(&mut visit.reader)?;
        std::thread::sleep(DEADLINE * 4);
        Ok(())
    });
    let (_gateway, route) = serving(&site);
    let written = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&written);
    let mut client = RawClient::connect(route.local_addr());
    std::thread::spawn(move || {
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\n").expect("sent");
        while client.send([b'x'; 65536]).is_ok() {
            counter.fetch_add(65536, Ordering::SeqCst);
        }
    });
    assert_stalls(&written);
}

/// Waits until no further bytes are written, and asserts that few were.
fn assert_stalls(written: &AtomicUsize) {
    let last = AtomicUsize::new(0);
    let quiet = AtomicU64::new(0);
    eventually("writing stalls", || {
        let now = written.load(Ordering::SeqCst);
        assert!(now < STALLED, "{now} bytes are kept somewhere");
        if now > 0 && now == last.swap(now, Ordering::SeqCst) {
            quiet.fetch_add(1, Ordering::SeqCst) > 100
        } else {
            quiet.store(0, Ordering::SeqCst);
            false
        }
    });
}

#[test]
fn connections_that_the_site_drops_unannounced_cost_no_safe_request() {
    let site = ScriptedSite::start(|visit| {
        let request = visit.request()?;
        visit.answer(&request.first)
    });
    let (_gateway, route) = serving(&site);
    let mut client = RawClient::connect(route.local_addr());
    for number in 0..200 {
        let answer = client.get(&format!("/{number}")).expect("an answer");
        assert_eq!(answer.text(), format!("GET /{number} HTTP/1.1"));
    }
}

#[test]
fn a_target_that_is_not_there_is_named_in_a_readable_502() {
    let unused = TcpListener::bind(loopback()).expect("a free port").local_addr().expect("an address");
    let site = ScriptedSite { address: unused, visits: Arc::default() };
    let (_gateway, route) = serving(&site);
    let mut client = RawClient::connect(route.local_addr());
    client.send("GET / HTTP/1.1\r\nHost: a\r\nAccept: text/html,*/*\r\n\r\n").expect("sent");
    let page = client.answer().expect("an answer");
    assert_eq!(page.status(), 502);
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    assert!(page.text().contains("<strong>shop</strong>"), "{}", page.text());
    let text = client.get("/").expect("the connection is kept");
    assert_eq!(text.header("content-type"), Some("text/plain; charset=utf-8"));
    assert!(text.text().starts_with("502 Bad Gateway: site shop: it does not accept connections"), "{}", text.text());
    assert_eq!(route.stats().target_failures, 2);
}

#[test]
fn a_target_that_closes_without_an_answer_is_a_502() {
    let site = ScriptedSite::start(|visit| visit.request().map(|_| ()));
    let (_gateway, route) = serving(&site);
    let mut client = RawClient::connect(route.local_addr());
    assert_eq!(client.get("/").expect("an answer").status(), 502);
}

#[test]
fn an_answer_that_breaks_off_is_never_taken_for_whole() {
    for announced in ["Content-Length: 100\r\n", "Transfer-Encoding: chunked\r\n"] {
        let head = format!("HTTP/1.1 200 OK\r\n{announced}\r\n5\r\nhello\r\n");
        let site = ScriptedSite::start(move |visit| {
            visit.request()?;
            visit.send(&head)
        });
        let (_gateway, route) = serving(&site);
        for version in ["1.0", "1.1"] {
            let mut client = RawClient::connect(route.local_addr());
            client.send(format!("GET / HTTP/{version}\r\nHost: a\r\n\r\n")).expect("sent");
            // An HTTP/1.0 client takes an orderly close for the end of the body, so the connection must be reset.
            let mut all = Vec::new();
            let end = client.reader.read_to_end(&mut all).map_err(in_time);
            assert!(end.is_err(), "{announced} {version}: {}", String::from_utf8_lossy(&all));
        }
    }
}

#[test]
fn a_site_of_the_past_century_is_understood() {
    let site = ScriptedSite::start(|visit| {
        visit.request()?;
        visit.send("HTTP/1.0 200 Fine\r\n\r\nuntil the end")
    });
    let (_gateway, route) = serving(&site);
    let mut client = RawClient::connect(route.local_addr());
    for _ in 0..2 {
        let answer = client.get("/").expect("an answer");
        assert_eq!((answer.first.as_str(), answer.text().as_str()), ("HTTP/1.1 200 Fine", "until the end"));
    }
}

#[test]
fn a_client_that_leaves_ends_its_request_at_the_site() {
    let ended = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&ended);
    let site = ScriptedSite::start(move |visit| {
        visit.request()?;
        let mut rest = Vec::new();
        let _ = visit.reader.read_to_end(&mut rest);
        counter.fetch_add(1, Ordering::SeqCst);
        Ok(())
    });
    let (_gateway, route) = serving(&site);
    let mut client = RawClient::connect(route.local_addr());
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    eventually("the request is in flight", || site.visits() == 1);
    client.reader.get_mut().flush().expect("flushed");
    drop(client);
    eventually("the site sees the end", || ended.load(Ordering::SeqCst) == 1);
    eventually("nothing is in flight", || route.stats().in_flight == 0 && route.stats().connections == 0);
}

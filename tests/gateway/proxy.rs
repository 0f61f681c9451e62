//! The episode proxy: which requests reach which site, under which address, and for how long.

use std::io::{BufRead, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use arenad_gateway::ProxyRefusal;

use super::arena::*;
use super::support::*;

/// A site that answers with its name and the head that it received.
fn telling(name: &'static str) -> ScriptedSite {
    ScriptedSite::answering(move |request| {
        let lines: Vec<String> = request.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        ok(&format!("{name}\n{}\n{}\n", request.first, lines.join("\n")))
    })
}

#[test]
fn each_request_goes_where_its_credentials_and_its_host_lead() {
    let (gateway, proxy, arena) = proxy();
    let slots = ["shop-1", "shop-2", "forum-1", "forum-2"].map(telling);
    let routes = slots.each_ref().map(|slot| route_to(&gateway, slot, 1));
    for (episode, number) in [("e1", 0), ("e2", 1)] {
        arena.start(episode);
        arena.add_site(episode, &["shop.test:80"], "localhost:7770", &routes[number], Some(1));
        arena.add_site(episode, &["forum.test:80"], "localhost:9999", &routes[2 + number], Some(1));
    }
    let mut client = RawClient::connect(proxy.local_addr());
    for _ in 0..20 {
        for (episode, host, name) in [
            ("e1", "shop.test", "shop-1"),
            ("e2", "shop.test", "shop-2"),
            ("e2", "forum.test", "forum-2"),
            ("e1", "forum.test", "forum-1"),
        ] {
            let text = client.get_as(episode, &format!("http://{host}/x")).expect("an answer").text();
            assert!(text.starts_with(&format!("{name}\nGET /x HTTP/1.1\n")), "{episode} {host}: {text}");
        }
    }
    assert_eq!(proxy.stats().connections, 1);
    assert_eq!((proxy.stats().requests, proxy.stats().refused), (80, 0));
    for (slot, route) in slots.iter().zip(&routes) {
        assert_eq!((slot.visits(), route.stats().requests, route.stats().connections), (1, 20, 0));
    }
}

#[test]
fn a_site_sees_the_address_that_it_was_made_for_and_nothing_of_the_proxy() {
    let (gateway, proxy, arena) = proxy();
    let (shop, forum) = (telling("shop"), telling("forum"));
    let shop_route = route_to(&gateway, &shop, 1);
    arena.start("e1");
    arena.add_site("e1", &["shop.test:80", "localhost:7770"], "localhost:7770", &shop_route, Some(1));
    arena.add_site("e1", &["forum.test:80"], "localhost:9999", &route_to(&gateway, &forum, 1), Some(1));
    let mut client = RawClient::connect(proxy.local_addr());
    let headers = "Origin: http://forum.test\r\nReferer: http://Shop.test/a?b\r\nProxy-Connection: keep-alive\r\n\
                   Connection: keep-alive, X-Private\r\nX-Private: 1\r\nContent-Length: 0\r\n";
    client.send_as("e1", "POST", "http://shop.test/x?y", headers).expect("sent");
    let text = client.answer().expect("an answer").text();
    for line in [
        "POST /x?y HTTP/1.1",
        "host: localhost:7770",
        "origin: http://localhost:9999",
        "referer: http://localhost:7770/a?b",
        "x-forwarded-host: localhost:7770",
        "x-forwarded-port: 7770",
        "x-forwarded-for: 127.0.0.1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is missing in {text}");
    }
    for gone in ["proxy-", "basic", "e1", "shop.test", "x-private"] {
        assert!(!text.to_ascii_lowercase().contains(gone), "{gone} is left in {text}");
    }
    // The record has the address that the client used, and no credentials.
    let recording = shop_route.recorder().and_then(|recorder| recorder.recording()).expect("a generation serves");
    let request = &recording.exchanges.first().expect("an exchange").request;
    assert_eq!(request.url, "http://shop.test/x?y");
    assert_eq!(request.headers["host"], "shop.test");
    assert!(request.headers.keys().all(|name| !name.as_str().starts_with("proxy-")), "{:?}", request.headers);
    let text = client.get_as("e1", "http://localhost:7770/").expect("an answer").text();
    assert!(text.contains("host: localhost:7770"), "{text}");
}

#[test]
fn redirects_and_cookies_stay_on_the_address_that_the_client_used() {
    let (gateway, proxy, arena) = proxy();
    let site = ScriptedSite::answering(|_| {
        "HTTP/1.1 302 Found\r\nLocation: http://localhost:7770/next\r\nSet-Cookie: a=b; Domain=localhost; Path=/\r\n\
         Access-Control-Allow-Origin: http://localhost:7770\r\nContent-Length: 0\r\n\r\n"
            .to_owned()
    });
    let route = route_to(&gateway, &site, 1);
    arena.start("e1");
    arena.add_site("e1", &["shop.test:80", "localhost:7770"], "localhost:7770", &route, Some(1));
    let mut client = RawClient::connect(proxy.local_addr());
    client.send_as("e1", "GET", "http://shop.test/", "Origin: http://shop.test\r\n").expect("sent");
    let answer = client.answer().expect("an answer");
    assert_eq!(answer.header("location"), Some("http://shop.test/next"));
    assert_eq!(answer.header("set-cookie"), Some("a=b; Domain=shop.test; Path=/"));
    assert_eq!(answer.header("access-control-allow-origin"), Some("http://shop.test"));
    let canonical = client.get_as("e1", "http://localhost:7770/").expect("an answer");
    assert_eq!(canonical.header("location"), Some("http://localhost:7770/next"));
    assert_eq!(canonical.header("set-cookie"), Some("a=b; Domain=localhost; Path=/"));
}

#[test]
fn refusals_say_what_to_do_next() {
    let (gateway, proxy, arena) = proxy();
    let site = ScriptedSite::echoing();
    let route = route_to(&gateway, &site, 1);
    for episode in ["e1", "gone", "waiting"] {
        arena.start(episode);
        arena.add_site(episode, &["shop.test:80"], "localhost:7770", &route, Some(1));
    }
    arena.end("gone");
    let reason = "it waits for slots".to_owned();
    arena.refuse("waiting", ProxyRefusal::Unavailable { reason, retry_after: Duration::from_secs(2) });
    let with = |headers: &str| format!("GET http://shop.test/ HTTP/1.1\r\nHost: shop.test\r\n{headers}\r\n");
    let get = |url: &str, headers: &str| {
        format!("GET {url} HTTP/1.1\r\nHost: other.test\r\n{}{headers}\r\n", authorization("e1"))
    };
    let wrong = "Proxy-Authorization: Basic ZTE6d3Jvbmc=\r\n";
    let unknown = "Proxy-Authorization: Basic eDp4\r\n";
    let cases = [
        (with(""), 407, "does not say which episode"),
        (with("Proxy-Authorization: Bearer x\r\n"), 407, "not of the form \"Basic\""),
        (with(wrong), 407, "no episode has this id and token: use the id of an episode as the proxy's user name"),
        (with(unknown), 407, "no episode has this id and token: use the id of an episode as the proxy's user name"),
        (with(&authorization("gone")), 407, "has ended (it was released by its client): start another one"),
        (with(&authorization("waiting")), 503, "cannot use its sites at present (it waits for slots)"),
        (
            get("http://other.test/", ""),
            403,
            "other.test is outside of the arena: this episode can use http://shop.test",
        ),
        (with(&authorization("e1").repeat(2)), 400, "more than one Proxy-Authorization"),
        (get("https://other.test/", ""), 400, "http:// addresses only"),
        (get("http://shop.test/", ""), 400, "differs from Host"),
        (get("/", ""), 400, "this port is an HTTP proxy and not a site"),
        (get("http://other.test:0/", ""), 400, "names no host"),
        (get("http://u:p@other.test/", ""), 400, "names no host"),
    ];
    for (request, status, text) in cases {
        let mut client = RawClient::connect(proxy.local_addr());
        client.send(&request).expect("sent");
        let answer = client.answer().expect("an answer");
        assert_eq!(answer.status(), status, "{request}: {}", answer.text());
        assert!(answer.text().contains(text), "{request}: {}", answer.text());
        assert!(answer.text().contains(": episode proxy: "), "{}", answer.text());
        let challenge = answer.header("proxy-authenticate");
        assert_eq!(challenge.is_some_and(|value| value.starts_with("Basic realm=")), status == 407, "{challenge:?}");
        if status == 503 {
            assert_eq!(answer.header("retry-after"), Some("2"));
        }
        if [407, 403, 503].contains(&status) {
            // The next request may have the right credentials.
            assert_eq!(client.get_as("e1", "http://shop.test/").expect("the connection is kept").status(), 200);
        }
    }
    let mut client = RawClient::connect(proxy.local_addr());
    client.send_as("gone", "GET", "http://shop.test/", "Accept: text/html\r\n").expect("sent");
    let page = client.answer().expect("an answer");
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    assert!(page.text().contains("<p>Episode proxy: the episode has ended"), "{}", page.text());
}

#[test]
fn a_body_of_a_refused_request_is_not_the_next_request() {
    let (gateway, proxy, arena) = proxy();
    let site = ScriptedSite::echoing();
    arena.start("e1");
    arena.add_site("e1", &["shop.test:80"], "localhost:7770", &route_to(&gateway, &site, 1), Some(1));
    let mut client = RawClient::connect(proxy.local_addr());
    let inner = format!("GET http://shop.test/smuggled HTTP/1.1\r\nHost: shop.test\r\n{}\r\n", authorization("e1"));
    client
        .send(format!(
            "POST http://shop.test/ HTTP/1.1\r\nHost: shop.test\r\nContent-Length: {}\r\n\r\n{inner}",
            inner.len()
        ))
        .expect("sent");
    assert_eq!(client.answer().expect("an answer").status(), 407);
    // The connection either ends or stays in step.
    if let Ok(answer) = client.get_as("e1", "http://shop.test/next") {
        assert_eq!(answer.text(), "GET /next HTTP/1.1");
    }
    assert_eq!(
        RawClient::connect(proxy.local_addr()).get_as("e1", "http://shop.test/").expect("an answer").status(),
        200
    );
}

#[test]
fn requests_in_a_tunnel_are_requests_of_the_episode_that_opened_it() {
    let (gateway, proxy, arena) = proxy();
    let site = telling("shop");
    arena.start("e1");
    arena.add_site("e1", &["shop.test:80"], "localhost:7770", &route_to(&gateway, &site, 1), Some(1));
    let mut client = RawClient::connect(proxy.local_addr());
    assert_eq!(client.connect_as("e1", "shop.test:80").expect("an answer").status(), 200);
    for number in 0..3 {
        client.send(format!("GET /{number} HTTP/1.1\r\nHost: shop.test\r\n\r\n")).expect("sent");
        let text = client.answer().expect("an answer").text();
        assert!(text.starts_with(&format!("shop\nGET /{number} ")) && text.contains("host: localhost:7770"), "{text}");
    }
    client.send("GET / HTTP/1.1\r\nHost: other.test\r\n\r\n").expect("sent");
    let answer = client.answer().expect("an answer");
    assert_eq!(answer.status(), 421, "{}", answer.text());
    assert!(client.is_ended());
    // The end of the episode ends what the tunnel can do.
    let mut client = RawClient::connect(proxy.local_addr());
    assert_eq!(client.connect_as("e1", "shop.test:80").expect("an answer").status(), 200);
    arena.end("e1");
    client.send("GET / HTTP/1.1\r\nHost: shop.test\r\n\r\n").expect("sent");
    assert_eq!(client.answer().expect("an answer").status(), 407);
}

#[test]
fn tls_to_a_site_is_refused_with_a_reason() {
    let (gateway, proxy, arena) = proxy();
    let site = ScriptedSite::echoing();
    arena.start("e1");
    arena.add_site("e1", &["shop.test:80", "localhost:7770"], "localhost:7770", &route_to(&gateway, &site, 1), Some(1));
    let mut client = RawClient::connect(proxy.local_addr());
    let answer = client.connect_as("e1", "shop.test:443").expect("an answer");
    assert_eq!(answer.status(), 403);
    assert!(answer.text().contains("use http://shop.test/ instead of https://"), "{}", answer.text());
    let mut client = RawClient::connect(proxy.local_addr());
    assert_eq!(client.connect_as("e1", "localhost:7770").expect("an answer").status(), 200);
    client.send(b"\x16\x03\x01\x00\x05hello").expect("sent");
    let answer = client.answer().expect("an answer");
    assert!(answer.status() == 400 && answer.text().contains("the client speaks TLS"), "{}", answer.text());
    assert_eq!(site.visits(), 0);
}

#[test]
fn an_allowed_host_is_reached_and_learns_nothing_about_the_client() {
    let (_gateway, proxy, arena) = proxy();
    let site = telling("external");
    arena.start("e1");
    arena.allow("e1", "127.0.0.1");
    arena.allow("e1", "127.0.0.2");
    arena.allow("e1", "name.invalid");
    let url = format!("http://{}/x", site.address);
    let mut client = RawClient::connect(proxy.local_addr());
    for _ in 0..2 {
        let text = client.get_as("e1", &url).expect("an answer").text();
        assert!(text.starts_with("external\nGET /x HTTP/1.1\n"), "{text}");
        assert!(text.contains(&format!("host: {}\n", site.address)), "{text}");
        assert!(!text.contains("forwarded") && !text.contains("proxy"), "{text}");
    }
    // The tunnel carries bytes, whatever they are.
    let mut tunnel = RawClient::connect(proxy.local_addr());
    assert_eq!(tunnel.connect_as("e1", &site.address.to_string()).expect("an answer").status(), 200);
    tunnel.send("GET /inside HTTP/1.1\r\nHost: whatever\r\n\r\n").expect("sent");
    assert!(tunnel.answer().expect("an answer").text().contains("GET /inside HTTP/1.1\nHost: whatever"));
    // An address that may not be reached is not, even if the name is allowed.
    for (place, status, text) in [
        (format!("127.0.0.2:{}", site.address.port()), 403, "an address that is not public"),
        ("name.invalid:80".to_owned(), 502, "cannot be resolved"),
        ("other.test:443".to_owned(), 403, "outside of the arena"),
    ] {
        let mut client = RawClient::connect(proxy.local_addr());
        let answer = client.connect_as("e1", &place).expect("an answer");
        assert_eq!((answer.status(), answer.text().contains(text)), (status, true), "{place}: {}", answer.text());
        let answer = RawClient::connect(proxy.local_addr()).get_as("e1", &format!("http://{place}/"));
        assert_eq!(answer.expect("an answer").status(), status, "{place}");
    }
    assert_eq!(site.visits(), 3);
    // The end of the episode cuts the tunnel.
    arena.end("e1");
    assert!(tunnel.reader.read_to_end(&mut Vec::new()).map_err(in_time).is_err(), "cut, not ended");
    assert_eq!(RawClient::connect(proxy.local_addr()).get_as("e1", &url).expect("an answer").status(), 407);
}

/// A gateway whose default settings decide about addresses.
#[test]
fn by_default_no_external_name_leads_to_this_host_or_its_networks() {
    let gateway = gateway();
    let arena = Arc::new(TestArena::default());
    let proxy = gateway.open_proxy(loopback(), arena.clone()).expect("a free port");
    let site = ScriptedSite::echoing();
    arena.start("e1");
    for host in ["localhost", "127.0.0.1", "169.254.169.254", "10.0.0.1"] {
        arena.allow("e1", host);
        let url = format!("http://{host}:{}/", site.address.port());
        let answer = RawClient::connect(proxy.local_addr()).get_as("e1", &url).expect("an answer");
        assert_eq!(answer.status(), 403, "{host}: {}", answer.text());
    }
    assert_eq!(site.visits(), 0);
}

#[test]
fn another_generation_never_answers() {
    let (gateway, proxy, arena) = proxy();
    let (old, new) = (telling("old"), telling("new"));
    let route = route_to(&gateway, &old, 7);
    arena.start("e1");
    arena.add_site("e1", &["shop.test:80"], "localhost:7770", &route, Some(7));
    let mut client = RawClient::connect(proxy.local_addr());
    // The client may be faster than the worker's record that everything is written; a switch would cut it until then.
    let settled = || eventually("the connection is idle", || route.stats().in_flight == 0);
    assert!(client.get_as("e1", "http://shop.test/").expect("an answer").text().starts_with("old"));
    settled();
    route.serve(target(&new, 8));
    let answer = client.get_as("e1", "http://shop.test/").expect("an answer");
    assert_eq!((answer.status(), answer.header("retry-after")), (503, Some("1")));
    assert!(answer.text().contains("does not have the state of this episode"), "{}", answer.text());
    settled();
    // A pause for a copy of the stores holds the request, and the same generation answers.
    route.serve(target(&old, 7));
    route.hold("a copy");
    client.send_as("e1", "GET", "http://shop.test/", "").expect("sent");
    eventually("it is held", || route.stats().held == 1);
    route.serve(target(&old, 7));
    assert!(client.answer().expect("an answer").text().starts_with("old"));
    settled();
    // A held request is not passed on to another generation.
    route.hold("the end");
    client.send_as("e1", "GET", "http://shop.test/", "").expect("sent");
    eventually("it is held", || route.stats().held == 1);
    route.serve(target(&new, 8));
    assert_eq!(client.answer().expect("an answer").status(), 503);
    assert_eq!(new.visits(), 0);
}

/// A site that takes requests and never answers; the counters are its requests, and its connections that have ended.
fn silent() -> (ScriptedSite, Arc<AtomicU64>, Arc<AtomicU64>) {
    let (taken, ended) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (requests, ends) = (Arc::clone(&taken), Arc::clone(&ended));
    let site = ScriptedSite::start(move |visit| {
        while visit.request().is_ok() {
            requests.fetch_add(1, Ordering::SeqCst);
        }
        ends.fetch_add(1, Ordering::SeqCst);
        Ok(())
    });
    (site, taken, ended)
}

#[test]
fn a_request_whose_episode_ends_is_neither_held_nor_sent_again() {
    // `None` is a site that all episodes share: its route is not switched.
    for generation in [Some(1), None] {
        for method in ["GET", "POST"] {
            let (gateway, proxy, arena) = proxy();
            let (site, taken, ended) = silent();
            let route = route_to(&gateway, &site, 1);
            arena.start("e1");
            arena.add_site("e1", &["shop.test:80"], "localhost:7770", &route, generation);
            let mut client = RawClient::connect(proxy.local_addr());
            client.send_as("e1", method, "http://shop.test/", "Content-Length: 0\r\n").expect("sent");
            eventually("the site has it", || taken.load(Ordering::SeqCst) == 1);
            if generation.is_some() {
                route.hold("the slot is being recycled");
            }
            arena.end("e1");
            let next = ScriptedSite::echoing();
            if generation.is_some() {
                route.serve(target(&next, 2));
            }
            let answer = client.answer().expect("an answer");
            let expected = if method == "POST" && generation.is_some() { [407, 503] } else { [407, 407] };
            assert!(expected.contains(&answer.status()), "{method} {generation:?}: {}", answer.text());
            eventually("the site sees the end", || ended.load(Ordering::SeqCst) == 1);
            // Sent again by the client, on the same connection or another one, it reaches nothing.
            for mut client in [client, RawClient::connect(proxy.local_addr())] {
                if let Ok(answer) = client.get_as("e1", "http://shop.test/") {
                    assert_eq!(answer.status(), 407, "{}", answer.text());
                }
            }
            assert_eq!((taken.load(Ordering::SeqCst), next.visits()), (1, 0), "{method} {generation:?}");
        }
    }
}

#[test]
fn a_held_request_of_an_ended_episode_is_answered_at_once() {
    let (gateway, proxy, arena) = proxy();
    let site = ScriptedSite::echoing();
    let route = route_to(&gateway, &site, 1);
    route.hold("a copy");
    arena.start("e1");
    arena.add_site("e1", &["shop.test:80"], "localhost:7770", &route, Some(1));
    let mut client = RawClient::connect(proxy.local_addr());
    client.send_as("e1", "GET", "http://shop.test/", "").expect("sent");
    eventually("it is held", || route.stats().held == 1);
    arena.end("e1");
    let answer = client.answer().expect("an answer");
    assert!(answer.status() == 407 && answer.text().contains("has ended"), "{}", answer.text());
    assert_eq!((site.visits(), route.stats().held), (0, 0));
}

#[test]
fn a_body_that_is_being_sent_when_the_episode_ends_stops() {
    let (gateway, proxy, arena) = proxy();
    let received = Arc::new(AtomicU64::new(0));
    let has_ended = Arc::new(AtomicBool::new(false));
    let (count, end) = (Arc::clone(&received), Arc::clone(&has_ended));
    let site = ScriptedSite::start(move |visit| {
        read_head(&mut visit.reader)?;
        loop {
            let bytes = visit.reader.fill_buf().map_or(0, <[u8]>::len);
            if bytes == 0 {
                end.store(true, Ordering::SeqCst);
                return Ok(());
            }
            count.fetch_add(bytes as u64, Ordering::SeqCst);
            visit.reader.consume(bytes);
        }
    });
    arena.start("e1");
    arena.add_site("e1", &["shop.test:80"], "localhost:7770", &route_to(&gateway, &site, 1), None);
    let mut client = RawClient::connect(proxy.local_addr());
    client.send_as("e1", "POST", "http://shop.test/", "Content-Length: 1000000\r\n").expect("sent");
    client.send("some").expect("sent");
    eventually("the site has some of it", || received.load(Ordering::SeqCst) == 4);
    arena.end("e1");
    let _ = client.send("late");
    eventually("the site sees the end", || has_ended.load(Ordering::SeqCst));
    assert_eq!(received.load(Ordering::SeqCst), 4);
    assert_eq!(client.answer().expect("an answer").status(), 407);
}

/// A site that sends "fine" until the flag is set, then "late".
fn streaming(head: &'static str, is_past: &Arc<AtomicBool>) -> ScriptedSite {
    let past = Arc::clone(is_past);
    ScriptedSite::start(move |visit| {
        visit.request()?;
        visit.send(head)?;
        loop {
            visit.send(if past.load(Ordering::SeqCst) { "late" } else { "fine" })?;
        }
    })
}

#[test]
fn an_answer_under_way_is_cut_when_its_episode_ends() {
    let heads = [
        ("", "HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n"),
        (
            "Connection: Upgrade\r\nUpgrade: x\r\n",
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
        ),
    ];
    for (headers, head) in heads {
        for _ in 0..20 {
            let is_past = Arc::new(AtomicBool::new(false));
            let (gateway, proxy, arena) = proxy();
            let site = streaming(head, &is_past);
            arena.start("e1");
            arena.add_site("e1", &["shop.test:80"], "localhost:7770", &route_to(&gateway, &site, 1), None);
            let mut client = RawClient::connect(proxy.local_addr());
            client.send_as("e1", "GET", "http://shop.test/", headers).expect("sent");
            client.head().expect("a head");
            client.reader.read_exact(&mut [0; 4000]).expect("bytes");
            arena.end("e1");
            is_past.store(true, Ordering::SeqCst);
            let mut rest = Vec::new();
            assert!(client.reader.read_to_end(&mut rest).map_err(in_time).is_err(), "cut, not ended");
            assert!(!rest.contains(&b'l'), "a byte after the end");
            eventually("nothing is left", || proxy.stats().connections == 0);
        }
    }
}

#[test]
fn the_end_of_one_episode_leaves_the_other_episodes_of_a_connection_alone() {
    let (gateway, proxy, arena) = proxy();
    let site = ScriptedSite::echoing();
    let route = route_to(&gateway, &site, 1);
    for episode in ["e1", "e2"] {
        arena.start(episode);
        arena.add_site(episode, &["wiki.test:80"], "localhost:8888", &route, None);
    }
    let mut client = RawClient::connect(proxy.local_addr());
    for episode in ["e1", "e2"] {
        assert_eq!(client.get_as(episode, "http://wiki.test/").expect("an answer").status(), 200);
        eventually("the connection is idle", || route.stats().in_flight == 0);
    }
    arena.end("e1");
    assert_eq!(client.get_as("e1", "http://wiki.test/").expect("an answer").status(), 407);
    assert_eq!(client.get_as("e2", "http://wiki.test/").expect("an answer").status(), 200);
    assert_eq!(site.visits(), 1, "the connection to the site is kept");
    // A switch of one route leaves the exchange with another one alone.
    let (slow, taken, _) = silent();
    arena.add_site("e2", &["slow.test:80"], "localhost:1", &route_to(&gateway, &slow, 1), None);
    client.send_as("e2", "GET", "http://slow.test/", "").expect("sent");
    eventually("the site has it", || taken.load(Ordering::SeqCst) == 1);
    route.serve(target(&site, 2));
    client.stream().set_read_timeout(Some(Duration::from_millis(50))).expect("a timeout");
    let error = client.reader.fill_buf().expect_err("nothing is answered");
    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn a_connection_may_use_many_sites_and_forgets_those_that_are_done() {
    let (gateway, proxy, arena) = proxy();
    let site = ScriptedSite::echoing();
    let mut client = RawClient::connect(proxy.local_addr());
    for number in 0..60 {
        let episode = format!("e{number}");
        arena.start(&episode);
        let route = route_to(&gateway, &site, 1);
        arena.add_site(&episode, &["shop.test:80"], "localhost:7770", &route, Some(1));
        assert_eq!(client.get_as(&episode, "http://shop.test/").expect("an answer").status(), 200);
        // The connection belongs to the proxy, so the end of a route does not end it.
        eventually("the connection is idle", || route.stats().in_flight == 0);
        block_on(route.close());
    }
    assert_eq!(proxy.stats().connections, 1);
}

#[test]
fn a_closed_proxy_frees_its_port() {
    let gateway = gateway();
    let arena = Arc::new(TestArena::default());
    let proxy = gateway.open_proxy(own_loopback(), arena.clone()).expect("a free port");
    let address = proxy.local_addr();
    let mut client = RawClient::connect(address);
    block_on(proxy.close());
    assert!(client.is_ended());
    let again = gateway.open_proxy(address, arena.clone()).expect("the port is free again");
    assert!(matches!(gateway.open_proxy(address, arena), Err(arenad_gateway::OpenError::PortTaken { .. })));
    assert_eq!(again.local_addr(), address);
}

/// Runs curl with the proxy and returns its output; the last line is the status.
fn curl(proxy: &arenad_gateway::Proxy, credentials: &str, arguments: &[&str]) -> String {
    let address = format!("http://{credentials}@{}", proxy.local_addr());
    let output = Command::new("curl")
        .args([
            "--silent",
            "--show-error",
            "--max-time",
            "30",
            "--noproxy",
            "",
            "--write-out",
            "\n%{http_code} %{http_connect}",
        ])
        .args(["--proxy", &address])
        .args(arguments)
        .output()
        .expect("curl runs");
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn curl_uses_the_proxy_as_any_other() {
    let (gateway, proxy, arena) = proxy();
    let site = ScriptedSite::answering(|request| ok(&format!("{} {}", request.first, request.text())));
    arena.start("e1");
    let addresses = ["shop.test:80", "localhost:7770"];
    arena.add_site("e1", &addresses, "localhost:7770", &route_to(&gateway, &site, 1), Some(1));
    let credentials = "e1:e1-token";
    assert_eq!(curl(&proxy, credentials, &["http://shop.test/x"]), "GET /x HTTP/1.1 \n200 000");
    let post = ["--data", "a=b", "http://localhost:7770/x"];
    assert_eq!(curl(&proxy, credentials, &post), "POST /x HTTP/1.1 a=b\n200 000");
    let tunnel = ["--proxytunnel", "http://shop.test/1", "http://shop.test/2"];
    let inside = curl(&proxy, credentials, &tunnel);
    assert!(inside.starts_with("GET /1 HTTP/1.1 \n200 200") && inside.contains("GET /2 HTTP/1.1"), "{inside}");
    let wrong = curl(&proxy, "e1:wrong", &["http://shop.test/x"]);
    assert!(wrong.contains("no episode has this id and token") && wrong.ends_with("\n407 000"), "{wrong}");
    let tls = curl(&proxy, credentials, &["https://shop.test/x"]);
    assert!(tls.contains("000 403") && tls.contains("CONNECT tunnel failed"), "{tls}");
    arena.end("e1");
    let ended = curl(&proxy, credentials, &["http://shop.test/x"]);
    assert!(ended.contains("the episode has ended") && ended.ends_with("\n407 000"), "{ended}");
}

#[test]
fn slow_clients_of_the_proxy_are_given_up() {
    let gateway = gateway_with(|settings| {
        settings.head_timeout = Duration::from_millis(300);
        settings.idle_timeout = Duration::from_millis(300);
    });
    let proxy = gateway.open_proxy(loopback(), Arc::new(TestArena::default())).expect("a free port");
    let mut slow = TcpStream::connect(proxy.local_addr()).expect("accepted");
    slow.write_all(b"GET http://a/ HTTP/1.1\r\nProxy-Authorization: ").expect("sent");
    eventually("the gateway gives up", || (&slow).write_all(b"x").is_err());
    let _silent = TcpStream::connect(proxy.local_addr()).expect("accepted");
    eventually("no connection is left", || proxy.stats().connections == 0);
}

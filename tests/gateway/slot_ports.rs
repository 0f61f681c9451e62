//! Slots' own ports: the connection stands for the credentials, and addresses are replaced in both directions.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use arenad_gateway::{
    EpisodeAccess, Gateway, OtherPlace, OtherSite, ProxyRefusal, Route, SlotLease, SlotPort, SlotPortDecision,
    SlotPortDirectory, SlotPortSite,
};

use super::arena::{ended, open, route_to};
use super::support::*;

/// The knowledge of the daemon about one slot.
pub struct TestSlot {
    route: Route,
    maps_bodies: bool,
    state: Mutex<TestLease>,
}

#[derive(Default)]
struct TestLease {
    /// The lease that the slot has, and its generation.
    lease: Option<(String, u64)>,
    access: EpisodeAccess,
    /// The refusals of leases that have ended.
    refused: Vec<(String, ProxyRefusal)>,
}

impl TestSlot {
    fn state(&self) -> MutexGuard<'_, TestLease> {
        self.state.lock().expect("no panic")
    }

    /// Gives the slot to an episode, whose generation the route serves.
    pub fn grant(&self, episode: &str, generation: u64) {
        let mut state = self.state();
        (state.lease, state.access) = (Some((episode.to_owned(), generation)), EpisodeAccess::default());
    }

    /// Ends the episode that has the slot.
    pub fn end(&self) {
        let access = {
            let mut state = self.state();
            let (episode, _) = state.lease.take().expect("an episode");
            state.refused.push((episode, ended()));
            state.access.clone()
        };
        access.revoke(ended());
    }
}

impl SlotPortDirectory for TestSlot {
    fn lease(&self) -> Option<SlotLease> {
        self.state().lease.as_ref().map(|(episode, _)| SlotLease(episode.clone()))
    }

    fn resolve(&self, lease: Option<&SlotLease>, _host: &str, _port: u16) -> SlotPortDecision {
        let state = self.state();
        let Some(SlotLease(lease)) = lease else {
            let retry_after = Duration::from_secs(2);
            return SlotPortDecision::NoLease { reason: "no episode has it".to_owned(), retry_after };
        };
        if let Some((_, refusal)) = state.refused.iter().find(|(episode, _)| episode == lease) {
            return SlotPortDecision::Refused(refusal.clone());
        }
        let (holder, generation) = state.lease.as_ref().expect("a live lease is the slot's");
        assert_eq!(holder, lease);
        let other = |canonical: &str, place| OtherSite { canonical: canonical.to_owned(), place };
        SlotPortDecision::Site(SlotPortSite {
            route: self.route.clone(),
            canonical: "localhost:7770".to_owned(),
            generation: Some(*generation),
            access: state.access.clone(),
            others: vec![
                other("localhost:9999", OtherPlace::Port(9998)),
                other("localhost:8023", OtherPlace::Host("forge.arena.test".to_owned())),
            ],
            maps_bodies: self.maps_bodies,
        })
    }
}

pub fn slot_of(gateway: &Gateway, route: &Route, maps_bodies: bool) -> (SlotPort, Arc<TestSlot>) {
    let slot = Arc::new(TestSlot { route: route.clone(), maps_bodies, state: Mutex::default() });
    (gateway.open_slot_port(loopback(), slot.clone(), "shop").expect("a free port"), slot)
}

impl RawClient {
    /// Sends a GET request with the address of the port as its host, and reads the answer.
    fn get_at(&mut self, port: &SlotPort, path: &str) -> std::io::Result<SentMessage> {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", local(port)))?;
        self.answer()
    }
}

/// The address of a port as clients write it.
pub fn local(port: &SlotPort) -> String {
    format!("localhost:{}", port.local_addr().port())
}

/// A site that answers each request with the text.
fn telling(text: &'static str) -> ScriptedSite {
    ScriptedSite::answering(move |request| ok(&format!("{text}: {}", request.path())))
}

#[test]
fn a_connection_belongs_to_the_lease_at_its_beginning() {
    let gateway = gateway();
    let (first, second) = (telling("first"), telling("second"));
    let route = route_to(&gateway, &first, 1);
    let (port, slot) = slot_of(&gateway, &route, false);
    let settled = || eventually("the connection is idle", || route.stats().in_flight == 0);
    // Without a lease, the client is told to come back, on another connection.
    let mut early = RawClient::connect(port.local_addr());
    let answer = early.get_at(&port, "/").expect("an answer");
    assert_eq!(
        (answer.status(), answer.header("retry-after"), answer.header("connection")),
        (503, Some("2"), Some("close"))
    );
    assert!(answer.text().contains("no episode has it"), "{}", answer.text());
    assert!(early.is_ended());
    drop(early);
    eventually("nothing is left", || port.stats().connections == 0);
    let mut waiting = RawClient::connect(port.local_addr());
    eventually("it is accepted", || port.stats().connections == 1);
    slot.grant("e1", 1);
    let mut kept = RawClient::connect(port.local_addr());
    assert!(kept.get_at(&port, "/1").expect("an answer").text().starts_with("first: /1"));
    settled();
    assert_eq!(waiting.get_at(&port, "/").expect("an answer").status(), 503, "it began before the lease");
    drop(waiting);
    eventually("one is left", || port.stats().connections == 1);
    let mut unused = RawClient::connect(port.local_addr());
    eventually("both are accepted", || port.stats().connections == 2);
    slot.end();
    route.refuse("it is being reset", Duration::from_secs(1));
    route.serve(target(&second, 2));
    slot.grant("e2", 2);
    // Connections of the ended lease reach nothing, whether or not they have sent a request before.
    for client in [&mut kept, &mut unused] {
        client
            .send(format!("POST /late HTTP/1.1\r\nHost: {}\r\nContent-Length: 0\r\n\r\n", local(&port)))
            .expect("sent");
        let answer = client.answer().expect("an answer");
        assert_eq!(
            (answer.status(), answer.header("connection"), answer.header("retry-after")),
            (410, Some("close"), None)
        );
        assert!(answer.text().contains("has ended (it was released by its client)"), "{}", answer.text());
        assert!(client.is_ended());
    }
    let mut next = RawClient::connect(port.local_addr());
    assert!(next.get_at(&port, "/2").expect("an answer").text().starts_with("second: /2"));
    assert_eq!((first.visits(), second.visits()), (1, 1));
}

#[test]
fn requests_under_way_end_with_the_lease() {
    for method in ["GET", "POST"] {
        let gateway = gateway();
        let taken = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&taken);
        let silent = ScriptedSite::start(move |visit| {
            while visit.request().is_ok() {
                count.fetch_add(1, Ordering::SeqCst);
            }
            Ok(())
        });
        let route = route_to(&gateway, &silent, 1);
        let (port, slot) = slot_of(&gateway, &route, false);
        slot.grant("e1", 1);
        let mut client = RawClient::connect(port.local_addr());
        client
            .send(format!("{method} / HTTP/1.1\r\nHost: {}\r\nContent-Length: 0\r\n\r\n", local(&port)))
            .expect("sent");
        eventually("the site has it", || taken.load(Ordering::SeqCst) == 1);
        slot.end();
        let next = telling("next");
        route.serve(target(&next, 2));
        slot.grant("e2", 2);
        assert_eq!(client.answer().expect("an answer").status(), 410, "{method}");
        assert_eq!(next.visits(), 0, "{method}");
    }
}

#[test]
fn an_answer_under_way_is_cut_with_the_lease() {
    let gateway = gateway();
    let site = ScriptedSite::start(|visit| {
        visit.request()?;
        visit.send("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 100000000\r\n\r\n")?;
        loop {
            visit.send("http://localhost:7770/ ")?;
        }
    });
    let route = route_to(&gateway, &site, 1);
    let (port, slot) = slot_of(&gateway, &route, true);
    slot.grant("e1", 1);
    let mut client = RawClient::connect(port.local_addr());
    client.send(format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", local(&port))).expect("sent");
    client.head().expect("a head");
    client.reader.read_exact(&mut [0; 4000]).expect("bytes");
    slot.end();
    assert!(client.reader.read_to_end(&mut Vec::new()).map_err(in_time).is_err(), "cut, not ended");
    eventually("nothing is left", || port.stats().connections == 0);
}

#[test]
fn another_generation_never_answers() {
    let gateway = gateway();
    let (old, new) = (telling("old"), telling("new"));
    let route = route_to(&gateway, &old, 7);
    let (port, slot) = slot_of(&gateway, &route, false);
    slot.grant("e1", 7);
    let mut client = RawClient::connect(port.local_addr());
    assert_eq!(client.get_at(&port, "/").expect("an answer").status(), 200);
    eventually("the connection is idle", || route.stats().in_flight == 0);
    route.serve(target(&new, 8));
    assert_eq!(client.get_at(&port, "/").expect("an answer").status(), 503);
    assert_eq!(new.visits(), 0);
}

#[test]
fn the_site_sees_canonical_addresses_and_the_client_those_of_its_slots() {
    let gateway = gateway();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let record = Arc::clone(&seen);
    let site = ScriptedSite::answering(move |request| {
        let head = |name: &str| request.header(name).unwrap_or_default().to_owned();
        record.lock().expect("no panic").push((
            request.path().to_owned(),
            head("host"),
            head("origin"),
            head("referer"),
            head("accept-encoding"),
        ));
        let body = "<a href=\"http://localhost:7770/cart\">x</a> http:\\/\\/localhost:9999 //localhost:8023/x";
        format!(
            "HTTP/1.1 302 Found\r\nLocation: http://localhost:9999/login?next=http%3A%2F%2Flocalhost%3A7770%2F\r\n\
             Set-Cookie: a=b; Domain=localhost; Path=/\r\nLink: <http://localhost:7770/x.css>; rel=preload\r\n\
             Content-Security-Policy: default-src 'self' localhost:9999 ws://localhost:7770/live\r\n\
             Access-Control-Allow-Origin: {}\r\nETag: \"v1\"\r\n\
             Content-Type: text/html\r\nContent-Length: {}\r\n\r\n{body}",
            head("origin"),
            body.len(),
        )
    });
    let route = route_to(&gateway, &site, 1);
    let (port, slot) = slot_of(&gateway, &route, true);
    slot.grant("e1", 1);
    let own = port.local_addr().port();
    let mut client = RawClient::connect(port.local_addr());
    client
        .send(format!(
            "GET /a?next=http%3A%2F%2Flocalhost%3A{own}%2Fcart&b=http://localhost:9998/ HTTP/1.1\r\n\
             Host: localhost:{own}\r\nOrigin: http://localhost:9998\r\nReferer: http://localhost:{own}/page?x\r\n\
             Accept-Encoding: gzip, br\r\n\r\n"
        ))
        .expect("sent");
    let answer = client.answer().expect("an answer");
    let (path, host, origin, referer, coding) = seen.lock().expect("no panic").remove(0);
    assert_eq!(path, "/a?next=http%3A%2F%2Flocalhost%3A7770%2Fcart&b=http://localhost:9999/");
    assert_eq!((host.as_str(), origin.as_str()), ("localhost:7770", "http://localhost:9999"));
    assert_eq!((referer.as_str(), coding.as_str()), ("http://localhost:7770/page?x", "identity"));
    let login = "http://localhost:9998/login?next=http%3A%2F%2Flocalhost%3A7770%2F";
    assert_eq!(answer.header("location"), Some(login), "the query is meant for the site");
    assert_eq!(answer.header("set-cookie"), Some("a=b; Domain=localhost; Path=/"));
    assert_eq!(answer.header("link").expect("a link"), format!("<http://localhost:{own}/x.css>; rel=preload"));
    let policy = format!("default-src 'self' localhost:9998 ws://localhost:{own}/live");
    assert_eq!(answer.header("content-security-policy"), Some(policy.as_str()));
    assert_eq!(answer.header("access-control-allow-origin"), Some("http://localhost:9998"));
    assert!(answer.header("etag").expect("a tag").starts_with("\"v1-arenad-"));
    assert_eq!(answer.header("content-length"), None);
    let body = format!("<a href=\"http://localhost:{own}/cart\">x</a> http:\\/\\/localhost:9998 //forge.arena.test/x");
    assert_eq!(answer.text(), body);
}

#[test]
fn a_client_that_names_the_canonical_address_gets_the_responses_of_the_site() {
    let gateway = gateway();
    let body = "http://localhost:7770/ http://localhost:9999/";
    let site = ScriptedSite::answering(move |_| ok(body));
    let route = route_to(&gateway, &site, 1);
    let (port, slot) = slot_of(&gateway, &route, true);
    slot.grant("e1", 1);
    let mut client = RawClient::connect(port.local_addr());
    client.send("GET / HTTP/1.1\r\nHost: localhost:7770\r\n\r\n").expect("sent");
    assert_eq!(client.answer().expect("an answer").text(), body);
}

#[test]
fn a_body_arrives_whole_however_the_site_divides_it() {
    let gateway = gateway();
    let text = "{\"a\":\"http:\\/\\/localhost:7770\\/x\",\"b\":\"http%3a%2f%2flocalhost%3a9999%2f\",\"c\":\"//localhost:7770\"}";
    for size in 1..text.len() {
        let site = ScriptedSite::start(move |visit| {
            visit.request()?;
            visit.send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")?;
            for part in text.as_bytes().chunks(size) {
                visit.send(format!("{:x}\r\n{}\r\n", part.len(), String::from_utf8_lossy(part)))?;
            }
            visit.send("0\r\n\r\n")
        });
        let route = route_to(&gateway, &site, 1);
        let (port, slot) = slot_of(&gateway, &route, true);
        slot.grant("e1", 1);
        let mut client = RawClient::connect(port.local_addr());
        let answer = client.get_at(&port, "/").expect("an answer");
        let own = port.local_addr().port();
        let mapped = text.replace("localhost:7770", &format!("localhost:{own}")).replace("%3a9999", "%3a9998");
        assert_eq!(answer.text(), mapped, "chunks of {size}");
        // The connection to the site has been given back, and the client's can be used again.
        eventually("the exchange has ended", || route.stats().in_flight == 0);
        assert_eq!(route.stats().target_failures, 0);
    }
}

#[test]
fn text_that_cannot_be_mapped_is_not_passed_on() {
    let gateway = gateway();
    let site = ScriptedSite::answering(|request| {
        let kind = if request.path() == "/image" { "image/png" } else { "text/html" };
        format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Encoding: br\r\nContent-Length: 4\r\n\r\npart")
    });
    let route = route_to(&gateway, &site, 1);
    let (port, slot) = slot_of(&gateway, &route, true);
    slot.grant("e1", 1);
    let page = RawClient::connect(port.local_addr()).get_at(&port, "/").expect("an answer");
    assert_eq!(page.status(), 502);
    assert!(page.text().contains("compressed (br, which is neither gzip nor deflate)"), "{}", page.text());
    let image = RawClient::connect(port.local_addr()).get_at(&port, "/image").expect("an answer");
    assert_eq!((image.status(), image.text().as_str(), image.header("content-length")), (200, "part", Some("4")));
}

#[test]
fn a_compressed_page_is_mapped_and_a_damaged_one_is_cut_off() {
    let gateway = gateway();
    let text = "<a href=\"http://localhost:7770/x\">x</a> http://localhost:9999/ ".repeat(5000);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text.as_bytes()).expect("memory");
    let whole = encoder.finish().expect("memory");
    for size in [1, 7, 100, whole.len()] {
        let body = whole.clone();
        let site = ScriptedSite::start(move |visit| {
            loop {
                let request = visit.request()?;
                let length = if request.path() == "/short" { body.len() - 9 } else { body.len() };
                let head = "Content-Type: text/html\r\nContent-Encoding: gzip";
                visit.send(format!("HTTP/1.1 200 OK\r\n{head}\r\nContent-Length: {length}\r\n\r\n"))?;
                for part in body[..length].chunks(size) {
                    visit.send(part)?;
                }
            }
        });
        let route = route_to(&gateway, &site, 1);
        let (port, slot) = slot_of(&gateway, &route, true);
        slot.grant("e1", 1);
        let mut client = RawClient::connect(port.local_addr());
        let answer = client.get_at(&port, "/").expect("an answer");
        let own = format!("localhost:{}", port.local_addr().port());
        assert!(answer.text() == text.replace("localhost:7770", &own).replace(":9999", ":9998"), "parts of {size}");
        assert_eq!((answer.header("content-encoding"), answer.header("content-length")), (None, None));
        // Both connections can be used again.
        assert_eq!(client.get_at(&port, "/").expect("an answer").status(), 200);
        eventually("the exchange has ended", || route.stats().in_flight == 0);
        assert_eq!(route.stats().target_failures, 0);
        // A body that ends too early does not look complete.
        assert!(RawClient::connect(port.local_addr()).get_at(&port, "/short").is_err());
        eventually("the exchange has ended", || route.stats().in_flight == 0);
        assert_eq!(route.stats().target_failures, 1);
    }
}

#[test]
fn an_event_is_not_held_back() {
    let gateway = gateway();
    let site = ScriptedSite::start(|visit| {
        visit.request()?;
        visit.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: http://localhost:9999/\n\n")?;
        std::thread::sleep(Duration::from_secs(30));
        Ok(())
    });
    let route = route_to(&gateway, &site, 1);
    let (port, slot) = slot_of(&gateway, &route, true);
    slot.grant("e1", 1);
    let mut client = RawClient::connect(port.local_addr());
    client.send(format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", local(&port))).expect("sent");
    client.head().expect("a head");
    assert_eq!(read_chunk(&mut client.reader).expect("the event"), b"data: http://localhost:9998/\n\n");
}

#[test]
fn recordings_of_all_slots_have_canonical_addresses() {
    let gateway = gateway();
    let site = ScriptedSite::answering(|_| {
        "HTTP/1.1 302 Found\r\nLocation: http://localhost:7770/x\r\nContent-Length: 0\r\n\r\n".to_owned()
    });
    let route = open(&gateway);
    route.serve(target(&site, 1));
    let (port, slot) = slot_of(&gateway, &route, true);
    slot.grant("e1", 1);
    let answer = RawClient::connect(port.local_addr()).get_at(&port, "/page").expect("an answer");
    assert_eq!(answer.header("location").expect("a location"), format!("http://{}/x", local(&port)));
    let recording = route.recorder().expect("a recorder").recording().expect("a recording");
    let exchange = &recording.exchanges[0];
    assert_eq!(exchange.request.url, "http://localhost:7770/page");
    let head = exchange.answer.as_ref().expect("an answer");
    assert_eq!(head.headers["location"], "http://localhost:7770/x");
}

#[test]
fn a_closed_port_is_free_and_cuts_its_clients() {
    let gateway = gateway();
    let site = ScriptedSite::echoing();
    let route = route_to(&gateway, &site, 1);
    let slot = Arc::new(TestSlot { route, maps_bodies: false, state: Mutex::default() });
    let port = gateway.open_slot_port(own_loopback(), slot.clone(), "shop").expect("a free port");
    slot.grant("e1", 1);
    let mut client = RawClient::connect(port.local_addr());
    assert_eq!(client.get_at(&port, "/").expect("an answer").status(), 200);
    let address = port.local_addr();
    block_on(port.close());
    assert!(client.is_ended());
    gateway.open_slot_port(address, slot, "shop").expect("the port is free");
}

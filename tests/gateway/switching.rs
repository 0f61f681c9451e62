//! One switch at a time: the result of requests in each stage.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use arenad_gateway::{HoldLimits, RecordingFilter, RouteState, WriteRules};

use super::support::*;

through_doors! {
    a_route_opens_refusing,
    held_requests_go_to_the_next_target_bodies_included,
    a_get_that_waits_for_the_old_target_is_answered_by_the_new_one,
    a_post_that_the_old_target_may_have_carried_out_is_answered_503,
    a_post_in_the_middle_of_its_body_is_answered_503,
    an_answer_under_way_is_cut_and_nothing_that_is_sent_later_arrives,
    a_finished_answer_that_the_client_has_not_fetched_is_cut,
    an_idle_connection_outlives_switches,
    the_same_address_with_a_new_generation_gets_new_connections,
    a_full_queue_and_a_long_wait_are_answered_503,
    clients_that_leave_while_held_free_their_places,
    refusing_answers_the_held_and_the_new,
    a_target_that_accepts_nothing_does_not_delay_a_switch,
}

/// A site that accepts and counts requests and never answers.
fn silent() -> (ScriptedSite, Arc<AtomicU64>) {
    let taken = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&taken);
    let site = ScriptedSite::start(move |visit| {
        loop {
            visit.request()?;
            counter.fetch_add(1, Ordering::SeqCst);
        }
    });
    (site, taken)
}

fn a_route_opens_refusing(door: Door) {
    let gateway = gateway();
    let route = gateway
        .open(loopback(), hold_limits(), WriteRules::default(), RecordingFilter::Nothing, "shop")
        .expect("a free port");
    let entrance = Entrance::open(&gateway, &route, door);
    let answer = entrance.client().get("/").expect("an answer");
    assert_eq!(answer.status(), 503);
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert!(matches!(route.state(), RouteState::Refusing { .. }));
}

fn held_requests_go_to_the_next_target_bodies_included(door: Door) {
    let site = ScriptedSite::answering(|request| ok(&format!("{} {}", request.first, request.text())));
    let (_gateway, route, entrance) = serving_through(door, &site);
    route.hold("reset");
    let mut clients: Vec<RawClient> = (0..8).map(|_| entrance.client()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client
            .request(format!("POST /{number} HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{number}!"))
            .expect("sent");
    }
    eventually("all are held", || route.stats().held == 8);
    assert_eq!(site.visits(), 0);
    route.serve(target(&site, 2));
    for (number, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.answer().expect("an answer").text(), format!("POST /{number} HTTP/1.1 {number}!"));
    }
    assert_eq!(route.stats().held, 0);
}

fn a_get_that_waits_for_the_old_target_is_answered_by_the_new_one(door: Door) {
    for hold_between in [true, false] {
        let (old, taken) = silent();
        let new = ScriptedSite::echoing();
        let (_gateway, route, entrance) = serving_through(door, &old);
        let mut client = entrance.client();
        client.request("GET /x HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
        eventually("the old site has it", || taken.load(Ordering::SeqCst) == 1);
        if hold_between {
            route.hold("reset");
            eventually("it is held", || route.stats().held == 1);
        }
        route.serve(target(&new, 2));
        assert_eq!(client.answer().expect("an answer").text(), "GET /x HTTP/1.1");
        assert_eq!(client.get("/y").expect("the connection is kept").text(), "GET /y HTTP/1.1");
    }
}

fn a_post_that_the_old_target_may_have_carried_out_is_answered_503(door: Door) {
    let (old, taken) = silent();
    let new = ScriptedSite::echoing();
    let (_gateway, route, entrance) = serving_through(door, &old);
    let mut client = entrance.client();
    client.request("POST /buy HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nok").expect("sent");
    eventually("the old site has it", || taken.load(Ordering::SeqCst) == 1);
    route.serve(target(&new, 2));
    let answer = client.answer().expect("an answer");
    assert_eq!(answer.status(), 503);
    assert!(answer.header("retry-after").is_some());
    assert_eq!(answer.header("connection"), Some("close"));
    assert!(client.is_ended());
    assert_eq!(new.visits(), 0);
}

fn a_post_in_the_middle_of_its_body_is_answered_503(door: Door) {
    let (old, _) = silent();
    let (_gateway, route, entrance) = serving_through(door, &old);
    let mut client = entrance.client();
    client.request("POST /buy HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nok").expect("sent");
    eventually("the old site has some of it", || route.stats().bytes_to_site == 2);
    route.hold("reset");
    let answer = client.answer().expect("an answer");
    assert_eq!((answer.status(), answer.header("connection")), (503, Some("close")));
}

fn an_answer_under_way_is_cut_and_nothing_that_is_sent_later_arrives(door: Door) {
    let is_past = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&is_past);
    let old = ScriptedSite::start(move |visit| {
        visit.request()?;
        visit.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
        loop {
            let word = if flag.load(Ordering::SeqCst) { "late" } else { "fine" };
            visit.send(format!("4\r\n{word}\r\n"))?;
        }
    });
    for round in 0..50 {
        is_past.store(false, Ordering::SeqCst);
        let (_gateway, route, entrance) = serving_through(door, &old);
        let mut client = entrance.client();
        client.request("GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
        client.head().expect("a head");
        for _ in 0..round {
            read_chunk(&mut client.reader).expect("a chunk");
        }
        route.hold("reset");
        is_past.store(true, Ordering::SeqCst);
        let end = loop {
            match read_chunk(&mut client.reader) {
                // The gateway may split a chunk, so the test looks for letters that only "late" has.
                Ok(chunk) => {
                    assert!(!chunk.iter().any(|letter| b"lat".contains(letter)), "an old byte: {chunk:?}")
                }
                Err(error) => break in_time(error),
            }
        };
        assert_eq!(end.kind(), std::io::ErrorKind::ConnectionReset, "round {round}");
        assert_eq!(route.stats().cut, 1);
    }
}

fn a_finished_answer_that_the_client_has_not_fetched_is_cut(door: Door) {
    // Both sizes exceed the client's receive buffer: the first stays in the kernel, the second also in the process.
    for size in [40_000, 1 << 20] {
        let site = ScriptedSite::answering(move |_| ok(&"x".repeat(size)));
        let (_gateway, route, entrance) = serving_through(door, &site);
        for round in 1..=5 {
            let small = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
            small.set_recv_buffer_size(4096).expect("a small buffer");
            small.connect(&entrance.address().into()).expect("connected");
            let mut client = entrance.client_on(small.into());
            client.request("GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
            eventually("the site is done", || route.stats().bytes_from_site == round * size as u64);
            eventually("the request is done", || route.stats().in_flight == 0);
            route.hold("reset");
            let mut all = Vec::new();
            let end = client.reader.read_to_end(&mut all).map_err(in_time);
            assert!(end.is_err() && all.len() < size, "{} of {size} bytes arrived", all.len());
            assert_eq!(route.stats().cut, round);
            route.serve(target(&site, round + 1));
        }
    }
}

fn an_idle_connection_outlives_switches(door: Door) {
    let sites: Vec<ScriptedSite> =
        (0..3).map(|number| ScriptedSite::answering(move |_| ok(&number.to_string()))).collect();
    let (_gateway, route, entrance) = serving_through(door, &sites[0]);
    let mut client = entrance.client();
    for (generation, site) in sites.iter().cycle().take(30).enumerate() {
        route.hold("reset");
        route.serve(target(site, generation as u64 + 2));
        assert_eq!(client.get("/").expect("an answer").text(), (generation % 3).to_string());
        // The client may be faster than the worker's record that everything is written.
        eventually("the connection is idle", || route.stats().in_flight == 0);
    }
    assert_eq!(route.stats().cut, 0);
}

fn the_same_address_with_a_new_generation_gets_new_connections(door: Door) {
    let site = ScriptedSite::echoing();
    let (_gateway, route, entrance) = serving_through(door, &site);
    let mut client = entrance.client();
    for generation in 1..10 {
        route.serve(target(&site, generation));
        // Repeating the switch changes nothing.
        route.serve(target(&site, generation));
        client.get("/").expect("an answer");
        assert_eq!(site.visits(), generation);
        eventually("the connection is idle", || route.stats().in_flight == 0);
    }
}

fn a_full_queue_and_a_long_wait_are_answered_503(door: Door) {
    let gateway = gateway();
    let limits = HoldLimits { requests: 2, timeout: Duration::from_millis(300) };
    let route =
        gateway.open(loopback(), limits, WriteRules::default(), RecordingFilter::Nothing, "shop").expect("a free port");
    let entrance = Entrance::open(&gateway, &route, door);
    route.hold("a reset that never ends");
    let mut held: Vec<RawClient> = (0..2).map(|_| entrance.client()).collect();
    for client in &mut held {
        client.request("GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    }
    eventually("both are held", || route.stats().held == 2);
    let third = entrance.client().get("/").expect("an answer");
    assert_eq!((third.status(), third.header("retry-after")), (503, Some("1")));
    assert!(third.text().contains("too many requests wait"), "{}", third.text());
    for client in &mut held {
        let answer = client.answer().expect("an answer");
        assert_eq!((answer.status(), answer.header("retry-after")), (503, Some("1")));
        assert!(answer.text().contains("waited too long: a reset that never ends"), "{}", answer.text());
    }
    assert_eq!(route.stats().held, 0);
}

fn clients_that_leave_while_held_free_their_places(door: Door) {
    let gateway = gateway();
    let route = gateway
        .open(loopback(), hold_limits(), WriteRules::default(), RecordingFilter::Nothing, "shop")
        .expect("a free port");
    let entrance = Entrance::open(&gateway, &route, door);
    route.hold("reset");
    let requests = [
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
        // With an unread body and a second request behind it, there is always data to read before the end.
        format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n{}", "x".repeat(100_000)),
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(3),
    ];
    for request in requests {
        let mut client = entrance.client();
        client.request(request).expect("sent");
        eventually("it is held", || route.stats().held == 1);
        drop(client);
        eventually("its place is free", || route.stats().held == 0 && entrance.connections() == 0);
    }
}

fn refusing_answers_the_held_and_the_new(door: Door) {
    let site = ScriptedSite::echoing();
    let (_gateway, route, entrance) = serving_through(door, &site);
    route.hold("reset");
    let mut held = entrance.client();
    held.request("GET / HTTP/1.1\r\nHost: a\r\nAccept: text/html\r\n\r\n").expect("sent");
    eventually("it is held", || route.stats().held == 1);
    route.refuse("quarantined: table <orders> differs", Duration::from_millis(2500));
    let page = held.answer().expect("an answer");
    assert_eq!((page.status(), page.header("retry-after")), (503, Some("3")));
    assert!(page.text().contains("quarantined: table &lt;orders&gt; differs"), "{}", page.text());
    let text = held.get("/").expect("the connection is kept");
    assert_eq!(text.text(), "503 Service Unavailable: site shop: quarantined: table <orders> differs\n");
    assert_eq!(text.header("cache-control"), Some("no-store"));
    route.serve(target(&site, 2));
    assert_eq!(held.get("/").expect("an answer").status(), 200);
}

fn a_target_that_accepts_nothing_does_not_delay_a_switch(door: Door) {
    // A full backlog drops further SYNs, so that connecting takes until the connect timeout.
    let full = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
    full.bind(&loopback().into()).expect("bound");
    full.listen(0).expect("listening");
    let address = full.local_addr().expect("an address").as_socket().expect("an IP address");
    let _fill: Vec<_> = (0..4)
        .map(|_| {
            let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
            socket.set_nonblocking(true).expect("nonblocking");
            let _ = socket.connect(&address.into());
            socket
        })
        .collect();
    let gateway = gateway_with(|settings| settings.connect_timeout = DEADLINE * 4);
    let route = gateway
        .open(loopback(), hold_limits(), WriteRules::default(), RecordingFilter::Nothing, "shop")
        .expect("a free port");
    let entrance = Entrance::open(&gateway, &route, door);
    let stuck = ScriptedSite { address, visits: Arc::default() };
    let new = ScriptedSite::echoing();
    route.serve(target(&stuck, 1));
    let mut client = entrance.client();
    // The request is not safe to repeat, but it has not been sent yet either.
    client.request("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi").expect("sent");
    eventually("it is on its way", || route.stats().unsafe_requests == 1);
    route.serve(target(&new, 2));
    assert_eq!(client.answer().expect("an answer").text(), "POST /x HTTP/1.1");
}

//! Limits, ports and shutdown.

use std::io::Read;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use arenad_gateway::{OpenError, RecordingFilter, RouteState, WriteRules};

use super::support::*;

through_doors! {
    a_head_that_does_not_end_is_closed_however_busily_it_drips,
    a_head_that_began_before_the_answer_was_written_has_no_longer_time,
    idle_connections_are_closed_and_busy_ones_are_not,
    a_head_may_be_large_but_not_too_large,
    connections_beyond_the_limit_are_told_so,
    a_shutdown_lets_answers_end_and_then_frees_everything,
    a_shutdown_does_not_wait_for_ever,
}

#[test]
fn a_port_that_is_taken_is_an_error_that_names_it() {
    let gateway = gateway();
    let first = gateway
        .open(loopback(), hold_limits(), WriteRules::default(), RecordingFilter::Nothing, "shop")
        .expect("a free port");
    let address = first.local_addr();
    let error = gateway
        .open(address, hold_limits(), WriteRules::default(), RecordingFilter::Nothing, "forum")
        .expect_err("taken by this gateway");
    assert!(matches!(error, OpenError::PortTaken { address: named } if named == address));
    assert_eq!(error.to_string(), format!("port of {address} is taken"));
    // Binding the port on all addresses is refused, and so is another socket with all sharing options.
    let everywhere = SocketAddr::from(([0, 0, 0, 0], address.port()));
    assert!(matches!(
        gateway.open(everywhere, hold_limits(), WriteRules::default(), RecordingFilter::Nothing, "forum"),
        Err(OpenError::PortTaken { .. })
    ));
    let sharing = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
    sharing.set_reuse_address(true).expect("an option");
    sharing.set_reuse_port(true).expect("an option");
    sharing.bind(&loopback().into()).expect("bound");
    sharing.listen(1).expect("listening");
    let shared = sharing.local_addr().expect("an address").as_socket().expect("an IP address");
    assert!(matches!(
        gateway.open(shared, hold_limits(), WriteRules::default(), RecordingFilter::Nothing, "forum"),
        Err(OpenError::PortTaken { .. })
    ));
    let gone = SocketAddr::from(([192, 0, 2, 1], 80));
    assert!(matches!(
        gateway.open(gone, hold_limits(), WriteRules::default(), RecordingFilter::Nothing, "forum"),
        Err(OpenError::Listen { .. })
    ));
}

#[test]
fn a_closed_route_frees_its_port_and_ends_its_connections() {
    let site = ScriptedSite::echoing();
    let gateway = gateway();
    let mut route = gateway
        .open(own_loopback(), hold_limits(), WriteRules::default(), RecordingFilter::Nothing, "shop")
        .expect("a free port");
    let address = route.local_addr();
    for generation in 0..20 {
        route.serve(target(&site, generation));
        let mut client = RawClient::connect(address);
        assert_eq!(client.get("/").expect("an answer").status(), 200);
        let other = route.clone();
        block_on(route.close());
        assert!(client.is_ended());
        assert_eq!(other.state(), RouteState::Closed);
        other.serve(target(&site, 99));
        assert_eq!(other.state(), RouteState::Closed, "closed is final");
        route = gateway
            .open(address, hold_limits(), WriteRules::default(), RecordingFilter::Nothing, "shop")
            .expect("the port is free again");
    }
}

fn a_head_that_does_not_end_is_closed_however_busily_it_drips(door: Door) {
    let gateway = gateway_with(|settings| settings.head_timeout = Duration::from_millis(300));
    let site = ScriptedSite::echoing();
    let route = gateway
        .open(loopback(), hold_limits(), WriteRules::default(), RecordingFilter::Nothing, "shop")
        .expect("a free port");
    let entrance = Entrance::open(&gateway, &route, door);
    route.serve(target(&site, 1));
    let mut slow = entrance.client();
    assert_eq!(slow.get("/").expect("an answer").status(), 200);
    slow.request("GET / HTTP/1.1\r\nHost: a\r\nX: ").expect("sent");
    eventually("the gateway gives up", || slow.reader.get_ref().write_byte().is_err());
    eventually("the connection is gone", || entrance.connections() == 0);
    // A connection that is idle between requests has the longer limit.
    let mut idle = entrance.client();
    idle.get("/").expect("an answer");
    std::thread::sleep(Duration::from_millis(700));
    assert_eq!(idle.get("/").expect("still open").status(), 200);
}

fn a_head_that_began_before_the_answer_was_written_has_no_longer_time(door: Door) {
    let gateway = gateway_with(|settings| settings.head_timeout = Duration::from_millis(300));
    let site = ScriptedSite::echoing();
    let route = gateway
        .open(loopback(), hold_limits(), WriteRules::default(), RecordingFilter::Nothing, "shop")
        .expect("a free port");
    let entrance = Entrance::open(&gateway, &route, door);
    route.serve(target(&site, 1));
    let mut slow = entrance.client();
    slow.request("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\nX: ").expect("sent");
    assert_eq!(slow.answer().expect("an answer").status(), 200);
    eventually("the gateway gives up", || slow.reader.get_ref().write_byte().is_err());
}

trait WriteByte {
    fn write_byte(&self) -> std::io::Result<()>;
}

impl WriteByte for std::net::TcpStream {
    fn write_byte(&self) -> std::io::Result<()> {
        let mut stream = self;
        std::io::Write::write_all(&mut stream, b"x")
    }
}

fn idle_connections_are_closed_and_busy_ones_are_not(door: Door) {
    let gateway = gateway_with(|settings| settings.idle_timeout = Duration::from_millis(300));
    let route = gateway
        .open(loopback(), hold_limits(), WriteRules::default(), RecordingFilter::Nothing, "shop")
        .expect("a free port");
    let entrance = Entrance::open(&gateway, &route, door);
    let mut silent = entrance.client();
    let mut idle = entrance.client();
    assert_eq!(idle.get("/").expect("an answer").status(), 503);
    route.hold("longer than the idle timeout");
    let mut held = entrance.client();
    held.request("GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    assert!(idle.is_ended() && silent.is_ended());
    let site = ScriptedSite::echoing();
    assert_eq!(route.stats().held, 1);
    route.serve(target(&site, 1));
    assert_eq!(held.answer().expect("an answer").status(), 200);
}

fn a_head_may_be_large_but_not_too_large(door: Door) {
    let site = ScriptedSite::echoing();
    let (_gateway, _route, entrance) = serving_through(door, &site);
    let head = |size: usize| format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(size));
    let mut client = entrance.client();
    client.request(head(60_000)).expect("sent");
    assert_eq!(client.answer().expect("an answer").status(), 200);
    client.request(head(70_000)).expect("sent");
    let answer = client.answer().expect("an answer");
    assert_eq!((answer.status(), answer.header("connection")), (431, Some("close")));
    assert!(client.is_ended());
    let mut many = entrance.client();
    many.request(format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(1000))).expect("sent");
    assert_eq!(many.answer().expect("an answer").status(), 431);
}

fn connections_beyond_the_limit_are_told_so(door: Door) {
    let gateway = gateway_with(|settings| (settings.connections_per_route, settings.connections_per_proxy) = (3, 3));
    let site = ScriptedSite::echoing();
    let route = gateway
        .open(loopback(), hold_limits(), WriteRules::default(), RecordingFilter::Nothing, "shop")
        .expect("a free port");
    let entrance = Entrance::open(&gateway, &route, door);
    route.serve(target(&site, 1));
    let mut within: Vec<RawClient> = (0..3).map(|_| entrance.client()).collect();
    for client in &mut within {
        assert_eq!(client.get("/").expect("an answer").status(), 200);
    }
    // The client sends nothing, so that unread bytes cannot destroy the answer.
    let answer = RawClient::connect(entrance.address()).answer().expect("an answer");
    assert_eq!((answer.status(), answer.header("retry-after")), (503, Some("1")));
    drop(within.pop());
    eventually("a place is free", || entrance.connections() == 2);
    assert_eq!(entrance.client().get("/").expect("an answer").status(), 200);
}

fn a_shutdown_lets_answers_end_and_then_frees_everything(door: Door) {
    let site = ScriptedSite::start(|visit| {
        visit.request()?;
        visit.send("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf")?;
        std::thread::sleep(Duration::from_millis(200));
        visit.send("half")
    });
    let (gateway, _route, entrance) = serving_through(door, &site);
    let held_route = gateway
        .open(own_loopback(), hold_limits(), WriteRules::default(), RecordingFilter::Nothing, "forum")
        .expect("a free port");
    let held_route_entrance = Entrance::open(&gateway, &held_route, door);
    held_route.hold("reset");
    let mut idle = entrance.client();
    let mut held = held_route_entrance.client();
    held.request("GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    let mut busy = entrance.client();
    busy.request("GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    busy.head().expect("a head");
    eventually("one is held", || held_route.stats().held == 1);
    let stopping = std::thread::spawn(move || block_on(gateway.shutdown(DEADLINE)));
    let mut body = [0; 8];
    busy.reader.read_exact(&mut body).map_err(in_time).expect("the answer ends");
    assert_eq!(&body, b"halfhalf");
    assert!(busy.is_ended() && idle.is_ended());
    assert_eq!(held.answer().expect("an answer").status(), 503);
    stopping.join().expect("no panic");
    TcpListener::bind(held_route.local_addr()).expect("the port is free");
}

fn a_shutdown_does_not_wait_for_ever(door: Door) {
    let site = ScriptedSite::start(|visit| {
        visit.request()?;
        visit.send("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf")?;
        std::thread::sleep(DEADLINE * 4);
        Ok(())
    });
    let (gateway, _route, entrance) = serving_through(door, &site);
    let mut client = entrance.client();
    client.request("GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    client.head().expect("a head");
    block_on(gateway.shutdown(Duration::from_millis(50)));
    let mut body = Vec::new();
    assert!(client.reader.read_to_end(&mut body).map_err(in_time).is_err(), "cut, not ended");
}

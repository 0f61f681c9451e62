//! WebSockets through the gateway, which does not parse their frames: data from a site is held back while the client
//! does not read, and other clients are served.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use arenad_gateway::{Gateway, GatewaySettings, HoldLimits, RecordingFilter, Target, WriteRules};

use super::{GROWTH_MAX, PATIENCE, memory};
use crate::alone::is_alone;
use crate::hostile_servers::{Hostile, Move, http, websocket};

/// The time for which each client leaves its data unread.
const UNREAD: Duration = Duration::from_millis(300);

#[test]
fn tunnels_to_hostile_servers_harm_nobody() {
    if !is_alone(tunnels_to_hostile_servers_harm_nobody) {
        return;
    }
    let handshake = "GET /socket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                     Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    for (name, script) in websocket::attacks() {
        let site = Hostile::answering(move |heard| match websocket::taken(heard) {
            Some(taken) => [vec![Move::Say(taken)], script.clone()].concat(),
            None => http::page("text/plain", "fine").split_off(1),
        });
        let gateway = Gateway::start(GatewaySettings::default()).expect("the gateway starts");
        let hold = HoldLimits { requests: 8, timeout: PATIENCE };
        let route = gateway
            .open(SocketAddr::from(([127, 0, 0, 1], 0)), hold, WriteRules::default(), RecordingFilter::Nothing, "shop")
            .expect("a free port");
        route.serve(Target { address: site.address, instance: "shop-1".to_owned(), generation: 1 });
        let before = memory();
        let mut client = connect(route.local_addr());
        client.write_all(handshake.as_bytes()).expect("sent");
        let mut heard = [0; 12];
        client.read_exact(&mut heard).expect("an answer");
        assert_eq!(&heard, b"HTTP/1.1 101", "{name}");
        std::thread::sleep(UNREAD);
        let growth = memory().saturating_sub(before);
        assert!(growth < GROWTH_MAX / 8, "{name}: the gateway keeps {} MiB of unread data", growth >> 20);
        let mut visitor = connect(route.local_addr());
        visitor.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").expect("sent");
        let mut answer = String::new();
        visitor.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("fine"), "{name}: {answer}");
    }
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the gateway accepts");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    stream
}

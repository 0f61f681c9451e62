//! The ways through which clients reach a route. A test with a [`Door`] runs once for each of them.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use arenad_gateway::{
    EpisodeAccess, Gateway, Proxy, ProxyCredentials, ProxyDecision, ProxyDirectory, ProxySite, Route, SlotLease,
    SlotPort, SlotPortDecision, SlotPortDirectory, SlotPortSite,
};

use super::support::*;

/// The header with the credentials `ep1:secret`.
pub const AUTHORIZATION: &str = "Proxy-Authorization: Basic ZXAxOnNlY3JldA==\r\n";

/// A way to a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// The public port of its route.
    Port,
    /// The episode proxy, with the whole address in each request.
    Proxy,
    /// A tunnel of the episode proxy.
    Tunnel,
    /// The own port of a slot.
    Slot,
}

impl Door {
    /// Changes a request for a path to the form that the door requires; other text stays as it is.
    pub fn requests(self, text: &str) -> String {
        if self != Self::Proxy {
            return text.to_owned();
        }
        let mut changed = String::new();
        let mut rest = text;
        // The end of an empty line precedes each further request without a body.
        while let Some(at) = rest.find("\r\n\r\n") {
            changed.push_str(&self.request(&rest[..at + 4]));
            rest = &rest[at + 4..];
        }
        changed + &self.request(rest)
    }

    fn request(self, text: &str) -> String {
        let parts = text.split_once(' ').filter(|(method, rest)| is_method(method) && rest.starts_with('/'));
        match parts.and_then(|(method, rest)| Some((method, rest.split_once("\r\n")?))) {
            Some((method, (target, headers))) => format!("{method} http://a{target}\r\n{AUTHORIZATION}{headers}"),
            None => text.to_owned(),
        }
    }
}

fn is_method(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_uppercase())
}

/// Declares each test once for each door.
macro_rules! through_doors {
    ($($test:ident,)*) => {
        $(mod $test {
            use super::super::doors::Door;

            #[test]
            fn port() {
                super::$test(Door::Port);
            }

            #[test]
            fn proxy() {
                super::$test(Door::Proxy);
            }

            #[test]
            fn tunnel() {
                super::$test(Door::Tunnel);
            }

            #[test]
            fn slot() {
                super::$test(Door::Slot);
            }
        })*
    };
}
/// One episode, `ep1`, to which every host is the same site.
struct OneSite(ProxySite);

impl ProxyDirectory for OneSite {
    fn resolve(&self, credentials: &ProxyCredentials, host: &str, port: u16) -> ProxyDecision {
        assert_eq!((credentials.episode.as_str(), credentials.token.as_str()), ("ep1", "secret"));
        assert_eq!((host, port), ("a", 80));
        ProxyDecision::Site(self.0.clone())
    }
}

/// One lease, to whose connections every host is the same site.
struct OneSlot(SlotPortSite);

impl SlotPortDirectory for OneSlot {
    fn lease(&self) -> Option<SlotLease> {
        Some(SlotLease("ep1".to_owned()))
    }

    fn resolve(&self, lease: Option<&SlotLease>, host: &str, _port: u16) -> SlotPortDecision {
        assert_eq!((lease, host), (self.lease().as_ref(), "a"));
        SlotPortDecision::Site(self.0.clone())
    }
}

/// A route, and the door through which clients reach it.
pub struct Entrance {
    door: Door,
    route: Route,
    opened: OpenedDoor,
}

enum OpenedDoor {
    /// The route's own port.
    Route,
    Proxy(Proxy),
    Slot(SlotPort),
}

impl Entrance {
    pub fn open(gateway: &Gateway, route: &Route, door: Door) -> Self {
        let (route, canonical, access) = (route.clone(), "a".to_owned(), EpisodeAccess::default());
        let opened = match door {
            Door::Port => OpenedDoor::Route,
            Door::Proxy | Door::Tunnel => {
                let site = ProxySite { route: route.clone(), canonical, generation: None, access, tls: None };
                OpenedDoor::Proxy(gateway.open_proxy(loopback(), Arc::new(OneSite(site))).expect("a free port"))
            }
            Door::Slot => {
                let (others, maps_bodies) = (Vec::new(), true);
                let site =
                    SlotPortSite { route: route.clone(), canonical, generation: None, access, others, maps_bodies };
                let directory = Arc::new(OneSlot(site));
                OpenedDoor::Slot(gateway.open_slot_port(loopback(), directory, "shop").expect("a free port"))
            }
        };
        Self { door, route, opened }
    }

    pub fn address(&self) -> SocketAddr {
        match &self.opened {
            OpenedDoor::Route => self.route.local_addr(),
            OpenedDoor::Proxy(proxy) => proxy.local_addr(),
            OpenedDoor::Slot(port) => port.local_addr(),
        }
    }

    /// Connects a client, whose requests lead to the site.
    pub fn client(&self) -> RawClient {
        self.enter(RawClient::connect(self.address()))
    }

    /// Uses a stream that is connected to the address of the door.
    pub fn client_on(&self, stream: TcpStream) -> RawClient {
        self.enter(RawClient::on(stream))
    }

    fn enter(&self, mut client: RawClient) -> RawClient {
        client.door = self.door;
        if self.door == Door::Tunnel {
            client.send(format!("CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n{AUTHORIZATION}\r\n")).expect("sent");
            let head = client.head().expect("an answer");
            assert_eq!((head.status(), head.header("content-length")), (200, None));
        }
        client
    }

    /// Returns the number of connections of clients.
    pub fn connections(&self) -> u64 {
        match &self.opened {
            OpenedDoor::Route => self.route.stats().connections,
            OpenedDoor::Proxy(proxy) => proxy.stats().connections,
            OpenedDoor::Slot(port) => port.stats().connections,
        }
    }
}

/// A gateway with one route that serves the site, and a door to it.
pub fn serving_through(door: Door, site: &ScriptedSite) -> (Gateway, Route, Entrance) {
    let (gateway, route) = serving(site);
    let entrance = Entrance::open(&gateway, &route, door);
    (gateway, route, entrance)
}

//! Bytes that clients send to the own port of a slot. The properties are those of a public port. In addition, the site
//! sees only requests under its own address, without an address of the slot in their queries.

use std::sync::Arc;

use arenad_gateway::{
    EpisodeAccess, OtherPlace, OtherSite, Route, SlotLease, SlotPortDecision, SlotPortDirectory, SlotPortSite,
};

use super::requests::{Passage, checked};
use super::wire::WireMessage;
use crate::target::{FuzzTarget, InputCheck};

pub const TARGET: FuzzTarget = FuzzTarget {
    words: &[
        "GET /",
        "POST / HTTP/1.1\r\n",
        "GET http://a/",
        "?next=http://a/",
        "?next=http%3A%2F%2Fa%3A80%2F",
        "&x=http:\\/\\/a",
        "//a:9998/",
        "%252F%252Fa",
        "//localhost:7770/",
        "http%3A%2F%2Flocalhost%3A9999",
        " HTTP/1.0\r\n",
        " HTTP/1.1\r\n",
        "\r\n",
        "\r\n\r\n",
        "\0",
        "Host: a\r\n",
        "Host: a:80\r\n",
        "Host: localhost:7770\r\n",
        "Host: [::1]:9\r\n",
        "Connection: close, host\r\n",
        "Connection: upgrade\r\nUpgrade: websocket\r\n",
        "Content-Length: 5\r\n",
        "Content-Length: 17\r\n",
        "Content-Type: application/json\r\n",
        "Content-Type: application/x-www-form-urlencoded\r\n",
        "Content-Length: ",
        "Transfer-Encoding: chunked\r\n",
        "Origin: http://a:9998\r\n",
        "Referer: http://a/x\r\n",
        "If-None-Match: \"x-arenad-0000000000000000\"\r\n",
        "Range: bytes=0-1\r\n",
        "Accept-Encoding: gzip\r\n",
        "0\r\n\r\n",
        "5\r\nhello\r\n",
        "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
    ],
    ..FuzzTarget::new("gateway-slot-requests", open)
};

/// The address that the site was made for.
const CANONICAL: &str = "localhost:7770";

/// A lease that does not end.
struct OneSlot(SlotPortSite);

impl SlotPortDirectory for OneSlot {
    fn lease(&self) -> Option<SlotLease> {
        Some(SlotLease("ep1".to_owned()))
    }

    fn resolve(&self, lease: Option<&SlotLease>, _host: &str, _port: u16) -> SlotPortDecision {
        assert_eq!(lease, self.lease().as_ref());
        SlotPortDecision::Site(self.0.clone())
    }
}

fn open() -> InputCheck {
    let to = move |address| {
        Passage::through(address, |gateway, route: &Route| {
            let site = SlotPortSite {
                route: route.clone(),
                canonical: CANONICAL.to_owned(),
                // The target makes new generations.
                generation: None,
                access: EpisodeAccess::default(),
                others: vec![OtherSite { canonical: "localhost:9999".to_owned(), place: OtherPlace::Port(9998) }],
                maps_bodies: true,
            };
            let listen = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
            let port = gateway.open_slot_port(listen, Arc::new(OneSlot(site)), "shop").expect("a free port");
            (port.local_addr(), ("", ""))
        })
    };
    checked(to, |seen| seen.iter().for_each(examine))
}

fn examine(request: &WireMessage) {
    let hosts: Vec<&str> = request.all("host").collect();
    assert_eq!(hosts, [CANONICAL], "{request:?}");
    for name in ["range", "if-range"] {
        let is_own = request.all(name).count() > 0;
        // A client that names the canonical address gets the responses of the site.
        let is_mapped = request.all("accept-encoding").eq(["identity"]);
        assert!(!is_own || !is_mapped, "{request:?}");
    }
}

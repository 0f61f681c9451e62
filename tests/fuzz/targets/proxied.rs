//! Bytes that clients send to the episode proxy. The properties are those of a public port. In addition, the site sees
//! only requests that the directory led to it, under its own address, and nothing of the proxy.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arenad_gateway::{EpisodeAccess, ProxyCredentials, ProxyDecision, ProxyDirectory, ProxyRefusal, ProxySite, Route};

use super::requests::{Passage, checked};
use super::wire::WireMessage;
use crate::target::{FuzzTarget, InputCheck};

pub const TARGET: FuzzTarget = FuzzTarget {
    words: &[
        "GET http://a/",
        "POST http://a/ HTTP/1.1\r\n",
        "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n",
        "CONNECT ",
        "http://",
        "http://a:80/",
        "http://A.:80",
        "http://b/",
        "https://a/",
        "http://[::1]/",
        "http://ep1:secret@a/",
        "//a/",
        "*",
        " HTTP/1.0\r\n",
        " HTTP/1.1\r\n",
        "\r\n",
        "\r",
        "\n",
        "\r\n\r\n",
        "\0",
        "\x16\x03\x01",
        "Host: a\r\n",
        "Host: a:80\r\n",
        "Host: b\r\n",
        "Proxy-Authorization: Basic ZXAxOnNlY3JldA==\r\n",
        "Proxy-Authorization: Basic ZXAyOnNlY3JldA==\r\n",
        "Proxy-Authorization: basic ",
        "Proxy-Authorization:",
        "Proxy-Connection: keep-alive\r\n",
        "Connection: close, proxy-authorization, host\r\n",
        "Connection: upgrade\r\nUpgrade: websocket\r\n",
        "Content-Length: 5\r\n",
        "Content-Length: ",
        "Transfer-Encoding: chunked\r\n",
        "Origin: http://a\r\n",
        "Referer: http://a/x\r\n",
        "0\r\n\r\n",
        "5\r\nhello\r\n",
        "GET http://a/smuggled HTTP/1.1\r\nHost: a\r\nProxy-Authorization: Basic ZXAxOnNlY3JldA==\r\n\r\n",
        "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
    ],
    ..FuzzTarget::new("gateway-proxied-requests", open)
};

/// The address that the site was made for.
const CANONICAL: &str = "localhost:7770";

/// One episode with one site, and the number of requests that it led to the site.
struct OneSite {
    site: ProxySite,
    admitted: Arc<AtomicUsize>,
}

impl ProxyDirectory for OneSite {
    fn resolve(&self, credentials: &ProxyCredentials, host: &str, port: u16) -> ProxyDecision {
        if (credentials.episode.as_str(), credentials.token.as_str()) != ("ep1", "secret") {
            return ProxyDecision::Refused(ProxyRefusal::Credentials);
        }
        if (host, port) != ("a", 80) {
            return ProxyDecision::Refused(ProxyRefusal::Outside { reachable: vec!["http://a".to_owned()] });
        }
        self.admitted.fetch_add(1, Ordering::SeqCst);
        ProxyDecision::Site(self.site.clone())
    }
}

fn open() -> InputCheck {
    let admitted: Arc<AtomicUsize> = Arc::default();
    let counter = Arc::clone(&admitted);
    let to = move |address| {
        Passage::through(address, |gateway, route: &Route| {
            let (route, canonical) = (route.clone(), CANONICAL.to_owned());
            // The target makes new generations, as a site that all episodes share would.
            let site = ProxySite { route, canonical, generation: None, access: EpisodeAccess::default(), tls: None };
            let listen = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
            let proxy = gateway.open_proxy(listen, Arc::new(OneSite { site, admitted: counter })).expect("a free port");
            (proxy.local_addr(), ("http://a", "Proxy-Authorization: Basic ZXAxOnNlY3JldA==\r\n"))
        })
    };
    // Totals, because the request of a client that has left may arrive during the next input.
    let arrived = Cell::new(0);
    checked(to, move |seen| {
        arrived.set(arrived.get() + seen.len());
        let (arrived, admitted) = (arrived.get(), admitted.load(Ordering::SeqCst));
        assert!(arrived <= admitted, "{arrived} requests arrived, {admitted} were led to the site");
        seen.iter().for_each(examine);
    })
}

fn examine(request: &WireMessage) {
    let hosts: Vec<&str> = request.all("host").collect();
    assert_eq!(hosts, [CANONICAL], "{request:?}");
    for name in ["proxy-authorization", "proxy-connection"] {
        assert_eq!(request.all(name).count(), 0, "the site learns of the proxy: {request:?}");
    }
}

//! Processing of heads: requests to refuse, hop-by-hop headers to remove, and headers that the gateway adds.

use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};

use http::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, FORWARDED, HOST, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE,
    TRANSFER_ENCODING, UPGRADE,
};
use http::uri::Scheme;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri, Version, request, response};

use super::authority::HostPort;
use super::refusal::RefusalResponse;

static KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
static PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
static PROXY_AUTHENTICATION_INFO: HeaderName = HeaderName::from_static("proxy-authentication-info");
static X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
static X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
static X_FORWARDED_PORT: HeaderName = HeaderName::from_static("x-forwarded-port");
static X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// The facts about a client connection that the gateway passes to a site; built once per connection.
pub(super) struct ConnectionOrigin {
    address: HeaderValue,
    forwarded_for: String,
    local: HeaderValue,
    host: RefCell<Option<HostFacts>>,
}

/// Header values derived from a Host value; browsers send the same Host with every request of a connection.
struct HostFacts {
    host: HeaderValue,
    port: HeaderValue,
    forwarded: HeaderValue,
}

impl ConnectionOrigin {
    pub(super) fn new(peer: SocketAddr, local: SocketAddr) -> Self {
        let ip = peer.ip().to_canonical();
        // RFC 7239 section 6: an IPv6 address is bracketed, and a bracket needs quotes.
        let forwarded_for = match ip {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("\"[{ip}]\""),
        };
        Self {
            address: ascii(ip.to_string()),
            forwarded_for,
            local: ascii(SocketAddr::new(local.ip().to_canonical(), local.port()).to_string()),
            host: RefCell::new(None),
        }
    }

    fn stamp(&self, headers: &mut HeaderMap) {
        // HTTP/1.0 permits requests without Host. The request to the site is HTTP/1.1, which requires it.
        let host = headers.entry(HOST).or_insert_with(|| self.local.clone()).clone();
        let mut facts = self.host.borrow_mut();
        if facts.as_ref().is_none_or(|facts| facts.host != host) {
            *facts = Some(self.facts_of(&host));
        }
        let Some(facts) = facts.as_ref() else { return };
        headers.insert(&X_FORWARDED_FOR, self.address.clone());
        headers.insert(&X_FORWARDED_PROTO, HeaderValue::from_static("http"));
        headers.insert(&X_FORWARDED_PORT, facts.port.clone());
        headers.insert(FORWARDED, facts.forwarded.clone());
        headers.insert(&X_FORWARDED_HOST, host);
    }

    fn facts_of(&self, host: &HeaderValue) -> HostFacts {
        let text = host.to_str().unwrap_or_default();
        // The port of the address that the client used, which may differ from the one that it reached.
        let port = port_of(text).unwrap_or("80");
        HostFacts {
            host: host.clone(),
            port: ascii(port.to_owned()),
            forwarded: ascii(format!("for={};host=\"{text}\";proto=http", self.forwarded_for)),
        }
    }
}

fn ascii(text: String) -> HeaderValue {
    HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static("unknown"))
}

fn port_of(host: &str) -> Option<&str> {
    let (name, port) = host.rsplit_once(':')?;
    // The last colon of a bare IPv6 address does not precede a port.
    (!name.contains(':') || name.ends_with(']')).then_some(port).filter(|port| !port.is_empty())
}

/// Refuses a request that a site must not see.
///
/// Errors: the refusal, which states what is wrong with the request.
pub(super) fn examine<B>(request: &Request<B>) -> Result<(), RefusalResponse> {
    match *request.method() {
        // CONNECT asks for a tunnel to any host, TRACE for an echo of credentials.
        Method::CONNECT | Method::TRACE => return Err(RefusalResponse::method(request.method())),
        _ => {}
    }
    let host = examine_host(request)?;
    let uri = request.uri();
    if let Some(authority) = uri.authority() {
        // RFC 9112 section 3.2.2: a proxy takes the host of an absolute-form target. The gateway is not the client's
        // proxy, so both must be the same.
        let same = host.is_some_and(|host| is_same_host(host.as_bytes(), authority.as_str().as_bytes()));
        if !same || uri.scheme().is_none() {
            return Err(RefusalResponse::malformed("a request target that differs from Host"));
        }
        // The site is reached over HTTP. The parser also lets an empty scheme pass.
        if uri.scheme() != Some(&Scheme::HTTP) {
            return Err(RefusalResponse::malformed("a request target with another scheme than http"));
        }
        return Ok(());
    }
    let is_path = uri.path().starts_with('/') || (uri.path() == "*" && request.method() == Method::OPTIONS);
    if !is_path {
        return Err(RefusalResponse::malformed("a request target that is not a path"));
    }
    Ok(())
}

/// Refuses a request whose `Host` is missing, repeated or no host. HTTP/1.0 permits requests without it.
fn examine_host<B>(request: &Request<B>) -> Result<Option<&HeaderValue>, RefusalResponse> {
    let mut hosts = request.headers().get_all(HOST).iter();
    let host = hosts.next();
    if hosts.next().is_some() {
        return Err(RefusalResponse::malformed("more than one Host"));
    }
    match host {
        None if request.version() == Version::HTTP_11 => Err(RefusalResponse::malformed("no Host")),
        Some(host) if !is_host(host.as_bytes()) => Err(RefusalResponse::malformed("a Host that names no host")),
        _ => Ok(host),
    }
}

/// Examines a request to the episode proxy, and returns the place that it names.
///
/// Errors: the refusal, which states what is wrong with the request.
pub(super) fn proxied_place<B>(request: &Request<B>) -> Result<HostPort, RefusalResponse> {
    if *request.method() == Method::TRACE {
        return Err(RefusalResponse::method(request.method()));
    }
    let host = examine_host(request)?;
    let uri = request.uri();
    let Some(authority) = uri.authority() else {
        return Err(RefusalResponse::not_proxied());
    };
    let is_connect = *request.method() == Method::CONNECT;
    let place = match (is_connect, uri.scheme_str()) {
        (true, None) => HostPort::with_port(authority.as_str()),
        (false, Some("http")) => HostPort::of(authority.as_str()),
        (false, Some(_)) => return Err(RefusalResponse::scheme()),
        _ => None,
    };
    let place = place.ok_or_else(|| RefusalResponse::malformed("a request target that names no host"))?;
    // RFC 9112 section 3.2.2 lets a proxy ignore Host. Two hosts are two readings, so they are refused.
    let named = host.map(|host| host.to_str().ok().and_then(HostPort::of));
    // Some clients omit the port in the Host of CONNECT.
    let is_same = |named: HostPort| named == place || (is_connect && named.host == place.host && named.port == 80);
    if named.is_some_and(|named| !named.is_some_and(is_same)) {
        return Err(RefusalResponse::malformed("a request target that differs from Host"));
    }
    Ok(place)
}

/// Examines a request inside a tunnel to a site, which must be meant for that site.
///
/// Errors: the refusal, which states what is wrong with the request.
pub(super) fn examine_tunnelled<B>(
    request: &Request<B>,
    tunnel: &HostPort,
    is_tls: bool,
) -> Result<(), RefusalResponse> {
    examine(request)?;
    let read = if is_tls { HostPort::of_tls } else { HostPort::of };
    let host = request.headers().get(HOST).map(|host| host.to_str().ok().and_then(read));
    if host.is_some_and(|host| host.as_ref() != Some(tunnel)) {
        return Err(RefusalResponse::other_host(&tunnel.to_string()));
    }
    Ok(())
}

/// Removes the headers that are meant for the proxy.
pub(super) fn drop_proxy_headers(headers: &mut HeaderMap) {
    headers.remove(PROXY_AUTHORIZATION);
    headers.remove(&PROXY_CONNECTION);
}

fn is_host(host: &[u8]) -> bool {
    !host.is_empty() && host.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-._~:[]%".contains(byte))
}

fn is_same_host(host: &[u8], authority: &[u8]) -> bool {
    let bare = |name: &[u8]| name.strip_suffix(b":80").unwrap_or(name).to_ascii_lowercase();
    bare(host) == bare(authority)
}

/// Returns whether the client asks to switch the connection to another protocol.
pub(super) fn is_upgrade<B>(request: &Request<B>) -> bool {
    request.version() == Version::HTTP_11
        && request.headers().contains_key(UPGRADE)
        && has_token(request.headers(), &CONNECTION, "upgrade")
}

fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    headers.get_all(name).iter().any(|value| tokens(value).any(|found| found.eq_ignore_ascii_case(token)))
}

fn tokens(value: &HeaderValue) -> impl Iterator<Item = &str> {
    value.to_str().unwrap_or_default().split(',').map(str::trim).filter(|token| !token.is_empty())
}

/// Turns a client's request into the request that is sent to the site. `origin` is absent if the target must not learn
/// about the client.
pub(super) fn to_target(parts: &mut request::Parts, origin: Option<&ConnectionOrigin>, is_upgrade: bool) {
    if parts.uri.authority().is_some() {
        parts.uri = parts.uri.path_and_query().cloned().map_or_else(|| Uri::from_static("/"), Uri::from);
    }
    parts.version = Version::HTTP_11;
    // The extensions hold hyper's own upgrade handle, which would keep the connection's buffers alive.
    parts.extensions.clear();
    let headers = &mut parts.headers;
    let protocol = if is_upgrade { headers.remove(UPGRADE) } else { None };
    let takes_trailers = headers.contains_key(TE) && has_token(headers, &TE, "trailers");
    drop_hop_by_hop(headers);
    headers.remove(TRANSFER_ENCODING);
    headers.remove(PROXY_AUTHORIZATION);
    // hyper answers 100 when the target begins to read the body, so the target need not be asked (RFC 9110 section
    // 10.1.1).
    headers.remove(EXPECT);
    if let Some(protocol) = protocol {
        headers.insert(UPGRADE, protocol);
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    } else if takes_trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
        headers.insert(CONNECTION, HeaderValue::from_static("te"));
    }
    if let Some(origin) = origin {
        origin.stamp(headers);
    }
}

/// Turns a target's response into the response that is sent to the client. Returns false if its body cannot be passed
/// on unchanged in meaning.
pub(super) fn to_client(parts: &mut response::Parts) -> bool {
    parts.version = Version::HTTP_11;
    let headers = &mut parts.headers;
    let names_protocol = matches!(parts.status, StatusCode::SWITCHING_PROTOCOLS | StatusCode::UPGRADE_REQUIRED);
    let protocol = if names_protocol { headers.remove(UPGRADE) } else { None };
    let is_passable = match headers.remove(TRANSFER_ENCODING) {
        None => true,
        // hyper has removed the chunks. A further coding, such as gzip, would no longer be declared.
        Some(coding) => {
            headers.remove(CONTENT_LENGTH);
            coding.as_bytes().eq_ignore_ascii_case(b"chunked")
        }
    };
    drop_hop_by_hop(headers);
    headers.remove(PROXY_AUTHENTICATE);
    headers.remove(&PROXY_AUTHENTICATION_INFO);
    if let Some(protocol) = protocol {
        headers.insert(UPGRADE, protocol);
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    }
    is_passable
}

/// Removes the headers that concern one hop only (RFC 9110 section 7.6.1). `Trailer` stays, because trailers are passed
/// on.
fn drop_hop_by_hop(headers: &mut HeaderMap) {
    if headers.contains_key(CONNECTION) {
        let listed: Vec<HeaderName> = headers
            .get_all(CONNECTION)
            .iter()
            .flat_map(tokens)
            .filter(|token| !token.eq_ignore_ascii_case("close") && !token.eq_ignore_ascii_case("keep-alive"))
            .filter_map(|token| HeaderName::from_bytes(token.as_bytes()).ok())
            // A client must not be able to remove the headers that frame and address the message.
            .filter(|name| *name != HOST && *name != CONTENT_LENGTH && *name != TRANSFER_ENCODING)
            .collect();
        headers.remove(CONNECTION);
        for name in listed {
            headers.remove(name);
        }
    }
    headers.remove(&KEEP_ALIVE);
    headers.remove(&PROXY_CONNECTION);
    headers.remove(TE);
    headers.remove(UPGRADE);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(build: impl FnOnce(http::request::Builder) -> http::request::Builder) -> Request<()> {
        build(Request::builder()).body(()).expect("a valid request")
    }

    #[test]
    fn what_a_client_claims_about_itself_is_replaced() {
        let origin =
            ConnectionOrigin::new(SocketAddr::from(([10, 0, 0, 9], 5)), SocketAddr::from(([10, 0, 0, 1], 7770)));
        let (mut parts, ()) = request(|builder| {
            builder
                .uri("/a?b")
                .header("host", "shop.test:7770")
                .header("connection", "close, X-Secret, Host")
                .header("x-secret", "1")
                .header("x-forwarded-for", "6.6.6.6")
                .header("forwarded", "for=6.6.6.6")
                .header("keep-alive", "timeout=5")
        })
        .into_parts();
        to_target(&mut parts, Some(&origin), false);
        let value = |name: &str| parts.headers.get(name).map(|value| value.to_str().expect("ASCII").to_owned());
        assert_eq!(value("host").as_deref(), Some("shop.test:7770"));
        assert_eq!(value("x-forwarded-for").as_deref(), Some("10.0.0.9"));
        assert_eq!(value("x-forwarded-host").as_deref(), Some("shop.test:7770"));
        assert_eq!(value("x-forwarded-port").as_deref(), Some("7770"));
        assert_eq!(value("forwarded").as_deref(), Some("for=10.0.0.9;host=\"shop.test:7770\";proto=http"));
        for gone in ["connection", "x-secret", "keep-alive"] {
            assert_eq!(value(gone), None, "{gone}");
        }
    }

    #[test]
    fn targets_and_hosts_that_disagree_are_refused() {
        let refused =
            |uri: &str, host: &str| examine(&request(|builder| builder.uri(uri).header("host", host))).is_err();
        assert!(!refused("http://A.test/x", "a.test:80"));
        assert!(refused("http://b.test/x", "a.test"));
        assert!(refused("/x", "a.test, b.test"));
        assert!(refused("/x", ""));
        assert!(refused("/x", "user@a.test"));
        assert!(refused("*", "a.test"));
    }

    #[test]
    fn ports_are_told_from_addresses() {
        assert_eq!(port_of("a.test:81"), Some("81"));
        assert_eq!(port_of("[::1]:81"), Some("81"));
        assert_eq!(port_of("[::1]"), None);
        assert_eq!(port_of("a.test"), None);
    }
}

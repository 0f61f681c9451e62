//! Responses that the gateway itself generates, readable in a browser and in a terminal.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, PROXY_AUTHENTICATE, RETRY_AFTER};
use http::{HeaderValue, Method, Response, StatusCode};

use super::directory::ProxyRefusal;
use super::egress::EgressError;
use super::head::HeadFault;

/// Time after which a request that met a switch or a full queue is likely to succeed.
const SHORTLY: Duration = Duration::from_secs(1);

/// The methods that the gateway forwards.
const PASSED_METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";
/// The methods that only read.
const READING_METHODS: &str = "GET, HEAD, OPTIONS";

/// The part of the arena that a response is about.
#[derive(Debug, Clone, Copy)]
pub(super) enum RefusalSubject<'a> {
    Site(&'a str),
    Proxy,
}

impl RefusalSubject<'_> {
    fn text(self) -> String {
        match self {
            Self::Site(name) => format!("site {name}"),
            Self::Proxy => "episode proxy".to_owned(),
        }
    }

    fn html(self) -> String {
        match self {
            Self::Site(name) => format!("Site <strong>{}</strong>", escaped(name)),
            Self::Proxy => "Episode proxy".to_owned(),
        }
    }
}

/// The next step of a client without valid credentials.
const USE_CREDENTIALS: &str = "use the id of an episode as the proxy's user name, and its token as the password";
/// Value of `Proxy-Authenticate` (RFC 7617).
const CHALLENGE: &str = "Basic realm=\"arenad episode\", charset=\"UTF-8\"";

/// A response that the gateway itself gives, with the reason.
#[derive(Debug)]
pub(super) struct RefusalResponse {
    status: StatusCode,
    reason: String,
    retry_after: Option<Duration>,
    /// Value of the `Allow` header, sent when the method is refused.
    allowed: &'static str,
    ends_connection: bool,
    /// Whether the response is about the episode and not about the site.
    is_of_proxy: bool,
}

impl RefusalResponse {
    fn new(status: StatusCode, reason: impl Into<String>) -> Self {
        Self {
            status,
            reason: reason.into(),
            retry_after: None,
            allowed: PASSED_METHODS,
            ends_connection: false,
            is_of_proxy: false,
        }
    }

    pub(super) fn malformed(what: &str) -> Self {
        Self { ends_connection: true, ..Self::new(StatusCode::BAD_REQUEST, format!("the request has {what}")) }
    }

    pub(super) fn method(method: &Method) -> Self {
        let reason = format!("the gateway does not pass on {method}");
        Self { ends_connection: true, ..Self::new(StatusCode::METHOD_NOT_ALLOWED, reason) }
    }

    /// Refuses a request that may write, because the site is read-only.
    pub(super) fn read_only(method: &Method, is_upgrade: bool) -> Self {
        let what =
            if is_upgrade { "an upgrade of the connection".to_owned() } else { format!("{method} to this path") };
        let reason = format!("it is only read: its definition has the gateway refuse what may write, as {what} may");
        Self { allowed: READING_METHODS, ends_connection: true, ..Self::new(StatusCode::METHOD_NOT_ALLOWED, reason) }
    }

    pub(super) fn head(fault: HeadFault) -> Self {
        match fault {
            HeadFault::Malformed(what) => Self::malformed(what),
            HeadFault::TooLarge => {
                let reason = "the request's head is too large";
                Self { ends_connection: true, ..Self::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, reason) }
            }
            HeadFault::Tls => Self::tls(),
            HeadFault::UnknownCoding => {
                let reason = "the request has a transfer coding other than chunked";
                Self { ends_connection: true, ..Self::new(StatusCode::NOT_IMPLEMENTED, reason) }
            }
        }
    }

    fn tls() -> Self {
        let reason = "the client speaks TLS, but sites speak plain HTTP: use http:// instead of https://";
        Self { ends_connection: true, ..Self::new(StatusCode::BAD_REQUEST, reason) }
    }

    pub(super) fn refusing(reason: &str, retry_after: Duration) -> Self {
        Self { retry_after: Some(retry_after), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, reason) }
    }

    /// Refuses a request that was under way when the site was switched, because sending it again could take effect
    /// twice.
    pub(super) fn overtaken() -> Self {
        let reason = "the site was reset while it worked on this request";
        Self { ends_connection: true, ..Self::refusing(reason, SHORTLY) }
    }

    pub(super) fn queue_is_full(reason: &str) -> Self {
        Self::refusing(&format!("too many requests wait already: {reason}"), SHORTLY)
    }

    pub(super) fn waited_too_long(reason: &str) -> Self {
        Self::refusing(&format!("the request waited too long: {reason}"), SHORTLY)
    }

    pub(super) fn closed() -> Self {
        Self { ends_connection: true, ..Self::refusing("the gateway is shutting down", SHORTLY) }
    }

    /// Refuses a request of an episode whose generation the route does not serve.
    pub(super) fn replaced() -> Self {
        Self::refusing("it does not have the state of this episode any more", SHORTLY)
    }

    /// Refuses a request that a client sent to the proxy as if it were a site.
    pub(super) fn not_proxied() -> Self {
        let reason = "this port is an HTTP proxy and not a site: set it as the client's proxy for http:// addresses";
        Self { ends_connection: true, ..Self::new(StatusCode::BAD_REQUEST, reason) }
    }

    pub(super) fn scheme() -> Self {
        let reason = "the proxy forwards http:// addresses only, and opens tunnels with CONNECT";
        Self { ends_connection: true, ..Self::new(StatusCode::BAD_REQUEST, reason) }
    }

    /// Refuses a request inside a tunnel that is meant for another host than the tunnel.
    pub(super) fn other_host(tunnel: &str) -> Self {
        let reason = format!("the tunnel leads to {tunnel}, and the request is meant for another host");
        Self { ends_connection: true, ..Self::new(StatusCode::MISDIRECTED_REQUEST, reason) }
    }

    /// Refuses a tunnel for TLS to a site.
    pub(super) fn tls_tunnel(host: &str) -> Self {
        Self::new(StatusCode::FORBIDDEN, format!("{host} speaks plain HTTP: use http://{host}/ instead of https://"))
    }

    fn credentials(reason: &str) -> Self {
        Self::new(StatusCode::PROXY_AUTHENTICATION_REQUIRED, format!("{reason}: {USE_CREDENTIALS}"))
    }

    pub(super) fn no_credentials() -> Self {
        Self::credentials("the request does not say which episode it belongs to")
    }

    pub(super) fn malformed_credentials() -> Self {
        Self::credentials("the credentials of the request are not of the form \"Basic\"")
    }

    /// Refuses a request to `place` with the reason of the daemon.
    pub(super) fn of_proxy(refusal: &ProxyRefusal, place: &str) -> Self {
        let refusal = match refusal {
            ProxyRefusal::Credentials => Self::credentials("no episode has this id and token"),
            ProxyRefusal::Ended { reason } => {
                let reason = format!("the episode has ended ({reason}): start another one and use its credentials");
                Self::new(StatusCode::PROXY_AUTHENTICATION_REQUIRED, reason)
            }
            ProxyRefusal::Unavailable { reason, retry_after } => {
                Self::refusing(&format!("the episode cannot use its sites at present ({reason})"), *retry_after)
            }
            ProxyRefusal::Outside { reachable } => {
                let reason = match reachable.as_slice() {
                    [] => format!("{place} is outside of the arena, and the episode has no sites"),
                    reachable => {
                        format!("{place} is outside of the arena: this episode can use {}", reachable.join(", "))
                    }
                };
                Self::new(StatusCode::FORBIDDEN, reason)
            }
        };
        Self { is_of_proxy: true, ..refusal }
    }

    /// Refuses a request to the own port of a slot with the reason of the daemon.
    pub(super) fn of_slot(refusal: &ProxyRefusal) -> Self {
        match refusal {
            ProxyRefusal::Ended { reason } => {
                Self::gone(&format!("the episode of this connection has ended ({reason})"))
            }
            ProxyRefusal::Credentials => Self::gone("the episode of this connection is not known any more"),
            ProxyRefusal::Unavailable { reason, retry_after } => {
                Self::refusing(&format!("the episode cannot use its sites at present ({reason})"), *retry_after)
            }
            ProxyRefusal::Outside { .. } => Self::gone("the episode of this connection does not have the site"),
        }
    }

    /// Refuses a request of an episode that does not have the slot. A status that no client takes for an invitation to
    /// try again: another attempt could reach the next episode.
    pub(super) fn gone(reason: &str) -> Self {
        Self { ends_connection: true, ..Self::new(StatusCode::GONE, reason) }
    }

    /// Refuses a request to the own port of a slot that no episode had when the connection began.
    pub(super) fn no_lease(reason: &str, retry_after: Duration) -> Self {
        Self { ends_connection: true, ..Self::refusing(reason, retry_after) }
    }

    /// Refuses a request to a site that cannot be offered at another address than its own.
    pub(super) fn unmappable(instead: &str) -> Self {
        let reason = format!(
            "its pages contain addresses that cannot be replaced by those of this slot, and would lead to another slot: \
             {instead}"
        );
        Self::new(StatusCode::MISDIRECTED_REQUEST, reason)
    }

    /// Refuses a request to an external host that cannot be reached.
    pub(super) fn egress(error: &EgressError, place: &str) -> Self {
        let status = match error {
            EgressError::Unresolved => StatusCode::BAD_GATEWAY,
            EgressError::NotPublic => StatusCode::FORBIDDEN,
        };
        Self::new(status, format!("{place} cannot be reached: {error}"))
    }

    pub(super) fn bad_gateway(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_GATEWAY, reason)
    }

    pub(super) fn gateway_timeout(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::GATEWAY_TIMEOUT, reason)
    }

    /// Builds the response. `html` selects a page instead of plain text.
    pub(super) fn answer(&self, subject: RefusalSubject<'_>, html: bool) -> Response<Bytes> {
        let status = self.status;
        let subject = if self.is_of_proxy { RefusalSubject::Proxy } else { subject };
        let phrase = status.canonical_reason().unwrap_or("Error");
        let (kind, text) = if html {
            (
                "text/html; charset=utf-8",
                format!(
                    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{code} {phrase}</title></head>\n\
                     <body><h1>{code} {phrase}</h1>\n<p>{subject}: {reason}.</p>\n\
                     <p>arenad gateway</p></body></html>\n",
                    code = status.as_u16(),
                    subject = subject.html(),
                    reason = escaped(&self.reason),
                ),
            )
        } else {
            (
                "text/plain; charset=utf-8",
                format!("{} {phrase}: {}: {}\n", status.as_u16(), subject.text(), self.reason),
            )
        };
        let mut response = Response::new(Bytes::from(text));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        // A browser that cached the page would show it after the site is back.
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(after) = self.retry_after {
            // The unit is whole seconds (RFC 9110 section 10.2.3); zero would invite a busy loop.
            headers.insert(RETRY_AFTER, HeaderValue::from(after.as_millis().div_ceil(1000).clamp(1, 86_400) as u64));
        }
        if status == StatusCode::METHOD_NOT_ALLOWED {
            headers.insert(ALLOW, HeaderValue::from_static(self.allowed));
        }
        if status == StatusCode::PROXY_AUTHENTICATION_REQUIRED {
            headers.insert(PROXY_AUTHENTICATE, HeaderValue::from_static(CHALLENGE));
        }
        if self.ends_connection {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

/// The complete response to a connection beyond the limit, sent without parsing the request.
pub(super) const TOO_MANY_CONNECTIONS: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain\r\n\
    retry-after: 1\r\nconnection: close\r\ncontent-length: 49\r\n\r\n503 Service Unavailable: too many connections...\n";

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_cannot_be_injected_through_a_reason() {
        let page = RefusalResponse::refusing("<script>", Duration::ZERO).answer(RefusalSubject::Site("a&b"), true);
        let text = String::from_utf8(page.body().to_vec()).expect("UTF-8");
        assert!(text.contains("&lt;script&gt;") && text.contains("a&amp;b") && !text.contains("<script>"));
        assert_eq!(page.headers()[RETRY_AFTER], "1");
    }

    #[test]
    fn the_canned_answer_has_the_length_that_it_claims() {
        let text = std::str::from_utf8(TOO_MANY_CONNECTIONS).expect("UTF-8");
        let (_, body) = text.split_once("\r\n\r\n").expect("a head");
        assert_eq!(body.len(), 49);
    }
}

//! Responses that the gateway itself generates, readable in a browser and in a terminal.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Method, Response, StatusCode};

use super::head::HeadFault;

/// Time after which a request that met a switch or a full queue is likely to succeed.
const SHORTLY: Duration = Duration::from_secs(1);

/// The methods that the gateway forwards.
const PASSED_METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";
/// The methods that only read.
const READING_METHODS: &str = "GET, HEAD, OPTIONS";

/// A response that the gateway itself gives, with the reason.
#[derive(Debug)]
pub(super) struct RefusalResponse {
    status: StatusCode,
    reason: String,
    retry_after: Option<Duration>,
    /// Value of the `Allow` header, sent when the method is refused.
    allowed: &'static str,
    ends_connection: bool,
}

impl RefusalResponse {
    fn new(status: StatusCode, reason: impl Into<String>) -> Self {
        Self { status, reason: reason.into(), retry_after: None, allowed: PASSED_METHODS, ends_connection: false }
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
            HeadFault::UnknownCoding => {
                let reason = "the request has a transfer coding other than chunked";
                Self { ends_connection: true, ..Self::new(StatusCode::NOT_IMPLEMENTED, reason) }
            }
        }
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

    pub(super) fn bad_gateway(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_GATEWAY, reason)
    }

    pub(super) fn gateway_timeout(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::GATEWAY_TIMEOUT, reason)
    }

    /// Builds the response. `site` is the name of the site; `html` selects a page instead of plain text.
    pub(super) fn answer(&self, site: &str, html: bool) -> Response<Bytes> {
        let status = self.status;
        let phrase = status.canonical_reason().unwrap_or("Error");
        let (kind, text) = if html {
            (
                "text/html; charset=utf-8",
                format!(
                    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{code} {phrase}</title></head>\n\
                     <body><h1>{code} {phrase}</h1>\n<p>Site <strong>{site}</strong>: {reason}.</p>\n\
                     <p>arenad gateway</p></body></html>\n",
                    code = status.as_u16(),
                    site = escaped(site),
                    reason = escaped(&self.reason),
                ),
            )
        } else {
            ("text/plain; charset=utf-8", format!("{} {phrase}: site {site}: {}\n", status.as_u16(), self.reason))
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
        let page = RefusalResponse::refusing("<script>", Duration::ZERO).answer("a&b", true);
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

//! The host and port of an address, and the credentials of a request, as a client writes them.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::directory::ProxyCredentials;

/// The port of `http` addresses that name none.
const HTTP_PORT: u16 = 80;

/// The port of `https` addresses that name none.
const HTTPS_PORT: u16 = 443;

/// A host and a port. Two addresses that lead to the same place are equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HostPort {
    /// In lower case, without brackets and without the dot of the root.
    pub(super) host: String,
    pub(super) port: u16,
}

impl HostPort {
    /// Reads `host` or `host:port`; the default port is 80.
    pub(super) fn of(authority: &str) -> Option<Self> {
        let (host, port) = split(authority)?;
        Some(Self { host, port: port.unwrap_or(HTTP_PORT) })
    }

    /// Reads `host` or `host:port` of a request that arrived in TLS; the default port is 443.
    pub(super) fn of_tls(authority: &str) -> Option<Self> {
        let (host, port) = split(authority)?;
        Some(Self { host, port: port.unwrap_or(HTTPS_PORT) })
    }

    /// Reads `host:port`, as in CONNECT.
    pub(super) fn with_port(authority: &str) -> Option<Self> {
        let (host, port) = split(authority)?;
        Some(Self { host, port: port? })
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_v6 = self.host.contains(':');
        let (open, close) = if is_v6 { ("[", "]") } else { ("", "") };
        write!(f, "{open}{}{close}", self.host)?;
        if self.port == HTTP_PORT { Ok(()) } else { write!(f, ":{}", self.port) }
    }
}

fn split(authority: &str) -> Option<(String, Option<u16>)> {
    let (host, rest) = match authority.strip_prefix('[') {
        Some(bracketed) => bracketed.split_once(']')?,
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let is_v6 = authority.starts_with('[');
    let is_allowed = |byte: u8| match is_v6 {
        true => byte.is_ascii_hexdigit() || byte == b':' || byte == b'.',
        false => byte.is_ascii_alphanumeric() || b"-._~".contains(&byte),
    };
    let host = host.strip_suffix('.').unwrap_or(host);
    if host.is_empty() || !host.bytes().all(is_allowed) {
        return None;
    }
    let port = match rest.strip_prefix(':') {
        None if rest.is_empty() => None,
        // An empty port is the default one (RFC 3986 section 3.2.3).
        Some("") => None,
        Some(digits) if digits.len() <= 5 && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(digits.parse().ok().filter(|port| *port > 0)?)
        }
        _ => return None,
    };
    Some((host.to_ascii_lowercase(), port))
}

/// Reads the value of `Proxy-Authorization` (RFC 7617). Returns `None` if it has another form.
pub(super) fn basic_credentials(value: &[u8]) -> Option<ProxyCredentials> {
    let text = std::str::from_utf8(value).ok()?;
    let (scheme, encoded) = text.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
    let (episode, token) = decoded.split_once(':')?;
    Some(ProxyCredentials { episode: episode.to_owned(), token: token.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str) -> Option<(String, u16)> {
        HostPort::of(text).map(|place| (place.host, place.port))
    }

    #[test]
    fn equal_places_are_equal_however_they_are_written() {
        assert_eq!(HostPort::of("Shop.Test."), HostPort::of("shop.test:80"));
        assert_eq!(HostPort::of("shop.test:"), HostPort::of("shop.test"));
        assert_eq!(place("shop.test:7770"), Some(("shop.test".to_owned(), 7770)));
        assert_eq!(place("[::1]:7770"), Some(("::1".to_owned(), 7770)));
        assert_eq!(HostPort::of("[::1]:7770").expect("a place").to_string(), "[::1]:7770");
        assert_eq!(HostPort::of("A.test:80").expect("a place").to_string(), "a.test");
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for text in [
            "", ".", ":80", "a:b", "a:0", "a:65536", "a:+80", "a:80:80", "a b", "u@a", "[::1", "::1", "[::1]x", "a/b",
            "a:000080",
        ] {
            assert_eq!(place(text), None, "{text:?}");
        }
        assert_eq!(HostPort::with_port("a"), None);
    }

    #[test]
    fn credentials_are_read_in_their_only_form() {
        let read = |text: &str| basic_credentials(text.as_bytes()).map(|found| (found.episode, found.token));
        let pair = |episode: &str, token: &str| Some((episode.to_owned(), token.to_owned()));
        assert_eq!(read("Basic ZXAxOnRvazplbg=="), pair("ep1", "tok:en"));
        assert_eq!(read("basic  ZXAxOg=="), pair("ep1", ""));
        for text in ["", "Basic", "Basic ?", "Basic ZXAx", "Bearer ZXAxOnRvaw==", "Basic /w==", "ZXAxOnRvaw=="] {
            assert_eq!(read(text), None, "{text:?}");
        }
        let shown = format!("{:?}", basic_credentials(b"Basic ZXAxOnRvazplbg=="));
        assert!(shown.contains("ep1") && !shown.contains("tok"), "{shown}");
    }
}

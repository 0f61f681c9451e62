//! `urllib.parse` of Python 3.11: splitting and joining of URLs, quoting and unquoting of texts.

use core::net::Ipv6Addr;

use unicode_normalization::UnicodeNormalization;

/// A URL that Python refuses to split.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a URL")]
pub struct UrlError(String);

/// The result of `urlsplit`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Split {
    /// The scheme in lower case.
    pub scheme: String,
    /// User, host and port, unchanged.
    pub netloc: String,
    /// The path, including `;parameters`.
    pub path: String,
    /// The query without its question mark.
    pub query: String,
    /// The fragment without its hash.
    pub fragment: String,
}

/// Schemes that allow `;parameters`, then schemes whose URLs have a host. Source: `urllib.parse`.
const WITH_PARAMETERS: [&str; 16] = [
    "", "ftp", "hdl", "prospero", "http", "imap", "https", "shttp", "rtsp", "rtsps", "rtspu", "sip", "sips", "mms",
    "sftp", "tel",
];
const WITH_HOST: [&str; 26] = [
    "", "ftp", "http", "gopher", "nntp", "telnet", "imap", "wais", "file", "mms", "https", "shttp", "snews",
    "prospero", "rtsp", "rtsps", "rtspu", "rsync", "svn", "svn+ssh", "sftp", "nfs", "git", "git+ssh", "ws", "wss",
];

/// Splits a URL as `urlsplit(url)` does.
///
/// # Errors
///
/// Returns an error if Python raises.
pub fn urlsplit(url: &str) -> Result<Split, UrlError> {
    let cleaned: String;
    let mut rest = url.trim_start_matches(|c: char| c <= ' ');
    if rest.contains(['\t', '\r', '\n']) {
        cleaned = rest.replace(['\t', '\r', '\n'], "");
        rest = &cleaned;
    }
    let mut split = Split::default();
    if let Some((before, after)) = rest.split_once(':')
        && before.starts_with(|c: char| c.is_ascii_alphabetic())
        && before.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    {
        split.scheme = before.to_ascii_lowercase();
        rest = after;
    }
    if let Some(after) = rest.strip_prefix("//") {
        let end = after.find(['/', '?', '#']).unwrap_or(after.len());
        let (netloc, after) = after.split_at(end);
        check_netloc(netloc, url)?;
        split.netloc = netloc.to_owned();
        rest = after;
    }
    if let Some((before, fragment)) = rest.split_once('#') {
        split.fragment = fragment.to_owned();
        rest = before;
    }
    if let Some((before, query)) = rest.split_once('?') {
        split.query = query.to_owned();
        rest = before;
    }
    split.path = rest.to_owned();
    Ok(split)
}

fn check_netloc(netloc: &str, url: &str) -> Result<(), UrlError> {
    let invalid = || UrlError(url.to_owned());
    match (netloc.find('['), netloc.contains(']')) {
        (None, false) => {}
        (Some(open), true) => {
            let inner = netloc[open + 1..].split(']').next().unwrap_or_default();
            let is_future = inner.strip_prefix('v').is_some_and(|rest| {
                rest.split_once('.').is_some_and(|(hex, rest)| {
                    !hex.is_empty() && !rest.is_empty() && hex.chars().all(|c| c.is_ascii_hexdigit())
                })
            });
            let address = inner.split('%').next().unwrap_or_default();
            if !is_future && address.parse::<Ipv6Addr>().is_err() {
                return Err(invalid());
            }
        }
        _ => return Err(invalid()),
    }
    if netloc.is_ascii() {
        return Ok(());
    }
    // Characters that normalise to a separator would move the end of the host.
    let bare: String = netloc.chars().filter(|c| !"@:#?".contains(*c)).collect();
    let composed: String = bare.nfkc().collect();
    if bare != composed && composed.contains(['/', '?', '#', '@', ':']) { Err(invalid()) } else { Ok(()) }
}

impl Split {
    /// Splits the `;parameters` of the last segment from the path, as `urlparse` does.
    #[must_use]
    pub(crate) fn path_and_parameters(&self) -> (&str, &str) {
        if !WITH_PARAMETERS.contains(&self.scheme.as_str()) {
            return (&self.path, "");
        }
        let from = self.path.rfind('/').unwrap_or(0);
        match self.path[from..].find(';') {
            Some(at) => (&self.path[..from + at], &self.path[from + at + 1..]),
            None => (&self.path, ""),
        }
    }

    /// `urlunsplit(...)`.
    #[must_use]
    pub(crate) fn join(&self) -> String {
        let mut url = self.path.clone();
        let has_host_by_scheme = !self.scheme.is_empty() && WITH_HOST.contains(&self.scheme.as_str());
        if !self.netloc.is_empty() || (has_host_by_scheme && !url.starts_with("//")) {
            let slash = if url.is_empty() || url.starts_with('/') { "" } else { "/" };
            url = format!("//{}{slash}{url}", self.netloc);
        }
        if !self.scheme.is_empty() {
            url = format!("{}:{url}", self.scheme);
        }
        if !self.query.is_empty() {
            url = format!("{url}?{}", self.query);
        }
        if !self.fragment.is_empty() {
            url = format!("{url}#{}", self.fragment);
        }
        url
    }
}

/// `quote(text, safe)`.
#[must_use]
pub fn quote(text: &str, safe: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        let c = char::from(byte);
        if c.is_ascii_alphanumeric() || "_.-~".contains(c) || (c.is_ascii() && safe.contains(c)) {
            out.push(c);
        } else {
            const HEX: &[u8; 16] = b"0123456789ABCDEF";
            out.push('%');
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
    out
}

/// `unquote(text)`: bytes that are not UTF-8 become the replacement character. Each sequence of ASCII characters is
/// decoded separately.
#[must_use]
pub(crate) fn unquote(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii()).unwrap_or(rest.len());
        let (ascii, after) = rest.split_at(end);
        let bytes: Vec<u8> = percent_encoding::percent_decode_str(ascii).collect();
        out.push_str(&String::from_utf8_lossy(&bytes));
        let end = after.find(|c: char| c.is_ascii()).unwrap_or(after.len());
        out.push_str(&after[..end]);
        rest = &after[end..];
    }
    out
}

/// `parse_qsl(query, keep_blank_values=True)`: a field without a value has an empty one.
#[must_use]
pub(crate) fn parse_qsl(query: &str) -> Vec<(String, String)> {
    let decode = |text: &str| unquote(&text.replace('+', " "));
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(name), decode(value))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_come_apart_and_together() {
        let split = urlsplit(" HTTP://u@Host:80/a;b/c;d?q=1#f").expect("a URL");
        assert_eq!((split.scheme.as_str(), split.netloc.as_str()), ("http", "u@Host:80"));
        assert_eq!(split.path_and_parameters(), ("/a;b/c", "d"));
        assert_eq!(split.join(), "http://u@Host:80/a;b/c;d?q=1#f");
        for wrong in ["http://[::1/", "http://::1]/", "http://[1.2.3.4]/", "http://[x]/"] {
            assert!(urlsplit(wrong).is_err(), "{wrong}");
        }
        assert!(urlsplit("http://[fe80::1%25en0]:80/").is_ok());
        assert_eq!(urlsplit("http://bücher.test/").expect("a URL").netloc, "bücher.test");
        assert!(urlsplit("http://a\u{2100}b/").is_err(), "the sign is a/c when composed");
    }

    #[test]
    fn texts_are_quoted_as_python_does() {
        assert_eq!(quote("a b/ü~'", "/"), "a%20b/%C3%BC~%27");
        assert_eq!(unquote("%C3%A9%zz%ff"), "é%zz\u{fffd}");
        assert_eq!(
            parse_qsl("a=&b&&c=1+2=3"),
            [("a", ""), ("b", ""), ("c", "1 2=3")].map(|(a, b)| (a.into(), b.into()))
        );
    }
}

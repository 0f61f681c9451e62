//! One recorded exchange, as the readers hand it to the builder.

use serde::{Deserialize, Serialize};
use url::Url;

/// A header field: name and value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeaderField(pub String, pub String);

impl HeaderField {
    pub(crate) fn is(&self, name: &str) -> bool {
        self.0.eq_ignore_ascii_case(name)
    }
}

/// Returns the value of the first field of a name.
pub(crate) fn value<'a>(fields: &'a [HeaderField], name: &str) -> Option<&'a str> {
    fields.iter().find(|field| field.is(name)).map(|field| field.1.as_str())
}

/// A request and its response.
#[derive(Debug, Clone)]
pub struct ReadExchange {
    /// The place in the recording, such as `entry 17`.
    pub place: String,
    /// The method of the request.
    pub method: String,
    /// The URL of the request, which may have a fragment.
    pub url: String,
    /// The header fields of the request.
    pub request_headers: Vec<HeaderField>,
    /// The body of the request; `None` if the recording has none.
    pub sent: Option<Vec<u8>>,
    /// The status of the response.
    pub status: u16,
    /// The header fields of the response.
    pub headers: Vec<HeaderField>,
    /// The body of the response, in the coding that `headers` state.
    pub body: Vec<u8>,
    /// The time of the request as the recording states it.
    pub at: Option<String>,
}

/// Fields that describe one connection, or that would lead clients away from the replay.
const DROPPED: [&str; 14] = [
    "alt-svc",
    "connection",
    "keep-alive",
    "nel",
    "proxy-authenticate",
    "proxy-connection",
    "report-to",
    "reporting-endpoints",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    // The server states the length of what it sends.
    "content-length",
    // HTTP/2's name of the status.
    ":status",
];

impl ReadExchange {
    /// Returns the URL without its fragment, or the reason why it cannot be replayed.
    pub(crate) fn target(&self) -> Result<Url, String> {
        let mut url =
            Url::parse(&self.url).map_err(|error| format!("{} is not a URL ({error})", shortened(&self.url)))?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err(format!("{} is neither http nor https", shortened(&self.url)));
        }
        url.set_fragment(None);
        Ok(url)
    }

    /// Removes the fields of the response that concern one connection. Fields that a browser joined are separated.
    pub(crate) fn clean(&mut self) {
        let fields = std::mem::take(&mut self.headers);
        let kept = fields.into_iter().filter(|field| {
            !field.0.is_empty()
                && !field.0.starts_with(':')
                && field.0.bytes().all(is_name_byte)
                && !DROPPED.iter().any(|dropped| field.is(dropped))
        });
        self.headers = kept
            .flat_map(|HeaderField(name, value)| {
                // Chromium joins the values of repeated fields by line feeds, which no value can contain.
                let values: Vec<String> = value.split('\n').map(|part| part.trim().to_owned()).collect();
                values.into_iter().map(move |value| HeaderField(name.clone(), value))
            })
            .collect();
        self.request_headers.retain(|field| !field.0.starts_with(':'));
    }

    /// Removes `Content-Encoding`, for formats that keep decoded bodies.
    pub(crate) fn forget_coding(&mut self) {
        self.headers.retain(|field| !field.is("content-encoding"));
    }

    /// States that the body is UTF-8, for formats that keep text in it whatever its original charset was.
    pub(crate) fn declare_utf8(&mut self) {
        for field in self.headers.iter_mut().filter(|field| field.is("content-type")) {
            let kind = field.1.split(';').next().unwrap_or_default().trim().to_owned();
            let rest: Vec<&str> = field.1.split(';').skip(1).map(str::trim).collect();
            let others = rest.into_iter().filter(|part| !part.to_ascii_lowercase().starts_with("charset"));
            let parts: Vec<String> =
                [kind].into_iter().chain(others.map(str::to_owned)).chain(["charset=utf-8".to_owned()]).collect();
            field.1 = parts.join("; ");
        }
    }
}

/// Whether a byte may be in a name (RFC 9110, section 5.6.2).
fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Returns a URL that fits into a message.
pub(crate) fn shortened(url: &str) -> String {
    const MOST: usize = 120;
    match url.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &url[..at]),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(headers: &[(&str, &str)]) -> ReadExchange {
        let field = |(name, value): &(&str, &str)| HeaderField((*name).to_owned(), (*value).to_owned());
        ReadExchange {
            place: "entry 1".to_owned(),
            method: "GET".to_owned(),
            url: "https://Shop.test:443/a?b#c".to_owned(),
            request_headers: Vec::new(),
            sent: None,
            status: 200,
            headers: headers.iter().map(field).collect(),
            body: Vec::new(),
            at: None,
        }
    }

    #[test]
    fn fields_of_one_connection_are_removed_and_joined_ones_separated() {
        let mut one = exchange(&[
            (":status", "200"),
            ("Set-Cookie", "a=1\nb=2; Path=/"),
            ("Transfer-Encoding", "chunked"),
            ("Alt-Svc", "h3=\":443\""),
            ("bad name", "x"),
            ("Content-Type", "text/html; charset=ISO-8859-1"),
        ]);
        one.clean();
        one.declare_utf8();
        let found: Vec<(&str, &str)> = one.headers.iter().map(|field| (field.0.as_str(), field.1.as_str())).collect();
        assert_eq!(
            found,
            [("Set-Cookie", "a=1"), ("Set-Cookie", "b=2; Path=/"), ("Content-Type", "text/html; charset=utf-8")]
        );
        assert_eq!(one.target().expect("a URL").as_str(), "https://shop.test/a?b");
    }
}

//! The bodies of a request and its response whose addresses are replaced, and the headers that depend on their bytes.
//!
//! Text of responses is mapped: HTML, CSS, JavaScript, JSON, XML and all other media types of text. A body without a media type is
//! mapped as well, because browsers look for HTML in it. Everything else, such as images, is passed on as it is.
//!
//! | Header | Change |
//! |---|---|
//! | `Accept-Encoding` of the request | `identity`: the site is asked for a body that is not compressed |
//! | `Range`, `If-Range` of the request | removed: a part of the site's body is not a part of the mapped one |
//! | `Content-Length`, `Accept-Ranges`, digests | removed from mapped responses |
//! | `Content-Encoding` | removed from mapped responses, which are decompressed (gzip and deflate) |
//! | `ETag` | gets a suffix that names the addresses, which `If-Match` and `If-None-Match` lose on their way back |
//! | `Last-Modified` | removed from mapped responses, because it says nothing about the addresses |
//!
//! In requests, text of a declared media type is mapped back, such as forms and JSON, so that the site does not see the
//! addresses of slots. Uploads (`multipart/form-data`) and everything else stay as they are, because the gateway does
//! not know which of their parts are text. A body of a known length of up to [`WHOLE_BODY_MAX`] bytes is read to its end
//! before it is sent, so that its `Content-Length` is right; a longer one is sent in chunks.
//!
//! A client that keeps pages for a later episode therefore gets the later episode's addresses. Some sites compress text
//! although they were asked not to. Their responses are decompressed, or refused if the coding is another one.

use std::rc::Rc;

use http::header::{
    ACCEPT_ENCODING, ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_MATCH, IF_NONE_MATCH,
    IF_RANGE, LAST_MODIFIED, RANGE,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, response};

use super::address_table::{AddressDirection, AddressMapper, AddressTable};
use super::decoder::{BodyDecoder, ContentCoding};

static DIGESTS: [HeaderName; 4] = [
    HeaderName::from_static("content-md5"),
    HeaderName::from_static("digest"),
    HeaderName::from_static("content-digest"),
    HeaderName::from_static("repr-digest"),
];

/// The longest body of a request that is read to its end before it is sent.
pub(super) const WHOLE_BODY_MAX: u64 = 1 << 20;

/// The reason why the addresses in a body cannot be replaced.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BodyMapError {
    #[error(
        "its answer is compressed ({0}, which is neither gzip nor deflate) although it was asked not to, so its addresses \
         cannot be replaced"
    )]
    Compressed(String),
    #[error("its answer is a part of a page although it was asked for the whole, so its addresses cannot be replaced")]
    Partial,
    #[error("its answer is text in {0}, in which addresses cannot be replaced")]
    Charset(String),
}

/// The replacement of the addresses in one body.
pub(super) struct BodyMapper {
    pub(super) addresses: Box<AddressMapper>,
    /// Decompresses the body first, if it is compressed.
    pub(super) decoder: Option<Box<BodyDecoder>>,
}

/// The replacement of the addresses in the response to one request.
pub(super) struct BodyMap {
    table: Rc<AddressTable>,
    /// The end of entity tags, before the closing quote.
    suffix: String,
    /// Whether the client has sent a tag with this suffix.
    has_sent_suffix: bool,
}

impl BodyMap {
    pub(super) fn new(table: Rc<AddressTable>) -> Self {
        let suffix = format!("-arenad-{:016x}", table.fingerprint());
        Self { table, suffix, has_sent_suffix: false }
    }

    /// Asks the site for a whole body that is not compressed, and gives it its own entity tags.
    pub(super) fn map_request(&mut self, headers: &mut HeaderMap) {
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        headers.remove(RANGE);
        headers.remove(IF_RANGE);
        let marked = format!("{}\"", self.suffix);
        for name in [IF_MATCH, IF_NONE_MATCH] {
            let http::header::Entry::Occupied(mut entry) = headers.entry(name) else { continue };
            for value in entry.iter_mut() {
                let Some(tags) = value.to_str().ok().filter(|tags| tags.contains(&marked)) else { continue };
                self.has_sent_suffix = true;
                if let Ok(tags) = HeaderValue::try_from(tags.replace(&marked, "\"")) {
                    *value = tags;
                }
            }
        }
    }

    /// Returns the mapper of the body of a request, if it is mapped.
    pub(super) fn request_mapper(&self, headers: &HeaderMap) -> Option<Box<AddressMapper>> {
        let is_plain = headers.get(CONTENT_ENCODING).is_none_or(|coding| coding.as_bytes() == b"identity");
        let is_mapped = is_plain && headers.contains_key(CONTENT_TYPE) && is_text(headers);
        is_mapped.then(|| Box::new(AddressMapper::new(Rc::clone(&self.table), AddressDirection::ToSite)))
    }

    /// Removes the headers of a request that a change of its body makes wrong.
    pub(super) fn forget_bytes(headers: &mut HeaderMap) {
        headers.remove(CONTENT_LENGTH);
        DIGESTS.iter().for_each(|name| drop(headers.remove(name)));
    }

    /// Checks that the body can be mapped, if it has to be.
    pub(super) fn check(&self, parts: &response::Parts) -> Result<(), BodyMapError> {
        if !has_body(parts.status) || !is_text(&parts.headers) {
            return Ok(());
        }
        if parts.status == StatusCode::PARTIAL_CONTENT {
            return Err(BodyMapError::Partial);
        }
        let text = |name: &HeaderName| {
            let value = parts.headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()));
            value.unwrap_or_default().to_ascii_lowercase()
        };
        let coding = coding(&parts.headers);
        if let Some(coding) = coding.filter(|coding| ContentCoding::of(coding).is_none()) {
            return Err(BodyMapError::Compressed(coding));
        }
        let wide = ["utf-16", "utf-32", "ucs-2", "ucs-4"];
        let kind = text(&CONTENT_TYPE);
        match wide.into_iter().find(|charset| {
            kind.contains(&format!("charset={charset}")) || kind.contains(&format!("charset=\"{charset}"))
        }) {
            Some(charset) => Err(BodyMapError::Charset(charset.to_owned())),
            None => Ok(()),
        }
    }

    /// Changes the head of a response that has been checked, and returns the mapper of its body, if it is mapped.
    pub(super) fn map_response(&self, parts: &mut response::Parts) -> Option<BodyMapper> {
        let headers = &mut parts.headers;
        // The answer that a body has not changed need not name its media type.
        let is_unchanged = parts.status == StatusCode::NOT_MODIFIED;
        let is_mapped = if is_unchanged { self.has_sent_suffix } else { is_text(headers) };
        if !is_mapped {
            return None;
        }
        headers.remove(CONTENT_LENGTH);
        headers.remove(ACCEPT_RANGES);
        headers.remove(LAST_MODIFIED);
        DIGESTS.iter().for_each(|name| drop(headers.remove(name)));
        if let Some(tag) = headers.get(ETAG).and_then(|tag| self.marked(tag)) {
            headers.insert(ETAG, tag);
        }
        let decoder = coding(headers)
            .and_then(|coding| ContentCoding::of(&coding))
            .map(|coding| Box::new(BodyDecoder::new(coding)));
        if decoder.is_some() {
            headers.remove(CONTENT_ENCODING);
        }
        let addresses = || Box::new(AddressMapper::new(Rc::clone(&self.table), AddressDirection::ToClient));
        has_body(parts.status).then(|| BodyMapper { addresses: addresses(), decoder })
    }

    fn marked(&self, tag: &HeaderValue) -> Option<HeaderValue> {
        let opaque = tag.to_str().ok()?.strip_suffix('"')?;
        HeaderValue::try_from(format!("{opaque}{}\"", self.suffix)).ok()
    }
}

/// Returns the coding of a compressed body, in lower case.
fn coding(headers: &HeaderMap) -> Option<String> {
    let mut codings = headers.get_all(CONTENT_ENCODING).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
    let first = codings.next()?.trim().to_ascii_lowercase();
    let coding = codings.fold(first, |all, next| format!("{all}, {}", next.to_ascii_lowercase()));
    (!coding.is_empty() && coding != "identity").then_some(coding)
}

fn has_body(status: StatusCode) -> bool {
    !status.is_informational() && !matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

/// Whether a body may be read as text that has addresses.
fn is_text(headers: &HeaderMap) -> bool {
    let Some(kind) = headers.get(CONTENT_TYPE) else { return true };
    let kind = String::from_utf8_lossy(kind.as_bytes()).to_ascii_lowercase();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    let subtype = kind.split_once('/').map_or("", |(_, subtype)| subtype);
    let names = ["json", "xml", "javascript", "ecmascript"];
    kind.is_empty()
        || kind.starts_with("text/")
        || names.into_iter().any(|name| subtype.ends_with(name))
        || matches!(subtype, "x-www-form-urlencoded" | "x-ndjson" | "json-seq" | "x-mpegurl" | "vnd.apple.mpegurl")
}

#[cfg(test)]
mod tests {
    use super::super::address_table::AddressRow;
    use super::super::authority::HostPort;
    use super::*;

    fn map(port: u16) -> BodyMap {
        let place = |port| HostPort { host: "localhost".to_owned(), port };
        let row = AddressRow { canonical: place(7770), used: place(port) };
        BodyMap::new(Rc::new(AddressTable::new(vec![row])))
    }

    fn parts(status: u16, headers: &[(&'static str, &str)]) -> response::Parts {
        let mut response = http::Response::builder().status(status);
        for (name, value) in headers {
            response = response.header(*name, *value);
        }
        response.body(()).expect("a response").into_parts().0
    }

    #[test]
    fn text_is_mapped_and_everything_else_passes() {
        for kind in [
            "text/html; charset=utf-8",
            "Application/JSON",
            "image/svg+xml",
            "application/ld+json",
            "text/css",
            "application/javascript",
            "text/event-stream",
            "application/xhtml+xml",
            "",
        ] {
            let mut mapped = parts(200, &[("content-type", kind), ("content-length", "5"), ("accept-ranges", "bytes")]);
            assert_eq!(map(1).check(&mapped), Ok(()), "{kind}");
            assert!(map(1).map_response(&mut mapped).is_some(), "{kind}");
            assert!(!mapped.headers.contains_key("content-length") && !mapped.headers.contains_key("accept-ranges"));
        }
        assert!(map(1).map_response(&mut parts(200, &[])).is_some(), "browsers look for HTML in it");
        for kind in ["image/png", "application/pdf", "application/octet-stream", "font/woff2", "video/mp4"] {
            let mut passed =
                parts(200, &[("content-type", kind), ("content-length", "5"), ("content-encoding", "gzip")]);
            assert_eq!(map(1).check(&passed), Ok(()), "{kind}");
            assert!(map(1).map_response(&mut passed).is_none(), "{kind}");
            assert_eq!(passed.headers["content-length"], "5", "{kind}");
        }
        assert!(map(1).map_response(&mut parts(204, &[])).is_none());
    }

    #[test]
    fn forms_and_json_of_requests_are_mapped_and_uploads_pass() {
        let is_mapped = |headers: &[(HeaderName, &'static str)]| {
            let headers = headers.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value)));
            map(1).request_mapper(&HeaderMap::from_iter(headers)).is_some()
        };
        for kind in [
            "application/x-www-form-urlencoded",
            "application/json; charset=utf-8",
            "application/vnd.api+json",
            "text/plain;charset=UTF-8",
            "text/xml",
        ] {
            assert!(is_mapped(&[(CONTENT_TYPE, kind)]), "{kind}");
            assert!(is_mapped(&[(CONTENT_TYPE, kind), (CONTENT_ENCODING, "identity")]), "{kind}");
            assert!(!is_mapped(&[(CONTENT_TYPE, kind), (CONTENT_ENCODING, "gzip")]), "{kind}");
        }
        for kind in ["multipart/form-data; boundary=x", "application/octet-stream", "image/png", "application/grpc"] {
            assert!(!is_mapped(&[(CONTENT_TYPE, kind)]), "{kind}");
        }
        assert!(!is_mapped(&[]), "a body without a type");
    }

    #[test]
    fn compressed_text_is_decompressed() {
        for (coding, is_compressed) in [("gzip", true), ("X-GZip", true), ("deflate", true), ("identity", false)] {
            let mut page = parts(200, &[("content-type", "text/html"), ("content-encoding", coding)]);
            assert_eq!(map(1).check(&page), Ok(()), "{coding}");
            let mapper = map(1).map_response(&mut page).expect("a mapper");
            assert_eq!(mapper.decoder.is_some(), is_compressed, "{coding}");
            assert_eq!(page.headers.contains_key("content-encoding"), !is_compressed, "{coding}");
        }
    }

    #[test]
    fn text_that_cannot_be_mapped_is_refused() {
        let html = ("content-type", "text/html; charset=UTF-8");
        let compressed = map(1).check(&parts(200, &[html, ("content-encoding", "br")]));
        assert_eq!(compressed, Err(BodyMapError::Compressed("br".to_owned())));
        let twice = map(1).check(&parts(200, &[html, ("content-encoding", "gzip"), ("content-encoding", "gzip")]));
        assert_eq!(twice, Err(BodyMapError::Compressed("gzip, gzip".to_owned())));
        assert_eq!(map(1).check(&parts(200, &[html, ("content-encoding", "Identity")])), Ok(()));
        assert_eq!(map(1).check(&parts(206, &[html])), Err(BodyMapError::Partial));
        let wide = map(1).check(&parts(200, &[("content-type", "text/html; charset=\"UTF-16LE\"")]));
        assert_eq!(wide, Err(BodyMapError::Charset("utf-16".to_owned())));
    }

    #[test]
    fn a_page_that_a_client_kept_counts_for_the_same_addresses_only() {
        let kept = |port| {
            let mut page =
                parts(200, &[("content-type", "text/html"), ("etag", "W/\"v1\""), ("last-modified", "today")]);
            map(port).map_response(&mut page);
            assert!(!page.headers.contains_key("last-modified"));
            page.headers["etag"].clone()
        };
        let asked = |port, tag: &HeaderValue| {
            let mut headers =
                HeaderMap::from_iter([(IF_NONE_MATCH, tag.clone()), (RANGE, HeaderValue::from_static("bytes=0-1"))]);
            let mut map = map(port);
            map.map_request(&mut headers);
            assert!(!headers.contains_key(RANGE) && headers[ACCEPT_ENCODING] == "identity");
            (map, headers[IF_NONE_MATCH].clone())
        };
        assert_ne!(kept(1), kept(2));
        let (map, sent) = asked(1, &kept(1));
        assert_eq!(sent, "W/\"v1\"");
        let mut unchanged = parts(304, &[("etag", "W/\"v1\"")]);
        assert!(map.map_response(&mut unchanged).is_none());
        assert_eq!(unchanged.headers["etag"], kept(1), "so that the client keeps the page");
        let (_, other) = asked(2, &kept(1));
        assert_eq!(other, kept(1), "which the site does not know");
        // The tag of an image is the site's own.
        let (map, sent) = asked(1, &HeaderValue::from_static("\"image\""));
        assert_eq!(sent, "\"image\"");
        let mut image = parts(304, &[("etag", "\"image\""), ("last-modified", "today")]);
        map.map_response(&mut image);
        assert_eq!(image.headers["etag"], "\"image\"");
    }
}

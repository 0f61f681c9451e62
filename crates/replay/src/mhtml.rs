//! Reads MHTML files, as Chromium saves pages.
//!
//! Each part becomes an exchange at its `Content-Location`. Parts without an address of their own, such as frames and
//! generated style sheets, are referred to by `cid:`; they get addresses below the page's origin, and the references are
//! changed. The attributes by which Mind2Web's recorder marks the annotated element are removed, because they give the
//! answer away.

use std::io::Read;

use mail_parser::{HeaderName, MessageParser, MimeHeaders, PartType};
use regex::bytes::{Captures, Regex};
use url::Url;

use super::builder::ReplayBuilder;
use super::exchange::{HeaderField, ReadExchange};
use super::{BODY_MAX, ReplayError};

/// The folder of parts that have no address.
const PARTS: &str = "/.arenad-replay/part/";

/// Reads an MHTML file.
pub(crate) fn read(builder: &mut ReplayBuilder, name: &str, content: impl Read) -> Result<(), ReplayError> {
    let broken = |what: &str| ReplayError::broken(name, what);
    let mut bytes = Vec::new();
    content.take(BODY_MAX + 1).read_to_end(&mut bytes).map_err(|error| broken(&error.to_string()))?;
    if bytes.len() as u64 > BODY_MAX {
        return Err(ReplayError::TooLarge { what: "the size of an MHTML file", limit: "256 MiB".to_owned() });
    }
    let message = MessageParser::new().parse(&bytes).ok_or_else(|| broken("the file is not MHTML"))?;
    let boundary = message.root_part().content_type().and_then(|kind| kind.attribute("boundary"));
    let boundary = boundary.ok_or_else(|| broken("the file is not `multipart/related`"))?;
    if !contains(&bytes, format!("--{boundary}--").as_bytes()) {
        return Err(broken("the file ends early: its last boundary is missing"));
    }
    let snapshot = message.header(HeaderName::Other("Snapshot-Content-Location".into())).and_then(|it| it.as_text());
    let at = message.date().map(|date| date.to_rfc3339());
    let parts: Vec<Part<'_>> = message.parts.iter().skip(1).filter_map(Part::of).collect();
    let main = parts.iter().find(|part| part.is_html()).ok_or_else(|| broken("the file has no page"))?;
    let page = snapshot.or(main.location).unwrap_or_default();
    let page =
        Url::parse(page).map_err(|_| broken(&format!("the address of the page is {page:?}, which is not a URL")))?;
    if main.text().trim_ascii().is_empty() {
        builder.problem("page", format!("the page {page} is blank"));
    }
    // References may have any form that a URL can have, so identifiers are compared without brackets.
    let reference = Regex::new(r#"cid:([A-Za-z0-9._+@%=-]+)"#).map_err(|error| broken(&error.to_string()))?;
    // Attributes of Mind2Web's recorder and of the viewer that saved its pages.
    let marks = r#"\s(?:data-pw-testid-buckeye[\w-]*|data_pw_testid_buckeye[\w-]*|x-pw-highlight-box)(?:="[^"]*")?"#;
    let marks = Regex::new(marks).map_err(|error| broken(&error.to_string()))?;
    for (index, part) in parts.iter().enumerate() {
        let is_main = std::ptr::eq(part, main);
        let url = match (is_main, part.location.filter(|location| location.starts_with("http")), part.id) {
            (true, ..) => page.clone(),
            (false, Some(location), _) => match Url::parse(location) {
                Ok(url) => url,
                Err(error) => {
                    builder.problem(&format!("part {}", index + 1), format!("{location:?} is not a URL ({error})"));
                    continue;
                }
            },
            (false, None, id) => {
                // Chromium writes `Content-Location: cid:css-…` for generated style sheets.
                let id = id.or(part.location.and_then(|location| location.strip_prefix("cid:")));
                let Some(url) = id.and_then(|id| page.join(&format!("{PARTS}{id}")).ok()) else {
                    builder.problem(&format!("part {}", index + 1), "the part has no address");
                    continue;
                };
                url
            }
        };
        let is_text = part.is_html() || part.kind.starts_with("text/css");
        let body = match is_text {
            true => {
                let text = marks.replace_all(part.text(), &b""[..]);
                let address = |found: &Captures<'_>| {
                    let id = String::from_utf8_lossy(&found[1]).into_owned();
                    page.join(&format!("{PARTS}{id}")).map(|url| url.as_str().as_bytes().to_vec()).unwrap_or_default()
                };
                reference.replace_all(&text, address).into_owned()
            }
            false => part.text().to_vec(),
        };
        let kind = if part.is_text { format!("{}; charset=utf-8", part.kind) } else { part.kind.clone() };
        builder.add(ReadExchange {
            place: format!("part {}", index + 1),
            method: "GET".to_owned(),
            url: url.to_string(),
            request_headers: Vec::new(),
            sent: None,
            status: 200,
            headers: vec![HeaderField("content-type".to_owned(), kind)],
            body,
            at: at.clone(),
        })?;
    }
    Ok(())
}

/// A part of the file.
struct Part<'a> {
    kind: String,
    location: Option<&'a str>,
    id: Option<&'a str>,
    is_text: bool,
    content: &'a [u8],
}

impl<'a> Part<'a> {
    fn of(part: &'a mail_parser::MessagePart<'a>) -> Option<Self> {
        if let PartType::Multipart(_) | PartType::Message(_) = part.body {
            return None;
        }
        let kind = part.content_type();
        let kind = kind.map(|kind| format!("{}/{}", kind.ctype(), kind.subtype().unwrap_or("octet-stream")));
        Some(Self {
            kind: kind.unwrap_or_else(|| "application/octet-stream".to_owned()).to_ascii_lowercase(),
            location: part.content_location().map(str::trim),
            id: part.content_id().map(|id| id.trim().trim_matches(['<', '>'])),
            is_text: matches!(part.body, PartType::Text(_) | PartType::Html(_)),
            content: part.contents(),
        })
    }

    fn is_html(&self) -> bool {
        matches!(self.kind.as_str(), "text/html" | "application/xhtml+xml")
    }

    fn text(&self) -> &'a [u8] {
        self.content
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

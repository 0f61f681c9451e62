//! One request and its answer, as a HAR's entry has them.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::body::{self, Body};
use crate::evaluators::text::urls::{self, UrlError};
use crate::evaluators::webarena_verified::trouble::Trouble;

/// Paths that end like this are no pages and no data.
const ASSETS: [&str; 12] =
    [".css", ".js", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".woff", ".woff2", ".ttf", ".ico", ".webp"];

/// A request and its answer.
#[derive(Debug, Clone, Deserialize)]
pub struct Event {
    request: Request,
    response: Response,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    method: String,
    url: String,
    #[serde(default)]
    headers: Vec<Pair>,
    #[serde(default)]
    post_data: Option<Body>,
}

#[derive(Debug, Clone, Deserialize)]
struct Response {
    status: i64,
    #[serde(default)]
    cookies: Vec<Pair>,
    /// Read when someone asks for it: it is most of the file.
    #[serde(default)]
    content: Option<Box<RawValue>>,
}

#[derive(Debug, Clone, Deserialize)]
struct Pair {
    name: String,
    #[serde(default)]
    value: String,
}

impl Event {
    pub(in super::super) fn url(&self) -> &str {
        &self.request.url
    }

    pub(in super::super) fn method(&self) -> &str {
        &self.request.method
    }

    pub(in super::super) fn status(&self) -> i64 {
        self.response.status
    }

    /// A header of the request; the last one of that name, whatever its case.
    pub(in super::super) fn header(&self, name: &str) -> Option<&str> {
        let last = self.request.headers.iter().rev().find(|header| header.name.to_lowercase() == name.to_lowercase());
        last.map(|header| header.value.as_str())
    }

    /// The value of a cookie that the answer sets, unquoted.
    pub(in super::super) fn cookie(&self, name: &str) -> Option<String> {
        self.response.cookies.iter().rev().find(|cookie| cookie.name == name).map(|cookie| urls::unquote(&cookie.value))
    }

    /// The fields of the request's body.
    pub(in super::super) fn post_data(&self) -> Result<Option<Map<String, Value>>, Trouble> {
        self.request.post_data.as_ref().map_or(Ok(None), body::fields)
    }

    /// The fields of the answer's body.
    pub(in super::super) fn response_content(&self) -> Result<Option<Map<String, Value>>, Trouble> {
        let Some(content) = &self.response.content else { return Ok(None) };
        match serde_json::from_str(content.get()) {
            Ok(content) => body::fields(&content),
            Err(error) => {
                Err(Trouble::raised(format!("the answer of {} has a malformed content: {error}", self.url())))
            }
        }
    }

    /// Whether the request had a body that was not recorded.
    pub(in super::super) fn has_lost_body(&self) -> bool {
        match &self.request.post_data {
            Some(body) => body.text.is_empty(),
            None => self.header("content-length").is_some_and(|length| length.trim() != "0"),
        }
    }

    /// Whether it is a picture, a font, a style or a script.
    pub(super) fn is_asset(&self) -> Result<bool, Trouble> {
        match urls::urlsplit(self.url()) {
            Ok(split) => {
                let path = split.path_and_parameters().0;
                Ok(ASSETS.iter().any(|end| path.ends_with(end)))
            }
            // The host matters to whoever compares it.
            Err(UrlError::Host(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the browser went to a page by it.
    pub(in super::super) fn is_navigation(&self) -> bool {
        let header = |name| self.header(name).map(str::to_lowercase);
        let accept = header("accept").unwrap_or_default();
        if self.method() != "GET" {
            return false;
        }
        match header("sec-fetch-user") {
            Some(user) => {
                user == "?1"
                    && header("sec-fetch-dest").as_deref() == Some("document")
                    && header("sec-fetch-mode").as_deref() == Some("navigate")
                    && accept.contains("text/html")
            }
            None => accept.starts_with("text/html"),
        }
    }
}

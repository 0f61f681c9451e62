//! Locators: recipes for reading one value from an instance, each in one text.
//!
//! ```text
//!   sql(shop): SELECT number FROM order_order WHERE id = {id}
//!   http: GET /api/products/1/ as customer | jsonpath: $.title
//!   js: document.title @ /catalogue/ as customer
//!   exec: web: cat /etc/os-release
//!   file: web: /srv/shop/world.json
//!   trace: POST /basket/add/* | jsonpath: $.body.quantity
//! ```
//! A text is a kind, options in brackets, a colon, and what the kind wants. `{name}` is a place for an argument, if one of
//! that name is declared; other braces are themselves. Parsing and filling are here; running is `arenad_locators`' work.

mod arguments;
pub mod json;
mod options;
mod parse;
mod pattern;
mod value;
mod words;

use std::time::Duration;

pub use arguments::{Arguments, json_text};
pub use parse::{SyntaxError, parse};
pub use value::{Rows, Value};

/// A recipe for reading one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Locator {
    /// What is read.
    pub kind: LocatorKind,
    /// The longest it may take; `None`: the kind's own limit.
    pub timeout: Option<Duration>,
}

/// The kinds of locators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LocatorKind {
    /// A statement on one of the site's databases.
    Sql(SqlLocator),
    /// A request to the site.
    Http(HttpLocator),
    /// An expression on a page in a browser.
    Js(JsLocator),
    /// A command in a container.
    Exec(ExecLocator),
    /// A file of a container.
    File(FileLocator),
    /// A look into recorded traffic.
    Trace(TraceLocator),
}

impl LocatorKind {
    /// The word that the text begins with.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Sql(_) => "sql",
            Self::Http(_) => "http",
            Self::Js(_) => "js",
            Self::Exec(_) => "exec",
            Self::File(_) => "file",
            Self::Trace(_) => "trace",
        }
    }
}

/// A statement on one of the site's databases. It must only read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlLocator {
    /// The key in [`crate::site::Site::databases`]; `None`: the only one.
    pub database: Option<String>,
    /// The statement, its places unfilled: arguments are bound, never pasted.
    pub statement: String,
    /// The arguments that are bound.
    pub arguments: Arguments,
    /// Whether the value is a table even where it has one row and one column.
    pub as_rows: bool,
}

/// A request to the site's entry and what is taken of the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpLocator {
    /// `GET`, `HEAD`, `OPTIONS`, or `POST` where the locator says that it only reads.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// The account whose session is used.
    pub account: Option<String>,
    /// Request headers.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Option<String>,
    /// Whether redirects, which never leave the site, are followed.
    pub follows: bool,
    /// What is taken of the answer.
    pub selection: Selection,
}

/// What is taken of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// The body: JSON where it says so, else text, else bytes.
    Body,
    /// The status code.
    Status,
    /// A header's value.
    Header(String),
    /// What is asked of its JSON.
    Json(JsonQuery),
    /// Elements of an HTML page.
    Css {
        /// The selector.
        selector: String,
        /// The attribute; `None`: the element's text.
        attribute: Option<String>,
        /// Whether the value is a list of all; otherwise it is the first.
        all: bool,
    },
}

/// An expression on a page in a browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsLocator {
    /// The expression; if its value is a function, what that returns.
    pub expression: String,
    /// The page.
    pub page: JsPage,
    /// The account whose session the browser has.
    pub account: Option<String>,
    /// The CSS selector of an element that is waited for, besides the page's load.
    pub wait_for: Option<String>,
    /// Expressions that are run before, whose errors do not count.
    pub prepare: Vec<String>,
}

/// The page that an expression looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JsPage {
    /// One of the site, by path and query.
    Path(String),
    /// The one that whoever asks has in mind; if nobody says, the one that the site's URL leads to.
    Given,
    /// The one that the agent is on, as it is.
    Live,
}

/// A command in a container, without a shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecLocator {
    /// The service; `None`: the site's entry.
    pub service: Option<String>,
    /// The argument vector.
    pub command: Vec<String>,
}

/// A file of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileLocator {
    /// The service; `None`: the site's entry.
    pub service: Option<String>,
    /// The path.
    pub path: String,
}

/// Requests to the site in recorded traffic.
///
/// Shape of a request: `{"method", "url", "path", "query": {name: [text]}, "headers": {name: text}, "body", "status", "answer"}`;
/// bodies are JSON where they are, forms objects of each field's first text (`{"file": name}` for a file), else texts, `null` where none
/// was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceLocator {
    /// The method; `None`: any.
    pub method: Option<String>,
    /// The path, and the query if it has a `?`; `*` stands for anything.
    pub pattern: String,
    /// Whether the value is a list of all requests; otherwise it is the last one.
    pub all: bool,
    /// What is taken of them.
    pub part: TracePart,
}

/// What is asked of JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JsonQuery {
    /// The values at a path (RFC 9535).
    Path {
        /// The path.
        path: String,
        /// Whether the value is a list of all of them; otherwise there may be one at most.
        all: bool,
    },
    /// What a jq filter makes of it.
    Jq {
        /// The filter.
        filter: String,
        /// Whether the value is a list of all outputs; otherwise there may be one at most.
        all: bool,
    },
}

/// What is taken of requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TracePart {
    /// The request and its answer.
    Whole,
    /// How many there are.
    Count,
    /// What is asked of the request as JSON.
    Json(JsonQuery),
}

impl TraceLocator {
    /// Whether no request is meant that only reads, by its method.
    #[must_use]
    pub fn is_of_writes(&self) -> bool {
        self.method.as_deref().is_some_and(|method| !matches!(method, "GET" | "HEAD" | "OPTIONS"))
    }

    /// Whether a request is one that is meant. `path` begins with a slash; `query` is what follows the `?`.
    #[must_use]
    pub fn is_meant(&self, method: &str, path: &str, query: Option<&str>) -> bool {
        let fits = match (self.pattern.contains('?'), query) {
            (true, Some(query)) => pattern::fits(&self.pattern, &format!("{path}?{query}")),
            (true, None) => false,
            (false, _) => pattern::fits(&self.pattern, path),
        };
        fits && self.method.as_deref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(method))
    }
}

//! Locators: recipes for reading one value from an instance, each written as one text.
//!
//! ```text
//!   sql(shop): SELECT number FROM order_order WHERE id = {id}
//!   http: GET /api/products/1/ as customer | jsonpath: $.title
//!   js: document.title @ /catalogue/ as customer
//!   exec: web: cat /etc/os-release
//!   file: web: /srv/shop/world.json
//!   trace: POST /basket/add/* | jsonpath: $.body.quantity
//! ```
//! A locator consists of a kind, options in brackets, a colon, and a body whose syntax depends on the kind. `{name}` is
//! a placeholder for an argument if an argument of that name is declared; all other braces stand for themselves. This
//! module parses and fills locators; `arenad_locators` runs them.

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
    /// The kind of the locator, with its parameters.
    pub kind: LocatorKind,
    /// The time limit. `None` means the default limit of the kind.
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
    /// A search in recorded traffic.
    Trace(TraceLocator),
}

impl LocatorKind {
    /// Returns the word with which the text begins.
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

/// A statement on one of the site's databases. The statement may only read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlLocator {
    /// The key in [`crate::site::Site::databases`]. `None` means the default database
    /// ([`crate::site::Site::only_database`]).
    pub database: Option<String>,
    /// The statement with its placeholders, because arguments are bound and never inserted as text.
    pub statement: String,
    /// The arguments that are bound to the placeholders.
    pub arguments: Arguments,
    /// Whether the value is a table even if it has only one row and one column.
    pub as_rows: bool,
}

/// A request to the site's entry, and the part of the response that is the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpLocator {
    /// `GET`, `HEAD` or `OPTIONS`, or `POST` if the locator declares that the request only reads.
    pub method: String,
    /// The path, with the query if there is one.
    pub path: String,
    /// The account whose session is used.
    pub account: Option<String>,
    /// Names and values of the request headers.
    pub headers: Vec<(String, String)>,
    /// The body, which only a `POST` request has.
    pub body: Option<String>,
    /// Whether redirects are followed. A followed redirect to another origin is an error.
    pub follows: bool,
    /// The part of the response that is the value.
    pub selection: Selection,
}

/// The part of a response that is the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// The body: as JSON if the response declares it, otherwise as text if possible, otherwise as bytes.
    Body,
    /// The status code, as an integer.
    Status,
    /// The value of the header with this name.
    Header(String),
    /// The result of a query on the JSON body.
    Json(JsonQuery),
    /// Elements of an HTML page.
    Css {
        /// The CSS selector of the elements.
        selector: String,
        /// The name of the attribute that is read. `None` means the text of the element.
        attribute: Option<String>,
        /// Whether the value is a list of all elements. Otherwise it is the first element.
        all: bool,
    },
}

/// An expression on a page in a browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsLocator {
    /// The expression. If its value is a function, the function is called and its result is the value.
    pub expression: String,
    /// The page on which the expression is evaluated.
    pub page: JsPage,
    /// The account whose session the browser has.
    pub account: Option<String>,
    /// The CSS selector of an element that must appear after the page has loaded.
    pub wait_for: Option<String>,
    /// Expressions that are evaluated beforehand. Their errors are ignored.
    pub prepare: Vec<String>,
}

/// The page on which an expression is evaluated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JsPage {
    /// A page of the site, by path and query.
    Path(String),
    /// The page that the caller supplies. If the caller supplies none, the page at the site's URL.
    Given,
    /// The page that is open in the agent's browser, in its current state.
    Live,
}

/// A command in a container, run without a shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecLocator {
    /// The service. `None` means the site's entry service.
    pub service: Option<String>,
    /// The argument vector, beginning with the program.
    pub command: Vec<String>,
}

/// A file of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileLocator {
    /// The service. `None` means the site's entry service.
    pub service: Option<String>,
    /// The absolute path in the container.
    pub path: String,
}

/// Requests to the site in recorded traffic.
///
/// Shape of a request: `{"method", "url", "path", "query": {name: [text]}, "headers": {name: text}, "body", "status",
/// "answer"}`. A body whose media type is JSON is JSON if it parses. A form is an object with the first value of each
/// field (`{"file": name}` for a file). Other bodies are texts, and a body that was not recorded is `null`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceLocator {
    /// The method. `None` means any method.
    pub method: Option<String>,
    /// The pattern of the path, and also of the query if it contains a `?`. A `*` stands for any text.
    pub pattern: String,
    /// Whether the value is a list of all matching requests. Otherwise it is the last one.
    pub all: bool,
    /// The part of the matching requests that is the value.
    pub part: TracePart,
}

/// A query on JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JsonQuery {
    /// The values at a JSONPath (RFC 9535).
    Path {
        /// The path in JSONPath syntax.
        path: String,
        /// Whether the value is a list of all matches. Otherwise there may be at most one match.
        all: bool,
    },
    /// The output of a jq filter.
    Jq {
        /// The filter in jq syntax.
        filter: String,
        /// Whether the value is a list of all outputs. Otherwise there may be at most one output.
        all: bool,
    },
}

/// The part of recorded requests that is the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TracePart {
    /// The request together with its response.
    Whole,
    /// The number of matching requests.
    Count,
    /// The result of a query on the request as JSON.
    Json(JsonQuery),
}

impl TraceLocator {
    /// Whether the locator names a method and the method may write.
    #[must_use]
    pub fn is_of_writes(&self) -> bool {
        self.method.as_deref().is_some_and(|method| !matches!(method, "GET" | "HEAD" | "OPTIONS"))
    }

    /// Whether a request matches. `path` begins with a slash; `query` is the text after the `?`.
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

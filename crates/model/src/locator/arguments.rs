//! The arguments of a locator and their insertion: each is encoded for the position at which it is inserted, never
//! inserted verbatim.

use std::fmt::Write;

use super::{HttpLocator, JsLocator, JsPage, JsonQuery, Locator, LocatorKind, Selection, TraceLocator, TracePart};
use crate::login::Template;

/// Arguments: names and their texts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Arguments(pub Vec<(String, String)>);

impl Arguments {
    /// Returns the text of the argument with that name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, text)| text.as_str())
    }

    /// Replaces the placeholders of a template by encoded texts.
    pub(crate) fn fill(&self, text: &str, encode: fn(&str) -> String) -> String {
        let encoded: Vec<(&str, String)> = self.0.iter().map(|(name, text)| (name.as_str(), encode(text))).collect();
        Template::new(text).fill(|name| encoded.iter().find(|(known, _)| *known == name).map(|(_, text)| text.as_str()))
    }
}

impl Locator {
    /// Returns the locator with its placeholders filled. The placeholders of an SQL statement remain, because its
    /// arguments are bound when the statement runs.
    #[must_use]
    pub fn with(mut self, arguments: &Arguments) -> Self {
        if arguments.0.is_empty() {
            return self;
        }
        match &mut self.kind {
            LocatorKind::Sql(sql) => sql.arguments = arguments.clone(),
            LocatorKind::Http(http) => fill_http(http, arguments),
            LocatorKind::Js(js) => fill_js(js, arguments),
            LocatorKind::Exec(exec) => {
                for word in &mut exec.command {
                    *word = arguments.fill(word, str::to_owned);
                }
            }
            LocatorKind::File(file) => file.path = arguments.fill(&file.path, str::to_owned),
            LocatorKind::Trace(trace) => fill_trace(trace, arguments),
        }
        self
    }
}

fn fill_http(http: &mut HttpLocator, arguments: &Arguments) {
    http.path = arguments.fill(&http.path, url_text);
    for (_, value) in &mut http.headers {
        *value = arguments.fill(value, header_text);
    }
    if let Some(body) = &mut http.body {
        let is_json = body.trim_start().starts_with(['{', '[']);
        *body = arguments.fill(body, if is_json { inside_json_text } else { url_text });
    }
    match &mut http.selection {
        Selection::Body | Selection::Status | Selection::Header(_) => {}
        Selection::Json(query) => fill_json_query(query, arguments),
        Selection::Css { selector, .. } => *selector = arguments.fill(selector, css_text),
    }
}

fn fill_trace(trace: &mut TraceLocator, arguments: &Arguments) {
    // A `*` in an argument is escaped as well, so that it matches only itself.
    trace.pattern = arguments.fill(&trace.pattern, url_text);
    match &mut trace.part {
        TracePart::Whole | TracePart::Count => {}
        TracePart::Json(query) => fill_json_query(query, arguments),
    }
}

fn fill_json_query(query: &mut JsonQuery, arguments: &Arguments) {
    let (JsonQuery::Path { path: text, .. } | JsonQuery::Jq { filter: text, .. }) = query;
    *text = arguments.fill(text, json_text);
}

fn fill_js(js: &mut JsLocator, arguments: &Arguments) {
    js.expression = arguments.fill(&js.expression, json_text);
    if let JsPage::Path(path) = &mut js.page {
        *path = arguments.fill(path, url_text);
    }
    if let Some(selector) = &mut js.wait_for {
        *selector = arguments.fill(selector, css_text);
    }
}

/// Encodes a text as a part of a URL: every character except letters, digits and `-._~` is escaped.
fn url_text(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let escape = |byte: u8| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(escape).collect()
}

/// Encodes a text as a part of a header: control characters, which could end the header, are removed.
fn header_text(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

/// Encodes a text as a JSON string with quotes, which is also a valid literal in JavaScript, jq and JSONPath.
pub fn json_text(text: &str) -> String {
    format!("\"{}\"", inside_json_text(text))
}

fn inside_json_text(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '\\' => escaped.extend(['\\', c]),
            // Older JavaScript also ends a line, and with it a literal, at these two characters.
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => {
                // Writing to a string cannot fail. Control characters and both separators fit into four digits.
                let _ = write!(escaped, "\\u{:04x}", u32::from(c));
            }
            c => escaped.push(c),
        }
    }
    escaped
}

/// Encodes a text as a CSS string with quotes.
fn css_text(text: &str) -> String {
    let escape = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c.is_control() => format!("\\{:x} ", u32::from(c)),
        c => c.to_string(),
    };
    format!("\"{}\"", text.chars().map(escape).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    fn with(text: &str, value: &str) -> LocatorKind {
        let arguments = Arguments(vec![("x".to_owned(), value.to_owned())]);
        parse(text).expect("a locator").with(&arguments).kind
    }

    #[test]
    fn arguments_are_encoded_for_the_place_where_they_stand() {
        let LocatorKind::Http(http) = with(
            "http(reads, header='A: {x}', body='{\"q\": \"{x}\"}'): POST /p/{x}?q={x} | jsonpath: $[?@.a == {x}]",
            "a\"/\r\n&",
        ) else {
            panic!("http")
        };
        assert_eq!(http.path, "/p/a%22%2F%0D%0A%26?q=a%22%2F%0D%0A%26");
        assert_eq!(http.headers, [("A".to_owned(), "a\"/&".to_owned())]);
        assert_eq!(http.body.as_deref(), Some(r#"{"q": "a\"/\u000d\u000a&"}"#));
        assert_eq!(
            http.selection,
            Selection::Json(JsonQuery::Path { path: r#"$[?@.a == "a\"/\u000d\u000a&"]"#.to_owned(), all: false })
        );
        let LocatorKind::Js(js) = with("js: find({x}, {y}) @ /f/{x}", "a');alert(1)//\u{2028}") else { panic!("js") };
        assert_eq!(js.expression, "find(\"a');alert(1)//\\u2028\", {y})");
        assert_eq!(js.page, JsPage::Path("/f/a%27%29%3Balert%281%29%2F%2F%E2%80%A8".to_owned()));
        let LocatorKind::Exec(exec) = with("exec: web: grep {x} 'a b'", "x y; rm -rf /") else { panic!("exec") };
        assert_eq!(exec.command, ["grep", "x y; rm -rf /", "a b"], "one word stays one word");
    }

    #[test]
    fn statements_keep_their_places() {
        let LocatorKind::Sql(sql) = with("sql: select {x}", "'; drop table t") else { panic!("sql") };
        assert_eq!(sql.statement, "select {x}");
        assert_eq!(sql.arguments.get("x"), Some("'; drop table t"));
    }
}

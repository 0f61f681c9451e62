//! Parser for locators, which reports the position of an error.

use std::time::Duration;

use super::options::{LocatorOption, Options};
use super::{
    Arguments, ExecLocator, FileLocator, HttpLocator, JsLocator, JsPage, JsonQuery, Locator, LocatorKind, Selection,
    SqlLocator, TraceLocator, TracePart, words,
};

/// The maximum time limit that a locator can set.
const TIMEOUT_MAX: Duration = Duration::from_secs(120);

/// The reason why a text is not a locator, and the position of the error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {problem}; expected {expected}")]
pub struct SyntaxError {
    /// The position, in characters, counted from 1.
    pub column: usize,
    /// The description of the error.
    pub problem: String,
    /// The syntax that was expected.
    pub expected: String,
}

/// Parses a locator.
///
/// Errors: the first error in the text.
pub fn parse(text: &str) -> Result<Locator, SyntaxError> {
    let mut cursor = Cursor { text, at: 0 };
    cursor.skip_space();
    let at = cursor.at;
    let kind = cursor.word();
    let mut options = Options::read(&mut cursor)?;
    let timeout = options.value("timeout").map(|given| timeout(&cursor, &given)).transpose()?;
    let kind = match kind {
        "sql" => LocatorKind::Sql(sql(&mut cursor, options)?),
        "http" => LocatorKind::Http(http(&mut cursor, options)?),
        "js" => LocatorKind::Js(js(&mut cursor, options)?),
        "exec" => LocatorKind::Exec(exec(&mut cursor, options)?),
        "file" => LocatorKind::File(file(&mut cursor, options)?),
        "trace" => LocatorKind::Trace(trace(&mut cursor, options)?),
        "" => return Err(cursor.error_at(at, "the locator has no kind", KINDS)),
        other => return Err(cursor.error_at(at, format!("unknown locator kind `{other}`"), KINDS)),
    };
    Ok(Locator { kind, timeout })
}

const KINDS: &str = "`sql:`, `http:`, `js:`, `exec:`, `file:` or `trace:`";

fn timeout(cursor: &Cursor<'_>, given: &LocatorOption) -> Result<Duration, SyntaxError> {
    let text = given.value.as_deref().unwrap_or_default();
    let expected = "a time such as `500ms` or `10s`, two minutes at most";
    match humantime::parse_duration(text) {
        Ok(limit) if !limit.is_zero() && limit <= TIMEOUT_MAX => Ok(limit),
        _ => Err(cursor.error_at(given.at, format!("invalid time limit `{text}`"), expected)),
    }
}

fn sql(cursor: &mut Cursor<'_>, mut options: Options) -> Result<SqlLocator, SyntaxError> {
    let as_rows = options.flag("rows");
    let database = options.value("database").and_then(|given| given.value);
    let database = database.or_else(|| options.word().map(|given| given.name));
    options.finish(cursor)?;
    cursor.colon()?;
    let statement = cursor.rest("a statement such as `SELECT 1`")?.to_owned();
    Ok(SqlLocator { database, statement, arguments: Arguments::default(), as_rows })
}

fn http(cursor: &mut Cursor<'_>, mut options: Options) -> Result<HttpLocator, SyntaxError> {
    let reads = options.flag("reads");
    let follows = !options.flag("stay");
    let body = options.value("body").and_then(|given| given.value);
    let headers = options.values("header").into_iter().map(|given| header(cursor, &given)).collect::<Result<_, _>>()?;
    options.finish(cursor)?;
    cursor.colon()?;
    cursor.skip_space();
    let at = cursor.at;
    let method = match cursor.remaining().starts_with('/') {
        true => "GET",
        false => cursor.word(),
    };
    match method {
        "GET" | "HEAD" | "OPTIONS" if body.is_none() => {}
        "GET" | "HEAD" | "OPTIONS" => {
            return Err(cursor.error_at(at, format!("a `{method}` carries no body"), "`POST`"));
        }
        "POST" if reads => {}
        "POST" => {
            let expected = "`http(reads): POST …` where this request changes nothing: locators only read";
            return Err(cursor.error_at(at, "a `POST` may write", expected));
        }
        "PUT" | "PATCH" | "DELETE" => {
            return Err(cursor.error_at(at, format!("a `{method}` writes"), "`GET`: locators only read"));
        }
        other => {
            return Err(cursor.error_at(at, format!("unknown method `{other}`"), "`GET`, `HEAD`, `OPTIONS` or `POST`"));
        }
    }
    cursor.skip_space();
    let path = cursor.path()?;
    let account = cursor.account()?;
    let selection = if cursor.take('|') { selection(cursor)? } else { Selection::Body };
    cursor.end()?;
    Ok(HttpLocator { method: method.to_owned(), path, account, headers, body, follows, selection })
}

fn header(cursor: &Cursor<'_>, given: &LocatorOption) -> Result<(String, String), SyntaxError> {
    let text = given.value.as_deref().unwrap_or_default();
    let is_name =
        |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    // The host is always the site, and arenad determines the framing of the body.
    let is_ours = |name: &str| ["host", "content-length", "transfer-encoding", "connection"].contains(&name);
    match text.split_once(':').map(|(name, value)| (name.trim(), value.trim())) {
        Some((name, value)) if is_name(name) && !value.contains(char::is_control) => {
            if is_ours(&name.to_ascii_lowercase()) {
                let expected = "another: this one is set by arenad";
                return Err(cursor.error_at(given.at, format!("the header `{name}` cannot be given"), expected));
            }
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err(cursor.error_at(given.at, "invalid header", "`header=\"Name: value\"`")),
    }
}

fn selection(cursor: &mut Cursor<'_>) -> Result<Selection, SyntaxError> {
    cursor.skip_space();
    let at = cursor.at;
    let name = cursor.word();
    let mut options = Options::read(cursor)?;
    let selection = match name {
        "body" => Selection::Body,
        "status" => Selection::Status,
        "header" => {
            cursor.colon()?;
            Selection::Header(cursor.rest("a header's name")?.to_owned())
        }
        "jsonpath" | "jq" => Selection::Json(json_query(cursor, name, &mut options, ".items[0].name")?),
        "css" => {
            let all = options.flag("all");
            let attribute = options.value("attribute").and_then(|given| given.value);
            cursor.colon()?;
            Selection::Css { selector: cursor.rest("a selector such as `h1`")?.to_owned(), attribute, all }
        }
        other => {
            let expected = "`jsonpath:`, `jq:`, `css:`, `header:`, `status` or `body`";
            return Err(cursor.error_at(at, format!("`{other}` takes nothing of an answer"), expected));
        }
    };
    options.finish(cursor)?;
    Ok(selection)
}

/// Parses the text after `jsonpath` or `jq`. `example` is a path into the JSON in the syntax that both share.
fn json_query(
    cursor: &mut Cursor<'_>,
    name: &str,
    options: &mut Options,
    example: &str,
) -> Result<JsonQuery, SyntaxError> {
    let all = options.flag("all");
    cursor.colon()?;
    Ok(match name {
        "jq" => JsonQuery::Jq { filter: cursor.rest(&format!("a filter such as `{example}`"))?.to_owned(), all },
        _ => JsonQuery::Path { path: cursor.rest(&format!("a path such as `${example}`"))?.to_owned(), all },
    })
}

fn js(cursor: &mut Cursor<'_>, mut options: Options) -> Result<JsLocator, SyntaxError> {
    let wait_for = options.value("wait").and_then(|given| given.value);
    options.finish(cursor)?;
    cursor.colon()?;
    let start = cursor.at;
    let text = cursor.rest("an expression such as `document.title`")?;
    // The separator is the last one that a page follows, because expressions may contain ` @ ` in their own texts.
    let split = text.match_indices(" @ ").map(|(at, sign)| (at, at + sign.len())).filter(|(_, after)| {
        let page = text[*after..].trim_start();
        page.starts_with('/') || page.split_whitespace().next() == Some("live")
    });
    let Some((end, after)) = split.last() else {
        return Ok(JsLocator {
            expression: text.to_owned(),
            page: JsPage::Given,
            account: None,
            wait_for,
            prepare: Vec::new(),
        });
    };
    let offset = cursor.offset_of(start, text);
    let mut tail = Cursor { text: cursor.text, at: offset + after };
    tail.skip_space();
    let page = match tail.remaining().starts_with('/') {
        true => JsPage::Path(tail.path()?),
        false => {
            tail.word();
            JsPage::Live
        }
    };
    let account = tail.account()?;
    if page == JsPage::Live && account.is_some() {
        return Err(tail.error("the agent's page has its own session", "no account"));
    }
    tail.end()?;
    let expression = text[..end].trim().to_owned();
    if expression.is_empty() {
        return Err(cursor.error_at(offset, "the expression is missing", "an expression such as `document.title`"));
    }
    Ok(JsLocator { expression, page, account, wait_for, prepare: Vec::new() })
}

fn exec(cursor: &mut Cursor<'_>, options: Options) -> Result<ExecLocator, SyntaxError> {
    options.finish(cursor)?;
    cursor.colon()?;
    let service = cursor.service();
    let start = cursor.at;
    let text = cursor.rest("a command such as `cat /etc/os-release`")?;
    let offset = cursor.offset_of(start, text);
    let command = words::split(text)
        .map_err(|(at, problem)| cursor.error_at(offset + at, problem, "words, separated by spaces"))?;
    Ok(ExecLocator { service, command })
}

fn file(cursor: &mut Cursor<'_>, options: Options) -> Result<FileLocator, SyntaxError> {
    options.finish(cursor)?;
    cursor.colon()?;
    let service = cursor.service();
    cursor.skip_space();
    let at = cursor.at;
    let path = cursor.rest("a path such as `/etc/os-release`")?;
    if !path.starts_with('/') || path.contains('\0') {
        return Err(cursor.error_at(at, "the path is not absolute", "a path such as `/etc/os-release`"));
    }
    Ok(FileLocator { service, path: path.to_owned() })
}

fn trace(cursor: &mut Cursor<'_>, mut options: Options) -> Result<TraceLocator, SyntaxError> {
    let all = options.flag("all");
    options.finish(cursor)?;
    cursor.colon()?;
    cursor.skip_space();
    let at = cursor.at;
    let is_path = |cursor: &Cursor<'_>| cursor.remaining().starts_with(['/', '*']);
    let method = (!is_path(cursor)).then(|| cursor.word().to_owned());
    if method.as_ref().is_some_and(|method| method.is_empty() || !method.bytes().all(|byte| byte.is_ascii_uppercase()))
    {
        return Err(cursor.error_at(at, "this is neither a method nor a path", "such as `POST /basket/add/*`"));
    }
    cursor.skip_space();
    if !is_path(cursor) {
        return Err(
            cursor.error("the path is missing", "a path of the site, `*` for anything, such as `/basket/add/*`")
        );
    }
    let rest = cursor.remaining();
    let end = rest.find(|c: char| c.is_whitespace() || c == '|').unwrap_or(rest.len());
    cursor.at += end;
    let pattern = rest[..end].to_owned();
    cursor.skip_space();
    let part = if cursor.take('|') { trace_part(cursor, all)? } else { TracePart::Whole };
    cursor.end()?;
    Ok(TraceLocator { method, pattern, all, part })
}

fn trace_part(cursor: &mut Cursor<'_>, of_all: bool) -> Result<TracePart, SyntaxError> {
    cursor.skip_space();
    let at = cursor.at;
    let name = cursor.word();
    let mut options = Options::read(cursor)?;
    let part = match name {
        "count" if !of_all => TracePart::Count,
        "count" => return Err(cursor.error_at(at, "`trace(all)` lists what `count` counts", "one of them")),
        "jsonpath" | "jq" => TracePart::Json(json_query(cursor, name, &mut options, ".body.quantity")?),
        other => {
            let expected = "`jsonpath:`, `jq:` or `count`";
            return Err(cursor.error_at(at, format!("`{other}` takes nothing of a request"), expected));
        }
    };
    options.finish(cursor)?;
    Ok(part)
}

/// A position in a text.
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn at(&self) -> usize {
        self.at
    }

    fn remaining(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub(super) fn skip_space(&mut self) {
        self.at = self.text.len() - self.remaining().trim_start().len();
    }

    /// Takes letters, digits, `_`, `-` and `.`. The word may be empty.
    pub(super) fn word(&mut self) -> &'a str {
        let rest = self.remaining();
        let end = rest.find(|c: char| !c.is_alphanumeric() && !"_-.".contains(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// Takes the character if it is next.
    pub(super) fn take(&mut self, c: char) -> bool {
        let is_next = self.remaining().starts_with(c);
        self.at += if is_next { c.len_utf8() } else { 0 };
        is_next
    }

    fn colon(&mut self) -> Result<(), SyntaxError> {
        self.skip_space();
        match self.take(':') {
            true => Ok(()),
            false => Err(self.error("what is to be read is missing", "`:` and what this kind reads")),
        }
    }

    /// Takes the value of an option: a word, or a text in quotes.
    pub(super) fn option_value(&mut self) -> Result<String, SyntaxError> {
        self.skip_space();
        let at = self.at;
        let Some(quote) = self.remaining().chars().next().filter(|c| ['\'', '"'].contains(c)) else {
            let rest = self.remaining();
            let end = rest.find([',', ')']).unwrap_or(rest.len());
            self.at += end;
            return Ok(rest[..end].trim().to_owned());
        };
        self.take(quote);
        let mut value = String::new();
        let mut chars = self.remaining().char_indices();
        while let Some((offset, c)) = chars.next() {
            match c {
                c if c == quote => {
                    self.at += offset + c.len_utf8();
                    return Ok(value);
                }
                // Only quotes are escaped, so that the backslashes of JSON in single quotes are preserved.
                '\\' if chars.as_str().starts_with(quote) => value.extend(chars.next().map(|(_, kept)| kept)),
                c => value.push(c),
            }
        }
        Err(self.error_at(at, "this quote is not closed", "a text in quotes"))
    }

    /// Takes a path with its query.
    fn path(&mut self) -> Result<String, SyntaxError> {
        let rest = self.remaining();
        if !rest.starts_with('/') {
            return Err(self.error("the path is missing", "a path of the site, such as `/api/products/`"));
        }
        let end = rest.find(|c: char| c.is_whitespace() || c == '|').unwrap_or(rest.len());
        let path = &rest[..end];
        if let Some(wrong) = path.find(|c: char| c.is_control() || !c.is_ascii() || c == '#' || c == '\\') {
            return Err(self.error_at(self.at + wrong, "a path has no such character", "its percent-encoding"));
        }
        self.at += end;
        Ok(path.to_owned())
    }

    /// Takes ` as NAME` if it follows.
    fn account(&mut self) -> Result<Option<String>, SyntaxError> {
        self.skip_space();
        let Some(rest) = self.remaining().strip_prefix("as ") else { return Ok(None) };
        self.at = self.text.len() - rest.len();
        self.skip_space();
        let name = self.word();
        if name.is_empty() {
            return Err(self.error("the account's name is missing", "an account of the site, such as `as customer`"));
        }
        self.skip_space();
        Ok(Some(name.to_owned()))
    }

    /// Takes `NAME:` if it follows.
    fn service(&mut self) -> Option<String> {
        self.skip_space();
        let before = self.at;
        let name = self.word();
        // A colon without white space after it is a part of the word, as in a URL.
        let follows = self.remaining().strip_prefix(':').is_some_and(|rest| rest.starts_with(char::is_whitespace));
        if name.is_empty() || !follows {
            self.at = before;
            return None;
        }
        self.take(':');
        Some(name.to_owned())
    }

    /// Takes the rest of the text, without white space at its ends.
    fn rest(&mut self, expected: &str) -> Result<&'a str, SyntaxError> {
        self.skip_space();
        let rest = self.remaining().trim_end();
        if rest.is_empty() {
            return Err(self.error("nothing follows", expected));
        }
        self.at = self.text.len();
        Ok(rest)
    }

    fn end(&mut self) -> Result<(), SyntaxError> {
        self.skip_space();
        match self.remaining().chars().next() {
            None => Ok(()),
            Some(c) => Err(self.error(format!("`{c}` does not belong here"), "the end")),
        }
    }

    /// Returns the offset of `rest`, which was read from `start` and trimmed.
    fn offset_of(&self, start: usize, rest: &str) -> usize {
        start + self.text[start..].find(rest).unwrap_or_default()
    }

    pub(super) fn error(&self, problem: impl Into<String>, expected: impl Into<String>) -> SyntaxError {
        self.error_at(self.at, problem, expected)
    }

    pub(super) fn error_at(&self, at: usize, problem: impl Into<String>, expected: impl Into<String>) -> SyntaxError {
        let column = self.text.get(..at).unwrap_or(self.text).chars().count() + 1;
        SyntaxError { column, problem: problem.into(), expected: expected.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> LocatorKind {
        parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).kind
    }

    fn refused(text: &str) -> String {
        parse(text).expect_err(text).to_string()
    }

    #[test]
    fn statements_name_their_database() {
        let LocatorKind::Sql(sql) = kind("sql: SELECT a || ':' FROM t -- (x)") else { panic!("sql") };
        assert_eq!((sql.database, sql.as_rows), (None, false));
        assert_eq!(sql.statement, "SELECT a || ':' FROM t -- (x)");
        for text in ["sql(shop, rows): select 1", "sql(rows,database=shop) : select 1"] {
            let LocatorKind::Sql(sql) = kind(text) else { panic!("sql") };
            assert_eq!(
                (sql.database.as_deref(), sql.as_rows, sql.statement.as_str()),
                (Some("shop"), true, "select 1")
            );
        }
        assert_eq!(parse("sql(timeout=250ms): select 1").map(|it| it.timeout), Ok(Some(Duration::from_millis(250))));
    }

    #[test]
    fn traffic_is_looked_through_by_method_and_path() {
        let LocatorKind::Trace(trace) = kind("trace: POST /basket/*?x=1| jsonpath(all): $.body['a | b']") else {
            panic!("trace")
        };
        assert_eq!(
            (trace.method.as_deref(), trace.pattern.as_str(), trace.all),
            (Some("POST"), "/basket/*?x=1", false)
        );
        assert_eq!(trace.part, TracePart::Json(JsonQuery::Path { path: "$.body['a | b']".to_owned(), all: true }));
        assert!(trace.is_meant("post", "/basket/7", Some("x=1")) && !trace.is_meant("POST", "/basket/7", None));
        let LocatorKind::Trace(any) = kind("trace(all): *") else { panic!("trace") };
        assert_eq!((any.method.as_deref(), any.all, any.part.clone()), (None, true, TracePart::Whole));
        assert!(any.is_meant("GET", "/", Some("q")));
        assert!(matches!(kind("trace: /a | count"), LocatorKind::Trace(TraceLocator { part: TracePart::Count, .. })));
        assert!(refused("trace: post /a").contains("neither a method nor a path"));
        assert!(refused("trace: POST").contains("the path is missing"));
        assert!(refused("trace: /a | css: b").contains("takes nothing of a request"));
        assert!(refused("trace(all): /a | count").contains("lists what `count` counts"));
    }

    #[test]
    fn requests_take_something_of_the_answer() {
        let LocatorKind::Http(http) = kind("http: GET /api/x?a=1 as customer | jq: .a | .b | length") else {
            panic!("http")
        };
        assert_eq!((http.method.as_str(), http.path.as_str()), ("GET", "/api/x?a=1"));
        assert_eq!(http.account.as_deref(), Some("customer"));
        assert_eq!(
            http.selection,
            Selection::Json(JsonQuery::Jq { filter: ".a | .b | length".to_owned(), all: false })
        );
        let LocatorKind::Http(http) = kind("http(stay): /login|status") else { panic!("http") };
        assert_eq!((http.method.as_str(), http.follows, http.selection), ("GET", false, Selection::Status));
        let LocatorKind::Http(http) = kind("http: /x | css(all, attribute=href): ul > li a") else { panic!("http") };
        let expected =
            Selection::Css { selector: "ul > li a".to_owned(), attribute: Some("href".to_owned()), all: true };
        assert_eq!(http.selection, expected);
        let text = r#"http(reads, header="Accept: a, b", header='X-A: "1"', body='{"q": "\n"}'): POST /graphql"#;
        let LocatorKind::Http(http) = kind(text) else { panic!("http") };
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(http.headers, [header("Accept", "a, b"), header("X-A", "\"1\"")]);
        assert_eq!(http.body.as_deref(), Some(r#"{"q": "\n"}"#));
    }

    #[test]
    fn expressions_name_their_page_last() {
        let LocatorKind::Js(js) = kind("js(wait='#a, .b'): x ? ' @ /y' : z @ /p?q as me") else { panic!("js") };
        assert_eq!(js.expression, "x ? ' @ /y' : z");
        assert_eq!(js.page, JsPage::Path("/p?q".to_owned()));
        assert_eq!((js.account.as_deref(), js.wait_for.as_deref()), (Some("me"), Some("#a, .b")));
        let page = |text| match kind(text) {
            LocatorKind::Js(js) => (js.expression, js.page),
            _ => panic!("js"),
        };
        assert_eq!(page("js: 'a @ b'"), ("'a @ b'".to_owned(), JsPage::Given));
        assert_eq!(page("js: document.title @ live"), ("document.title".to_owned(), JsPage::Live));
    }

    #[test]
    fn commands_and_files_name_their_service() {
        let LocatorKind::Exec(exec) = kind("exec: web: cat 'a b' c:") else { panic!("exec") };
        assert_eq!((exec.service.as_deref(), exec.command.len()), (Some("web"), 3));
        let LocatorKind::Exec(exec) = kind("exec: /bin/ls") else { panic!("exec") };
        assert_eq!((exec.service, exec.command), (None, vec!["/bin/ls".to_owned()]));
        let LocatorKind::File(file) = kind("file: web: /a b") else { panic!("file") };
        assert_eq!((file.service.as_deref(), file.path.as_str()), (Some("web"), "/a b"));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let expected =
            "column 1: unknown locator kind `sqll`; expected `sql:`, `http:`, `js:`, `exec:`, `file:` or `trace:`";
        assert_eq!(refused("sqll: x"), expected);
        assert_eq!(refused("sql"), "column 4: what is to be read is missing; expected `:` and what this kind reads");
        assert_eq!(refused("sql: "), "column 6: nothing follows; expected a statement such as `SELECT 1`");
        assert!(
            refused("sql(a, b=1): x")
                .starts_with("column 8: unknown option `b=1`; expected once at most: `timeout`, `rows`")
        );
        assert!(refused("sql(timeout=1h): x").starts_with("column 5: invalid time limit `1h`"));
        assert!(refused("http: GET x").starts_with("column 11: the path is missing"));
        assert!(refused("http: DELETE /x").starts_with("column 7: a `DELETE` writes"));
        assert!(refused("http: POST /x").starts_with("column 7: a `POST` may write"));
        assert!(refused("http: /x | xpath: y").starts_with("column 12: `xpath` takes nothing of an answer"));
        assert!(refused("http: /x as  | status").contains("the account's name is missing"));
        assert!(refused("http: /é").starts_with("column 8: a path has no such character"));
        assert!(refused("http(header='Host: x'): /").starts_with("column 6: the header `Host` cannot be given"));
        assert!(refused("http: /x y").starts_with("column 10: `y` does not belong here"));
        assert!(refused("exec: web: a 'b").starts_with("column 14: this quote is not closed"));
        assert!(refused("file: x").starts_with("column 7: the path is not absolute"));
        assert!(refused("js: x @ live as me").contains("the agent's page has its own session"));
    }
}

//! Redaction of secrets in a HAR: credentials, sessions and passwords.
//!
//! The following are redacted, in both directions: the values of `Authorization`, `Cookie` and similar headers; the
//! value of `Set-Cookie` if scripts cannot read the cookie (`HttpOnly`) or its name is that of a session; the values of
//! fields with a secret's name in URLs, forms (including multipart ones) and JSON; and every response from a URL that
//! issues tokens. Names are kept. Text in HTML pages is kept, so a key that a site prints for its user stays in the
//! HAR.
//!
//! JSON is recognized by its syntax, because servers and scripts send it with any media type, one line at a time, and
//! inside fields of forms and of other JSON. Forms and URLs inside fields are recognized as well. A list of names and
//! values is treated like fields with these names.

use std::borrow::Cow;

use serde_json::Value;

/// The text that replaces a secret.
pub(super) const MARK: &str = "[redacted]";

/// Substrings of the names of secret fields, compared without `_`, `-` and other punctuation.
const SECRET: [&str; 10] =
    ["password", "passwd", "passphrase", "pwd", "secret", "token", "apikey", "credential", "privatekey", "sessionid"];

/// Additional substrings of the names of secret cookies.
const SESSION: [&str; 5] = ["sess", "sid", "auth", "remember", "csrf"];

/// The depth to which texts inside texts are searched, such as JSON in a field of a form in a field of JSON.
const WITHIN_MAX: usize = 4;

/// The names of fields that name an adjacent field, and of the fields that they name.
const NAMING: [&str; 9] = ["name", "key", "field", "id", "label", "code", "property", "attribute", "header"];
const NAMED: [&str; 8] = ["value", "values", "val", "data", "content", "contents", "text", "default"];

/// Secret headers that appear as fields in a list.
const HEADERS: [&str; 4] = ["authorization", "proxyauthorization", "cookie", "setcookie"];

fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

fn is_secret(name: &str) -> bool {
    let name = plain(name);
    name == "pass" || HEADERS.contains(&name.as_str()) || SECRET.iter().any(|part| name.contains(part))
}

/// Returns whether the whole response from a URL is secret: responses that issue tokens, such as Magento's
/// `…/customer/token`, have no field name.
pub(super) fn is_all_secret(url: &str) -> bool {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    path.trim_end_matches('/').rsplit('/').next().is_some_and(|last| plain(last) == "token")
}

pub(super) fn out_of_header(name: &str, value: &str) -> String {
    match name {
        "authorization" | "proxy-authorization" => {
            let scheme = value.split_once(' ').map(|(scheme, _)| scheme);
            scheme.map_or(MARK.to_owned(), |scheme| format!("{scheme} {MARK}"))
        }
        "cookie" => {
            let named = value.split(';').map(|pair| pair.trim().split_once('=').map_or("", |(name, _)| name));
            named.map(|name| format!("{name}={MARK}")).collect::<Vec<_>>().join("; ")
        }
        "set-cookie" => out_of_set_cookie(value).into_owned(),
        "referer" | "location" | "content-location" | "refresh" => out_of_url(value).into_owned(),
        name if is_secret(name) => MARK.to_owned(),
        _ => out_of_value(value, 0).into_owned(),
    }
}

pub(super) fn out_of_set_cookie(cookie: &str) -> Cow<'_, str> {
    let (pair, attributes) = cookie.split_once(';').unwrap_or((cookie, ""));
    let Some((name, _)) = pair.split_once('=') else { return Cow::Borrowed(cookie) };
    let is_hidden = attributes.split(';').any(|attribute| attribute.trim().eq_ignore_ascii_case("httponly"));
    let of_session = SESSION.iter().any(|part| plain(name).contains(part));
    if !is_hidden && !of_session && !is_secret(name) {
        return Cow::Borrowed(cookie);
    }
    Cow::Owned(match attributes {
        "" => format!("{name}={MARK}"),
        attributes => format!("{name}={MARK};{attributes}"),
    })
}

pub(super) fn out_of_url(url: &str) -> Cow<'_, str> {
    out_of_address(url, 0)
}

/// Redacts `//USER:PASSWORD@HOST/PATH;NAME=VALUE?FORM#FORM`, in which the fragment may itself be a URL.
fn out_of_address(url: &str, within: usize) -> Cow<'_, str> {
    let (rest, fragment) = url.split_once('#').map_or((url, None), |(rest, fragment)| (rest, Some(fragment)));
    let (path, query) = rest.split_once('?').map_or((rest, None), |(path, query)| (path, Some(query)));
    let path_out = out_of_path(path);
    let query_out = query.map(|query| out_of_form(query, within));
    let fragment_out = fragment.map(|fragment| match fragment.contains(['?', '/']) && within < WITHIN_MAX {
        true => out_of_address(fragment, within + 1),
        false => out_of_form(fragment, within),
    });
    let parts = [Some(&path_out), query_out.as_ref(), fragment_out.as_ref()];
    if parts.into_iter().flatten().all(|part| matches!(part, Cow::Borrowed(_))) {
        return Cow::Borrowed(url);
    }
    let query = query_out.map(|query| format!("?{query}")).unwrap_or_default();
    let fragment = fragment_out.map(|fragment| format!("#{fragment}")).unwrap_or_default();
    Cow::Owned(format!("{path_out}{query}{fragment}"))
}

/// Redacts the password before the host, and parameters of the path, such as `;jsessionid=`.
fn out_of_path(path: &str) -> Cow<'_, str> {
    let mut out = Cow::Borrowed(path);
    let authority = path.split_once("//").map(|(_, rest)| rest.split('/').next().unwrap_or(rest));
    if let Some((user, password)) = authority.and_then(|authority| authority.rsplit_once('@')?.0.split_once(':')) {
        out = Cow::Owned(path.replacen(&format!("{user}:{password}@"), &format!("{user}:{MARK}@"), 1));
    }
    let is_secret_parameter = |parameter: &str| parameter.split_once('=').is_some_and(|(name, _)| is_secret(name));
    if out.split(['/', ';']).any(is_secret_parameter) {
        let segments = out.split('/').map(|segment| {
            let parameters = segment.split(';').enumerate().map(|(index, parameter)| match parameter.split_once('=') {
                Some((name, _)) if index > 0 && is_secret(name) => format!("{name}={MARK}"),
                _ => parameter.to_owned(),
            });
            parameters.collect::<Vec<_>>().join(";")
        });
        out = Cow::Owned(segments.collect::<Vec<_>>().join("/"));
    }
    out
}

/// Redacts a body of the given media type.
pub(super) fn out_of_body<'a>(text: &'a str, kind: &str) -> Cow<'a, str> {
    let kind = kind.to_ascii_lowercase();
    if let Some(out) = out_of_json(text, 0) {
        return out;
    }
    if kind.contains("x-www-form-urlencoded") {
        return out_of_form(text, 0);
    }
    if kind.starts_with("multipart/") {
        return out_of_parts(text);
    }
    if kind.contains("html") || kind.contains("xml") {
        return Cow::Borrowed(text);
    }
    out_of_lines(text)
}

/// Redacts a value of a header, of a form field or of JSON, which may be JSON, a URL, a form or plain text.
fn out_of_value(value: &str, within: usize) -> Cow<'_, str> {
    if within >= WITHIN_MAX {
        return Cow::Borrowed(value);
    }
    if let Some(out) = out_of_json(value, within) {
        return out;
    }
    if value.contains(char::is_whitespace) || !value.contains(['=', '@']) {
        return Cow::Borrowed(value);
    }
    if value.contains("://") || value.starts_with(['/', '?', '#']) {
        return out_of_address(value, within + 1);
    }
    out_of_form(value, within + 1)
}

/// Redacts JSON; returns `None` for text that is not a JSON object, array or string.
fn out_of_json(text: &str, within: usize) -> Option<Cow<'_, str>> {
    let inner = text.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    if !inner.starts_with(['{', '[', '"']) {
        return None;
    }
    let mut json: Value = serde_json::from_str(inner).ok()?;
    let out = if blank(&mut json, within) { Cow::Owned(json.to_string()) } else { Cow::Borrowed(text) };
    // If an object has the same key twice, the parser keeps only the last value, so the text is searched as well.
    match out_of_literals(&out) {
        Cow::Borrowed(_) => Some(out),
        Cow::Owned(out) => Some(Cow::Owned(out)),
    }
}

/// Redacts JSON one line at a time, as in event streams and logs, and fragments of incomplete JSON, as in scripts and
/// truncated bodies.
fn out_of_lines(text: &str) -> Cow<'_, str> {
    let clean = |line: &str| -> Option<String> {
        let at = line.find(['{', '['])?;
        let (before, json) = line.split_at(at);
        match out_of_json(json, 0)? {
            Cow::Owned(json) => Some(format!("{before}{json}")),
            Cow::Borrowed(_) => None,
        }
    };
    let lines: Vec<Option<String>> = text.split('\n').map(clean).collect();
    let joined = match lines.iter().any(Option::is_some) {
        false => Cow::Borrowed(text),
        true => {
            let lines = text.split('\n').zip(lines).map(|(line, clean)| clean.unwrap_or_else(|| line.to_owned()));
            Cow::Owned(lines.collect::<Vec<_>>().join("\n"))
        }
    };
    match out_of_literals(&joined) {
        Cow::Borrowed(_) => joined,
        Cow::Owned(out) => Cow::Owned(out),
    }
}

/// Redacts the value after a quoted secret name and a colon, regardless of the surrounding text. The value may be a
/// string, possibly with escaped quotes, a number, or a list or object up to its end.
fn out_of_literals(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut done = 0;
    for (colon, _) in text.match_indices(':') {
        if colon < done || !name_before(&text[..colon]).is_some_and(is_secret) {
            continue;
        }
        let after = &text[colon + 1..];
        let value = after.trim_start();
        let found = scalar(value).or_else(|| nested(value));
        if let Some((content, quotes)) = found
            && content != MARK
        {
            let begin = text.len() - value.len();
            out.push_str(&text[done..begin]);
            out.push_str(&format!("{quotes}{MARK}{quotes}"));
            done = begin + content.len() + if value.starts_with(quotes) { 2 * quotes.len() } else { 0 };
        }
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[done..]);
    Cow::Owned(out)
}

/// Returns the quoted name at the end of a text.
fn name_before(text: &str) -> Option<&str> {
    let text = text.trim_end();
    let quote = text.chars().next_back().filter(|c| matches!(c, '"' | '\''))?;
    let text = &text[..text.len() - 1];
    Some(&text[text.rfind(quote)? + 1..])
}

/// Returns the string or number at the start of a text, and its quotes with the backslashes that escape them. A number
/// gets quotes.
fn scalar(text: &str) -> Option<(&str, &str)> {
    let escapes = text.len() - text.trim_start_matches('\\').len();
    let quotes = text.get(..=escapes)?;
    match quotes.chars().next_back()? {
        '"' | '\'' => {
            let inner = &text[quotes.len()..];
            let end = match escapes {
                0 => unescaped_end(inner, quotes),
                _ => inner.find(quotes),
            };
            match end {
                Some(end) => Some((&inner[..end], quotes)),
                // The string is truncated.
                None => Some((text, "")),
            }
        }
        '-' | '0'..='9' if escapes == 0 => {
            let end = text.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '+' | '.'));
            Some((&text[..end.unwrap_or(text.len())], "\""))
        }
        _ => None,
    }
}

/// Returns the list or object at the start of a text if it contains a string or number to redact; returns the whole
/// text if the list or object is truncated.
fn nested(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0_usize;
    let mut open: Option<(usize, char)> = None;
    let mut is_escaped = false;
    let mut has_values = false;
    for (at, c) in text.char_indices() {
        match (open, c) {
            _ if is_escaped => is_escaped = false,
            (Some(_), '\\') => is_escaped = true,
            (Some((start, quote)), c) if c == quote => {
                let is_name = text[at + 1..].trim_start().starts_with(':');
                has_values |= !is_name && &text[start + 1..at] != MARK;
                open = None;
            }
            (Some(_), _) => {}
            (None, '"' | '\'') => open = Some((at, c)),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return has_values.then_some((&text[..=at], "\""));
                }
            }
            (None, _) if depth == 0 => return None,
            (None, c) => has_values |= c.is_ascii_digit(),
        }
    }
    // The list or object is truncated.
    (has_values || open.is_some()).then_some((text, "\""))
}

/// Returns the index at which a text is closed by the given quote.
fn unescaped_end(text: &str, quote: &str) -> Option<usize> {
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if text[at..].starts_with(quote) => return Some(at),
            _ => {}
        }
    }
    None
}

/// Redacts each `name=value` separately, so that pairs without a secret stay exactly as they were written.
fn out_of_form(text: &str, within: usize) -> Cow<'_, str> {
    let decoded = |pair: &str| {
        let decoded = form_urlencoded::parse(pair.as_bytes()).next();
        decoded.map(|(name, value)| (name.into_owned(), value.into_owned())).unwrap_or_default()
    };
    let pairs: Vec<(&str, String, String)> =
        text.split('&').map(|pair| (pair, decoded(pair))).map(|(pair, (name, value))| (pair, name, value)).collect();
    // Lists such as `0[name]=password&0[value]=…`.
    let groups = pairs.iter().filter(|(_, _, value)| is_secret(value));
    let secret_groups: Vec<&str> = groups.filter_map(|(_, name, _)| group(name, &NAMING)).collect();
    let mut has_changed = false;
    let out: Vec<Cow<'_, str>> = pairs
        .iter()
        .map(|(pair, name, value)| {
            let Some((raw_name, _)) = pair.split_once('=') else { return Cow::Borrowed(*pair) };
            let is_named = group(name, &NAMED).is_some_and(|group| secret_groups.contains(&group));
            if is_named || is_secret(name) {
                has_changed = true;
                return Cow::Owned(format!("{raw_name}={MARK}"));
            }
            match out_of_value(value, within) {
                Cow::Borrowed(_) => Cow::Borrowed(*pair),
                Cow::Owned(value) => {
                    has_changed = true;
                    let value: String = form_urlencoded::byte_serialize(value.as_bytes()).collect();
                    Cow::Owned(format!("{raw_name}={value}"))
                }
            }
        })
        .collect();
    if has_changed { Cow::Owned(out.join("&")) } else { Cow::Borrowed(text) }
}

/// Returns the group of a field whose name has one of the endings: the empty string for `name`, `0` for `0[name]` and
/// `0.name`.
fn group<'a>(name: &'a str, endings: &[&str]) -> Option<&'a str> {
    endings.iter().find_map(|ending| {
        let rest = name.strip_suffix(']').unwrap_or(name).strip_suffix(ending)?;
        match rest {
            "" => Some(""),
            rest => rest.strip_suffix(['[', '.']),
        }
    })
}

/// Redacts JSON in place; returns whether anything was redacted.
fn blank(json: &mut Value, within: usize) -> bool {
    match json {
        Value::Object(fields) => {
            let is_naming = |name: &str| NAMING.contains(&plain(name).as_str());
            let names_secret =
                |(name, value): (&String, &Value)| is_naming(name) && value.as_str().is_some_and(is_secret);
            let has_secret = fields.iter().any(names_secret);
            let mut has_changed = false;
            for (name, value) in fields {
                let is_named = has_secret && NAMED.contains(&plain(name).as_str());
                has_changed |= if is_secret(name) || is_named { erase(value) } else { blank(value, within) };
            }
            has_changed
        }
        // An array of two values is treated as a name and its value.
        Value::Array(values) => match values.as_mut_slice() {
            [Value::String(name), value] if is_secret(name) && !value.is_object() => erase(value),
            values => values.iter_mut().fold(false, |has_changed, value| blank(value, within) | has_changed),
        },
        Value::String(text) => match out_of_value(text, within + 1) {
            Cow::Owned(out) => {
                *text = out;
                true
            }
            Cow::Borrowed(_) => false,
        },
        _ => false,
    }
}

/// Redacts a value and everything in it except the names of fields; returns whether there was anything to redact.
fn erase(value: &mut Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) => false,
        Value::Object(fields) => fields.iter_mut().fold(false, |has_changed, (_, value)| erase(value) | has_changed),
        Value::String(_) | Value::Number(_) | Value::Array(_) => {
            *value = Value::from(MARK);
            true
        }
    }
}

/// Redacts a multipart form, whose parts are a head, an empty line and content.
fn out_of_parts(text: &str) -> Cow<'_, str> {
    // The first line is the boundary (RFC 2046 section 5.1.1); some senders end lines with a line feed alone.
    let first = text.split('\n').next().unwrap_or_default();
    let (boundary, end) = first.strip_suffix('\r').map_or((first, "\n"), |boundary| (boundary, "\r\n"));
    if !boundary.starts_with("--") {
        return Cow::Borrowed(text);
    }
    let blank_line = format!("{end}{end}");
    let parts = text.split(boundary).map(|part| {
        let Some((head, content)) = part.split_once(&blank_line) else { return Cow::Borrowed(part) };
        if parameter(head, "name").is_some_and(is_secret) {
            return Cow::Owned(format!("{head}{blank_line}{MARK}{end}"));
        }
        let (content, end) = content.strip_suffix(end).map_or((content, ""), |content| (content, end));
        match out_of_value(content, 0) {
            Cow::Owned(content) => Cow::Owned(format!("{head}{blank_line}{content}{end}")),
            Cow::Borrowed(_) => Cow::Borrowed(part),
        }
    });
    Cow::Owned(parts.collect::<Vec<_>>().join(boundary))
}

/// Returns a parameter of a part's `Content-Disposition`, with or without quotes.
fn parameter<'a>(head: &'a str, wanted: &str) -> Option<&'a str> {
    let parameters = head.split([';', '\r', '\n']).filter_map(|parameter| parameter.trim().split_once('='));
    let mut found = parameters.filter(|(name, _)| name.trim_end_matches('*').trim().eq_ignore_ascii_case(wanted));
    found.next().map(|(_, value)| value.trim().trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_of_heads_are_gone_and_their_names_are_not() {
        assert_eq!(out_of_header("authorization", "Bearer abc"), "Bearer [redacted]");
        assert_eq!(out_of_header("cookie", "sessionid=abc; a=b"), "sessionid=[redacted]; a=[redacted]");
        assert_eq!(out_of_header("x-auth-token", "abc"), MARK);
        assert_eq!(out_of_header("x-csrftoken", "abc"), MARK);
        assert_eq!(out_of_header("accept", "text/html"), "text/html");
        assert_eq!(out_of_header("referer", "http://h/?a=1&token=abc#x"), "http://h/?a=1&token=[redacted]#x");
        assert_eq!(out_of_header("set-cookie", "x=abc; Path=/; HttpOnly"), "x=[redacted]; Path=/; HttpOnly");
        assert_eq!(out_of_set_cookie("PHPSESSID=abc"), "PHPSESSID=[redacted]");
        let messages = "mage-messages=%5B%5D; Path=/";
        assert_eq!(out_of_set_cookie(messages), messages, "a page's own script reads it");
    }

    #[test]
    fn fields_with_a_secrets_name_are_blanked_and_all_else_stays_as_it_was() {
        let form = "application/x-www-form-urlencoded; charset=UTF-8";
        let text = "username=a%20b&login%5Bpassword%5D=x&quantity=2&Passwd=y&bare";
        let clean = "username=a%20b&login%5Bpassword%5D=[redacted]&quantity=2&Passwd=[redacted]&bare";
        assert_eq!(out_of_body(text, form), clean);
        let json = r#"{"user": {"password": "x", "tokens": ["a"]}, "n": 1.50}"#;
        let out = out_of_body(json, "application/json");
        assert_eq!(
            serde_json::from_str::<Value>(&out).expect("JSON"),
            json!({ "user": { "password": MARK, "tokens": MARK }, "n": 1.5 })
        );
        let untouched = r#"{"n": 1.50}"#;
        assert_eq!(out_of_body(untouched, "application/json"), untouched);
        let parts = "--b\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\nA mug\r\n\
            --b\r\nContent-Disposition: form-data; name=\"new_password\"\r\n\r\nx\r\n--b--\r\n";
        assert_eq!(
            out_of_body(parts, "multipart/form-data; boundary=b"),
            parts.replace("\r\n\r\nx\r\n", "\r\n\r\n[redacted]\r\n")
        );
        assert!(is_all_secret("http://h/rest/V1/integration/customer/token?x") && !is_all_secret("http://h/tokens/1"));
    }

    #[test]
    fn json_is_found_whatever_it_is_sent_as() {
        let secret = r#"{"user":{"login":{"password":"hunter2"}}}"#;
        let quoted = json!({ "body": secret, "n": 1 }).to_string();
        let encoded: String = form_urlencoded::byte_serialize(secret.as_bytes()).collect();
        let cases = [
            (secret.to_owned(), "text/plain;charset=UTF-8"),
            (format!("\u{feff} {secret}"), "text/html"),
            (secret.to_owned(), "application/x-www-form-urlencoded"),
            (secret.to_owned(), "x-unknown"),
            (format!(")]}}',\n{secret}"), "application/json"),
            (format!("{{\"a\":1}}\n{secret}\n"), "application/x-ndjson"),
            (format!("event: a\ndata: {secret}\n\n"), "text/event-stream"),
            (format!("callback({secret});"), "text/javascript"),
            (format!("[{secret},"), "application/json"),
            (r#"{"a":1,"password":["x","hunter2"#.to_owned(), "application/json"),
            (r#"data: {"password":{"old":"hunter2","n":[5]},"#.to_owned(), "text/event-stream"),
            (r#"5" and it's {"password":"hunter2"#.to_owned(), "text/plain"),
            (r#"x = '{\"password\": \"hunter2\"}';"#.to_owned(), "text/javascript"),
            ("{'password': 'hunter2', a: \"b\"}".to_owned(), "text/javascript"),
            (r#"{"a":{"password":"hunter2"},"a":1}"#.to_owned(), "application/json"),
            (format!("{}{}{}", r#"{"a":"#.repeat(200), secret, "}".repeat(200)), "application/json"),
            (quoted.clone(), "application/json"),
            (json!([quoted]).to_string(), "text/plain"),
            (format!("state={encoded}&n=1"), "application/x-www-form-urlencoded"),
            (
                format!("--b\r\nContent-Disposition: form-data; name=state\r\n\r\n{secret}\r\n--b--\r\n"),
                "multipart/form-data",
            ),
            (
                "--b\nContent-Disposition: form-data; name=password\n\nhunter2\n--b--\n".to_owned(),
                "multipart/form-data",
            ),
        ];
        for (text, kind) in cases {
            let out = out_of_body(&text, kind);
            assert!(!out.contains("hunter2"), "{kind}: {out}");
            assert!(out.contains("password") && out.contains("redacted"), "{kind}: {out}");
        }
        for text in ["<p>\"password\": \"hunter2\"</p>", "it's 5 o'clock; a=b", "{no json}"] {
            assert_eq!(out_of_body(text, "text/html"), text);
        }
    }

    #[test]
    fn lists_of_names_and_values_are_fields() {
        for json in [
            json!([{ "name": "username", "value": "a" }, { "name": "password", "value": "hunter2" }]),
            json!({ "fields": [{ "key": "api_key", "type": "text", "val": ["hunter2"] }] }),
            json!([["user", "a"], ["password", "hunter2"]]),
            json!({ "headers": [{ "name": "Authorization", "value": "Bearer hunter2" }] }),
            json!({ "credentials": { "of": { "login": "hunter2" } }, "secret": { "list": ["hunter2", 5] } }),
        ] {
            let out = out_of_body(&json.to_string(), "application/json").into_owned();
            assert!(!out.contains("hunter2") && out.contains(MARK), "{out}");
        }
        let form = "application/x-www-form-urlencoded";
        for text in
            ["name=password&value=hunter2", "0%5Bname%5D=password&0%5Bvalue%5D=hunter2&1%5Bname%5D=a&1%5Bvalue%5D=b"]
        {
            let out = out_of_body(text, form);
            assert!(!out.contains("hunter2"), "{out}");
            assert_eq!(out.contains("=b"), text.contains("=b"), "only secrets are removed");
        }
        let kept = json!({ "name": "title", "value": "A mug", "token_expires": true, "password": null }).to_string();
        assert_eq!(out_of_body(&kept, "application/json"), kept);
    }

    #[test]
    fn secrets_of_addresses_are_gone_wherever_they_stand() {
        let cases = [
            ("http://h/cb#access_token=abc&state=1", "http://h/cb#access_token=[redacted]&state=1"),
            ("http://h/#/cb?token=abc", "http://h/#/cb?token=[redacted]"),
            ("http://h/a;jsessionid=abc/b?x=1", "http://h/a;jsessionid=[redacted]/b?x=1"),
            ("http://u:abc@h/", "http://u:[redacted]@h/"),
            ("/a?next=%2Fb%3Ftoken%3Dabc", "/a?next=%2Fb%3Ftoken%3D%5Bredacted%5D"),
            ("/a?q=%7B%22password%22%3A%22abc%22%7D", "/a?q=%7B%22password%22%3A%22%5Bredacted%5D%22%7D"),
        ];
        for (url, clean) in cases {
            assert_eq!(out_of_url(url), clean);
        }
        for url in ["http://h/a?b=c%20d#e", "/a;v=1?x=%7B%22a%22%3A1.50%7D", "/a?mail=a@b.c"] {
            assert_eq!(out_of_url(url), url);
        }
        let json = json!({ "url": "http://h/?token=abc", "data": "a=1&password=abc" }).to_string();
        assert!(!out_of_body(&json, "application/json").contains("abc"));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_looked_through(text in "[ -~\n\u{e9}]{0,200}", json in "[{}\\[\\]\":,a'=&?#\\\\ ]{0,80}") {
            for kind in ["application/json", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
                out_of_body(&text, kind);
                out_of_body(&json, kind);
            }
            out_of_url(&text);
        }
    }
}

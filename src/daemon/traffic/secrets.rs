//! What a HAR must not carry further: credentials, sessions, passwords.
//!
//! Taken out are the values of `Authorization`, `Cookie` and the like; of `Set-Cookie` where scripts cannot read the cookie
//! (`HttpOnly`) or its name is of a session; and of fields with a secret's name in URLs, forms (multipart ones too) and JSON, both
//! ways; and whatever an address that gives tokens answers. Names stay. What a page shows in its HTML stays: a key that a site
//! prints for its user is in there.

use std::borrow::Cow;

use serde_json::Value;

/// What stands in a secret's place.
pub(super) const MARK: &str = "[redacted]";

/// Parts of names of fields that hold secrets, without `_`, `-` and the like.
const SECRET: [&str; 10] =
    ["password", "passwd", "passphrase", "pwd", "secret", "token", "apikey", "credential", "privatekey", "sessionid"];

/// Further such parts of names of cookies.
const SESSION: [&str; 5] = ["sess", "sid", "auth", "remember", "csrf"];

fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

fn is_secret(name: &str) -> bool {
    let name = plain(name);
    name == "pass" || SECRET.iter().any(|part| name.contains(part))
}

/// Whether all that an address answers is a secret: what gives tokens, as Magento's `…/customer/token` does, names no field.
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
        _ => value.to_owned(),
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
    let Some((before, query)) = url.split_once('?') else { return Cow::Borrowed(url) };
    let (query, fragment) = query.split_once('#').map_or((query, None), |(query, fragment)| (query, Some(fragment)));
    match out_of_form(query) {
        Cow::Borrowed(_) => Cow::Borrowed(url),
        Cow::Owned(query) => {
            let fragment = fragment.map(|fragment| format!("#{fragment}")).unwrap_or_default();
            Cow::Owned(format!("{before}?{query}{fragment}"))
        }
    }
}

/// Takes secrets out of a body of the media type.
pub(super) fn out_of_body<'a>(text: &'a str, kind: &str) -> Cow<'a, str> {
    let lower = kind.to_ascii_lowercase();
    if lower.contains("x-www-form-urlencoded") {
        return out_of_form(text);
    }
    if lower.starts_with("multipart/form-data") {
        return out_of_parts(text);
    }
    if lower.contains("json")
        && let Ok(mut json) = serde_json::from_str::<Value>(text)
        && blank(&mut json)
    {
        return Cow::Owned(json.to_string());
    }
    Cow::Borrowed(text)
}

/// Each `name=value` by itself, so that what is no secret stays as it was written.
fn out_of_form(text: &str) -> Cow<'_, str> {
    let name = |pair: &str| form_urlencoded::parse(pair.as_bytes()).next().map(|(name, _)| name.into_owned());
    let is_secret_pair = |pair: &str| pair.contains('=') && name(pair).is_some_and(|name| is_secret(&name));
    if !text.split('&').any(is_secret_pair) {
        return Cow::Borrowed(text);
    }
    let pairs = text.split('&').map(|pair| match pair.split_once('=') {
        Some((name, _)) if is_secret_pair(pair) => format!("{name}={MARK}"),
        _ => pair.to_owned(),
    });
    Cow::Owned(pairs.collect::<Vec<_>>().join("&"))
}

/// Whether anything was taken out.
fn blank(json: &mut Value) -> bool {
    match json {
        Value::Object(fields) => {
            let mut has_changed = false;
            for (name, value) in fields {
                if is_secret(name) && (value.is_string() || value.is_number() || value.is_array()) {
                    *value = Value::from(MARK);
                    has_changed = true;
                } else {
                    has_changed |= blank(value);
                }
            }
            has_changed
        }
        Value::Array(values) => values.iter_mut().fold(false, |has_changed, value| blank(value) | has_changed),
        _ => false,
    }
}

/// The parts of a multipart form: head, empty line, content.
fn out_of_parts(text: &str) -> Cow<'_, str> {
    // The first line is the boundary (RFC 2046 section 5.1.1).
    let Some((boundary, _)) = text.split_once("\r\n").filter(|(boundary, _)| boundary.starts_with("--")) else {
        return Cow::Borrowed(text);
    };
    let parts = text.split(boundary).map(|part| {
        let Some((head, _)) = part.split_once("\r\n\r\n") else { return Cow::Borrowed(part) };
        let name = head.split_once("name=\"").and_then(|(_, name)| Some(name.split_once('"')?.0));
        match name.is_some_and(is_secret) {
            true => Cow::Owned(format!("{head}\r\n\r\n{MARK}\r\n")),
            false => Cow::Borrowed(part),
        }
    });
    Cow::Owned(parts.collect::<Vec<_>>().join(boundary))
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
}

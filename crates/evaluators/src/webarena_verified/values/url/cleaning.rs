//! `url_normalize(url)`: one way to write a URL.

use unicode_normalization::UnicodeNormalization;

use crate::text::python;
use crate::text::urls::{Split, quote, unquote, urlsplit};
use crate::webarena_verified::trouble::Trouble;

/// The URL with scheme and host in lower case, no default port, no dots in the path, and one quoting.
///
/// # Errors
///
/// When Python raises.
pub(super) fn clean(url: &str) -> Result<String, Trouble> {
    if url.is_empty() {
        return Ok(String::new());
    }
    let url = with_scheme(url).replace("#!", "?_escaped_fragment_=");
    let url = url.trim_end_matches(['&', '?', ' ']);
    let split = urlsplit(python::strip(url))?;
    let (user, address) = match split.netloc.find('@') {
        Some(at) => split.netloc.split_at(at + 1),
        None => ("", split.netloc.as_str()),
    };
    let (host, port) = address.split_once(':').unwrap_or((address, ""));
    let user = if user == "@" || user == ":@" { "" } else { user };
    let host = clean_host(host)?;
    let port = clean_port(port, &split.scheme);
    let colon = if port.is_empty() { "" } else { ":" };
    let cleaned = Split {
        netloc: format!("{user}{host}{colon}{port}"),
        path: clean_path(&split.path, &split.scheme),
        query: clean_query(&split.query),
        fragment: requote(&split.fragment, "~="),
        scheme: split.scheme,
    };
    Ok(cleaned.join())
}

/// `https` for what has no scheme; two slashes for the web's schemes, however many there were.
fn with_scheme(url: &str) -> String {
    if url == "-" || (url.starts_with('/') && !url.starts_with("//")) {
        return url.to_owned();
    }
    let has_scheme = url.chars().take(7).any(|c| c == ':');
    if !has_scheme {
        return format!("https://{}", url.trim_start_matches('/'));
    }
    match url.split_once(':') {
        Some((scheme, rest)) if ["http", "https", "ftp", "ftps"].contains(&scheme.to_lowercase().as_str()) => {
            format!("{scheme}://{}", rest.trim_start_matches('/'))
        }
        _ => url.to_owned(),
    }
}

/// A host in ASCII: its labels as they are, without empty ones; but if one of them is no proper label, the whole as it
/// is, and then there may be no empty ones and none beyond 63 letters.
fn clean_host(host: &str) -> Result<String, Trouble> {
    let host = host.to_lowercase();
    let host = host.trim_matches('.');
    if !host.is_ascii() {
        return Ok(in_ascii(host));
    }
    let labels: Vec<&str> = host.split('.').collect();
    let is_proper = |label: &&str| {
        label.len() < 64
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.get(2..4) != Some("--")
    };
    if labels.iter().filter(|label| !label.is_empty()).all(is_proper) {
        return Ok(labels.into_iter().filter(|label| !label.is_empty()).collect::<Vec<_>>().join("."));
    }
    if labels.iter().any(|label| label.is_empty() || label.len() > 63) {
        return Err(Trouble::raised(format!("{host:?} is no host")));
    }
    Ok(host.to_owned())
}

/// A host in Punycode, label by label. One that has none stays as it is: no site has such a host.
fn in_ascii(host: &str) -> String {
    let labels = host.split('.').filter(|label| !label.is_empty()).map(idna::domain_to_ascii);
    labels.collect::<Result<Vec<_>, _>>().map_or_else(|_| host.to_owned(), |labels| labels.join("."))
}

fn clean_port(port: &str, scheme: &str) -> String {
    if port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit()) {
        return port.to_owned();
    }
    let digits = port.trim_start_matches('0');
    let digits = if digits.is_empty() { "0" } else { digits };
    let default = match scheme {
        "ftp" => "21",
        "gopher" => "70",
        "http" | "ws" => "80",
        "https" | "wss" => "443",
        "news" | "nntp" => "119",
        "snews" | "snntp" => "563",
        "telnet" => "23",
        _ => "",
    };
    if digits == default { String::new() } else { digits.to_owned() }
}

fn clean_path(path: &str, scheme: &str) -> String {
    let path = requote(path, "~:/#[]@!$&'()*+,;=");
    let has_dots = ["", "http", "https", "ftp", "file"].contains(&scheme);
    if !has_dots {
        return path;
    }
    let mut output: Vec<&str> = Vec::new();
    let mut last = "";
    for part in path.split('/') {
        last = part;
        match part {
            "" if output.is_empty() => output.push(part),
            "" | "." => {}
            ".." => {
                if output.len() > 1 {
                    output.pop();
                }
            }
            part => output.push(part),
        }
    }
    if ["", ".", ".."].contains(&last) {
        output.push("");
    }
    let path = output.join("/");
    if path.is_empty() && !scheme.is_empty() { "/".to_owned() } else { path }
}

fn clean_query(query: &str) -> String {
    let requote = |text: &str| requote(text, "~:/?[]@!$'()*+,;");
    let pairs = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (key, value) = (requote(key), requote(value));
        if value.is_empty() { key } else { format!("{key}={value}") }
    });
    pairs.collect::<Vec<_>>().join("&")
}

/// Unquoted, composed, and quoted again.
fn requote(text: &str, safe: &str) -> String {
    if text.is_ascii() && !text.contains('%') {
        return quote(text, safe);
    }
    quote(&unquote(text).nfc().collect::<String>(), safe)
}

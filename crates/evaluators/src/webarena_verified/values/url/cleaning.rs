//! `url_normalize(url)`: the normal form of a URL.

use unicode_normalization::UnicodeNormalization;

use crate::text::python;
use crate::text::urls::{Split, quote, unquote, urlsplit};
use crate::webarena_verified::failure::ReadingFailure;

/// Returns the URL with scheme and host in lower case, without default port and dot segments, and with uniform quoting.
///
/// # Errors
///
/// Returns an error if Python raises.
pub(super) fn clean(url: &str) -> Result<String, ReadingFailure> {
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

/// Adds `https` if the scheme is missing, and reduces the slashes behind a web scheme to two.
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

/// Returns a host in ASCII. If all its labels are valid, empty labels are removed. Otherwise the host stays unchanged,
/// and empty labels or labels of more than 63 letters are an error.
fn clean_host(host: &str) -> Result<String, ReadingFailure> {
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
        return Err(ReadingFailure::raised(format!("invalid host {host:?}")));
    }
    Ok(host.to_owned())
}

/// Returns a host in Punycode, label by label. A host that cannot be converted stays unchanged; no site has such a
/// host.
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

/// Unquotes a text, composes it (NFC), and quotes it again.
fn requote(text: &str, safe: &str) -> String {
    if text.is_ascii() && !text.contains('%') {
        return quote(text, safe);
    }
    quote(&unquote(text).nfc().collect::<String>(), safe)
}

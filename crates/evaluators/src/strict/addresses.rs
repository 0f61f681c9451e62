//! `url_match`: compares the components of addresses instead of their characters.

use serde_json::Value;
use url::Url;

use crate::webarena::{EpisodeContext, Eval, OR, TaskError};
use arenad_verdict::{Check, Verdict};

/// Judges the agent's last URL.
pub(super) fn url_match(
    context: &EpisodeContext,
    eval: &Eval,
    default_rule: &'static str,
) -> Result<Vec<Check>, TaskError> {
    let rule = eval.url_note.as_deref().unwrap_or(default_rule);
    let is_exact = match rule {
        "EXACT" => true,
        "GOLD in PRED" => false,
        _ => return Err(TaskError::new("url_note", "\"EXACT\" or \"GOLD in PRED\"", &rule.into())),
    };
    let expected = Value::from(eval.reference_url.as_str());
    if eval.reference_url.trim().is_empty() {
        let reason = "an empty reference is part of every URL";
        return Ok(vec![Check::open("url_match", rule, "url", expected, Verdict::Unsupported, reason)]);
    }
    let found = NormalUrl::of(&context.url);
    let has_host = |reference: &str| NormalUrl::of(reference).host.is_some();
    if eval.origins.is_empty() && !eval.reference_url.split(OR).all(has_host) {
        let reason = "the reference names no host, and the task does not say where its site is";
        return Ok(vec![Check::open("url_match", rule, "url", expected, Verdict::Unsupported, reason)]);
    }
    let fits = |reference: &str| {
        let reference = NormalUrl::of(reference);
        let is_there =
            reference.host.is_some() || eval.origins.iter().any(|origin| NormalUrl::of(origin).host == found.host);
        if !is_there {
            return false;
        }
        if is_exact { found.is(&reference) } else { found.is_within(&reference) }
    };
    let fits = eval.reference_url.split(OR).any(fits);
    Ok(vec![Check::of("url_match", rule, "url", expected, context.url.as_str().into(), fits)])
}

/// The components of a URL, normalised.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NormalUrl {
    /// Host and port; `None` if a reference is only a path.
    host: Option<String>,
    /// The path without percent-encoding.
    path: String,
    segments: Vec<String>,
    query: Vec<(String, String)>,
    fragment: Option<String>,
}

impl NormalUrl {
    pub(crate) fn of(text: &str) -> Self {
        let text = text.trim();
        let parsed = Url::parse(text).ok().filter(Url::has_host);
        let host = parsed.as_ref().map(|url| {
            let host = url.host_str().unwrap_or_default();
            // These names denote the same machine.
            let host = if ["localhost", "[::1]"].contains(&host) { "127.0.0.1" } else { host };
            format!("{host}:{}", url.port_or_known_default().unwrap_or_default())
        });
        let (mut path, mut segments, mut query, mut fragment) = (String::new(), Vec::new(), Vec::new(), None);
        // A reference without a host is resolved against a placeholder host.
        let base = Url::parse("http://any.invalid/").ok();
        if let Some(url) = parsed.or_else(|| base.and_then(|base| base.join(text).ok())) {
            path = decoded(url.path());
            // An encoded slash does not separate segments.
            segments = url.path().split('/').filter(|segment| !segment.is_empty()).map(decoded).collect();
            let pairs = url.query_pairs().filter(|(_, value)| !value.is_empty());
            query = pairs.map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
            fragment = url.fragment().filter(|fragment| !fragment.is_empty()).map(str::to_owned);
        }
        query.sort();
        Self { host, path, segments, query, fragment }
    }

    /// Whether this address equals the reference. The order of parameters is ignored; the fragment counts only if the
    /// reference has one.
    pub(super) fn is(&self, reference: &Self) -> bool {
        self.is_there(reference) && self.segments == reference.segments && self.query == reference.query
    }

    /// Whether this address is the reference or below it. Its path has to begin with all segments of the reference, and
    /// it has to have every parameter of the reference without a contradicting value. The root of a site has no
    /// addresses below it.
    fn is_within(&self, reference: &Self) -> bool {
        let begins = match reference.segments[..] {
            [] => self.segments.is_empty(),
            _ => self.segments.starts_with(&reference.segments),
        };
        self.is_there(reference) && begins && self.has_query(reference)
    }

    /// Whether this address has the reference's host, its path if that matters, and all of its parameters, none with a
    /// contradicting value.
    pub(crate) fn is_at(&self, reference: &Self, path_matters: bool) -> bool {
        let is_path = !path_matters || self.segments == reference.segments;
        self.is_there(reference) && is_path && self.has_query(reference)
    }

    /// The path without percent-encoding.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    fn has_query(&self, reference: &Self) -> bool {
        let has = reference.query.iter().all(|pair| self.query.contains(pair));
        let contradicts = |(name, value): &(String, String)| {
            let is_list = name.ends_with("[]");
            let mut of_name = reference.query.iter().filter(|(other, _)| other == name).peekable();
            !is_list && of_name.peek().is_some() && !of_name.any(|(_, other)| other == value)
        };
        has && !self.query.iter().any(contradicts)
    }

    fn is_there(&self, reference: &Self) -> bool {
        let is_host = reference.host.is_none() || self.host == reference.host;
        is_host && (reference.fragment.is_none() || self.fragment == reference.fragment)
    }
}

/// Removes the percent-encoding from a part of a URL.
fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_compared_part_by_part() {
        for (reference, url) in [
            ("http://h:7770/f/books/81", "http://h:7770/f/books/81/a-title"),
            ("http://h/", "http://h"),
            ("http://localhost:7770/a", "http://127.0.0.1:7770/a/"),
            ("f/gaming", "http://h/f/gaming"),
            ("http://h/a?x=1&y=2", "http://h/a?y=2&z=3&x=1"),
            ("http://h/a?l%5B%5D=b%20c", "http://h/a/?l[]=b+c&l[]=d"),
            ("http://h/a%20b", "http://h/a b"),
        ] {
            assert!(NormalUrl::of(url).is_within(&NormalUrl::of(reference)), "{reference}: {url}");
        }
        for (reference, url) in [
            ("http://h/f/books/81", "http://h/f/books/8137"),
            ("http://h/viewed", "http://h/viewedasdf"),
            ("http://localhost:7770/", "http://xlocalhost:77701/"),
            ("http://h/a", "http://h.evil/a"),
            ("http://h/a", "http://h@evil/a"),
            ("http://h/a", "http://evil/?u=http://h/a"),
            ("http://h/", "http://h/anything"),
            ("http://h/a?x=1", "http://h/a?x=1&x=2"),
            ("http://h/a?l[]=b&l[]=c", "http://h/a?l[]=b"),
            ("http://h/a#payment", "http://h/a"),
            ("http://h/a", "about:blank"),
            ("http://h/a", ""),
            ("http://h/dashboard/todos", "http://h/dashboard%2Ftodos"),
        ] {
            assert!(!NormalUrl::of(url).is_within(&NormalUrl::of(reference)), "{reference}: {url}");
        }
        assert!(NormalUrl::of("http://h/a/?y=2&x=1#top").is(&NormalUrl::of("http://h/a?x=1&y=2")));
        assert!(!NormalUrl::of("http://h/a/b").is(&NormalUrl::of("http://h/a")));
        assert!(!NormalUrl::of("http://h/a?x=1&y=2").is(&NormalUrl::of("http://h/a?x=1")));
    }
}

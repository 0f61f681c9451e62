//! The addresses of sites, by the placeholders that task files use for them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use arenad_model::site::Environment;
use arenad_verdict::Urls;

/// Returns the placeholders of an environment: those of sites with a variable, and of the URLs that sites export.
#[must_use]
pub fn of_environment(environment: &Environment) -> Urls {
    let sites = environment.sites.iter();
    let own = sites.clone().filter_map(|site| Some((site.public.variable.clone()?, site.url(&environment.host))));
    let exported = sites.flat_map(|site| site.exports.iter().cloned()).filter(|(_, value)| value.starts_with("http"));
    own.chain(exported).map(|(variable, url)| (placeholder(&variable), vec![url])).collect()
}

/// Returns the placeholder of a variable, such as `__SHOPPING__` for `SHOPPING` or `shopping`.
#[must_use]
pub fn placeholder(variable: &str) -> String {
    format!("__{}__", variable.trim_matches('_').to_ascii_uppercase())
}

/// Returns whether a task belongs to the sites at these addresses: `urls` must include all placeholders that the task
/// mentions, except those in `given`. If no such placeholder remains, the task must contain one of the addresses
/// itself.
#[must_use]
pub fn speaks_of(task: &Value, urls: &Urls, given: &Urls) -> bool {
    let mut mentioned = BTreeSet::new();
    let mut names_one = false;
    each_text(task, &mut |text| {
        mentioned.extend(placeholders(text).map(str::to_owned));
        names_one |= urls.values().flatten().any(|url| has_address(text, url));
    });
    let mut open = mentioned.iter().filter(|name| !given.contains_key(*name)).peekable();
    match open.peek() {
        Some(_) => open.all(|name| urls.contains_key(name)),
        None => names_one,
    }
}

/// Returns the placeholders that a task mentions.
pub(super) fn mentioned(task: &Value) -> impl Iterator<Item = String> + use<> {
    let mut mentioned = BTreeSet::new();
    each_text(task, &mut |text| mentioned.extend(placeholders(text).map(str::to_owned)));
    mentioned.into_iter()
}

/// Returns the placeholders in a text, such as `__SHOPPING__`.
fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    let is_name = |part: &&str| {
        let inner = part.starts_with(|c: char| c.is_ascii_uppercase()) && !part.ends_with('_');
        inner && part.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
    };
    let starts = text.match_indices("__").map(|(start, _)| start);
    starts.filter_map(move |start| {
        let rest = &text[start + 2..];
        let end = rest.find("__")?;
        is_name(&&rest[..end]).then(|| &text[start..start + 2 + end + 2])
    })
}

/// Returns whether a text contains the address, as opposed to a longer one such as that of a port with more digits.
fn has_address(text: &str, url: &str) -> bool {
    text.match_indices(url).any(|(start, _)| !text[start + url.len()..].starts_with(|c: char| c.is_ascii_digit()))
}

fn each_text(value: &Value, look: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => look(text),
        Value::Array(items) => items.iter().for_each(|item| each_text(item, look)),
        Value::Object(fields) => fields.values().for_each(|field| each_text(field, look)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns the first address of each placeholder, for benchmarks that support only one.
#[must_use]
pub(super) fn first(urls: &Urls) -> BTreeMap<String, String> {
    urls.iter().filter_map(|(name, urls)| Some((name.clone(), urls.first()?.clone()))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn urls(pairs: &[(&str, &str)]) -> Urls {
        pairs.iter().map(|(name, url)| (placeholder(name), vec![(*url).to_owned()])).collect()
    }

    #[test]
    fn a_task_is_of_the_environment_that_has_all_its_sites() {
        let shop = urls(&[("SHOPPING", "http://h:77")]);
        let both = urls(&[("SHOPPING", "http://h:77"), ("SHOPPING_ADMIN", "http://h:78/admin")]);
        let task = json!({
            "start_url": "__SHOPPING__ |AND| __SHOPPING_ADMIN__",
            "eval": { "reference_url": "__SHOPPING__/a__b__/c" },
        });
        assert!(speaks_of(&task, &both, &Urls::new()));
        assert!(!speaks_of(&task, &shop, &Urls::new()));
        assert!(speaks_of(&task, &shop, &urls(&[("SHOPPING_ADMIN", "http://elsewhere")])), "one is given");
        let rendered = json!({ "start_url": "http://h:77/a" });
        assert!(speaks_of(&rendered, &shop, &Urls::new()));
        assert!(!speaks_of(&json!({ "start_url": "http://h:7770/a" }), &shop, &Urls::new()), "another port");
        assert!(!speaks_of(&json!({ "intent": "How many?" }), &both, &Urls::new()), "of none");
    }
}

//! Where the sites are, by the placeholders that task files have for them.

use std::collections::BTreeMap;

use crate::domain::site::Environment;

/// Addresses by placeholder, such as `http://localhost:7770` for `__SHOPPING__`. The first is where the site is; others are
/// where else it may have been when traffic was recorded.
pub type Urls = BTreeMap<String, Vec<String>>;

/// Those of an environment: of the sites that have a variable, and of what they export as URLs.
#[must_use]
pub fn of_environment(environment: &Environment) -> Urls {
    let sites = environment.sites.iter();
    let own = sites.clone().filter_map(|site| Some((site.public.variable.clone()?, site.url(&environment.host))));
    let exported = sites.flat_map(|site| site.exports.iter().cloned()).filter(|(_, value)| value.starts_with("http"));
    own.chain(exported).map(|(variable, url)| (placeholder(&variable), vec![url])).collect()
}

/// `__SHOPPING__` for `SHOPPING` or `shopping`.
#[must_use]
pub fn placeholder(variable: &str) -> String {
    format!("__{}__", variable.trim_matches('_').to_ascii_uppercase())
}

/// The first address of each, for benchmarks that know one.
#[must_use]
pub(super) fn first(urls: &Urls) -> BTreeMap<String, String> {
    urls.iter().filter_map(|(name, urls)| Some((name.clone(), urls.first()?.clone()))).collect()
}

//! The pages on which agents start and end.

use super::TaskContext;
use crate::raw::tasks::{RawStart, RawUrl};
use crate::raw::values::{Entries, text_of};
use crate::scope::Scope;
use crate::validate::steps::path;
use arenad_model::site::Site;
use arenad_model::task::{AddressCriterion, PathRule};

/// Returns the URL at which the agent starts.
pub(super) fn start(context: &TaskContext<'_>, scope: Scope<'_>, raw: Option<&RawStart>) -> Option<String> {
    let scope = scope.key("start");
    let named = raw.and_then(|raw| raw.site.as_deref());
    let site = match named {
        Some(name) => context.site(scope, Some(name))?,
        None => context.sites.first()?,
    };
    let Some(given) = raw.and_then(|raw| raw.path.as_deref()) else {
        return Some(site.url(&context.environment.host));
    };
    path(scope.key("path"), given);
    Some(format!("{}{given}", origin(context, site)))
}

fn origin(context: &TaskContext<'_>, site: &Site) -> String {
    format!("http://{}:{}", context.environment.host, site.public.port)
}

/// Reads the page on which the agent must end.
pub(super) fn address(context: &TaskContext<'_>, scope: Scope<'_>, raw: &RawUrl) -> Option<AddressCriterion> {
    let site = context.site(scope, raw.site.as_deref());
    let rule = match (&raw.path, &raw.path_matches) {
        (Some(_), Some(_)) => {
            let draft = scope.error("conflict", "both `path` and `path_matches` are given");
            draft.help("remove one of the two").report();
            return None;
        }
        (Some(given), None) => {
            path(scope.key("path"), given);
            if given.contains('?') {
                let draft = scope.key("path").error("value", "the path has a query");
                draft.help("name the parameters that matter under `query`").report();
            }
            PathRule::Is(given.clone())
        }
        (None, Some(pattern)) => {
            super::matcher::pattern(scope.key("path_matches"), pattern)?;
            PathRule::Matches(pattern.clone())
        }
        (None, None) => PathRule::Any,
    };
    let query = raw.query.iter().flat_map(Entries::iter);
    let query: Vec<(String, String)> = query.map(|(name, value)| (name.to_owned(), text_of(&value.0))).collect();
    for (name, value) in &query {
        if value.is_empty() {
            let draft = scope.key("query").key(name).error("value", format!("no value is given for `{name}`"));
            draft.expected("a text or a number; parameters without value do not count").report();
        }
    }
    let is_bare = rule == PathRule::Any && query.is_empty();
    if is_bare && !["path", "path_matches", "query"].iter().any(|key| scope.has(key) || scope.is_misspelt(key)) {
        let draft = scope.error("missing-key", "nothing says where on the site the agent has to end");
        draft.expected("`path`, `path_matches` or `query`").report();
    }
    let site = site?;
    Some(AddressCriterion { site: site.name.clone(), origin: origin(context, site), path: rule, query })
}

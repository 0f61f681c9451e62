//! The helpers of a site.

use super::site_context::SiteContext;
use super::support::filled;
use crate::problems::{did_you_mean, quoted_list};
use crate::raw::environment::RawSite;
use crate::raw::helpers::RawHelper;
use crate::scope::Scope;
use arenad_model::helper::Helper;
use arenad_model::locator::{self, JsonQuery, Locator, LocatorKind, Selection, TracePart};
use arenad_model::login::Template;
use arenad_queries::{jq, json_path};

/// The placeholders that the text of `gives` may use.
const PLACES: [&str; 2] = ["value", "origin"];

pub(super) fn helpers(site: &SiteContext<'_>, scope: Scope<'_>, raw: &RawSite) -> Vec<Helper> {
    let helpers = raw.helpers.iter().flat_map(|helpers| helpers.iter());
    helpers.filter_map(|(name, helper)| one(site, scope.key(name), name, helper.good()?, raw)).collect()
}

fn one(site: &SiteContext<'_>, scope: Scope<'_>, name: &str, helper: &RawHelper, raw: &RawSite) -> Option<Helper> {
    if !is_name(name, |c| c.is_ascii_alphanumeric()) {
        scope
            .key_error("value", format!("invalid helper name `{name}`"))
            .expected("letters, digits and `_`, as tasks call it")
            .report();
    }
    let parameters = helper.parameters.clone().unwrap_or_default();
    for (index, parameter) in parameters.iter().enumerate() {
        if !is_name(parameter, |c| c.is_ascii_lowercase()) {
            let draft =
                scope.key("parameters").index(index).error("value", format!("invalid parameter name `{parameter}`"));
            draft.expected("lower-case letters and `_`, such as `sku`").report();
        }
    }
    let text = helper.locator.as_ref()?;
    let locator_scope = scope.key("locator");
    let locator = match locator::parse(text) {
        Ok(locator) => locator,
        Err(error) => {
            let draft =
                locator_scope.error("value", format!("invalid locator: column {}: {}", error.column, error.problem));
            draft.expected(error.expected).report();
            return None;
        }
    };
    let databases: Vec<&str> = raw.databases.iter().flat_map(|databases| databases.keys()).collect();
    let known = LocatorNames {
        accounts: raw.accounts.iter().flat_map(|accounts| accounts.keys()).collect(),
        has_default: databases.len() == 1,
        databases,
        services: site.names.iter().map(|name| name.as_str()).collect(),
    };
    known_names(locator_scope, &locator, &known);
    readable_selection(locator_scope, &locator);
    if let Some(gives) = &helper.gives {
        filled(scope.key("gives"), gives, "what is given");
        for unknown in Template::new(gives).places().filter(|place| !PLACES.contains(place)) {
            scope
                .key("gives")
                .error("value", format!("nothing is known to put in for `{{{unknown}}}`"))
                .expected("`{value}` or `{origin}`")
                .report();
        }
    }
    Some(Helper {
        name: name.to_owned(),
        parameters,
        locator,
        text: text.clone(),
        gives: helper.gives.as_ref().map(Template::new),
        otherwise: helper.otherwise.clone(),
    })
}

fn is_name(name: &str, is_fine: fn(char) -> bool) -> bool {
    !name.is_empty() && name.chars().all(|c| is_fine(c) || c == '_')
}

/// The names that a locator may use on a site.
pub(super) struct LocatorNames<'a> {
    pub(super) accounts: Vec<&'a str>,
    pub(super) databases: Vec<&'a str>,
    pub(super) services: Vec<&'a str>,
    /// Whether a statement may omit the database.
    pub(super) has_default: bool,
}

/// Checks that the databases, services and accounts of a locator exist on the site.
pub(super) fn known_names(scope: Scope<'_>, locator: &Locator, known: &LocatorNames<'_>) {
    let check = |what: &str, name: Option<&String>, known: &[&str]| {
        let Some(name) = name.filter(|name| !known.contains(&name.as_str())) else { return };
        let expected = if known.is_empty() {
            "none: the site has none".to_owned()
        } else {
            format!("one of {}", quoted_list(known.iter().copied()))
        };
        scope
            .error("value", format!("the site has no {what} `{name}`"))
            .expected(expected)
            .maybe_help(did_you_mean(name, known.iter().copied()))
            .report();
    };
    match &locator.kind {
        LocatorKind::Sql(sql) => {
            check("database", sql.database.as_ref(), &known.databases);
            if sql.database.is_none() && !known.has_default {
                let message =
                    format!("the statement does not say which of {} databases it means", known.databases.len());
                let draft = scope.error("value", message);
                draft.expected("`sql(NAME): …`, with a name under the site's `databases`").report();
            }
        }
        LocatorKind::Http(http) => check("account", http.account.as_ref(), &known.accounts),
        LocatorKind::Js(js) => check("account", js.account.as_ref(), &known.accounts),
        LocatorKind::Exec(exec) => check("service", exec.service.as_ref(), &known.services),
        LocatorKind::File(file) => check("service", file.service.as_ref(), &known.services),
        LocatorKind::Trace(_) => {}
    }
}

/// Checks that the selector, path or filter of a locator can be parsed. A selector or path with placeholders is checked
/// when they are replaced.
pub(super) fn readable_selection(scope: Scope<'_>, locator: &Locator) {
    let reason = match &locator.kind {
        LocatorKind::Http(http) => match &http.selection {
            Selection::Css { selector, .. } if !selector.contains('{') => {
                scraper::Selector::parse(selector).err().map(|error| format!("invalid CSS selector: {error}"))
            }
            Selection::Json(query) => unreadable(query),
            _ => None,
        },
        LocatorKind::Trace(trace) => match &trace.part {
            TracePart::Json(query) => unreadable(query),
            TracePart::Whole | TracePart::Count => None,
        },
        _ => None,
    };
    if let Some(reason) = reason {
        scope.error("value", reason).report();
    }
}

/// Returns the reason why a query cannot be parsed.
fn unreadable(query: &JsonQuery) -> Option<String> {
    match query {
        JsonQuery::Path { path, .. } if !path.contains('{') => {
            json_path::parse(path).err().map(|reason| format!("invalid JSONPath: {reason}"))
        }
        JsonQuery::Path { .. } => None,
        // A placeholder is also a valid term of jq: an object with that field.
        JsonQuery::Jq { filter, .. } => jq::check(filter).err().map(|reason| format!("invalid jq filter: {reason}")),
    }
}

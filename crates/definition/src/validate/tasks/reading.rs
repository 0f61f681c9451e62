//! The locators and helper calls of tasks.

use super::TaskContext;
use crate::problems::{did_you_mean, quoted_list};
use crate::scope::Scope;
use crate::validate::helpers::{LocatorNames, known_names, readable_selection};
use crate::validate::steps::path;
use arenad_model::helper::HelperCall;
use arenad_model::locator::{self, Arguments, JsPage, Locator, LocatorKind, SyntaxError, TraceLocator};
use arenad_model::login::Template;
use arenad_model::site::{RecordedRequests, Site};
use arenad_model::task::{Reading, ReadingRecipe};

/// Prefix of a helper's call.
const HELPER: &str = "helper:";

/// The parts of one reading.
pub(super) struct What<'a> {
    pub(super) site: Option<&'a str>,
    pub(super) text: &'a str,
    pub(super) account: Option<&'a str>,
    pub(super) page: Option<&'a str>,
    /// Whether captured values may be used, because the reading takes place after the capture.
    pub(super) may_use_captured: bool,
}

/// Reads a locator or helper call, whose names must exist on the site.
pub(super) fn reading(context: &TaskContext<'_>, scope: Scope<'_>, what: &What<'_>) -> Option<Reading> {
    let site = context.site(scope, what.site);
    let text_scope = scope.key("locate");
    let recipe = match what.text.trim_start().strip_prefix(HELPER) {
        Some(call) => helper(text_scope, site?, call)?,
        None => ReadingRecipe::Locator(locator::parse(what.text).map_err(|error| misread(text_scope, &error)).ok()?),
    };
    let site = site?;
    let locator = match &recipe {
        ReadingRecipe::Locator(locator) => {
            known_names(text_scope, locator, &known(site));
            readable_selection(text_scope, locator);
            locator
        }
        ReadingRecipe::Helper { helper, .. } => &helper.locator,
    };
    if let LocatorKind::Trace(trace) = &locator.kind {
        is_recorded(text_scope, trace, site);
    }
    if let Some(name) = what.account {
        account(scope.key("account"), site, name);
        takes_account(scope.key("account"), locator);
    }
    if let Some(page) = what.page {
        path(scope.key("page"), page);
        let wants_page = matches!(&locator.kind, LocatorKind::Js(js) if js.page == JsPage::Given);
        if !wants_page {
            let draft = scope.key("page").key_error("conflict", "the locator takes no page");
            draft.help("remove it: it is for `js:` locators that name no page themselves").report();
        }
    }
    let (arguments, captured) = places(context, text_scope, what, &recipe);
    Some(Reading {
        site: site.name.clone(),
        text: what.text.trim().to_owned(),
        recipe,
        arguments,
        captured,
        page: what.page.map(str::to_owned),
        account: what.account.map(str::to_owned),
    })
}

/// Checks that the gateway records the requests that a `trace:` locator reads.
fn is_recorded(scope: Scope<'_>, trace: &TraceLocator, site: &Site) {
    let (lacks, expected) = match site.public.recorded {
        RecordedRequests::All => return,
        RecordedRequests::Writes if trace.is_of_writes() => return,
        RecordedRequests::Writes => ("records no GET, HEAD and OPTIONS", "`public: { record: all }`"),
        RecordedRequests::Nothing if trace.is_of_writes() => {
            ("records nothing", "`public: { record: writes }`, or `all`,")
        }
        RecordedRequests::Nothing => ("records nothing", "`public: { record: all }`"),
    };
    let draft =
        scope.error("value", format!("the gateway {lacks} of {}, so it never knows of such requests", site.name));
    draft.expected(format!("{expected} of the site in the environment file")).report();
}

fn misread(scope: Scope<'_>, error: &SyntaxError) {
    let draft = scope.error("value", format!("invalid locator: column {}: {}", error.column, error.problem));
    draft.expected(error.expected.clone()).report();
}

fn helper(scope: Scope<'_>, site: &Site, call: &str) -> Option<ReadingRecipe> {
    let call = HelperCall::parse(call).map_err(|error| misread(scope, &error)).ok()?;
    let names = || site.helpers.iter().map(|helper| helper.name.as_str());
    let Some(helper) = site.helpers.iter().find(|helper| helper.name == call.name) else {
        let expected = match site.helpers.is_empty() {
            true => "none: the site has none".to_owned(),
            false => format!("one of {}", quoted_list(names())),
        };
        scope
            .error("value", format!("{} has no helper `{}`", site.name, call.name))
            .expected(expected)
            .maybe_help(did_you_mean(&call.name, names()))
            .report();
        return None;
    };
    if let Err(error) = helper.arguments(&call.arguments) {
        scope.error("value", error.to_string()).report();
        return None;
    }
    Some(ReadingRecipe::Helper { helper: Box::new(helper.clone()), arguments: call.arguments })
}

fn known(site: &Site) -> LocatorNames<'_> {
    LocatorNames {
        accounts: site.accounts.iter().map(|account| account.name.as_str()).collect(),
        databases: site.databases.keys().map(String::as_str).collect(),
        services: site.services.iter().map(|service| service.name.as_str()).collect(),
        has_default: site.only_database().is_some(),
    }
}

/// Checks that a site has an account.
pub(super) fn account(scope: Scope<'_>, site: &Site, name: &str) {
    let names = || site.accounts.iter().map(|account| account.name.as_str());
    if names().any(|known| known == name) {
        return;
    }
    let expected = match site.accounts.is_empty() {
        true => "none: the site has none".to_owned(),
        false => format!("one of {}", quoted_list(names())),
    };
    scope
        .error("value", format!("{} has no account `{name}`", site.name))
        .expected(expected)
        .maybe_help(did_you_mean(name, names()))
        .report();
}

/// Checks that the locator can use an account, and does not name one itself.
fn takes_account(scope: Scope<'_>, locator: &Locator) {
    let own = match &locator.kind {
        LocatorKind::Http(http) => http.account.as_ref(),
        LocatorKind::Js(js) if js.page != JsPage::Live => js.account.as_ref(),
        LocatorKind::Js(_)
        | LocatorKind::Sql(_)
        | LocatorKind::Exec(_)
        | LocatorKind::File(_)
        | LocatorKind::Trace(_) => {
            let draft = scope.key_error("conflict", "the locator looks as no account of the site");
            draft.help("remove it: it is for `http:` and `js:` locators").report();
            return;
        }
    };
    if let Some(own) = own {
        let draft = scope.key_error("conflict", format!("the locator says already that it looks as `{own}`"));
        draft.help("remove one of the two").report();
    }
}

/// Returns the arguments of a locator or call: its variables, and the names of captured values.
fn places(
    context: &TaskContext<'_>,
    scope: Scope<'_>,
    what: &What<'_>,
    recipe: &ReadingRecipe,
) -> (Arguments, Vec<String>) {
    // Scripts and filters have braces of their own; in statements and in the texts of a call, braces are placeholders
    // only.
    let (texts, are_strict) = match recipe {
        ReadingRecipe::Helper { arguments, .. } => (arguments.iter().map(String::as_str).collect(), true),
        ReadingRecipe::Locator(Locator { kind: LocatorKind::Sql(sql), .. }) => (vec![sql.statement.as_str()], true),
        ReadingRecipe::Locator(_) => (vec![what.text], false),
    };
    let mut arguments = Arguments::default();
    let mut captured: Vec<String> = Vec::new();
    for text in texts {
        for name in Template::new(text).places() {
            if let Some(value) = context.variables.get(name) {
                if arguments.get(name).is_none() {
                    arguments.0.push((name.to_owned(), value.to_owned()));
                }
            } else if context.captured.contains(&name) && what.may_use_captured {
                context.capture(scope, name);
                if !captured.iter().any(|known| known == name) {
                    captured.push(name.to_owned());
                }
            } else if context.captured.contains(&name) {
                let draft = scope.error("unknown-value", format!("`{{{name}}}` is captured at the same time"));
                draft.help("ask for both in one statement").report();
            } else if are_strict {
                unknown_place(context, scope, name);
            }
        }
    }
    (arguments, captured)
}

fn unknown_place(context: &TaskContext<'_>, scope: Scope<'_>, name: &str) {
    let variables = context.variables.0.iter().map(|(name, _)| name.as_str());
    let mut known: Vec<&str> = variables.chain(context.captured.iter().copied()).collect();
    known.sort_unstable();
    known.dedup();
    let expected = match known.as_slice() {
        [] => "no place: the task has neither variables nor captured values".to_owned(),
        known => format!("one of {}", quoted_list(known.iter().copied())),
    };
    scope
        .error("variable", format!("nothing is known to put in for `{{{name}}}`"))
        .expected(expected)
        .maybe_help(did_you_mean(name, known.iter().copied()))
        .report();
}

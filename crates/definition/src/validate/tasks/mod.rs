//! The tasks of a valid environment.

mod criterion;
mod matcher;
mod place;
mod reading;

use std::cell::RefCell;
use std::collections::BTreeSet;

use self::criterion::criterion;
use self::reading::reading;
use super::support::filled;
use crate::problems::{did_you_mean, quoted_list};
use crate::raw::tasks::{RawTask, RawTaskKind};
use crate::raw::values::{Entries, text_of};
use crate::scope::Scope;
use crate::tasks::is_name;
use arenad_model::ids::{SNAPSHOT_NAME_RULE, SiteName, is_snapshot_name};
use arenad_model::locator::Arguments;
use arenad_model::site::{Environment, Site};
use arenad_model::task::{Criterion, CriterionKind, Reading, Task, TaskKind};

/// The context that the parts of a task share.
struct TaskContext<'a> {
    environment: &'a Environment,
    /// Sites of the task.
    sites: Vec<&'a Site>,
    variables: Arguments,
    /// Names of the captured values.
    captured: Vec<&'a str>,
    /// Names of the captured values that were used.
    used: RefCell<BTreeSet<String>>,
}

impl<'a> TaskContext<'a> {
    /// Returns the site with the given name, which must be one of the task's. Without a name, returns the task's only
    /// site.
    fn site(&self, scope: Scope<'_>, name: Option<&str>) -> Option<&'a Site> {
        let names = || self.sites.iter().map(|site| site.name.as_str());
        match (name, self.sites.as_slice()) {
            (None, [only]) => Some(only),
            (None, []) => None,
            (None, _) if scope.is_misspelt("site") => None,
            (None, _) => {
                let draft = scope.error("missing-key", "nothing says which of the task's sites is meant");
                draft.expected(format!("`site`: one of {}", quoted_list(names()))).report();
                None
            }
            (Some(name), sites) => {
                let found = sites.iter().find(|site| site.name.as_str() == name).copied();
                // If `sites` itself is invalid, that problem has been reported.
                if found.is_none() && !sites.is_empty() {
                    scope
                        .key("site")
                        .error("unknown-site", format!("the task has no site `{name}`"))
                        .expected(format!("one of {}", quoted_list(names())))
                        .maybe_help(did_you_mean(name, names()))
                        .report();
                }
                found
            }
        }
    }

    /// Records the use of a captured value, and reports it if it does not exist.
    fn capture(&self, scope: Scope<'_>, name: &str) {
        self.used.borrow_mut().insert(name.to_owned());
        if self.captured.contains(&name) {
            return;
        }
        let expected = match self.captured.as_slice() {
            [] => "none: the task captures none; `before` does".to_owned(),
            known => format!("one of {}", quoted_list(known.iter().copied())),
        };
        scope
            .error("unknown-value", format!("no value `{name}` is captured when an episode begins"))
            .expected(expected)
            .maybe_help(did_you_mean(name, self.captured.iter().copied()))
            .report();
    }
}

/// Reads a task. Returns `None` if it is invalid. `number` counts the tasks of a template.
pub(crate) fn task(
    scope: Scope<'_>,
    raw: &RawTask,
    number: Option<usize>,
    variables: Arguments,
    environment: &Environment,
) -> Option<Task> {
    let sites = sites(scope.key("sites"), &raw.sites, environment);
    let before = raw.before.iter().flat_map(Entries::iter);
    let context = TaskContext {
        environment,
        sites,
        variables,
        captured: before.map(|(name, _)| name).collect(),
        used: RefCell::default(),
    };
    filled(scope.key("intent"), &raw.intent, "the intent");
    let before = captures(&context, scope.key("before"), raw);
    let check = scope.key("check");
    let criterion = criterion(&context, check, &raw.check);
    for name in context.captured.iter().filter(|name| !context.used.borrow().contains(**name)) {
        let draft = scope.key("before").key(name).key_error("unused", format!("nothing uses the value `{name}`"));
        let help =
            format!("compare with it by `difference` or `same_as`, write `{{{name}}}` in a locator, or remove it");
        draft.help(help).report();
    }
    let kind = kind(raw.kind);
    if let Some(criterion) = &criterion {
        fits_kind(check, kind, criterion);
    }
    let name = text_of(&raw.name.0);
    Some(Task {
        name: number.map_or_else(|| name.clone(), |number| format!("{name}.{number}")),
        kind,
        intent: raw.intent.clone(),
        accounts: accounts(&context, scope.key("accounts"), raw.accounts.as_ref()),
        start: place::start(&context, scope, raw.start.as_ref())?,
        snapshots: snapshots(&context, scope.key("snapshots"), raw.snapshots.as_ref()),
        before,
        criterion: criterion?,
        sites: context.sites.iter().map(|site| site.name.clone()).collect(),
    })
}

fn kind(raw: RawTaskKind) -> TaskKind {
    match raw {
        RawTaskKind::Information => TaskKind::Information,
        RawTaskKind::Navigation => TaskKind::Navigation,
        RawTaskKind::Content => TaskKind::Content,
        RawTaskKind::Unachievable => TaskKind::Unachievable,
    }
}

fn sites<'a>(scope: Scope<'_>, names: &[String], environment: &'a Environment) -> Vec<&'a Site> {
    let known = || environment.sites.iter().map(|site| site.name.as_str());
    let mut found: Vec<&Site> = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let scope = scope.index(index);
        match environment.sites.iter().find(|site| site.name.as_str() == name) {
            Some(site) if found.iter().any(|known| known.name == site.name) => {
                scope
                    .error("duplicate-name", format!("`{name}` stands here twice"))
                    .help("remove one of the two")
                    .report();
            }
            Some(site) => found.push(site),
            None => scope
                .error("unknown-site", format!("the environment {} has no site `{name}`", environment.name))
                .expected(format!("one of {}", quoted_list(known())))
                .maybe_help(did_you_mean(name, known()))
                .report(),
        }
    }
    found
}

/// Returns the entries of a mapping whose keys are sites of the task.
fn by_site<'a, 'c>(
    context: &'c TaskContext<'a>,
    scope: Scope<'c>,
    raw: Option<&'c Entries<String>>,
) -> impl Iterator<Item = (&'a Site, &'c str, Scope<'c>)> {
    raw.into_iter().flat_map(Entries::iter).filter_map(move |(name, value)| {
        let scope = scope.key(name);
        let names = || context.sites.iter().map(|site| site.name.as_str());
        let found = context.sites.iter().find(|site| site.name.as_str() == name);
        if found.is_none() && !context.sites.is_empty() {
            scope
                .key_error("unknown-site", format!("the task has no site `{name}`"))
                .expected(format!("one of {}", quoted_list(names())))
                .maybe_help(did_you_mean(name, names()))
                .report();
        }
        found.map(|site| (*site, value.as_str(), scope))
    })
}

fn accounts(context: &TaskContext<'_>, scope: Scope<'_>, raw: Option<&Entries<String>>) -> Vec<(SiteName, String)> {
    by_site(context, scope, raw)
        .map(|(site, name, scope)| {
            reading::account(scope, site, name);
            (site.name.clone(), name.to_owned())
        })
        .collect()
}

fn snapshots(context: &TaskContext<'_>, scope: Scope<'_>, raw: Option<&Entries<String>>) -> Vec<(SiteName, String)> {
    by_site(context, scope, raw)
        .map(|(site, name, scope)| {
            filled(scope, name, "the snapshot's name");
            if !name.trim().is_empty() && !is_snapshot_name(name) {
                let draft = scope.error("value", format!("invalid snapshot name {name:?}"));
                draft.expected(SNAPSHOT_NAME_RULE).report();
            }
            if name == "baseline" {
                let draft = scope.error("value", "the baseline has no name");
                draft.help("remove it: sites start from their baseline").report();
            }
            (site.name.clone(), name.to_owned())
        })
        .collect()
}

fn captures(context: &TaskContext<'_>, scope: Scope<'_>, raw: &RawTask) -> Vec<(String, Reading)> {
    let mut captures = Vec::new();
    for (name, raw) in raw.before.iter().flat_map(Entries::iter) {
        let scope = scope.key(name);
        if !is_name(name) {
            let draft = scope.key_error("name", format!("invalid name `{name}` for a captured value"));
            draft.expected("lower-case letters and `_`, such as `orders`").report();
        }
        if context.variables.get(name).is_some() {
            scope.key_error("duplicate-name", format!("`{name}` is a variable of the task as well")).report();
            context.used.borrow_mut().insert(name.to_owned());
        }
        let Some(raw) = raw.good() else { continue };
        let what = reading::What {
            site: raw.site.as_deref(),
            text: &raw.locate,
            account: raw.account.as_deref(),
            page: raw.page.as_deref(),
            may_use_captured: false,
        };
        captures.extend(reading(context, scope, &what).map(|reading| (name.to_owned(), reading)));
    }
    captures
}

/// Checks that the conditions include one that a task of the kind requires.
fn fits_kind(scope: Scope<'_>, kind: TaskKind, criterion: &Criterion) {
    let leaves = criterion.leaves();
    let has = |is: fn(&CriterionKind) -> bool| leaves.iter().any(|leaf| is(&leaf.kind));
    let unachievable = has(|kind| matches!(kind, CriterionKind::Unachievable));
    let (fits, expected) = match kind {
        TaskKind::Information => (has(|kind| matches!(kind, CriterionKind::Answer(_))), "an `answer`"),
        TaskKind::Navigation => (has(|kind| matches!(kind, CriterionKind::Url(_))), "a `url`"),
        TaskKind::Content => (has(|kind| matches!(kind, CriterionKind::Site(..))), "a `locate` with a matcher"),
        TaskKind::Unachievable => (unachievable, "`answer: { unachievable: true }`"),
    };
    if unachievable && kind != TaskKind::Unachievable {
        let draft = scope.key_error("kind", "`unachievable` is asked for, and the task's kind is another");
        draft.help("set `kind: unachievable`").report();
    } else if !fits {
        let draft = scope.key_error("kind", format!("the check does not look at what {} tasks are about", kind.name()));
        draft.expected(format!("{expected} somewhere in it")).report();
    }
}

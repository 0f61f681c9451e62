//! The conditions of a task: combinations and leaves.

use super::TaskContext;
use super::matcher::{self, MatchSubject};
use super::place::address;
use super::reading::{What, reading};
use crate::raw::tasks::{RawAnswer, RawCheck};
use crate::raw::values::FilePart;
use crate::scope::Scope;
use crate::validate::steps::exactly_one;
use crate::validate::support::{filled, one_line};
use arenad_model::task::{Criterion, CriterionKind};

/// The keys of the kinds of checks; a check has exactly one of them.
const KINDS: [&str; 6] = ["all", "any", "not", "locate", "answer", "url"];

/// The keys that belong to `locate` only.
const OF_LOCATE: [&str; 3] = ["site", "account", "page"];

/// Reads a condition. Returns `None` if it is invalid.
pub(super) fn criterion(context: &TaskContext<'_>, scope: Scope<'_>, raw: &RawCheck) -> Option<Criterion> {
    if let Some(name) = &raw.name {
        filled(scope.key("name"), name, "the name");
        one_line(scope.key("name"), name, "the name");
    }
    let kind = exactly_one(scope, &KINDS, "the check")?;
    if kind != "locate" {
        misplaced(scope, kind);
    }
    let kind = match kind {
        "all" => CriterionKind::All(several(context, scope.key("all"), raw.all.as_deref()?)?),
        "any" => CriterionKind::Any(several(context, scope.key("any"), raw.any.as_deref()?)?),
        "not" => {
            let inner = criterion(context, scope.key("not"), raw.not.as_ref()?.good()?)?;
            if matches!(inner.kind, CriterionKind::Not(_)) {
                let draft = scope.key("not").key("not").key_error("value", "`not` of `not` says nothing");
                draft.help("remove both").report();
            }
            CriterionKind::Not(Box::new(inner))
        }
        "answer" => answer(context, scope.key("answer"), raw.answer.as_ref()?.good()?)?,
        "url" => CriterionKind::Url(address(context, scope.key("url"), raw.url.as_ref()?.good()?)?),
        _ => {
            let what = What {
                site: raw.site.as_deref(),
                text: raw.locate.as_deref()?,
                account: raw.account.as_deref(),
                page: raw.page.as_deref(),
                may_use_captured: true,
            };
            let reading = reading(context, scope, &what);
            let rule = matcher::rule(context, scope, raw.matcher(), MatchSubject::Site, &[]);
            CriterionKind::Site(Box::new(reading?), rule?)
        }
    };
    Some(Criterion { name: raw.name.clone(), kind })
}

fn several(context: &TaskContext<'_>, scope: Scope<'_>, raw: &[FilePart<RawCheck>]) -> Option<Vec<Criterion>> {
    if raw.is_empty() {
        let draft = scope.key_error("value", "nothing stands here, which decides nothing");
        draft.expected("at least one check").report();
        return None;
    }
    let parts: Vec<Option<Criterion>> =
        raw.iter().enumerate().map(|(index, part)| criterion(context, scope.index(index), part.good()?)).collect();
    for (index, part) in parts.iter().enumerate().skip(1) {
        let is_same =
            |other: &Option<Criterion>| matches!((part, other), (Some(part), Some(other)) if part.kind == other.kind);
        if let Some(first) = parts[..index].iter().position(is_same) {
            let message = format!("this is the same as entry {}, so it decides nothing", first + 1);
            scope.index(index).error("unreachable", message).help("remove one of the two").report();
        }
    }
    parts.into_iter().collect()
}

fn answer(context: &TaskContext<'_>, scope: Scope<'_>, raw: &RawAnswer) -> Option<CriterionKind> {
    if raw.unachievable == Some(false) {
        let draft = scope.key("unachievable").error("value", "`unachievable: false` says nothing");
        draft.help("put `answer: { unachievable: true }` under `not`").report();
        return None;
    }
    let rule = matcher::rule(context, scope, raw.matcher(), MatchSubject::Answer, &["unachievable"]);
    match raw.unachievable {
        Some(_) => Some(CriterionKind::Unachievable),
        None => rule.map(CriterionKind::Answer),
    }
}

/// Reports keys of a mapping that have no meaning with its kind.
fn misplaced(scope: Scope<'_>, kind: &str) {
    let keys = OF_LOCATE.iter().chain(&matcher::KINDS).chain(&matcher::EXTRAS);
    for key in keys.filter(|key| scope.has(key)) {
        let belongs_inside = match kind {
            "answer" => !OF_LOCATE.contains(key),
            "url" => *key == "site",
            _ => false,
        };
        let help = match belongs_inside {
            true => format!("move it into `{kind}`"),
            false => "remove it: it belongs to `locate`".to_owned(),
        };
        let draft = scope.key(key).key_error("conflict", format!("`{key}` means nothing beside `{kind}`"));
        draft.help(help).report();
    }
}

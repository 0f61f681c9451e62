//! Paths outside the stores that may differ after a rewind.

use globset::GlobBuilder;

use super::site_context::SiteContext;
use super::support::{filled, one_line};
use crate::raw::environment::RawSite;
use crate::raw::stores::{RawOnRewind, RawScratch};
use crate::scope::Scope;
use crate::tree::excerpt;
use arenad_model::coverage::{Scratch, ScratchPlace};
use arenad_model::store::{Store, is_within};

/// Reads the section `scratch` of a site, in file order.
pub(super) fn scratch(site: &SiteContext<'_>, scope: Scope<'_>, raw: &RawSite, stores: &[Store]) -> Vec<Scratch> {
    let section = scope.key("scratch");
    let Some(parts) = &raw.scratch else { return Vec::new() };
    if raw.writers.is_none() && !scope.is_misspelt("writers") {
        section
            .key_error("conflict", "scratch is named, but no `writers`, without which the site is never rewound")
            .help("declare what stops and starts the site's writers, or remove `scratch`")
            .report();
    }
    let mut found: Vec<(Scope<'_>, Scratch)> = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let scope = section.index(index);
        let Some(scratch) = part.good().and_then(|raw| one(site, scope, raw, stores)) else { continue };
        let same =
            |(_, other): &&(Scope<'_>, Scratch)| other.service == scratch.service && path(other) == path(&scratch);
        if let Some((first, _)) = found.iter().find(same) {
            scope
                .key("path")
                .error("duplicate-key", format!("`{}` is named twice", excerpt(path(&scratch))))
                .related(scope.source(), first.key("path").span(), "the first one")
                .report();
        }
        found.push((scope, scratch));
    }
    found.into_iter().map(|(_, scratch)| scratch).collect()
}

fn path(scratch: &Scratch) -> &str {
    match &scratch.place {
        ScratchPlace::Differs(path) | ScratchPlace::Emptied(path) => path,
    }
}

fn one(site: &SiteContext<'_>, scope: Scope<'_>, raw: &RawScratch, stores: &[Store]) -> Option<Scratch> {
    let reason = raw.reason.clone().unwrap_or_default();
    if raw.reason.is_some() {
        filled(scope.key("reason"), &reason, "the reason");
        one_line(scope.key("reason"), &reason, "the reason");
    }
    let service = site.service(scope.key("service"), raw.service.as_deref());
    let place = scope.key("path");
    let path = raw.path.trim_end_matches('/');
    let is_clean = path.starts_with('/')
        && !path.contains('\0')
        && !path.split('/').skip(1).any(|part| part.is_empty() || part == "." || part == "..");
    if !is_clean || path.split('/').skip(1).all(|part| part.chars().all(|letter| letter == '*')) {
        place
            .error("value", format!("`{}` is not a place for scratch", excerpt(&raw.path)))
            .expected("an absolute path or pattern that names a part of the container, such as `/var/log/nginx/*.log`")
            .report();
        return None;
    }
    if let Err(error) = GlobBuilder::new(path).literal_separator(true).build() {
        place
            .error("value", format!("invalid file pattern `{}`: {}", excerpt(path), error.kind()))
            .expected("a pattern such as `/var/log/nginx/*.log`")
            .report();
        return None;
    }
    let is_pattern = path.contains(['*', '?', '[', '{']);
    let empties = raw.rewind == Some(RawOnRewind::Empty);
    if empties && is_pattern {
        scope
            .key("rewind")
            .error("conflict", format!("`{}` is a pattern, and only a folder can be emptied", excerpt(path)))
            .help("name each folder by its path, or remove `rewind: empty`")
            .report();
        return None;
    }
    let service = service?;
    for store in stores.iter().filter(|store| store.service == service) {
        let message = if is_within(path, &store.path) {
            format!("`{}` lies in the store `{}`", excerpt(path), store.name)
        } else if !is_pattern && is_within(&store.path, path) {
            format!("the store `{}` lies in `{}`", store.name, excerpt(path))
        } else {
            continue;
        };
        place
            .error("conflict", message)
            .help("what of a store does not count is named by its `volatile`; scratch lies outside of the stores")
            .report();
        return None;
    }
    let place = match empties {
        true => ScratchPlace::Emptied(path.to_owned()),
        false => ScratchPlace::Differs(path.to_owned()),
    };
    Some(Scratch { service, place, reason })
}

//! Resolves names to the sites and environments that are up. Every command that takes such a name resolves it here: a
//! name that several environments have is rejected, and the error states how to qualify it.

use super::failure::CommandFailure;
use arenad_api::{EnvironmentStatus, SiteStatus, Status};
use arenad_model::site::{Environment, Site};
use arenad_model::slot_name::SlotName;

/// The minimum similarity of two words for a suggestion (Jaro-Winkler, from 0 to 1).
const ALIKE: f64 = 0.8;

/// Returns the named sites by environment; without names, all environments. A site is named `SITE` or
/// `ENVIRONMENT/SITE`. A first name that is an environment and not a site determines the environment of the other
/// names, as in `arenad up mini shopping`; alone it means all of its sites, and no site is listed.
pub fn sites(
    status: &Status,
    environment: Option<&str>,
    names: &[String],
) -> Result<Vec<(String, Vec<String>)>, CommandFailure> {
    choose(status, environment, names, |environment, name| {
        let found = site(status, environment, name)?;
        Ok((found, found.name.clone()))
    })
}

/// Returns the named slots by environment, in the form in which the API takes them: `SITE`, or `SITE:NUMBER` for a
/// certain slot. Names are resolved as by [`sites`].
pub fn slots(
    status: &Status,
    environment: Option<&str>,
    names: &[String],
) -> Result<Vec<(String, Vec<String>)>, CommandFailure> {
    choose(status, environment, names, |environment, name| slot(status, environment, name))
}

/// Returns the slots of an environment to compare: the named ones, or slot 1 of each site that declares stores.
pub fn to_compare(status: &Status, environment: &str, names: Vec<String>) -> Vec<String> {
    if !names.is_empty() {
        return names;
    }
    let sites = status.environments.iter().filter(|known| known.name == environment).flat_map(|known| &known.sites);
    sites.filter(|site| site.has_stores).map(|site| site.name.clone()).collect()
}

/// Returns the site of a slot that exists, and the name of the slot in the API. A name without a number is that of the
/// site.
pub fn slot<'a>(
    status: &'a Status,
    environment: Option<&str>,
    name: &str,
) -> Result<(&'a SiteStatus, String), CommandFailure> {
    let SlotName { site: of, number } = SlotName::parse(name).map_err(CommandFailure::usage)?;
    let found = site(status, environment, of)?;
    let known: Vec<u32> = match found.slots.as_slice() {
        [] => vec![1],
        slots => slots.iter().map(|slot| slot.number).collect(),
    };
    if let Some(number) = number.filter(|number| !known.contains(number)) {
        let names: Vec<String> = known.iter().map(|number| format!("{}:{number}", found.name)).collect();
        let failure = CommandFailure::usage(format!("{} has no slot {number}", found.name));
        return Err(failure.hint(format!("name one that exists: {}", names.join(", "))));
    }
    Ok((found, SlotName { site: &found.name, number }.to_string()))
}

/// Returns the names that `resolve` finds by environment.
fn choose<'a>(
    status: &'a Status,
    environment: Option<&str>,
    names: &[String],
    resolve: impl Fn(Option<&str>, &str) -> Result<(&'a SiteStatus, String), CommandFailure>,
) -> Result<Vec<(String, Vec<String>)>, CommandFailure> {
    let (environment, names) = scoped(status, environment, names);
    if names.is_empty() {
        return match environment {
            Some(name) => Ok(vec![(named(status, name)?.name.clone(), Vec::new())]),
            None if status.environments.is_empty() => Err(nothing_is_up()),
            None => Ok(status.environments.iter().map(|known| (known.name.clone(), Vec::new())).collect()),
        };
    }
    let mut chosen: Vec<(String, Vec<String>)> = Vec::new();
    for name in names {
        let (site, name) = resolve(environment, name)?;
        match chosen.iter_mut().find(|(known, _)| *known == site.environment) {
            Some((_, names)) if names.contains(&name) => {}
            Some((_, names)) => names.push(name),
            None => chosen.push((site.environment.clone(), vec![name])),
        }
    }
    Ok(chosen)
}

/// Removes from a status all environments and sites that are not selected; without names and environment, it removes
/// none.
pub fn restrict(status: &mut Status, environment: Option<&str>, names: &[String]) -> Result<(), CommandFailure> {
    if environment.is_none() && names.is_empty() {
        return Ok(());
    }
    let chosen = sites(status, environment, names)?;
    status.environments.retain(|known| chosen.iter().any(|(name, _)| *name == known.name));
    for known in &mut status.environments {
        let named = chosen.iter().find(|(name, _)| *name == known.name).map(|(_, sites)| sites.as_slice());
        let named = named.unwrap_or_default();
        known.sites.retain(|site| named.is_empty() || named.contains(&site.name));
    }
    Ok(())
}

/// Returns whether the names include a site, regardless of whether it is up.
pub fn is_named(site: (&str, &str), environment: Option<&str>, names: &[String]) -> bool {
    let is_of = |known: &str| known == site.0;
    let is_it = |name: &String| match name.split_once('/') {
        Some((of, name)) => is_of(of) && name == site.1,
        None => name == site.1 || is_of(name),
    };
    environment.is_none_or(is_of) && (names.is_empty() || names.iter().any(is_it))
}

fn scoped<'a>(status: &Status, environment: Option<&'a str>, names: &'a [String]) -> (Option<&'a str>, &'a [String]) {
    let is_environment = |name: &String| status.environments.iter().any(|known| known.name == *name);
    let is_site =
        |name: &String| status.environments.iter().flat_map(|known| &known.sites).any(|site| site.name == *name);
    match names.split_first() {
        Some((first, rest)) if environment.is_none() && is_environment(first) && !is_site(first) => (Some(first), rest),
        _ => (environment, names),
    }
}

/// Splits a name into an environment, if either form gives one, and a site.
pub fn split<'a>(environment: Option<&'a str>, name: &'a str) -> Result<(Option<&'a str>, &'a str), CommandFailure> {
    match (name.split_once('/'), environment) {
        (None, environment) => Ok((environment, name)),
        (Some((of, site)), None) => Ok((Some(of), site)),
        (Some((of, site)), Some(environment)) if of == environment => Ok((Some(of), site)),
        (Some((of, _)), Some(environment)) => {
            let failure = CommandFailure::usage(format!(
                "`{name}` names the environment {of}, but --environment is {environment}"
            ));
            Err(failure.hint("name the environment once"))
        }
    }
}

/// Returns the site of that name that is up: `SITE` or `ENVIRONMENT/SITE`.
pub fn site<'a>(status: &'a Status, environment: Option<&str>, name: &str) -> Result<&'a SiteStatus, CommandFailure> {
    let (environment, name) = split(environment, name)?;
    let all = || status.environments.iter().flat_map(|known| &known.sites);
    let found: Vec<&SiteStatus> = match environment {
        Some(environment) => named(status, environment)?.sites.iter().filter(|site| site.name == name).collect(),
        None => all().filter(|site| site.name == name).collect(),
    };
    match found.as_slice() {
        [site] => Ok(site),
        [] => Err(unknown_site(status, environment, name)),
        several => {
            let candidates: Vec<&str> = several.iter().map(|site| site.environment.as_str()).collect();
            Err(ambiguous(&format!("`{name}` is a site of {}", candidates.join(" and ")), &candidates))
        }
    }
}

/// Returns the environment of that name, or the only one that is up.
pub fn environment<'a>(status: &'a Status, name: Option<&str>) -> Result<&'a EnvironmentStatus, CommandFailure> {
    match (name, status.environments.as_slice()) {
        (Some(name), _) => named(status, name),
        (None, [only]) => Ok(only),
        (None, []) => Err(nothing_is_up()),
        (None, several) => {
            let candidates: Vec<&str> = several.iter().map(|known| known.name.as_str()).collect();
            Err(ambiguous(&format!("several environments are up: {}", candidates.join(", ")), &candidates))
        }
    }
}

/// Returns the failure for a name that several environments have.
pub fn ambiguous(message: &str, candidates: &[&str]) -> CommandFailure {
    let options: Vec<String> = candidates.iter().map(|name| format!("--environment {name}")).collect();
    CommandFailure::usage(message).hint(format!("name one with {}", options.join(" or ")))
}

fn nothing_is_up() -> CommandFailure {
    CommandFailure::usage("nothing is up").hint("`arenad up` brings sites up")
}

fn named<'a>(status: &'a Status, name: &str) -> Result<&'a EnvironmentStatus, CommandFailure> {
    if let Some(found) = status.environments.iter().find(|known| known.name == name) {
        return Ok(found);
    }
    let known: Vec<&str> = status.environments.iter().map(|known| known.name.as_str()).collect();
    let failure = CommandFailure::usage(format!("environment `{name}` is not up"));
    Err(match (close(&known, name), known.is_empty()) {
        (Some(close), _) => failure.hint(format!("did you mean `{close}`?")),
        (None, true) => failure.hint("`arenad up` brings sites up"),
        (None, false) => failure.hint(format!("name one that is up: {}", known.join(", "))),
    })
}

fn unknown_site(status: &Status, environment: Option<&str>, name: &str) -> CommandFailure {
    let is_meant = |known: &&EnvironmentStatus| environment.is_none_or(|wanted| wanted == known.name);
    let sites = status.environments.iter().filter(is_meant).flat_map(|known| &known.sites);
    let known: Vec<&str> = sites.map(|site| site.name.as_str()).collect();
    let failure = match environment {
        Some(environment) => CommandFailure::usage(format!("site `{name}` is not up in {environment}")),
        None => CommandFailure::usage(format!("site `{name}` is not up")),
    };
    match close(&known, name) {
        _ if status.environments.iter().any(|environment| environment.name == name) => failure.hint(format!(
            "`{name}` is an environment; name one of its sites, such as `{name}/{}`",
            first(status, name)
        )),
        Some(close) => failure.hint(format!("did you mean `{close}`?")),
        None if known.is_empty() => failure.hint("`arenad up` brings sites up"),
        None => failure.hint(format!("name one that is up: {}", known.join(", "))),
    }
}

/// Returns a site of an environment, for use in an example.
fn first<'a>(status: &'a Status, environment: &str) -> &'a str {
    let known = status.environments.iter().find(|known| known.name == environment);
    known.and_then(|known| known.sites.first()).map_or("SITE", |site| site.name.as_str())
}

/// Returns a site of a definition. `how` ends the hint that lists the sites: it says how one is chosen.
pub fn defined<'a>(environment: &'a Environment, name: &str, how: &str) -> Result<&'a Site, CommandFailure> {
    environment.sites.iter().find(|site| site.name.as_str() == name).ok_or_else(|| {
        let known: Vec<&str> = environment.sites.iter().map(|site| site.name.as_str()).collect();
        let failure = CommandFailure::usage(format!("{} has no site `{name}`", environment.name));
        match close(&known, name) {
            Some(close) => failure.hint(format!("did you mean `{close}`?")),
            None => failure.hint(format!("choose one of {}{how}", known.join(", "))),
        }
    })
}

pub(super) fn close<'a>(known: &[&'a str], name: &str) -> Option<&'a str> {
    let likeness = |known: &str| strsim::jaro_winkler(known, name);
    let alike = known.iter().copied().filter(|known| likeness(known) > ALIKE);
    alike.max_by(|a, b| likeness(a).total_cmp(&likeness(b)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status() -> Status {
        let site = |environment: &str, name: &str| {
            json!({
                "environment": environment, "name": name, "title": name, "url": "http://localhost:1",
                "instance": format!("{environment}/{name}/1"), "state": "ready", "since": "", "stage": null,
                "waiting_for": null, "reason": null, "hint": null, "generation": 1, "snapshot": null,
                "last_passed": null, "containers": [], "has_stores": false, "conditions": [], "last_reset": null,
                "standbys": { "wanted": 0, "members": [] },
            })
        };
        let environment = |name: &str, sites: &[&str]| {
            let sites: Vec<_> = sites.iter().map(|other| site(name, other)).collect();
            json!({ "name": name, "description": "", "host": "localhost", "sites": sites })
        };
        let status = json!({
            "daemon": {
                "version": "0", "pid": 1, "installation": "i", "state_dir": "/s", "background": true, "started_at": "",
                "engine": "unix:///e",
            },
            "conditions": [],
            "environments": [environment("mini", &["shopping", "homepage"]), environment("tracker", &["homepage"])],
        });
        serde_json::from_value(status).expect("a status")
    }

    fn said(failure: CommandFailure) -> String {
        assert_eq!(failure.code, crate::cli::exit_code::USAGE);
        format!("{} | {}", failure.error, failure.hint.unwrap_or_default())
    }

    #[test]
    fn a_name_of_two_environments_is_refused_and_each_can_be_named() {
        let status = status();
        let names = ["homepage".to_owned()];
        let refused = said(sites(&status, None, &names).expect_err("ambiguous"));
        assert_eq!(
            refused,
            "`homepage` is a site of mini and tracker | name one with --environment mini or --environment tracker"
        );
        let chosen = sites(&status, Some("tracker"), &names).expect("one");
        assert_eq!(chosen, [("tracker".to_owned(), names.to_vec())]);
        assert_eq!(site(&status, None, "shopping").expect("one").environment, "mini");
        assert!(said(environment(&status, None).expect_err("two")).contains("mini, tracker"));
    }

    #[test]
    fn what_is_not_up_is_named_for_what_it_is() {
        let status = status();
        let of = |environment: Option<&str>, name: &str| said(site(&status, environment, name).expect_err("unknown"));
        assert_eq!(of(Some("minni"), "shopping"), "environment `minni` is not up | did you mean `mini`?");
        assert_eq!(of(None, "shoping"), "site `shoping` is not up | did you mean `shopping`?");
        assert_eq!(of(Some("tracker"), "wiki"), "site `wiki` is not up in tracker | name one that is up: homepage");
        assert!(of(None, "mini").contains("such as `mini/shopping`"));
        assert!(of(Some("tracker"), "mini/shopping").contains("name the environment once"));
    }

    #[test]
    fn sites_and_environments_are_named_in_the_same_ways_everywhere() {
        let status = status();
        let of = |environment: Option<&str>, names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let chosen = sites(&status, environment, &names).expect("known");
            let shown = chosen.iter().map(|(environment, sites)| format!("{environment}:{}", sites.join(",")));
            shown.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(of(None, &["tracker/homepage", "shopping"]), "tracker:homepage mini:shopping");
        assert_eq!(of(Some("tracker"), &["tracker/homepage"]), "tracker:homepage");
        assert_eq!(of(None, &["mini"]), "mini:");
        assert_eq!(of(None, &["mini", "homepage"]), "mini:homepage");
        assert_eq!(of(None, &[]), "mini: tracker:");
    }

    #[test]
    fn what_is_not_named_is_left_out_of_a_status() {
        let mut all = status();
        restrict(&mut all, None, &["mini/homepage".to_owned()]).expect("known");
        let left: Vec<&str> =
            all.environments.iter().flat_map(|known| &known.sites).map(|site| site.instance.as_str()).collect();
        assert_eq!(left, ["mini/homepage/1"]);
        let mut all = status();
        restrict(&mut all, None, &[]).expect("everything");
        assert_eq!(all, status());
        assert!(is_named(("mini", "shopping"), None, &["mini".to_owned()]));
        assert!(is_named(("mini", "shopping"), Some("mini"), &["mini/shopping".to_owned()]));
        assert!(!is_named(("mini", "shopping"), Some("tracker"), &[]));
    }

    #[test]
    fn slots_are_named_by_their_numbers_and_only_those_that_exist() {
        let mut status = status();
        let slot = |number: u32| {
            json!({
                "number": number, "instance": format!("mini/shopping/{number}"), "state": "ready", "since": "",
                "generation": 1, "occupation": "free",
            })
        };
        let both = [slot(1), slot(3)].map(|slot| serde_json::from_value(slot).expect("a slot"));
        status.environments[0].sites[0].slots = both.to_vec();
        let of = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            slots(&status, None, &names)
        };
        let chosen = |names| of(names).expect("known");
        let expected = vec![("mini".to_owned(), vec!["shopping:3".to_owned(), "shopping".to_owned()])];
        assert_eq!(chosen(&["shopping:3", "mini/shopping:3", "shopping"]), expected);
        assert_eq!(chosen(&["mini", "shopping:1"])[0].1, ["shopping:1"]);
        assert_eq!(chosen(&["tracker/homepage:1"])[0].1, ["homepage:1"]);
        let refused = |name| said(of(&[name]).expect_err("unknown"));
        assert_eq!(refused("shopping:2"), "shopping has no slot 2 | name one that exists: shopping:1, shopping:3");
        assert_eq!(refused("tracker/homepage:2"), "homepage has no slot 2 | name one that exists: homepage:1");
        assert!(refused("shopping:x").contains("does not end with the number of a slot"));
        assert!(refused("shoping:1").contains("did you mean `shopping`?"));
    }

    #[test]
    fn a_site_that_is_named_twice_is_meant_once() {
        let names = ["shopping".to_owned(), "shopping".to_owned()];
        assert_eq!(sites(&status(), None, &names).expect("one")[0].1, ["shopping"]);
    }
}

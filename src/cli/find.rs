//! Which environment a site belongs to, among those that are up.

use super::failure::Failure;
use crate::wire::{Site, Status};

/// The named sites by environment; without names, all of the environments.
pub fn sites(
    status: &Status,
    environment: Option<&str>,
    names: &[String],
) -> Result<Vec<(String, Vec<String>)>, Failure> {
    if names.is_empty() {
        let all = status.environments.iter().filter(|known| environment.is_none_or(|wanted| wanted == known.name));
        let chosen: Vec<(String, Vec<String>)> = all.map(|known| (known.name.clone(), Vec::new())).collect();
        return match (chosen.is_empty(), environment) {
            (false, _) => Ok(chosen),
            (true, Some(name)) => Err(Failure::usage(format!("environment `{name}` is not up"))),
            (true, None) => Err(Failure::usage("nothing is up").hint("`arenad up` brings sites up")),
        };
    }
    let mut chosen: Vec<(String, Vec<String>)> = Vec::new();
    for name in names {
        let site = site(status, environment, name)?;
        match chosen.iter_mut().find(|(known, _)| *known == site.environment) {
            Some((_, sites)) => sites.push(site.name.clone()),
            None => chosen.push((site.environment.clone(), vec![site.name.clone()])),
        }
    }
    Ok(chosen)
}

/// The site of that name that is up.
pub fn site<'a>(status: &'a Status, environment: Option<&str>, name: &str) -> Result<&'a Site, Failure> {
    let all = || status.environments.iter().flat_map(|known| &known.sites);
    let found: Vec<&Site> =
        all().filter(|site| site.name == name && environment.is_none_or(|wanted| wanted == site.environment)).collect();
    match found.as_slice() {
        [site] => Ok(site),
        [] => {
            let known: Vec<&str> = all().map(|site| site.name.as_str()).collect();
            let close = known
                .iter()
                .copied()
                .filter(|known| strsim::jaro_winkler(known, name) > 0.8)
                .min_by(|a, b| strsim::jaro_winkler(b, name).total_cmp(&strsim::jaro_winkler(a, name)));
            let failure = Failure::usage(format!("site `{name}` is not up"));
            Err(match close {
                Some(close) => failure.hint(format!("did you mean `{close}`?")),
                None if known.is_empty() => failure.hint("`arenad up` brings sites up"),
                None => failure.hint(format!("up are {}", known.join(", "))),
            })
        }
        several => {
            let environments: Vec<&str> = several.iter().map(|site| site.environment.as_str()).collect();
            Err(Failure::usage(format!("`{name}` is a site of {}", environments.join(" and ")))
                .hint("say which with --environment"))
        }
    }
}

//! The addresses that only the episode proxy knows: aliases of sites, and hosts outside of the environment.

use super::ValidationContext;
use crate::raw::environment::RawEnvironment;
use crate::scope::Scope;
use crate::tree::excerpt;
use arenad_model::proxy_address::{ARENA_DOMAIN, EgressRule, InvalidHostAddress, SiteAlias, is_in_arena, is_of_site};
use arenad_model::site::Site;

/// Reads the aliases of a site.
pub(super) fn aliases(scope: Scope<'_>, raw: Option<&[String]>) -> Vec<SiteAlias> {
    let mut found: Vec<SiteAlias> = Vec::new();
    for (index, text) in raw.unwrap_or_default().iter().enumerate() {
        let place = scope.index(index);
        match SiteAlias::parse(text) {
            Err(error) => invalid(place, text, error, "`onestopmarket.com` or `shop.example.org:7770`"),
            Ok(alias) if is_in_arena(&alias.host) => place
                .error("value", format!("`{}` is in the domain `{ARENA_DOMAIN}`", excerpt(text)))
                .help(format!("remove it: each site has the address NAME.{ARENA_DOMAIN} already"))
                .report(),
            Ok(alias) if found.contains(&alias) => {
                place.error("duplicate-key", format!("the alias `{alias}` is named twice")).report();
            }
            Ok(alias) => found.push(alias),
        }
    }
    found
}

/// Reads the hosts outside of the environment that the clients of episodes may reach.
pub(crate) fn egress(scope: Scope<'_>, raw: Option<&[String]>) -> Vec<EgressRule> {
    let mut found: Vec<EgressRule> = Vec::new();
    for (index, text) in raw.unwrap_or_default().iter().enumerate() {
        let place = scope.index(index);
        match EgressRule::parse(text) {
            Err(error) => invalid(place, text, error, "`fonts.example.org`, `*.example.org` or `example.org:8443`"),
            Ok(rule) if found.contains(&rule) => {
                place.error("duplicate-key", format!("the host `{rule}` is named twice")).report();
            }
            Ok(rule) => found.push(rule),
        }
    }
    found
}

fn invalid(place: Scope<'_>, text: &str, error: InvalidHostAddress, examples: &str) {
    let what = match error {
        InvalidHostAddress::Host => "invalid host",
        InvalidHostAddress::Port => "invalid port of a host",
    };
    place.error("value", format!("{what} `{}`", excerpt(text))).expected(format!("a host such as {examples}")).report();
}

/// Reports aliases that lead to another site as well.
pub(super) fn unique_aliases(context: ValidationContext<'_>, raw: &RawEnvironment, sites: &[Site]) {
    let environment_host = raw.host.as_deref().unwrap_or("localhost");
    let place = |site: &Site| context.environment.key("sites").key(site.name.as_str()).key("public").key("aliases");
    for (number, site) in sites.iter().enumerate() {
        for alias in &site.public.aliases {
            let leads_to = |other: &Site| is_of_site(other, environment_host, &alias.host, alias.port);
            // Of two equal aliases, the second one is reported.
            let is_later = |index: usize, other: &Site| index > number && other.public.aliases.contains(alias);
            let other = sites
                .iter()
                .enumerate()
                .find(|(index, other)| *index != number && leads_to(other) && !is_later(*index, other));
            let Some((_, other)) = other else { continue };
            let written = raw_index(raw, site, alias);
            place(site)
                .index(written)
                .error(
                    "conflict",
                    format!("the alias `{alias}` of the site `{}` leads to the site `{}`", site.name, other.name),
                )
                .help("an address leads to one site: remove it from one of them")
                .report();
        }
    }
}

/// Returns the index of an alias in the file.
fn raw_index(raw: &RawEnvironment, site: &Site, alias: &SiteAlias) -> usize {
    let part = raw.sites.iter().find(|(name, _)| *name == site.name.as_str()).and_then(|(_, part)| part.good());
    let texts = part.and_then(|part| part.public.as_ref()?.aliases.as_ref());
    let is_it = |text: &String| SiteAlias::parse(text).as_ref() == Ok(alias);
    texts.and_then(|texts| texts.iter().position(is_it)).unwrap_or_default()
}

//! The environment as a whole: the assignment of services to sites, and the properties that sites must not share.

use std::collections::BTreeMap;
use std::fmt::Display;

use super::ValidationContext;
use super::addresses::unique_aliases;
use super::images::{images, unique_files};
use super::service::service;
use super::site::site;
use super::site_context::Services;
use super::slot_ports::free_ports;
use super::support::one_line;
use crate::problems::{closest, did_you_mean, quoted_list};
use crate::raw::compose::RawCompose;
use crate::raw::environment::{RawEnvironment, RawSite};
use crate::raw::values::{Entries, FilePart, OneOrMany};
use crate::scope::Scope;
use crate::source::Span;
use arenad_model::archive::{ImageSource, full_reference};
use arenad_model::ids::{ServiceName, SiteName};
use arenad_model::service::{DependencyCondition, MountSpec};
use arenad_model::site::{ResetStrategyName, Site};

/// Validates an environment. Returns the sites and image sources that are valid.
pub(crate) fn environment(
    context: ValidationContext<'_>,
    raw: &RawEnvironment,
    compose: &RawCompose,
) -> (Vec<Site>, Vec<ImageSource>) {
    head(context, raw);
    networks(context, compose);
    let declared = volumes(context, compose);
    let services = services(context, compose, &declared);
    let owners = owners(context, raw, compose);
    dependencies(&services, &owners);
    let sites_scope = context.environment.key("sites");
    let mut sites = Vec::new();
    for (name, part) in raw.sites.iter() {
        let scope = sites_scope.key(name);
        let Ok(site_name) = SiteName::parse(name).map_err(|error| bad_name(scope, name, &error)) else {
            continue;
        };
        let raw = match part {
            FilePart::Good(raw) => raw,
            FilePart::Broken(reason) => {
                broken(scope, reason);
                continue;
            }
        };
        let own = own_services(name, raw, &owners, &services);
        sites.extend(site(context, scope, site_name, raw, &services, own));
    }
    unique_addresses(context, &sites);
    free_ports(context, &sites);
    unique_aliases(context, raw, &sites);
    volumes_of_one_site(context, &declared, &services, &owners);
    written_data(&services, &sites);
    let images = images(context, raw.images.as_ref(), compose);
    unique_files(context.environment, &images, context.data);
    for service in sites.iter_mut().flat_map(|site| &mut site.services) {
        let is_its = |image: &&ImageSource| full_reference(&image.reference) == full_reference(&service.image);
        let archive = images.iter().find(is_its).and_then(|image| image.archive.as_ref());
        service.archive = archive.map(|archive| archive.file.clone());
    }
    (selected(context, raw, sites), images)
}

/// Reports host folders that a site writes to, because only one generation may write to them and a reset briefly has
/// two.
fn written_data(services: &Services<'_>, sites: &[Site]) {
    for site in sites.iter().filter(|site| site.reset.strategy != ResetStrategyName::Keep) {
        for (service, folder, _) in site.host_data().filter(|(_, _, is_written)| *is_written) {
            let Some(Some(service)) = services.get(service.as_str()) else {
                continue;
            };
            service
                .scope
                .key("volumes")
                .key_error("writable-bind", format!("`{}` is mounted writable", folder.display()))
                .help(format!(
                    "a reset cannot bring a folder of the host back: add `:ro`, or give the site `{}` the reset strategy `keep`",
                    site.name
                ))
                .report();
        }
    }
}

/// Returns the sites that `only` names, or all sites if it names none.
fn selected(context: ValidationContext<'_>, raw: &RawEnvironment, sites: Vec<Site>) -> Vec<Site> {
    let scope = context.environment.key("only");
    let listed = raw.only.as_ref().map(OneOrMany::to_vec).unwrap_or_default().join(",");
    let names: Vec<&str> = listed.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    if names.is_empty() || names == ["all"] {
        return sites;
    }
    for name in names.iter().filter(|name| !raw.sites.keys().any(|known| known == **name)) {
        scope
            .error("unknown-site", format!("the environment has no site `{}`", crate::tree::excerpt(name)))
            .expected(format!("`all`, or some of {}", quoted_list(raw.sites.keys())))
            .maybe_help(did_you_mean(name, raw.sites.keys()))
            .report();
    }
    sites.into_iter().filter(|site| names.contains(&site.name.as_str())).collect()
}

fn bad_name(scope: Scope<'_>, name: &str, error: &dyn Display) {
    scope
        .key_error("name", format!("invalid name `{}`", crate::tree::excerpt(name)))
        .expected(error.to_string())
        .report();
}

/// Reports a part that passed its schema but cannot be read. It would otherwise be dropped silently.
fn broken(scope: Scope<'_>, reason: &str) {
    if scope.problems().count() == 0 {
        scope.key_error("unreadable", format!("this part cannot be read: {reason}")).report();
    }
}

fn head(context: ValidationContext<'_>, raw: &RawEnvironment) {
    let scope = context.environment;
    if let Some(name) = raw.name.as_deref().filter(|name| *name != context.name) {
        scope
            .key("name")
            .error(
                "name",
                format!("the environment is called `{}`, its file `{}.yaml`", crate::tree::excerpt(name), context.name),
            )
            .expected(format!("`{}`", context.name))
            .report();
    }
    one_line(scope.key("description"), raw.description.as_deref().unwrap_or_default(), "the description");
    if let Some(host) = &raw.host {
        let is_fine = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
        if host.is_empty() || host.len() > 253 || !host.chars().all(is_fine) || host.starts_with(['-', '.']) {
            scope
                .key("host")
                .error("value", format!("invalid host name `{}`", crate::tree::excerpt(host)))
                .expected("a name or IPv4 address without scheme and port, such as `localhost`")
                .report();
        }
    }
}

fn networks(context: ValidationContext<'_>, compose: &RawCompose) {
    let scope = context.compose.key("networks");
    for name in compose.networks.iter().flat_map(Entries::keys).filter(|name| *name != "default") {
        scope
            .key(name)
            .key_error("refused-key", format!("arenad does not support the network `{name}`"))
            .expected("nothing, or `default: {}`")
            .help("remove it: arenad makes one network per instance, on which the services reach each other by name")
            .report();
    }
}

fn volumes<'a>(context: ValidationContext<'_>, compose: &'a RawCompose) -> Vec<&'a str> {
    let scope = context.compose.key("volumes");
    let names: Vec<&str> = compose.volumes.iter().flat_map(Entries::keys).collect();
    for name in &names {
        if let Err(error) = ServiceName::parse(name) {
            let rule = error.to_string().replace("service", "volume");
            bad_name(scope.key(name), name, &rule);
        }
    }
    names
}

fn services<'a>(context: ValidationContext<'a>, compose: &RawCompose, declared: &[&str]) -> Services<'a> {
    let scope = context.compose.key("services");
    let mut found = Services::new();
    for (name, part) in compose.services.iter() {
        let scope = scope.key(name);
        let service = match (ServiceName::parse(name), part) {
            (Ok(name), FilePart::Good(raw)) => Some(service(context, scope, name, raw, declared)),
            (Ok(_), FilePart::Broken(reason)) => {
                broken(scope, reason);
                None
            }
            (Err(error), _) => {
                bad_name(scope, name, &error);
                None
            }
        };
        found.insert(name.to_owned(), service);
    }
    found
}

/// The site that owns each service, and the place where the environment file assigns it.
type Owners<'a> = BTreeMap<String, (&'a str, Span)>;

fn owners<'a>(context: ValidationContext<'_>, raw: &'a RawEnvironment, compose: &RawCompose) -> Owners<'a> {
    let mut owners = Owners::new();
    let known: Vec<&str> = compose.services.keys().collect();
    let sites_scope = context.environment.key("sites");
    let mut broken_sites = false;
    let mut meant = Vec::new();
    for (site, part) in raw.sites.iter() {
        let scope = sites_scope.key(site);
        let Some(raw) = part.good().filter(|raw| raw.services.is_some() || !scope.has("services")) else {
            broken_sites = true;
            continue;
        };
        let listed: Vec<(Scope<'_>, &str)> = match &raw.services {
            Some(names) => {
                let scope = scope.key("services");
                names.iter().enumerate().map(|(index, name)| (scope.index(index), name.as_str())).collect()
            }
            None => vec![(scope, site)],
        };
        for (scope, name) in listed {
            let is_default = raw.services.is_none();
            let span = if is_default { scope.key_span() } else { scope.span() };
            let problem = |code, message| scope.problems().at(scope.source(), span, code, message);
            if !known.contains(&name) {
                meant.extend(closest(name, known.iter().copied()));
                let names_them = || is_default.then(|| "name the site's services with `services: [...]`".to_owned());
                problem("unknown-service", format!("the Compose file has no service `{name}`"))
                    .expected(format!("one of {}", quoted_list(known.iter().copied())))
                    .maybe_help(did_you_mean(name, known.iter().copied()).or_else(names_them))
                    .report();
            } else if let Some((_, first)) = owners.get(name).filter(|(owner, _)| *owner == site) {
                let draft = problem("duplicate-key", format!("`{name}` is named twice"));
                draft.related(scope.source(), *first, "the first one").report();
            } else if let Some((other, first)) = owners.get(name) {
                problem("shared-service", format!("the service `{name}` already belongs to the site `{other}`"))
                    .related(scope.source(), *first, "named first")
                    .help("a service belongs to exactly one site; define a second one for the second site")
                    .report();
            } else {
                owners.insert(name.to_owned(), (site, span));
            }
        }
    }
    // A site that cannot be read may be the owner of a service.
    if !broken_sites {
        let scope = context.compose.key("services");
        for name in known.iter().filter(|name| !owners.contains_key(**name) && !meant.contains(name)) {
            scope
                .key(name)
                .key_error("unused-service", format!("the service `{name}` belongs to no site"))
                .help(format!("add it to the `services` of a site in the environment file, or remove it: `services: [..., {name}]`"))
                .report();
        }
    }
    owners
}

fn own_services(site: &str, raw: &RawSite, owners: &Owners<'_>, services: &Services<'_>) -> Vec<ServiceName> {
    let default = vec![site.to_owned()];
    let listed = raw.services.as_ref().unwrap_or(&default).iter();
    let is_active = |name: &str| !matches!(services.get(name), Some(Some(service)) if !service.is_active);
    let own = listed.filter(|name| owners.get(*name).is_some_and(|(owner, _)| *owner == site) && is_active(name));
    let mut found = Vec::new();
    for name in own.filter_map(|name| ServiceName::parse(name).ok()) {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

fn dependencies(services: &Services<'_>, owners: &Owners<'_>) {
    for (name, service) in services {
        let Some(service) = service.as_ref().filter(|service| service.is_active) else { continue };
        let scope = service.scope.key("depends_on");
        for (index, dependency) in service.spec.depends_on.iter().enumerate() {
            let target = dependency.service.as_str();
            let scope = if scope.has(target) { scope.key(target) } else { scope.index(index) };
            let Some(found) = services.get(target) else {
                let known = || services.keys().map(String::as_str).filter(|known| *known != name);
                scope
                    .key_error("unknown-service", format!("there is no service `{target}`"))
                    .expected(format!("one of {}", quoted_list(known())))
                    .maybe_help(did_you_mean(target, known()))
                    .report();
                continue;
            };
            if let (Some((own, _)), Some((other, _))) = (owners.get(name), owners.get(target))
                && own != other
            {
                scope
                    .key_error(
                        "cross-site",
                        format!("`{name}` of the site `{own}` depends on `{target}` of the site `{other}`"),
                    )
                    .help("sites are reset one by one and share no network: put both services into one site")
                    .report();
            }
            if found.as_ref().is_some_and(|found| !found.is_active) {
                scope
                    .key_error(
                        "inactive-service",
                        format!("`{name}` depends on `{target}`, of whose profiles none is active"),
                    )
                    .help("give both the same `profiles`, or name one in the environment file's `profiles`")
                    .report();
            }
            if dependency.condition == DependencyCondition::Healthy
                && found.as_ref().is_some_and(|found| found.has_no_health_check())
            {
                scope
                    .key("condition")
                    .error(
                        "conflict",
                        format!("`{name}` waits for `{target}` to be healthy, but `{target}` has no health check"),
                    )
                    .help(format!("give `{target}` a `healthcheck`, or wait for `service_started`"))
                    .report();
            }
        }
    }
}

/// Reports ports and variables that two sites share. Both are unique within an environment.
fn unique_addresses(context: ValidationContext<'_>, sites: &[Site]) {
    let sites_scope = context.environment.key("sites");
    let mut ports: BTreeMap<u16, (&Site, Scope<'_>)> = BTreeMap::new();
    let mut variables: BTreeMap<&str, (&Site, Scope<'_>)> = BTreeMap::new();
    for site in sites {
        let scope = sites_scope.key(site.name.as_str());
        let place = port_place(context, scope, site);
        if let Some((first, first_place)) = ports.get(&site.public.port) {
            place
                .error(
                    "conflict",
                    format!(
                        "the sites `{}` and `{}` have the same public port {}",
                        first.name, site.name, site.public.port
                    ),
                )
                .related(first_place.source(), first_place.span(), format!("`{}` has it here", first.name))
                .report();
        } else {
            ports.insert(site.public.port, (site, place));
        }
        let Some(variable) = site.public.variable.as_deref() else {
            continue;
        };
        let place = scope.key("public").key("variable");
        if let Some((first, first_place)) = variables.get(variable) {
            place
                .error(
                    "conflict",
                    format!("the sites `{}` and `{}` have the same variable `{variable}`", first.name, site.name),
                )
                .related(first_place.source(), first_place.span(), format!("`{}` has it here", first.name))
                .report();
        } else {
            variables.insert(variable, (site, place));
        }
    }
}

/// Returns the place where a site's public port is written.
pub(super) fn port_place<'a>(context: ValidationContext<'a>, scope: Scope<'a>, site: &Site) -> Scope<'a> {
    if scope.key("public").has("port") {
        return scope.key("public").key("port");
    }
    context.compose.key("services").key(site.entry.service.as_str()).key("ports").index(0)
}

/// Reports volumes that two sites mount, because each site would get its own, and volumes that no service mounts.
fn volumes_of_one_site(
    context: ValidationContext<'_>,
    declared: &[&str],
    services: &Services<'_>,
    owners: &Owners<'_>,
) {
    let mut sites: BTreeMap<&str, (&str, Span)> = BTreeMap::new();
    for (name, service) in services {
        let (Some(service), Some((site, _))) = (service, owners.get(name)) else {
            continue;
        };
        let scope = service.scope.key("volumes");
        for mount in &service.spec.mounts {
            let MountSpec::Volume { name: volume, .. } = mount else {
                continue;
            };
            match sites.get(volume.as_str()) {
                Some((other, first)) if other != site => scope
                    .key_error(
                        "cross-site",
                        format!("the volume `{volume}` is mounted by the sites `{other}` and `{site}`"),
                    )
                    .related(scope.source(), *first, format!("mounted by `{other}` here"))
                    .help("sites are reset one by one and share no volumes: declare one for each")
                    .report(),
                _ => {
                    sites.insert(volume, (site, scope.key_span()));
                }
            }
        }
    }
    // A refused service or mount may be the one that uses the volume.
    if context.compose.problems().count() == 0 {
        let scope = context.compose.key("volumes");
        for name in declared.iter().filter(|name| !sites.contains_key(**name)) {
            let draft = scope.key(name).key_error("unused-volume", format!("no service mounts the volume `{name}`"));
            draft.help("remove it").report();
        }
    }
}

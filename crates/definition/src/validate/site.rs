//! One site: its services, addresses, accounts and databases.

use std::num::NonZeroU32;
use std::time::Duration;

use globset::GlobBuilder;

use super::ValidationContext;
use super::addresses::aliases;
use super::clock::clock;
use super::databases::database;
use super::graph::start_order;
use super::helpers::helpers;
use super::login::accounts;
use super::probes::readiness;
use super::scratch::scratch;
use super::site_context::{Services, SiteContext};
use super::slot_ports::slot_ports;
use super::slots::slots;
use super::steps::baseline;
use super::stores::{stores, writers};
use super::support::{filled, one_line, positive_period};
use super::watch::{cron, health};
use crate::problems::{Draft, quoted_list};
use crate::raw::environment::{
    RawDatabase, RawEngine, RawPublic, RawRecord, RawReset, RawSite, RawStrategy, RawVerify, RawWrites,
};
use crate::raw::values::{FilePart, OneOrMany, Port};
use crate::scope::Scope;
use crate::tree::excerpt;
use arenad_model::clock::Clock;
use arenad_model::ids::{ServiceName, SiteName};
use arenad_model::site::{EntryPort, PublicAddress, RecordedRequests, ResetSpec, ResetStrategyName, Site};
use arenad_model::standby_schedule::StandbyTime;
use arenad_model::verify::VerifyPolicy;

/// Default number of requests that the gateway holds during a reset. A browser opens six connections per site, so this
/// is enough for more agents than a host serves, and takes a few megabytes.
const HOLD_REQUESTS: usize = 1024;

/// Maximum number of standbys of one site: more than any host has memory for.
const MOST_STANDBYS: u32 = 100;

/// Default time for which the gateway holds a request: browsers and harnesses wait this long for a page by default.
const HOLD_TIMEOUT: Duration = Duration::from_secs(30);

/// Reads a site. `names` are its services that exist and belong to no other site.
pub(super) fn site<'a>(
    context: ValidationContext<'a>,
    scope: Scope<'a>,
    name: SiteName,
    raw: &'a RawSite,
    services: &'a Services<'a>,
    names: Vec<ServiceName>,
) -> Option<Site> {
    let mut site = SiteContext { context, services, names, entry: None, databases: servers(raw) };
    site.entry = entry(&site, scope, raw);
    let public = public(&site, scope, raw.public.as_ref().unwrap_or(&RawPublic::default()));
    let databases_scope = scope.key("databases");
    let databases = raw.databases.iter().flat_map(|databases| databases.iter());
    let databases = databases
        .filter_map(|(name, raw)| {
            Some((name.to_owned(), database(&site, databases_scope.key(name), name, raw.good()?)?))
        })
        .collect();
    let (mut stores, mut writers) = (stores(&site, scope.key("stores"), raw, &databases), writers(&site, scope, raw));
    let mut scratch = scratch(&site, scope, raw, &stores);
    // The declarations are checked even if `in_place` is off, because it may be switched on later.
    if raw.reset.as_ref().and_then(|reset| reset.in_place) == Some(false) {
        (stores, writers) = (Vec::new(), None);
        scratch = Vec::new();
    }
    let clock = raw.clock.as_ref().and_then(|raw| clock(&site, scope.key("clock"), raw));
    // Only sites with writers are rewound. A resolved definition already contains these paths.
    for built_in in clock.iter().flat_map(Clock::scratch).filter(|_| writers.is_some()) {
        if !scratch.contains(&built_in) {
            scratch.push(built_in);
        }
    }
    let readiness = raw.ready.as_ref().map(|raw| readiness(&site, scope.key("ready"), raw));
    let ready_probes = readiness.as_ref().map_or(&[][..], |readiness| &readiness.probes);
    let health = health(&site, scope.key("health"), raw.health.as_ref(), ready_probes);
    let accounts = accounts(&site, scope.key("accounts"), raw.accounts.as_ref());
    let baseline = raw.baseline.as_ref().map(|raw| baseline(&site, scope.key("baseline"), raw)).unwrap_or_default();
    let helpers = helpers(&site, scope.key("helpers"), raw);
    let title = raw.title.clone().unwrap_or_else(|| name.to_string());
    filled(scope.key("title"), &title, "the title");
    one_line(scope.key("title"), &title, "the title");
    let specs = in_start_order(&site)?;
    let slots = slots(&site, scope.key("slots"), raw);
    let ports = slot_ports(scope.key("ports"), raw, slots);
    Some(Site {
        name,
        title,
        services: specs,
        entry: site.entry.clone()?,
        public: public?,
        exports: exports(scope.key("exports"), raw),
        egress: egress(&site, scope.key("egress"), raw),
        accounts,
        databases,
        stores,
        writers,
        scratch,
        helpers,
        readiness: readiness?,
        baseline,
        reset: reset(scope.key("reset"), raw.reset.as_ref()),
        slots,
        ports,
        health,
        clock,
        baseline_inputs: String::new(),
    })
}

/// Returns the databases that steps and probes may query: servers, but not files.
fn servers(raw: &RawSite) -> Vec<&str> {
    let databases = raw.databases.iter().flat_map(|databases| databases.iter());
    let is_file = |raw: &FilePart<RawDatabase>| raw.good().is_some_and(|raw| matches!(raw.engine, RawEngine::Sqlite));
    databases.filter(|(_, raw)| !is_file(raw)).map(|(name, _)| name).collect()
}

fn in_start_order(site: &SiteContext<'_>) -> Option<Vec<arenad_model::service::ServiceSpec>> {
    let names: Vec<&str> = site.names.iter().map(ServiceName::as_str).collect();
    let known = || names.iter().filter_map(|name| site.services.get(*name)?.as_ref());
    let depends_on = known()
        .map(|service| {
            let spec = &service.spec;
            (spec.name.as_str(), spec.depends_on.iter().map(|dependency| dependency.service.as_str()).collect())
        })
        .collect();
    match start_order(&names, &depends_on) {
        Ok(order) => order.iter().map(|name| Some(site.services.get(*name)?.as_ref()?.spec.clone())).collect(),
        Err(cycle) => {
            let first = cycle.first().and_then(|name| site.services.get(*name)?.as_ref());
            if let Some(service) = first {
                service
                    .scope
                    .key("depends_on")
                    .key_error("cycle", format!("services wait for each other: {}", cycle.join(" -> ")))
                    .help("remove one of these dependencies")
                    .report();
            }
            None
        }
    }
}

fn entry(site: &SiteContext<'_>, scope: Scope<'_>, raw: &RawSite) -> Option<EntryPort> {
    let entry_scope = scope.key("entry");
    let raw = raw.entry.as_ref()?;
    let service = match (&raw.service, site.names.as_slice()) {
        (Some(name), _) => site.own_service(entry_scope.key("service"), name)?,
        (None, _) if entry_scope.has("service") => return None,
        (None, [only]) => only.clone(),
        (None, []) => return None,
        (None, several) => {
            entry_scope
                .error("missing-key", format!("`service` is missing, and the site has {}", several.len()))
                .expected(format!("`service`: one of {}", quoted_list(several.iter().map(ServiceName::as_str))))
                .report();
            return None;
        }
    };
    Some(EntryPort { service, port: raw.port.as_ref()?.number()? })
}

fn public(site: &SiteContext<'_>, scope: Scope<'_>, raw: &RawPublic) -> Option<PublicAddress> {
    let public_scope = scope.key("public");
    let path = raw.path.clone().unwrap_or_default();
    if !path.is_empty() {
        let path_scope = public_scope.key("path");
        super::steps::path(path_scope, &path);
        if path.ends_with('/') {
            let without = path.trim_end_matches('/');
            path_scope.error("value", "the path ends with `/`").help(format!("write `\"{without}\"`")).report();
        }
    }
    if let Some(name) = raw.variable.as_deref().filter(|name| !is_variable(name)) {
        not_a_variable(
            public_scope.key("variable").error("value", format!("invalid variable name `{}`", excerpt(name))),
        );
    }
    let published = published_port(site);
    let stated = raw.port.as_ref().and_then(Port::number);
    if let (Some(stated), Some((published, span))) = (stated, published)
        && stated != published
    {
        let compose = site.context.compose;
        public_scope
            .key("port")
            .error("conflict", format!("the public port {stated} differs from the one in the Compose file"))
            .related(compose.source(), span, format!("published as {published} there"))
            .help("make them equal, or leave one of the two out")
            .report();
    }
    let port = stated.or(published.map(|(port, _)| port));
    let is_meant = scope.is_misspelt("public") || public_scope.has("port") || public_scope.is_misspelt("port");
    if port.is_none() && site.entry.is_some() && !is_meant {
        public_scope
            .key_error("missing-key", "the site has no public port")
            .expected("`public: { port: 7770 }`, or `ports: [\"7770:80\"]` for the entry's service in the Compose file")
            .report();
    }
    Some(PublicAddress {
        host: String::new(),
        port: port?,
        path,
        variable: raw.variable.clone(),
        refuses_writes: raw.writes == Some(RawWrites::Refuse),
        reads: reads(public_scope.key("reads"), raw),
        recorded: match raw.record {
            None | Some(RawRecord::None) => RecordedRequests::Nothing,
            Some(RawRecord::Writes) => RecordedRequests::Writes,
            Some(RawRecord::All) => RecordedRequests::All,
        },
        aliases: aliases(public_scope.key("aliases"), raw.aliases.as_deref()),
    })
}

/// Reads the paths whose requests only read.
fn reads(scope: Scope<'_>, raw: &RawPublic) -> Vec<String> {
    let patterns = raw.reads.iter().flatten().enumerate();
    for (index, pattern) in patterns {
        let scope = scope.index(index);
        if !pattern.starts_with('/') {
            let message = format!("invalid path `{}`", excerpt(pattern));
            scope
                .error("value", message)
                .expected("a path or a pattern that begins with `/`, such as `/search/*`")
                .report();
        } else if let Err(error) = GlobBuilder::new(pattern).literal_separator(true).build() {
            let message = format!("invalid path pattern `{}`: {}", excerpt(pattern), error.kind());
            scope.error("value", message).expected("a pattern such as `/search/*`").report();
        }
    }
    raw.reads.clone().unwrap_or_default()
}

/// Returns the port that the Compose file publishes for the entry. All other published ports are refused, because only
/// the gateway is reachable from outside.
fn published_port(site: &SiteContext<'_>) -> Option<(u16, crate::source::Span)> {
    let entry = site.entry.as_ref()?;
    let mut found: Option<(u16, crate::source::Span)> = None;
    for name in &site.names {
        let Some(service) = site.services.get(name.as_str()).and_then(Option::as_ref) else {
            continue;
        };
        for published in &service.published {
            let (problems, source) = (service.scope.problems(), service.scope.source());
            if *name != entry.service || published.container != entry.port {
                let message =
                    format!("port {} of `{name}` is published, but it is not the site's entry", published.container);
                problems
                    .at(source, published.span, "published-port", message)
                    .expected(format!("only port {} of `{}`, on which the gateway answers", entry.port, entry.service))
                    .help("remove it, or list it under `expose`: services of a site reach each other without it")
                    .report();
                continue;
            }
            if let Some(address) = published.address.filter(|address| *address != site.context.listen) {
                let message = format!("the port listens on {address}, the environment on {}", site.context.listen);
                problems
                    .at(source, published.span, "conflict", message)
                    .help("remove the address here; `listen` in the environment file says where public ports listen")
                    .report();
            }
            match found {
                Some((port, first)) if port != published.port => problems
                    .at(source, published.span, "conflict", "the entry is published twice")
                    .related(source, first, "the first one")
                    .report(),
                _ => found = Some((published.port, published.span)),
            }
        }
    }
    found
}

fn is_variable(name: &str) -> bool {
    let is_fine = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    !name.is_empty() && name.chars().all(is_fine) && !name.starts_with(|c: char| c.is_ascii_digit())
}

fn not_a_variable(draft: Draft<'_>) {
    draft.expected("capital letters, digits and `_`, such as `SHOPPING_ADMIN`").report();
}

/// Returns the services that may reach other networks.
fn egress(site: &SiteContext<'_>, scope: Scope<'_>, raw: &RawSite) -> Vec<ServiceName> {
    let listed = raw.egress.as_ref().map(OneOrMany::to_vec).unwrap_or_default().join(",");
    let names: Vec<&str> = listed.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    if names == ["none"] {
        return Vec::new();
    }
    names.iter().filter_map(|name| site.own_service(scope, name)).collect()
}

fn exports(scope: Scope<'_>, raw: &RawSite) -> Vec<(String, String)> {
    let exports: Vec<(&str, &String)> = raw.exports.iter().flat_map(|exports| exports.iter()).collect();
    for (name, value) in &exports {
        if !is_variable(name) {
            not_a_variable(scope.key(name).key_error("value", format!("invalid variable name `{}`", excerpt(name))));
        }
        one_line(scope.key(name), value, "the value");
    }
    exports.into_iter().map(|(name, value)| (name.to_owned(), value.clone())).collect()
}

fn reset(scope: Scope<'_>, raw: Option<&RawReset>) -> ResetSpec {
    ResetSpec {
        strategy: match raw.and_then(|raw| raw.strategy).unwrap_or(RawStrategy::Recreate) {
            RawStrategy::Recreate => ResetStrategyName::Recreate,
            RawStrategy::Keep => ResetStrategyName::Keep,
        },
        standby: standby(scope.key("standby"), raw),
        may_pause: raw.and_then(|raw| raw.pause).unwrap_or(true),
        schedule: schedule(scope, raw),
        verify: VerifyPolicy {
            is_full: raw.and_then(|raw| raw.verify).is_some_and(|verify| matches!(verify, RawVerify::Full)),
            // The schema refuses zero.
            every: raw.and_then(|raw| raw.verify_every).and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN),
        },
        hold_requests: raw.and_then(|raw| raw.hold_requests).map_or(HOLD_REQUESTS, |count| count as usize),
        hold_timeout: positive_period(
            scope.key("hold_timeout"),
            raw.and_then(|raw| raw.hold_timeout.as_ref()),
            HOLD_TIMEOUT,
        ),
    }
}

/// Reads the number of standbys.
fn standby(scope: Scope<'_>, raw: Option<&RawReset>) -> usize {
    let wanted = raw.and_then(|raw| raw.standby).unwrap_or(0);
    if wanted > 0 && is_kept(raw) {
        of_a_kept_site(scope, "standby");
    }
    bounded(scope, wanted)
}

/// Reads the numbers of standbys by time.
fn schedule(scope: Scope<'_>, raw: Option<&RawReset>) -> Vec<StandbyTime> {
    let Some(entries) = raw.and_then(|raw| raw.schedule.as_ref()) else { return Vec::new() };
    let scope = scope.key("schedule");
    if is_kept(raw) {
        of_a_kept_site(scope, "schedule");
    }
    let entries = entries.iter().enumerate().filter_map(|(index, entry)| {
        let (scope, raw) = (scope.index(index), entry.good()?);
        let count = bounded(scope.key("standby"), raw.standby);
        Some(StandbyTime { from: cron(scope, &raw.cron, raw.time_zone.as_deref())?, count })
    });
    entries.collect()
}

fn is_kept(raw: Option<&RawReset>) -> bool {
    raw.is_some_and(|raw| matches!(raw.strategy, Some(RawStrategy::Keep)))
}

fn of_a_kept_site(scope: Scope<'_>, key: &str) {
    let draft =
        scope.key_error("conflict", "standbys are wanted of a site that is kept, which none ever takes over from");
    draft.help(format!("remove `{key}`, or choose another strategy")).report();
}

fn bounded(scope: Scope<'_>, wanted: u32) -> usize {
    if wanted > MOST_STANDBYS {
        scope.error("value", format!("{wanted} standbys of one site")).expected("at most 100").report();
    }
    wanted.min(MOST_STANDBYS) as usize
}

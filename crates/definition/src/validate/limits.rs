//! Resource limits, in the service's own keys or under `deploy`.

use super::support::size;
use crate::raw::compose::RawService;
use crate::raw::compose_parts::Ulimit;
use crate::raw::values::{Cpus, Entries, FilePart, text_of};
use crate::scope::Scope;
use arenad_model::service::Limits;

/// Minimum memory limit that Docker accepts, in bytes.
const MEMORY_MIN_BYTES: u64 = 6 << 20;

/// Maximum number of CPUs: more than any host has, so that a larger number is probably a mistaken unit.
const CPUS_MAX: f64 = 4096.0;

pub(super) fn limits(scope: Scope<'_>, raw: &RawService) -> Limits {
    let deployed = raw.deploy.as_ref().and_then(|deploy| deploy.resources.as_ref()?.limits.as_ref());
    let deploy_scope = scope.key("deploy").key("resources").key("limits");

    let memory_scope = scope.key("mem_limit");
    let memory = size(memory_scope, raw.mem_limit.as_ref());
    let deployed_memory_scope = deploy_scope.key("memory");
    let deployed_memory = deployed.and_then(|limits| size(deployed_memory_scope, limits.memory.as_ref()));
    for (scope, bytes) in [(memory_scope, memory), (deployed_memory_scope, deployed_memory)] {
        if bytes.is_some_and(|bytes| bytes < MEMORY_MIN_BYTES) {
            scope.error("value", "no container runs in so little memory").expected("at least `6m`").report();
        }
    }
    let own_cpus = cpus(scope.key("cpus"), raw.cpus.as_ref());
    let deployed_cpus = deployed.and_then(|limits| cpus(deploy_scope.key("cpus"), limits.cpus.as_ref()));
    let shm_scope = scope.key("shm_size");
    let memory = agreed(scope, "mem_limit", memory, deployed_memory_scope, deployed_memory);
    Limits {
        memory_bytes: memory,
        reserved_memory_bytes: reservation(scope, raw, memory),
        cpus: agreed(scope, "cpus", own_cpus, deploy_scope.key("cpus"), deployed_cpus),
        pids: agreed(
            scope,
            "pids_limit",
            raw.pids_limit,
            deploy_scope.key("pids"),
            deployed.and_then(|limits| limits.pids),
        ),
        shm_bytes: size(shm_scope, raw.shm_size.as_ref()),
        ulimits: ulimits(scope.key("ulimits"), raw.ulimits.as_ref()),
    }
}

/// Reads the memory reservation. The engine refuses one above the limit.
fn reservation(scope: Scope<'_>, raw: &RawService, limit: Option<u64>) -> Option<u64> {
    let own = scope.key("mem_reservation");
    let reserved = size(own, raw.mem_reservation.as_ref())?;
    if limit.is_some_and(|limit| reserved > limit) {
        own.error("conflict", "the reservation is above the memory limit")
            .help("raise `mem_limit`, or reserve less")
            .report();
    }
    Some(reserved)
}

/// Returns a limit from either of the two places where it may be set, which must agree.
fn agreed<T: PartialEq>(
    scope: Scope<'_>,
    key: &str,
    own: Option<T>,
    deployed_scope: Scope<'_>,
    deployed: Option<T>,
) -> Option<T> {
    if let (Some(own), Some(deployed)) = (&own, &deployed)
        && own != deployed
    {
        let own = scope.key(key);
        deployed_scope
            .error("conflict", format!("the limit differs from `{key}`"))
            .related(own.source(), own.span(), "the other one")
            .help("keep one of the two")
            .report();
    }
    own.or(deployed)
}

fn cpus(scope: Scope<'_>, raw: Option<&Cpus>) -> Option<f64> {
    let text = text_of(&raw?.0);
    let found = text.parse::<f64>().ok().filter(|cpus| *cpus > 0.0 && *cpus <= CPUS_MAX);
    if found.is_none() {
        scope.error("value", format!("invalid number of CPUs: `{text}`")).expected("a number such as `1.5`").report();
    }
    found
}

/// The limits that Linux supports, by the names that Docker uses.
const ULIMITS: [&str; 16] = [
    "as",
    "core",
    "cpu",
    "data",
    "fsize",
    "locks",
    "memlock",
    "msgqueue",
    "nice",
    "nofile",
    "nproc",
    "rss",
    "rtprio",
    "rttime",
    "sigpending",
    "stack",
];

fn ulimits(scope: Scope<'_>, raw: Option<&Entries<FilePart<Ulimit>>>) -> Vec<(String, i64, i64)> {
    let mut found = Vec::new();
    for (name, limit) in raw.into_iter().flat_map(Entries::iter) {
        let scope = scope.key(name);
        if !ULIMITS.contains(&name) {
            scope
                .key_error("unknown-key", format!("unknown ulimit `{name}`"))
                .expected(format!("one of {}", crate::problems::quoted_list(ULIMITS)))
                .maybe_help(crate::problems::did_you_mean(name, ULIMITS))
                .report();
        }
        let (soft, hard) = match limit.good() {
            None => continue,
            Some(Ulimit::Both(limit)) => (*limit, *limit),
            Some(Ulimit::Spec(spec)) => (spec.soft, spec.hard),
        };
        if hard != -1 && (soft > hard || soft == -1) {
            scope.error("conflict", format!("the soft limit {soft} is above the hard limit {hard}")).report();
        }
        found.push((name.to_owned(), soft, hard));
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    #[test]
    fn every_service_that_comes_with_arenad_has_limits_of_memory_and_processes() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../environments");
        let mut services = 0;
        for file in ["mini", "webarena", "webarena-verified", "visualwebarena"] {
            let located = crate::locate_file(&folder.join(format!("{file}.yaml"))).expect("a definition");
            let sources = crate::read(&located).expect("its files");
            let loaded = crate::load(&sources, &BTreeMap::new()).expect("it is valid");
            for service in loaded.environment.sites.iter().flat_map(|site| &site.services) {
                let limits = &service.limits;
                assert!(limits.memory_bytes.is_some(), "{file}: {} has no mem_limit", service.name);
                assert!(limits.pids.is_some(), "{file}: {} has no pids_limit", service.name);
                services += 1;
            }
        }
        assert!(services > 30, "{services} services");
    }
}

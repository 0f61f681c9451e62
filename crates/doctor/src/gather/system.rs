//! Reads the kernel's state: memory, processors, limits, cgroups, routes, packet filters.

use procfs::Current;

use super::{output, program};
use crate::facts::{MachineFacts, System};
use arenad_model::subnet::Subnet;

/// Returns the memory and the processors.
pub(super) fn machine() -> MachineFacts {
    let memory = procfs::Meminfo::current().ok();
    let available = memory.as_ref().map_or(0, |memory| memory.mem_available.unwrap_or(memory.mem_free));
    MachineFacts {
        memory_bytes: memory.map_or(0, |memory| memory.mem_total),
        available_bytes: available,
        processors: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
    }
}

pub(super) fn look() -> System {
    let open_files = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let (cgroup_version, has_freezer) = cgroups(&mounts);
    System {
        open_files: (open_files.current, open_files.maximum),
        inotify_instances: number("/proc/sys/fs/inotify/max_user_instances"),
        inotify_watches: number("/proc/sys/fs/inotify/max_user_watches"),
        cgroup_version,
        has_freezer,
        has_ipvs: has_ipvs(),
    }
}

fn number(path: &str) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Returns the version of the cgroups that containers get, and whether they can be frozen. Version 2 always supports
/// freezing; on a host that mounts both versions, the controllers belong to version 1.
fn cgroups(mounts: &str) -> (Option<u8>, bool) {
    let fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let cgroups: Vec<Vec<&str>> =
        fields.filter(|fields| fields.len() > 3 && matches!(fields[2], "cgroup" | "cgroup2")).collect();
    let has_controller = |fields: &Vec<&str>, name: &str| fields[3].split(',').any(|option| option == name);
    let is_first = |fields: &&Vec<&str>| fields[2] == "cgroup" && has_controller(fields, "memory");
    if cgroups.iter().any(|fields| is_first(&fields)) {
        return (Some(1), cgroups.iter().any(|fields| has_controller(fields, "freezer")));
    }
    let is_second = cgroups.iter().any(|fields| fields[2] == "cgroup2");
    (is_second.then_some(2), is_second)
}

fn has_ipvs() -> bool {
    if std::path::Path::new("/proc/net/ip_vs").exists() {
        return true;
    }
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let modules = std::path::Path::new("/lib/modules").join(release.trim()).join("modules.dep");
    std::fs::read_to_string(modules).is_ok_and(|modules| modules.contains("/ip_vs.ko"))
}

/// Returns the host's routes except the default ones, which match every address that no other route does.
pub(super) fn routes() -> Vec<(Subnet, String)> {
    let routes = procfs::net::route().unwrap_or_default();
    let found = routes.into_iter().map(|route| {
        let prefix = u8::try_from(u32::from(route.mask).count_ones()).unwrap_or(32);
        (Subnet::new(route.destination, prefix), route.iface)
    });
    found.filter(|(range, _)| *range != Subnet::new(std::net::Ipv4Addr::UNSPECIFIED, 0)).collect()
}

/// Returns whether the chain exists that every engine with packet filtering creates. Only root can determine that;
/// `None` otherwise.
pub(super) async fn filters() -> Option<bool> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let mut seen = None;
    // The engine may have used a different variant than the current default of `iptables`.
    for name in ["iptables", "iptables-nft", "iptables-legacy"] {
        let Some(path) = program(name) else { continue };
        if let Some(answer) = output(&path, &["--wait", "2", "--numeric", "--list", "DOCKER-USER"]).await {
            seen = Some(seen.unwrap_or(false) || answer.status.success());
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cgroups_are_told_by_what_is_mounted() {
        let second = "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n";
        let first = "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n";
        let freezer = "cgroup /sys/fs/cgroup/freezer cgroup rw,freezer 0 0\n";
        assert_eq!(cgroups(second), (Some(2), true));
        assert_eq!(cgroups(&format!("{first}{second}")), (Some(1), false));
        assert_eq!(cgroups(&format!("{first}{freezer}{second}")), (Some(1), true));
        assert_eq!(cgroups("proc /proc proc rw 0 0\n"), (None, false));
    }
}

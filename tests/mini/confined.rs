//! Restrictions of the sites' containers: they cannot write to their own files, run files that were written, or gain
//! privileges. Also resets of the folders that they can write to.

use std::process::{Command, Output};

use crate::arena::Arena;

/// The services of each site.
const SERVICES: [(&str, &str); 9] = [
    ("shopping", "shopping"),
    ("shopping_admin", "shopping_admin"),
    ("wikipedia", "wikipedia"),
    ("reddit", "reddit"),
    ("turkle", "turkle"),
    ("homepage", "homepage"),
    ("map", "map"),
    ("map", "map-db"),
    ("gitlab", "gitlab"),
];

/// Sites that rewind, and the memory file system in which their supervisor works.
const REWINDING: [(&str, &str); 5] = [
    ("shopping", "/run/shop"),
    ("reddit", "/run/forum"),
    ("turkle", "/run/turkle"),
    ("homepage", "/run/homepage"),
    ("gitlab", "/run/forge"),
];

#[test]
fn sites_write_to_their_declared_places_alone() {
    let arena = Arena::up(&[]);
    for (site, service) in SERVICES {
        let containers = arena.containers(site);
        let (_, id) = containers.iter().find(|(name, _)| name == service).expect("the service runs");
        for folder in [
            "",
            "/bin",
            "/etc",
            "/home",
            "/opt",
            "/root",
            "/run",
            "/srv",
            "/usr",
            "/usr/share",
            "/var",
            "/var/log",
            "/var/tmp",
        ] {
            let refused = as_root(id, &format!("touch {folder}/stray"));
            let said = String::from_utf8_lossy(&refused.stderr).into_owned();
            assert!(
                !refused.status.success() && said.contains("Read-only file system"),
                "{service}: {folder}/stray: {said}"
            );
        }
        // Both limits stop processes that take too much, and protect the host's memory and process table.
        let limits = [("pids", pids_limit(id)), ("memory", memory_limit(id))];
        for (what, limit) in limits {
            assert!(limit.is_some_and(|limit| limit > 0), "{service}: no limit of {what}");
        }
        let status = String::from_utf8(as_root(id, "cat /proc/1/status").stdout).expect("text");
        for kind in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            assert!(status.contains(&format!("{kind}:\t0000000000000000\n")), "{service}: {status}");
        }
        assert!(status.contains("NoNewPrivs:\t1\n") && status.contains("Seccomp:\t2\n"), "{service}: {status}");
        // Even root in the container has no further rights, and files in memory cannot be executed.
        let gained = as_root(id, "grep CapEff /proc/self/status");
        assert!(String::from_utf8_lossy(&gained.stdout).contains("0000000000000000"), "{service}: {gained:?}");
        if service != "wikipedia" {
            let run = as_root(id, "cp /bin/true /tmp/stray && /tmp/stray");
            let said = String::from_utf8_lossy(&run.stderr).into_owned();
            assert!(!run.status.success() && said.contains("Permission denied"), "{service}: {said}");
        }
    }
}

#[test]
fn a_rewind_covers_what_sites_write_and_is_not_taken_for_what_it_does_not() {
    let names = REWINDING.map(|(site, _)| site);
    let arena =
        Arena::up_edited(&names, |definition| definition.replace("reset: { standby: 1 }", "reset: { standby: 0 }"));
    for (site, memory) in REWINDING {
        arena.exec(site, &["sh", "-c", "echo stray >/data/stray; echo stray >/tmp/stray"]);
        assert_eq!(arena.reset(site), "rewind", "{site}: stores and uploads are declared");
        arena.exec(site, &["sh", "-c", "[ ! -e /data/stray ] && [ ! -e /tmp/stray ]"]);
        arena.exec(site, &["sh", "-c", &format!("echo stray >{memory}/stray")]);
        assert_eq!(arena.reset(site), "recreate", "{site}: {memory}/stray is not");
        arena.exec(site, &["sh", "-c", &format!("[ ! -e {memory}/stray ]")]);
        let verified = arena.arenad(&["verify", site]);
        assert!(verified.status.success(), "{site}: {}", String::from_utf8_lossy(&verified.stdout));
    }
}

fn as_root(id: &str, script: &str) -> Output {
    Command::new("docker").args(["exec", "-u", "0", id, "sh", "-c", script]).output().expect("docker runs")
}

/// The maximum number of processes and threads of a container, read from the kernel. `None` means that there is no
/// limit.
fn pids_limit(id: &str) -> Option<u64> {
    let said = String::from_utf8(as_root(id, "cat /sys/fs/cgroup/pids.max /sys/fs/cgroup/pids/pids.max").stdout);
    said.expect("text").split_whitespace().next()?.parse().ok()
}

/// The memory limit of a container, in bytes.
fn memory_limit(id: &str) -> Option<u64> {
    let files = "/sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes";
    let said = String::from_utf8(as_root(id, &format!("cat {files}")).stdout).expect("text");
    // Without a limit, cgroup v1 shows the largest number of pages.
    said.split_whitespace().next()?.parse().ok().filter(|limit| *limit < 1 << 60)
}

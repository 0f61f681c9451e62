//! Sets a container's CPU shares directly in its control group. The engine's own call starts a program for that, which
//! takes longer than some resets, and each reset needs two such calls.
//!
//! The control group of a container is named after its id, which is unique across engines. If the group is not found,
//! as on another host or without root privileges, the engine's call is used.

use std::fs;
use std::path::{Path, PathBuf};

/// The length of a container's id, in hexadecimal digits.
const ID_LENGTH: usize = 64;

/// Sets a container's CPU shares (in the unit of cgroup v1). Returns `false` if its control group does not exist on
/// this host or is not writable.
pub(super) fn set(id: &str, shares: i64) -> bool {
    set_below(Path::new("/sys/fs/cgroup"), id, shares)
}

fn set_below(root: &Path, id: &str, shares: i64) -> bool {
    if id.len() != ID_LENGTH || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return false;
    }
    let groups = [format!("docker/{id}"), format!("system.slice/docker-{id}.scope")];
    let places = groups.iter().flat_map(|group| {
        let file = |hierarchy: &str, name: &str| -> PathBuf { root.join(hierarchy).join(group).join(name) };
        [
            (file("cpu", "cpu.shares"), shares),
            (file("cpu,cpuacct", "cpu.shares"), shares),
            (file("", "cpu.weight"), weight(shares)),
        ]
    });
    // Writing would create a missing file, so only existing files are considered.
    let mut known = places.filter(|(file, _)| file.exists());
    known.next().is_some_and(|(file, number)| fs::write(file, number.to_string()).is_ok())
}

/// Returns the weight of cgroup v2 (1 to 10,000) that the runtime derives from shares (2 to 262,144).
fn weight(shares: i64) -> i64 {
    1 + (shares.clamp(2, 262_144) - 2) * 9_999 / 262_142
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_is_found_in_either_version_and_none_is_made() {
        let root = tempfile::tempdir().expect("a folder");
        let id = "a1".repeat(32);
        assert!(!set_below(root.path(), &id, 64), "there is none");
        let group = root.path().join("system.slice").join(format!("docker-{id}.scope"));
        fs::create_dir_all(&group).expect("a folder");
        assert!(!set_below(root.path(), &id, 64), "it has no such file");
        fs::write(group.join("cpu.weight"), "100").expect("a file");
        assert!(set_below(root.path(), &id, 64));
        assert_eq!(fs::read_to_string(group.join("cpu.weight")).expect("a file"), "3");
        let group = root.path().join("cpu/docker").join(&id);
        fs::create_dir_all(&group).expect("a folder");
        fs::write(group.join("cpu.shares"), "1024").expect("a file");
        assert!(set_below(root.path(), &id, 64));
        assert_eq!(fs::read_to_string(group.join("cpu.shares")).expect("a file"), "64");
        assert!(!set_below(root.path(), "../../etc", 64));
    }

    #[test]
    fn weights_are_those_of_the_runtime() {
        assert_eq!([2, 64, 1024, 262_144].map(weight), [1, 3, 39, 10_000]);
    }
}

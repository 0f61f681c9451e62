//! The places that a container can write to, according to the kernel: the mounts of its first process.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use procfs::process::{MountInfo, Process};

use super::Failed;
use arenad_model::store::is_within;

/// The file systems that show the kernel's state and contain no written data.
const VIEWS: [&str; 5] = ["proc", "sysfs", "cgroup", "cgroup2", "devpts"];

/// The file systems that are in memory and are empty at first.
const MEMORY: [&str; 3] = ["tmpfs", "ramfs", "mqueue"];

/// The files that the engine writes for a container and mounts into it.
const OF_ENGINE: [&str; 3] = ["/etc/hosts", "/etc/hostname", "/etc/resolv.conf"];

/// The location of a container's writable layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WritableLayer {
    /// The container has no writable layer, because its root is read-only.
    ReadOnly,
    /// The layer is in folders of this host.
    Overlay {
        /// The folder with the changed entries.
        upper: PathBuf,
        /// The folders of the image's layers, uppermost first.
        lower: Vec<PathBuf>,
    },
    /// The location is known only to the engine.
    Unknown,
}

/// The mounts of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mounts {
    pub(super) layer: WritableLayer,
    /// The ids of the mounts that hold stores.
    pub(super) stores: BTreeSet<u64>,
    /// The mount points of the stores.
    pub(super) store_paths: BTreeSet<String>,
    /// The mount points whose content is compared: memory file systems, and the files that the engine writes.
    pub(super) memory: Vec<String>,
    /// The writable mounts that are not compared: mount point and kind.
    pub(super) others: BTreeMap<String, String>,
    /// All mount points except the root.
    pub(super) points: BTreeSet<String>,
}

impl Mounts {
    /// Reads the mounts of the container to which a process belongs.
    pub(super) fn of(pid: u32, stores: &BTreeSet<String>) -> Result<Self, Failed> {
        let read = || Process::new(i32::try_from(pid).unwrap_or(i32::MAX))?.mountinfo();
        let failed = |error: procfs::ProcError| Failed::System {
            doing: "read its mounts".to_owned(),
            cause: std::io::Error::other(error),
        };
        Ok(Self::read(read().map_err(failed)?.0.as_slice(), stores))
    }

    fn read(all: &[MountInfo], stores: &BTreeSet<String>) -> Self {
        let mut mounts = Self {
            layer: WritableLayer::ReadOnly,
            stores: BTreeSet::new(),
            store_paths: stores.clone(),
            memory: Vec::new(),
            others: BTreeMap::new(),
            points: BTreeSet::new(),
        };
        for mount in all {
            let path = mount.mount_point.to_string_lossy().into_owned();
            let is_read_only = mount.mount_options.contains_key("ro") || mount.super_options.contains_key("ro");
            if path == "/" {
                // If there are several root mounts, the container sees the last one.
                mounts.layer = if is_read_only { WritableLayer::ReadOnly } else { layer(mount) };
                continue;
            }
            mounts.points.insert(path.clone());
            if stores.contains(&path) {
                mounts.stores.extend(u64::try_from(mount.mnt_id));
                continue;
            }
            let kind = mount.fs_type.as_str();
            // The engine masks paths in `/proc` and `/sys` by devices or empty folders.
            let is_view = VIEWS.contains(&kind) || ["/proc", "/sys"].iter().any(|folder| is_within(&path, folder));
            if is_read_only || is_view {
                continue;
            }
            if MEMORY.contains(&kind) || OF_ENGINE.contains(&path.as_str()) {
                mounts.memory.push(path);
            } else {
                let is_volume = mount.root.contains("/volumes/");
                mounts.others.insert(path, if is_volume { "volume" } else { "folder of the host" }.to_owned());
            }
        }
        mounts.memory.sort();
        mounts.memory.dedup();
        mounts
    }
}

fn layer(mount: &MountInfo) -> WritableLayer {
    let option = |name: &str| mount.super_options.get(name).cloned().flatten();
    match (mount.fs_type.as_str(), option("upperdir"), option("lowerdir")) {
        // If an image has very many layers, the engine gives their folders relative to its own.
        ("overlay", Some(upper), Some(lower)) if upper.starts_with('/') && !upper.contains('\\') => {
            WritableLayer::Overlay { upper: upper.into(), lower: lower.split(':').map(PathBuf::from).collect() }
        }
        _ => WritableLayer::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use procfs::FromBufRead;
    use procfs::process::MountInfos;

    use super::*;

    const ROOT: &str = "124 98 0:49 / / rw,relatime master:3 - overlay overlay rw,lowerdir=/d/l/A:/d/l/B,upperdir=/d/1/diff,workdir=/d/1/work\n";
    const USUAL: &str = "\
125 124 0:52 / /proc rw,nosuid - proc proc rw
126 124 0:53 / /dev rw,nosuid - tmpfs tmpfs rw,size=65536k,mode=755
127 126 0:54 / /dev/pts rw - devpts devpts rw
128 124 0:55 / /sys ro,nosuid - sysfs sysfs ro
129 128 0:56 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
139 126 0:51 / /dev/mqueue rw - mqueue mqueue rw
140 126 0:57 / /dev/shm rw - tmpfs shm rw,size=65536k
142 124 254:0 /c/hosts /etc/hosts rw - ext4 /dev/vda rw
104 125 0:53 /null /proc/keys rw,nosuid - tmpfs tmpfs rw
";

    fn read(text: &str) -> Mounts {
        let infos = MountInfos::from_buf_read(Cursor::new(text.as_bytes())).expect("mounts");
        Mounts::read(infos.0.as_slice(), &BTreeSet::from(["/data".to_owned()]))
    }

    #[test]
    fn memory_is_compared_and_views_of_the_kernel_are_not() {
        let mounts = read(&format!("{ROOT}{USUAL}"));
        assert_eq!(mounts.memory, ["/dev", "/dev/mqueue", "/dev/shm", "/etc/hosts"]);
        assert!(mounts.others.is_empty());
        let lower = ["/d/l/A", "/d/l/B"].map(PathBuf::from).to_vec();
        assert_eq!(mounts.layer, WritableLayer::Overlay { upper: "/d/1/diff".into(), lower });
    }

    #[test]
    fn stores_are_known_by_their_mounts_and_what_else_can_be_written_is_named() {
        let more = "\
150 124 7:1 /s/x /data rw - xfs /dev/loop1 rw
151 124 254:0 /var/lib/docker/volumes/v/_data /srv/extra rw - ext4 /dev/vda rw
152 124 254:0 /home/x /srv/bind rw - ext4 /dev/vda rw
153 124 254:0 /home/y /srv/read ro - ext4 /dev/vda rw
154 150 0:70 / /data/tmp rw - tmpfs tmpfs rw
";
        let mounts = read(&format!("{ROOT}{USUAL}{more}"));
        assert_eq!(mounts.stores, BTreeSet::from([150]));
        assert!(mounts.memory.contains(&"/data/tmp".to_owned()), "a memory file system in a store is not part of it");
        let others: Vec<(&str, &str)> =
            mounts.others.iter().map(|(path, what)| (path.as_str(), what.as_str())).collect();
        assert_eq!(others, [("/srv/bind", "folder of the host"), ("/srv/extra", "volume")]);
    }

    #[test]
    fn a_layer_that_cannot_be_found_is_not_taken_for_empty() {
        assert_eq!(read("1 2 0:4 / / rw - btrfs /dev/sda rw\n").layer, WritableLayer::Unknown);
        assert_eq!(
            read("1 2 0:4 / / rw - overlay overlay rw,lowerdir=l/A,upperdir=1/diff\n").layer,
            WritableLayer::Unknown
        );
        assert_eq!(
            read("1 2 0:4 / / ro - overlay overlay rw,lowerdir=/l/A,upperdir=/1/diff\n").layer,
            WritableLayer::ReadOnly
        );
    }
}

//! File systems in files, one per value.

use std::path::{Path, PathBuf};
use std::process::Command;

use arenad_storage::{StateRoot, StoreTree};

/// A size that no test fills; the file has holes.
const AMPLE: u64 = 3 << 30;

/// A mounted file system; it is removed when the value is dropped.
pub struct MountedDisk {
    folder: tempfile::TempDir,
    kind: &'static str,
}

impl MountedDisk {
    /// Runs a test on both kinds: a file system that clones and one that does not.
    pub fn each(test: impl Fn(&MountedDisk)) {
        for kind in ["xfs", "ext4"] {
            test(&MountedDisk::new(kind, AMPLE));
        }
    }

    /// Runs a test on both kinds, with this size.
    pub fn each_small(size: u64, test: impl Fn(&MountedDisk)) {
        for kind in ["xfs", "ext4"] {
            test(&MountedDisk::new(kind, size));
        }
    }

    pub fn new(kind: &'static str, size: u64) -> Self {
        Self::mounted(kind, size, "loop").unwrap()
    }

    /// An XFS with project quotas, or `None` if the kernel has none.
    pub fn with_quotas(size: u64) -> Option<Self> {
        let disk = Self::mounted("xfs", size, "loop,prjquota");
        if disk.is_none() {
            println!("nothing is shown: this kernel has no quotas for XFS (CONFIG_XFS_QUOTA)");
        }
        disk
    }

    fn mounted(kind: &'static str, size: u64, options: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("disk");
        std::fs::File::create(&file).unwrap().set_len(size).unwrap();
        match kind {
            "xfs" => run("mkfs.xfs", &["-q", "-m", "reflink=1", path(&file)]),
            _ => run("mkfs.ext4", &["-q", "-F", path(&file)]),
        }
        let mount = folder.path().join("mount");
        std::fs::create_dir(&mount).unwrap();
        let mounted = Command::new("mount").args(["-o", options, path(&file), path(&mount)]).status().unwrap();
        mounted.success().then_some(Self { folder, kind })
    }

    pub fn clones(&self) -> bool {
        self.kind == "xfs"
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("mount")
    }

    /// Opens a state root on it.
    pub fn root(&self) -> StateRoot {
        StateRoot::open(self.path().join("root")).unwrap()
    }

    /// Returns the used space in bytes after a sync.
    pub fn used(&self) -> u64 {
        let file = std::fs::File::open(self.path()).unwrap();
        rustix::fs::syncfs(&file).unwrap();
        let found = rustix::fs::fstatvfs(&file).unwrap();
        (found.f_blocks - found.f_bfree) * found.f_frsize
    }
}

impl Drop for MountedDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.path()).status();
    }
}

pub fn run(program: &str, args: &[&str]) {
    let output = Command::new(program).args(args).output().unwrap();
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

pub fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

pub fn snapshot(id: &str) -> StoreTree {
    StoreTree::snapshot(id, "data").unwrap()
}

pub fn instance(generation: u64) -> StoreTree {
    use arenad_model::ids::{EnvironmentName, SiteName};
    use arenad_model::instance::InstanceId;
    let environment = EnvironmentName::parse("mini").unwrap();
    let id = InstanceId::serving(&environment, &SiteName::parse("shopping").unwrap());
    StoreTree::instance(&id, generation, "data").unwrap()
}

//! `arenad storage`: a disk is created once, receives the existing content, and is mounted again when a process opens
//! the root.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use arenad_storage::disk::{self, DiskStatus};
use arenad_storage::{StateRoot, StoreTree};
use serde_json::Value;

use super::disk::{MountedDisk, instance, path, snapshot};
use super::look::{Of, assert_same, look};
use super::sample;

/// A state directory on ext4; its disk is removed with it.
struct StateDirectory {
    beneath: MountedDisk,
}

impl StateDirectory {
    fn new() -> Self {
        Self { beneath: MountedDisk::new("ext4", 3 << 30) }
    }

    fn state_dir(&self) -> PathBuf {
        self.beneath.path().join("state")
    }

    fn stores(&self) -> PathBuf {
        self.state_dir().join("stores")
    }

    fn storage(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_arenad"));
        command.args(["--state-dir", path(&self.state_dir()), "storage"]).args(arguments);
        command.env_remove("ARENAD_HOST").output().unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.storage(&[arguments, &["--json"]].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Returns the error output and the exit code of a command that fails.
    fn refused(&self, arguments: &[&str]) -> (String, Option<i32>) {
        let output = self.storage(arguments);
        (String::from_utf8(output.stderr).unwrap(), output.status.code())
    }

    fn unmount(&self) {
        super::disk::run("umount", &[path(&self.stores())]);
    }
}

impl Drop for StateDirectory {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.stores()).output();
    }
}

#[test]
fn a_disk_is_made_mounted_again_after_a_start_and_removed() {
    let home = StateDirectory::new();
    let before = home.json(&["status"]);
    assert_eq!((&before["clones"], &before["file_system"]), (&Value::Bool(false), &Value::from("ext4")), "{before}");
    assert!(before["disk"].is_null() && before["exists"] == false, "{before}");
    let made = home.json(&["init", "--size", "1g"]);
    assert_eq!((&made["clones"], &made["file_system"]), (&Value::Bool(true), &Value::from("xfs")), "{made}");
    assert_eq!((&made["disk"]["size_bytes"], &made["disk"]["is_mounted"]), (&Value::from(1 << 30), &Value::Bool(true)));
    assert!(made["disk"]["taken_bytes"].as_u64().unwrap() < 100 << 20, "{made}");
    let root = StateRoot::open_in(&home.state_dir()).unwrap();
    assert!(root.clones());
    // Stores are limited only if the kernel has quotas.
    assert_eq!(disk::limits_stores(&home.stores()), MountedDisk::with_quotas(400 << 20).is_some());
    fs::create_dir_all(root.folder(&snapshot("s1"))).unwrap();
    // The host restarts: the loop device is gone, and the record stays.
    home.unmount();
    assert_released(&home.state_dir().join("stores.xfs"));
    assert_eq!(home.json(&["status"])["disk"]["is_mounted"], false);
    assert!(StateRoot::open_in(&home.state_dir()).unwrap().is_whole(&snapshot("s1")));
    assert_eq!(StateRoot::open_in(&home.state_dir()).unwrap().trees().unwrap(), [snapshot("s1")]);
    let (said, code) = home.refused(&["init"]);
    assert!(
        said.contains("there is one already") && said.contains("arenad storage status") && code == Some(1),
        "{said}"
    );
    assert!(disk::remove(&home.state_dir()).unwrap() && !disk::remove(&home.state_dir()).unwrap());
    assert_eq!(disk::standing(&home.state_dir()).unwrap(), DiskStatus::None);
    assert_eq!(fs::read_dir(home.state_dir()).unwrap().count(), 2, "the lock and an empty folder");
}

/// Asserts that the loop device goes with the mount, for which the kernel needs a moment.
fn assert_released(file: &Path) {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let listed = Command::new("losetup").args(["--associated", path(file)]).output().unwrap();
        if listed.stdout.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "{}", String::from_utf8_lossy(&listed.stdout));
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn snapshots_are_carried_over_and_instances_are_in_the_way() {
    let home = StateDirectory::new();
    let root = StateRoot::open_in(&home.state_dir()).unwrap();
    let first = root.folder(&snapshot("s1"));
    fs::create_dir_all(first.parent().unwrap()).unwrap();
    sample::make(&first);
    let original = look(&first, Of::All);
    root.clone_tree(&snapshot("s1"), &StoreTree::snapshot("s2", "other").unwrap()).unwrap();
    root.clone_tree(&snapshot("s1"), &instance(1)).unwrap();
    let (said, code) = home.refused(&["init", "--size", "600m"]);
    assert!(said.contains("a tree of mini/shopping/1 is in the state root") && code == Some(1), "{said}");
    assert!(said.contains("`arenad down`"), "{said}");
    root.discard(&instance(1)).unwrap();
    let elsewhere = home.beneath.path().join("elsewhere.img");
    let made = home.json(&["init", "--size", "600m", "--path", path(&elsewhere)]);
    assert_eq!(made["disk"]["file"], path(&elsewhere));
    let root = StateRoot::open_in(&home.state_dir()).unwrap();
    assert_eq!(root.trees().unwrap(), [snapshot("s1"), StoreTree::snapshot("s2", "other").unwrap()]);
    assert_same(&look(&root.folder(&snapshot("s1")), Of::All), &original);
    assert!(!home.state_dir().join("stores.before").exists() && !home.state_dir().join("stores.new").exists());
}

#[test]
fn what_cannot_be_made_is_refused_and_changes_nothing() {
    let home = StateDirectory::new();
    fs::create_dir(home.state_dir()).unwrap();
    fs::write(home.state_dir().join("stores.xfs"), "someone's").unwrap();
    let other = path(&home.state_dir().join("other.xfs")).to_owned();
    let cases: [(&[&str], &str, i32); 5] = [
        (&["init"], "there is a file of that name", 1),
        (&["init", "--path", &other, "--size", "100m"], "the least is", 2),
        (&["init", "--path", &other, "--size", "100g"], "are free there", 1),
        (&["init", "--path", "/no/such/folder/disk", "--size", "1g"], "/no/such/folder", 1),
        (&["init", "--size", "many"], "is not a size such as 20G", 2),
    ];
    for (arguments, says, expected) in cases {
        let (said, code) = home.refused(arguments);
        assert!(said.contains(says) && code == Some(expected), "{arguments:?} ended with {code:?}: {said}");
    }
    let lock = fs::File::create(home.state_dir().join("lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let (said, code) = home.refused(&["init", "--path", &other]);
    assert!(said.contains("a daemon runs on it") && code == Some(4), "{said}");
    assert_eq!(fs::read(home.state_dir().join("stores.xfs")).unwrap(), b"someone's");
    assert!(!Path::new(&other).exists() && !home.state_dir().join("disk.json").exists());
    assert_eq!(disk::standing(&home.state_dir()).unwrap(), DiskStatus::None);
}

#[test]
fn snapshots_that_do_not_fit_stay_where_they_are() {
    let home = StateDirectory::new();
    let root = StateRoot::open_in(&home.state_dir()).unwrap();
    let folder = root.folder(&snapshot("s1"));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("large"), vec![3; 700 << 20]).unwrap();
    let (said, code) = home.refused(&["init", "--size", "600m"]);
    assert!(said.contains("carry the snapshots over") && said.contains("no room is left") && code == Some(1), "{said}");
    assert_eq!(disk::standing(&home.state_dir()).unwrap(), DiskStatus::None);
    assert!(StateRoot::open_in(&home.state_dir()).unwrap().is_whole(&snapshot("s1")));
    assert!(!home.state_dir().join("stores.xfs").exists() && !home.state_dir().join("stores.new").exists());
    assert!(!home.state_dir().join("stores.xfs.partial").exists());
}

#[test]
fn a_file_system_with_reflinks_needs_no_disk() {
    let beneath = MountedDisk::new("xfs", 3 << 30);
    let mut command = Command::new(env!("CARGO_BIN_EXE_arenad"));
    let output =
        command.args(["--state-dir", path(&beneath.path().join("state")), "storage", "init"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("share their blocks there without one") && output.status.code() == Some(1), "{said}");
}

#[test]
fn a_disk_that_is_gone_is_an_error_and_not_an_empty_root() {
    let home = StateDirectory::new();
    home.json(&["init", "--size", "600m"]);
    home.unmount();
    fs::rename(home.state_dir().join("stores.xfs"), home.state_dir().join("moved")).unwrap();
    let error = StateRoot::open_in(&home.state_dir()).unwrap_err();
    assert!(error.to_string().contains("losetup"), "{error}");
    assert_eq!(home.json(&["status"])["disk"]["taken_bytes"], Value::Null);
}

#[test]
fn what_was_removed_goes_back_to_the_file_system_beneath() {
    let home = StateDirectory::new();
    assert!(!disk::trim(&home.state_dir()).unwrap(), "there is no disk yet");
    home.json(&["init", "--size", "1g"]);
    let taken = || home.json(&["status"])["disk"]["taken_bytes"].as_u64().unwrap();
    let empty = taken();
    let root = StateRoot::open_in(&home.state_dir()).unwrap();
    let tree = root.folder(&instance(1));
    fs::create_dir_all(&tree).unwrap();
    fs::write(tree.join("much"), vec![1_u8; 200 << 20]).unwrap();
    super::disk::run("sync", &[]);
    assert!(taken() > empty + (150 << 20));
    fs::remove_dir_all(&tree).unwrap();
    super::disk::run("sync", &[]);
    assert!(disk::trim(&home.state_dir()).unwrap());
    assert!(taken() < empty + (50 << 20), "{} after {empty}", taken());
}

/// The mount options of the state root.
fn options(home: &StateDirectory) -> Vec<String> {
    let found = Command::new("findmnt").args(["--noheadings", "--output", "VFS-OPTIONS"]).arg(home.stores()).output();
    let found = String::from_utf8(found.unwrap().stdout).unwrap();
    found.trim().split(',').map(str::to_owned).collect()
}

#[test]
fn programs_and_devices_in_stores_have_no_power_over_the_host() {
    let home = StateDirectory::new();
    home.json(&["init", "--size", "1g"]);
    let is_restricted = || ["nosuid", "nodev"].iter().all(|wanted| options(&home).iter().any(|found| found == wanted));
    assert!(is_restricted(), "{:?}", options(&home));
    // An earlier version mounted it with these options.
    super::disk::run("mount", &["-o", "remount,bind,suid,dev", path(&home.stores())]);
    assert!(!is_restricted(), "{:?}", options(&home));
    let root = StateRoot::open_in(&home.state_dir()).unwrap();
    assert!(is_restricted(), "{:?}", options(&home));
    // Clones keep device files and set-user-id bits as data.
    let made = root.folder(&snapshot("s1"));
    fs::create_dir_all(made.parent().unwrap()).unwrap();
    sample::make(&made);
    root.clone_tree(&snapshot("s1"), &snapshot("s2")).unwrap();
    assert_same(&look(&made, Of::All), &look(&root.folder(&snapshot("s2")), Of::All));
}

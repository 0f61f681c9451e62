//! Disks that are too small.

use std::fs;

use arenad_storage::{ArchiveLimits, StorageError};

use super::disk::{MountedDisk, instance, snapshot};

/// The smallest size that `mkfs.xfs` accepts.
const SMALL: u64 = 320 << 20;

fn content(megabytes: usize) -> Vec<u8> {
    (0..megabytes << 20).map(|at| (at % 251) as u8).collect()
}

#[test]
fn a_full_disk_is_said_so_and_leaves_no_tree_and_no_loss() {
    MountedDisk::each_small(SMALL, |disk| {
        let root = disk.root();
        let folder = root.folder(&snapshot("s1"));
        fs::create_dir_all(&folder).unwrap();
        let content = content(150);
        fs::write(folder.join("large"), &content).unwrap();
        // A clone needs no space on XFS; on ext4 there is none for a second copy.
        let made = root.clone_tree(&snapshot("s1"), &instance(1));
        match disk.clones() {
            true => assert_eq!(made.unwrap().copied_bytes, 0),
            false => assert_no_room(&made.unwrap_err()),
        }
        let mut archive = tar::Builder::new(Vec::new());
        archive.append_dir("data", &folder).unwrap();
        archive.append_dir_all("data/in", &folder).unwrap();
        let archive = archive.into_inner().unwrap();
        for _ in 0..2 {
            let error = root.receive(archive.as_slice(), &snapshot("s2"), ArchiveLimits::default()).unwrap_err();
            assert_no_room(&error);
            assert!(!root.is_whole(&snapshot("s2")));
            root.empty_trash().unwrap();
        }
        assert_eq!(fs::read(folder.join("large")).unwrap(), content);
        root.discard(&snapshot("s1")).unwrap();
        root.discard(&instance(1)).unwrap();
        root.empty_trash().unwrap();
        // XFS frees space in the background; a sync of the whole file system waits for that.
        disk.used();
        root.receive(archive.as_slice(), &snapshot("s2"), ArchiveLimits::default()).unwrap();
    });
}

fn assert_no_room(error: &StorageError) {
    assert!(matches!(error, StorageError::NoRoom { .. }), "{error:?}");
    assert!(error.to_string().contains("no room is left"), "{error}");
    assert!(error.hint().is_some_and(|hint| hint.contains("arenad prune")));
}

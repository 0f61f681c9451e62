//! Clones: everything survives, no change reaches the original, and on XFS a clone takes almost no space.

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};

use arenad_storage::StorageError;

use super::disk::{MountedDisk, instance, snapshot};
use super::look::{Of, assert_same, look};
use super::sample::{self, HOLLOW};

/// Puts a sample in the place of a snapshot's tree, which only tests may do.
pub fn place(disk: &MountedDisk) -> arenad_storage::StateRoot {
    let root = disk.root();
    let folder = root.folder(&snapshot("s1"));
    fs::create_dir_all(folder.parent().unwrap()).unwrap();
    sample::make(&folder);
    root
}

#[test]
fn a_clone_differs_in_nothing() {
    MountedDisk::each(|disk| {
        let root = place(disk);
        assert_eq!(root.clones(), disk.clones());
        let before = look(&root.folder(&snapshot("s1")), Of::All);
        let cloned = root.clone_tree(&snapshot("s1"), &instance(1)).unwrap();
        assert_same(&look(&root.folder(&instance(1)), Of::All), &before);
        assert_same(&look(&root.folder(&snapshot("s1")), Of::All), &before);
        assert_eq!(cloned.copied_bytes == 0, disk.clones(), "{cloned:?}");
        assert_eq!((cloned.folders, cloned.others), (8, 7), "{cloned:?}");
        assert!(root.is_whole(&instance(1)));
        // Taking a snapshot of an instance is the same operation in the other direction.
        root.clone_tree(&instance(1), &snapshot("s2")).unwrap();
        assert_same(&look(&root.folder(&snapshot("s2")), Of::All), &before);
    });
}

#[test]
fn holes_stay_holes_and_writing_to_a_clone_leaves_the_original_alone() {
    MountedDisk::each(|disk| {
        let root = place(disk);
        root.clone_tree(&snapshot("s1"), &instance(1)).unwrap();
        let (original, clone) = (root.folder(&snapshot("s1")), root.folder(&instance(1)));
        let hollow = fs::metadata(clone.join("hollow")).unwrap();
        assert_eq!(hollow.len(), HOLLOW);
        assert!(hollow.blocks() * 512 < 1 << 20, "{} blocks", hollow.blocks());
        let file = fs::File::options().write(true).open(clone.join("deep/er/still/file")).unwrap();
        file.write_all_at(b"changed", 50_000).unwrap();
        assert_eq!(fs::read(original.join("deep/er/still/file")).unwrap(), [7; 100_000]);
        assert_eq!(&fs::read(clone.join("shared/a third")).unwrap()[50_000..50_007], b"changed");
    });
}

#[test]
fn on_xfs_a_clone_takes_no_room_and_usage_tells_what_is_shared() {
    let disk = MountedDisk::new("xfs", 3 << 30);
    let root = disk.root();
    let folder = root.folder(&snapshot("s1"));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("large"), vec![5; 64 << 20]).unwrap();
    let before = disk.used();
    root.clone_tree(&snapshot("s1"), &instance(1)).unwrap();
    assert!(disk.used() - before < 1 << 20, "{} bytes", disk.used() - before);
    let file = fs::File::options().write(true).open(root.folder(&instance(1)).join("large")).unwrap();
    file.write_all_at(&[6; 1 << 20], 8 << 20).unwrap();
    file.sync_all().unwrap();
    let usage = root.usage(&instance(1)).unwrap();
    assert_eq!((usage.apparent_bytes, usage.files, usage.folders), (64 << 20, 1, 1));
    assert!(usage.allocated_bytes >= 64 << 20, "{usage:?}");
    // The file system may reserve slightly more than was written.
    assert!((1 << 20..4 << 20).contains(&usage.exclusive_bytes), "{usage:?}");
}

#[test]
fn a_tree_has_its_name_once_and_only_when_it_is_whole() {
    MountedDisk::each(|disk| {
        let root = place(disk);
        let error = root.clone_tree(&snapshot("other"), &instance(1)).unwrap_err();
        assert!(matches!(error, StorageError::Missing(_)), "{error}");
        root.clone_tree(&snapshot("s1"), &instance(1)).unwrap();
        let error = root.clone_tree(&snapshot("s1"), &instance(1)).unwrap_err();
        assert!(matches!(error, StorageError::Exists(_)), "{error}");
        // A clone that was never used only adds work for the trash.
        drop(root.fresh(&snapshot("s1")).unwrap());
        assert_eq!(fs::read_dir(root.path().join("partial")).unwrap().count(), 0);
        assert!(root.empty_trash().unwrap().files > 700);
        assert_eq!(root.trees().unwrap(), [snapshot("s1"), instance(1)]);
    });
}

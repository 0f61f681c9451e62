//! Trees that are restored by their touched files: whatever a site does to its store, the result equals that of a full
//! exchange, and untouched files stay in place.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use arenad_storage::{ExchangeStep, StateRoot, StorageError};

use super::disk::{MountedDisk, instance, snapshot};
use super::look::{Of, assert_same, look};

/// A snapshot without hard links, and an instance's clone of it.
fn place(disk: &MountedDisk) -> StateRoot {
    let root = disk.root();
    let top = root.folder(&snapshot("s1"));
    for folder in ["pictures/a/deep", "pictures/b", "database", "empty"] {
        fs::create_dir_all(top.join(folder)).unwrap();
    }
    for number in 0..300 {
        let folder = ["pictures/a", "pictures/a/deep", "pictures/b", "database"][number % 4];
        fs::write(top.join(folder).join(number.to_string()), vec![7; number * 100]).unwrap();
    }
    symlink("pictures/a", top.join("link")).unwrap();
    fs::set_permissions(top.join("empty"), fs::Permissions::from_mode(0o1777)).unwrap();
    rustix::fs::lsetxattr(top.join("database"), "user.kept", b"yes", rustix::fs::XattrFlags::CREATE).unwrap();
    root.clone_tree(&snapshot("s1"), &instance(1)).unwrap();
    root
}

fn is_known(root: &StateRoot) -> bool {
    root.knows_touched(&instance(1), &snapshot("s1"))
}

/// Restores the tree, and checks that it equals the snapshot in all visible attributes.
fn restore(root: &StateRoot) -> arenad_storage::Restored {
    let restored = root.restore(&instance(1), &snapshot("s1")).unwrap();
    assert!(root.is_whole(&instance(1)));
    assert_same(&look(&root.folder(&instance(1)), Of::All), &look(&root.folder(&snapshot("s1")), Of::All));
    assert_eq!(fs::read_dir(root.path().join("partial")).unwrap().count(), 0);
    restored
}

/// A change that a site makes to its tree, with its name.
type Deed = (&'static str, fn(&Path));

/// Changes that sites make to their files, each as a separate step.
const DEEDS: &[Deed] = &[
    ("writes in place", |live| {
        let file = fs::OpenOptions::new().write(true).open(live.join("database/3")).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, b"x", 5).unwrap();
    }),
    ("writes in place and hides it", |live| {
        let path = live.join("database/7");
        let before = fs::metadata(&path).unwrap();
        fs::write(&path, vec![8; before.size() as usize]).unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_modified(before.modified().unwrap()).unwrap();
    }),
    ("replaces by a rename", |live| {
        fs::write(live.join("database/new"), "x").unwrap();
        fs::rename(live.join("database/new"), live.join("database/11")).unwrap();
    }),
    ("removes", |live| fs::remove_file(live.join("pictures/b/2")).unwrap()),
    ("adds", |live| fs::write(live.join("pictures/b/new"), "x").unwrap()),
    ("adds folders", |live| {
        fs::create_dir_all(live.join("made/by/the/site")).unwrap();
        fs::write(live.join("made/by/file"), "x").unwrap();
    }),
    ("removes folders", |live| fs::remove_dir_all(live.join("pictures/a")).unwrap()),
    ("makes a folder of that name", |live| {
        fs::remove_dir_all(live.join("pictures/a")).unwrap();
        fs::create_dir_all(live.join("pictures/a/deep")).unwrap();
        fs::write(live.join("pictures/a/deep/1"), "x").unwrap();
    }),
    ("moves a folder and leaves a link to it", |live| {
        fs::rename(live.join("pictures/a"), live.join("moved")).unwrap();
        symlink("../moved", live.join("pictures/a")).unwrap();
    }),
    ("moves a folder away and back", |live| {
        fs::rename(live.join("pictures/a"), live.join("moved")).unwrap();
        fs::rename(live.join("moved"), live.join("pictures/a")).unwrap();
    }),
    ("exchanges files", |live| {
        let [one, other] = ["pictures/b/2", "pictures/b/6"].map(|name| live.join(name));
        fs::rename(&one, live.join("between")).unwrap();
        fs::rename(&other, &one).unwrap();
        fs::rename(live.join("between"), &other).unwrap();
    }),
    ("exchanges a file and a folder", |live| {
        fs::remove_file(live.join("database/3")).unwrap();
        fs::create_dir(live.join("database/3")).unwrap();
        fs::remove_dir(live.join("empty")).unwrap();
        fs::write(live.join("empty"), "x").unwrap();
    }),
    ("gives a second name", |live| fs::hard_link(live.join("database/3"), live.join("second")).unwrap()),
    ("leads links elsewhere", |live| {
        fs::remove_file(live.join("link")).unwrap();
        symlink("/etc", live.join("link")).unwrap();
    }),
    ("changes modes", |live| {
        fs::set_permissions(live.join("database/3"), fs::Permissions::from_mode(0o600)).unwrap();
        fs::set_permissions(live.join("empty"), fs::Permissions::from_mode(0o700)).unwrap();
        fs::set_permissions(live, fs::Permissions::from_mode(0o777)).unwrap();
    }),
    ("sets attributes", |live| {
        rustix::fs::lsetxattr(live.join("database/3"), "user.site", b"x", rustix::fs::XattrFlags::CREATE).unwrap();
        rustix::fs::lremovexattr(live.join("database"), "user.kept").unwrap();
    }),
    ("empties all", |live| {
        for entry in fs::read_dir(live).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.is_symlink() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
        }
    }),
];

#[test]
fn whatever_was_touched_comes_back() {
    MountedDisk::each(|disk| {
        let root = place(disk);
        let live = root.folder(&instance(1));
        assert!(is_known(&root));
        let untouched = restore(&root);
        assert_eq!((untouched.moved_out, untouched.cloned), (0, 0), "{untouched:?}");
        for (what, deed) in DEEDS {
            deed(&live);
            let restored = restore(&root);
            assert!(is_known(&root), "{what}");
            assert!(restored.kept > 0, "{what}: {restored:?}");
            let again = restore(&root);
            assert_eq!((again.moved_out, again.cloned), (0, 0), "{what}: {again:?}");
        }
        // All changes are combined, repeatedly, so that they affect each other.
        for round in 0..DEEDS.len() {
            for (_, deed) in DEEDS[round..].iter().take(3).filter(|(what, _)| *what != "empties all") {
                // Some changes undo the preconditions of others.
                let _ = std::panic::catch_unwind(|| deed(&live));
            }
            restore(&root);
        }
        root.empty_trash().unwrap();
        assert_eq!(fs::read_dir(root.path().join("trash")).unwrap().count(), 0);
    });
}

#[test]
fn what_was_not_touched_stays() {
    MountedDisk::each(|disk| {
        let root = place(disk);
        let live = root.folder(&instance(1));
        let inode = |name: &str| fs::symlink_metadata(live.join(name)).unwrap().ino();
        let (kept, touched) = (inode("pictures/a/deep/1"), inode("database/3"));
        for _ in 0..3 {
            fs::write(live.join("database/3"), "x").unwrap();
            let restored = restore(&root);
            assert_eq!((restored.moved_out, restored.cloned), (1, 1), "{restored:?}");
            assert!(restored.kept > 300, "{restored:?}");
        }
        assert_eq!(inode("pictures/a/deep/1"), kept);
        assert_ne!(inode("database/3"), touched);
    });
}

#[test]
fn a_write_right_after_is_noticed() {
    let disk = MountedDisk::new("xfs", 3 << 30);
    let root = place(&disk);
    let live = root.folder(&instance(1));
    // Unless arenad waits for the clock's next tick, some of these writes have the time of the clone.
    for round in 0..200 {
        fs::write(live.join("database/3"), format!("round {round}")).unwrap();
        let restored = restore(&root);
        assert_eq!(restored.cloned, 1, "round {round}: {restored:?}");
    }
}

#[test]
fn what_nobody_knows_is_exchanged_as_a_whole() {
    MountedDisk::each(|disk| {
        let root = place(disk);
        fs::write(root.folder(&instance(1)).join("database/3"), "x").unwrap();
        // A new daemon opens the root.
        let root = StateRoot::open(root.path()).unwrap();
        assert!(!is_known(&root));
        let restored = restore(&root);
        assert_eq!(restored.kept, 0, "{restored:?}");
        assert!(is_known(&root));
        // The instance is a clone of another snapshot.
        root.clone_tree(&instance(1), &snapshot("s2")).unwrap();
        assert!(!root.knows_touched(&instance(1), &snapshot("s2")));
        assert_eq!(root.restore(&instance(1), &snapshot("s2")).unwrap().kept, 0);
        assert!(root.knows_touched(&instance(1), &snapshot("s2")) && !is_known(&root));
        // All names of a file share its times.
        let second = root.folder(&snapshot("s1")).join("second");
        fs::hard_link(root.folder(&snapshot("s1")).join("database/3"), second).unwrap();
        restore(&root);
        assert!(!is_known(&root));
        root.discard(&instance(1)).unwrap();
    });
}

#[test]
fn a_crash_before_any_step_leaves_a_tree_that_is_whole_or_known_not_to_be() {
    let disk = MountedDisk::new("xfs", 3 << 30);
    let root = place(&disk);
    let use_up = |root: &StateRoot| {
        let live = root.folder(&instance(1));
        fs::write(live.join("database/3"), "x").unwrap();
        fs::write(live.join("pictures/new"), "x").unwrap();
        fs::remove_file(live.join("pictures/b/2")).unwrap();
    };
    use_up(&root);
    let mut steps = Vec::new();
    let mut note = |step| {
        steps.push(step);
        Ok(())
    };
    root.restore_stepwise(&instance(1), &snapshot("s1"), &mut note).unwrap();
    assert!(steps.len() >= 9, "{steps:?}");
    for (crash_at, last) in steps.iter().enumerate() {
        let root = disk.root();
        restore(&root);
        use_up(&root);
        let mut step = 0;
        // As after a crash, no later step is executed either.
        let mut crash = |_| {
            step += 1;
            if step > crash_at { Err(StorageError::StillWritten { path: "/".into() }) } else { Ok(()) }
        };
        root.restore_stepwise(&instance(1), &snapshot("s1"), &mut crash).unwrap_err();
        let next = disk.root();
        assert_eq!(next.is_whole(&instance(1)), *last == ExchangeStep::Mark, "{last:?}");
        restore(&next);
    }
}

#[test]
fn a_step_that_fails_is_made_up_for() {
    let disk = MountedDisk::new("xfs", 3 << 30);
    let root = place(&disk);
    fs::write(root.folder(&instance(1)).join("database/3"), "x").unwrap();
    let mut has_failed = false;
    let mut fail = |step| match step {
        ExchangeStep::MoveIn(_) if !std::mem::replace(&mut has_failed, true) => {
            Err(StorageError::StillWritten { path: "/".into() })
        }
        _ => Ok(()),
    };
    let restored = root.restore_stepwise(&instance(1), &snapshot("s1"), &mut fail).unwrap();
    assert_eq!(restored.kept, 0, "{restored:?}");
    restore(&root);
    assert!(is_known(&root));
}

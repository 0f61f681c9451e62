//! Exchanges: observed through a mount as a container has one, and interrupted before every step.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use arenad_storage::{ExchangeStep, StateRoot, StorageError};

use super::cloning::place;
use super::disk::{MountedDisk, instance, path, run, snapshot};
use super::look::{Of, assert_same, look};

/// Changes a live tree as sites do.
fn use_up(root: &StateRoot) {
    let live = root.folder(&instance(1));
    fs::write(live.join("new"), "written by the site").unwrap();
    fs::write(live.join("set-id"), "overwritten").unwrap();
    fs::remove_file(live.join("another name")).unwrap();
    fs::remove_dir_all(live.join("deep")).unwrap();
    fs::create_dir(live.join("made")).unwrap();
    fs::write(live.join("made/deep"), "written by the site").unwrap();
    fs::set_permissions(&live, fs::Permissions::from_mode(0o777)).unwrap();
    rustix::fs::lsetxattr(&live, "user.site", b"was here", rustix::fs::XattrFlags::CREATE).unwrap();
}

#[test]
fn an_exchange_brings_the_snapshot_back_under_a_mount() {
    MountedDisk::each(|disk| {
        let root = place(disk);
        let original = look(&root.folder(&snapshot("s1")), Of::All);
        root.clone_tree(&snapshot("s1"), &instance(1)).unwrap();
        let mount = disk.path().join("mounted");
        fs::create_dir(&mount).unwrap();
        run("mount", &["--bind", path(&root.folder(&instance(1))), path(&mount)]);
        for _ in 0..3 {
            use_up(&root);
            let exchanged = root.exchange(&instance(1), root.fresh(&snapshot("s1")).unwrap()).unwrap();
            assert!(exchanged.moved_in > 20 && exchanged.moved_out > 20, "{exchanged:?}");
            assert_same(&look(&mount, Of::All), &original);
        }
        run("umount", &[path(&mount)]);
        assert!(root.is_whole(&instance(1)));
        assert_eq!(fs::read_dir(root.path().join("partial")).unwrap().count(), 0);
        root.empty_trash().unwrap();
        assert_same(&look(&root.folder(&snapshot("s1")), Of::All), &original);
    });
}

/// Returns every step of an exchange of the sample.
fn steps(root: &StateRoot) -> Vec<ExchangeStep> {
    let mut steps = Vec::new();
    let fresh = root.fresh(&snapshot("s1")).unwrap();
    let mut note = |step| {
        steps.push(step);
        Ok(())
    };
    root.exchange_stepwise(&instance(1), fresh, &mut note).unwrap();
    steps
}

#[test]
fn a_crash_before_any_step_leaves_a_tree_that_is_whole_or_known_not_to_be() {
    MountedDisk::each(|disk| {
        let root = place(disk);
        // Entries below the top level need no steps of their own.
        fs::remove_dir_all(root.folder(&snapshot("s1")).join("shared")).unwrap();
        let original = look(&root.folder(&snapshot("s1")), Of::All);
        root.clone_tree(&snapshot("s1"), &instance(1)).unwrap();
        use_up(&root);
        let steps = steps(&root);
        assert!(steps.len() > 40, "{steps:?}");
        for step in steps {
            use_up_again(&root);
            let fresh = root.fresh(&snapshot("s1")).unwrap();
            let mut crash = |at| match at == step {
                true => Err(StorageError::StillWritten { path: "/".into() }),
                false => Ok(()),
            };
            root.exchange_stepwise(&instance(1), fresh, &mut crash).unwrap_err();
            // A new daemon opens the root.
            let root = StateRoot::open(root.path()).unwrap();
            match step {
                ExchangeStep::Mark => assert!(root.is_whole(&instance(1))),
                _ => {
                    let error = root.clone_tree(&instance(1), &snapshot("s2")).unwrap_err();
                    assert!(matches!(error, StorageError::NotWhole(_)), "{step:?}: {error}");
                }
            }
            root.exchange(&instance(1), root.fresh(&snapshot("s1")).unwrap()).unwrap();
            assert!(root.is_whole(&instance(1)));
            assert_same(&look(&root.folder(&instance(1)), Of::All), &original);
        }
        root.empty_trash().unwrap();
        assert_eq!(fs::read_dir(root.path().join("trash")).unwrap().count(), 0);
    });
}

fn use_up_again(root: &StateRoot) {
    let live = root.folder(&instance(1));
    fs::write(live.join("new"), "written by the site").unwrap();
}

#[test]
fn a_tree_that_was_cut_off_can_be_discarded() {
    let disk = MountedDisk::new("ext4", 3 << 30);
    let root = place(&disk);
    root.clone_tree(&snapshot("s1"), &instance(1)).unwrap();
    let fresh = root.fresh(&snapshot("s1")).unwrap();
    let mut crash = |step| match step {
        ExchangeStep::MoveIn(3) => Err(StorageError::StillWritten { path: "/".into() }),
        _ => Ok(()),
    };
    root.exchange_stepwise(&instance(1), fresh, &mut crash).unwrap_err();
    assert!(root.discard(&instance(1)).unwrap());
    assert!(!root.discard(&instance(1)).unwrap());
    assert_eq!(fs::read_dir(root.path().join("instances")).unwrap().count(), 0);
    root.clone_tree(&snapshot("s1"), &instance(1)).unwrap();
    assert!(root.is_whole(&instance(1)));
}

#[test]
fn a_writer_that_did_not_stop_is_noticed() {
    let disk = MountedDisk::new("ext4", 3 << 30);
    let root = place(&disk);
    root.clone_tree(&snapshot("s1"), &instance(1)).unwrap();
    let live = root.folder(&instance(1));
    let fresh = root.fresh(&snapshot("s1")).unwrap();
    let mut written = false;
    let mut write = |step| {
        if matches!(step, ExchangeStep::MoveIn(_)) && !std::mem::replace(&mut written, true) {
            fs::write(live.join("set-id"), "too late").unwrap();
        }
        Ok(())
    };
    let error = root.exchange_stepwise(&instance(1), fresh, &mut write).unwrap_err();
    assert!(matches!(error, StorageError::StillWritten { .. }), "{error}");
    assert!(!root.is_whole(&instance(1)));
}

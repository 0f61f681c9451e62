//! Names of trees, leftovers of crashes, and concurrent operations.

use std::fs;

use arenad_model::ids::{EnvironmentName, SiteName};
use arenad_model::instance::InstanceId;
use arenad_storage::{StateRoot, StorageError, StoreTree};

use super::cloning::place;
use super::disk::{MountedDisk, instance, snapshot};

#[test]
fn names_that_lead_elsewhere_are_refused() {
    for name in ["", ".", "..", "a/b", ".hidden", "a\0", "-x", &"x".repeat(101)] {
        assert!(matches!(StoreTree::snapshot(name, "data"), Err(StorageError::Name(_))), "{name:?}");
        assert!(matches!(StoreTree::snapshot("s1", name), Err(StorageError::Name(_))), "{name:?}");
    }
}

#[test]
fn trees_are_listed_by_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let root = StateRoot::open(folder.path().join("root")).unwrap();
    let id = InstanceId {
        environment: EnvironmentName::parse("web_arena-1").unwrap(),
        site: SiteName::parse("git-lab").unwrap(),
        number: 12,
    };
    let trees = [StoreTree::snapshot("0a1b", "postgres").unwrap(), StoreTree::instance(&id, 3, "app.var_lib").unwrap()];
    for tree in &trees {
        fs::create_dir_all(root.folder(tree)).unwrap();
    }
    fs::create_dir_all(folder.path().join("root/instances/strange/g1/data")).unwrap();
    assert_eq!(root.trees().unwrap(), trees);
    assert!(root.folder(&trees[1]).ends_with("instances/web_arena-1.git-lab.12/g3/app.var_lib"));
}

#[test]
fn what_a_crash_leaves_is_cleared_away_when_the_root_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let root = StateRoot::open(folder.path().join("root")).unwrap();
    let tree = root.folder(&instance(1));
    fs::create_dir_all(&tree).unwrap();
    fs::create_dir_all(root.path().join("partial/half/made")).unwrap();
    fs::write(tree.with_file_name(".gone.exchanging"), "").unwrap();
    fs::write(tree.with_file_name(".data.exchanging"), "").unwrap();
    fs::create_dir_all(root.path().join("instances/mini.forum.1/g7")).unwrap();
    let root = StateRoot::open(root.path()).unwrap();
    assert_eq!(fs::read_dir(root.path().join("partial")).unwrap().count(), 0);
    assert!(!tree.with_file_name(".gone.exchanging").exists());
    assert!(!root.is_whole(&instance(1)), "a mark is kept as long as its tree");
    assert!(!root.path().join("instances/mini.forum.1").exists());
    assert!(root.empty_trash().unwrap().folders >= 2);
}

#[test]
fn clones_and_removals_at_the_same_time_do_not_disturb_each_other() {
    MountedDisk::each(|disk| {
        let root = place(disk);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let root = &root;
                scope.spawn(move || {
                    for round in 0..3 {
                        let tree = instance(thread * 10 + round);
                        root.clone_tree(&snapshot("s1"), &tree).unwrap();
                        assert!(root.folder(&tree).join("deep/er/still/file").is_file());
                        assert!(root.discard(&tree).unwrap());
                    }
                });
            }
            scope.spawn(|| (0..5).for_each(|_| assert!(root.empty_trash().is_ok())));
        });
        root.empty_trash().unwrap();
        assert_eq!(root.trees().unwrap(), [snapshot("s1")]);
        assert_eq!(fs::read_dir(root.path().join("trash")).unwrap().count(), 0);
    });
}

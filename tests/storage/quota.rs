//! Limits of stores by XFS's project quotas. They need a kernel with `CONFIG_XFS_QUOTA`; without it, disks are mounted
//! without quotas and these tests check nothing.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use arenad_model::store::StateLimit;
use arenad_storage::StateRoot;

use super::disk::{MountedDisk, instance, snapshot};
use super::sample;

/// A state root with quotas, or `None` if the kernel has none.
fn limited() -> Option<(MountedDisk, StateRoot)> {
    let disk = MountedDisk::with_quotas(6 << 30)?;
    let root = disk.root();
    assert!(arenad_storage::disk::limits_stores(root.path()));
    Some((disk, root))
}

/// A snapshot with every kind of entry that a store can have.
fn make_sample(root: &StateRoot) {
    let folder = root.folder(&snapshot("s1"));
    fs::create_dir_all(folder.parent().unwrap()).unwrap();
    sample::make(&folder);
}

/// Writes until there is no space; returns the number of bytes written.
fn fill(file: &Path) -> u64 {
    let mut file = fs::File::create(file).unwrap();
    let piece = vec![7; 1 << 20];
    let mut written = 0;
    loop {
        match file.write(&piece) {
            Ok(wrote) => written += wrote as u64,
            Err(error) => {
                assert_eq!(error.kind(), std::io::ErrorKind::StorageFull, "{error}");
                return written;
            }
        }
    }
}

#[test]
fn a_site_fills_its_own_store_and_no_other() {
    let Some((disk, root)) = limited() else { return };
    make_sample(&root);
    root.clone_tree(&snapshot("s1"), &instance(1)).unwrap();
    root.clone_tree(&snapshot("s1"), &instance(2)).unwrap();
    let (first, second) = (root.folder(&instance(1)), root.folder(&instance(2)));
    fs::create_dir(first.join("mine")).unwrap();
    let written = fill(&first.join("mine/full"));
    assert!((1900..2048).contains(&(written >> 20)), "{} MiB", written >> 20);
    // Nothing more fits under any name; other trees are not limited.
    fs::write(first.join("more"), vec![7; 1 << 20]).unwrap_err();
    fs::write(second.join("more"), vec![7; 100 << 20]).unwrap();
    fs::write(disk.path().join("elsewhere"), vec![7; 1 << 20]).unwrap();

    // A full tree can be restored more than once, and each time it gets a new limit.
    for _ in 0..3 {
        let fresh = root.fresh(&snapshot("s1")).unwrap();
        root.exchange(&instance(1), fresh).unwrap();
        assert!(root.is_whole(&instance(1)) && !first.join("mine").exists());
        fs::write(first.join("new"), "at the top").unwrap();
        fs::create_dir(first.join("mine")).unwrap();
        fs::write(first.join("mine/new"), "x").unwrap();
        root.empty_trash().unwrap();
    }
    let written = fill(&first.join("full"));
    assert!((1900..2048).contains(&(written >> 20)), "{} MiB", written >> 20);

    // A full tree can be taken as a snapshot, discarded and removed.
    root.clone_tree(&instance(1), &snapshot("s2")).unwrap();
    root.clone_tree(&snapshot("s2"), &instance(3)).unwrap();
    fs::write(root.folder(&instance(3)).join("more"), vec![7; 100 << 20]).unwrap();
    for tree in [instance(1), instance(2), instance(3), snapshot("s2")] {
        root.discard(&tree).unwrap();
    }
    root.empty_trash().unwrap();
    assert_eq!(fs::read_dir(root.path().join("trash")).unwrap().count(), 0);
}

#[test]
fn a_store_that_is_full_is_brought_back_by_what_was_touched() {
    let Some((_disk, root)) = limited() else { return };
    let folder = root.folder(&snapshot("s1"));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("kept"), "x").unwrap();
    fs::write(folder.join("touched"), vec![7; 1 << 20]).unwrap();
    root.clone_tree(&snapshot("s1"), &instance(1)).unwrap();
    let live = root.folder(&instance(1));
    for _ in 0..3 {
        fs::write(live.join("touched"), "x").unwrap();
        // The trash counts towards the quota until it is emptied, so there may be no room for a restore.
        fill(&live.join("full"));
        assert!(root.knows_touched(&instance(1), &snapshot("s1")));
        root.restore(&instance(1), &snapshot("s1")).unwrap();
        assert!(root.is_whole(&instance(1)) && !live.join("full").exists());
        assert_eq!(fs::read(live.join("touched")).unwrap(), vec![7; 1 << 20]);
        root.empty_trash().unwrap();
        fs::write(live.join("new"), vec![7; 1 << 20]).unwrap();
    }
}

#[test]
fn files_are_counted_too() {
    let Some((disk, root)) = limited() else { return };
    fs::create_dir_all(disk.path().join("root/snapshots/s1/data")).unwrap();
    root.clone_tree(&snapshot("s1"), &instance(1)).unwrap();
    let folder = root.folder(&instance(1));
    let made = (0..210_000).take_while(|number| fs::File::create(folder.join(number.to_string())).is_ok()).count();
    assert!((199_000..200_000).contains(&made), "{made} files");
    fs::write(disk.path().join("root/another"), "x").unwrap();
}

#[test]
fn a_declared_limit_is_the_limit() {
    let Some((_disk, root)) = limited() else { return };
    make_sample(&root);
    let limit = StateLimit { declared_bytes: Some(64 << 20), has_usual: false };
    root.clone_limited(&snapshot("s1"), &instance(1), limit).unwrap();
    let written = fill(&root.folder(&instance(1)).join("full"));
    assert!((32..64).contains(&(written >> 20)), "{} MiB", written >> 20);
    // A rewind sets another limit.
    let fresh =
        root.fresh_limited(&snapshot("s1"), StateLimit { declared_bytes: Some(128 << 20), has_usual: false }).unwrap();
    root.exchange(&instance(1), fresh).unwrap();
    let written = fill(&root.folder(&instance(1)).join("full"));
    assert!((96..128).contains(&(written >> 20)), "{} MiB", written >> 20);
}

#[test]
fn a_limit_costs_milliseconds() {
    let Some((_disk, root)) = limited() else { return };
    make_sample(&root);
    let mut times = Vec::new();
    for generation in 1..=20 {
        let begun = Instant::now();
        root.clone_tree(&snapshot("s1"), &instance(generation)).unwrap();
        times.push(begun.elapsed());
    }
    times.sort();
    println!("a clone that is limited: p50 {:?}", times[10]);
}

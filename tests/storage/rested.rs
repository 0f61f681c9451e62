//! Data folders of MariaDB: they are recognized if their blocks are those of a snapshot, and never otherwise.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;

use arenad_definition as definition;
use arenad_digest::{Folders, Rested};
use arenad_model::site::Site;
use arenad_storage::{StateRoot, StoreTree};

use super::disk::{MountedDisk, instance, snapshot};

/// The shop, whose database is in a folder of its only mount.
fn shop() -> Site {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("environments/mini.yaml");
    let located = definition::locate_file(&file).unwrap();
    let loaded = definition::load(&definition::read(&located).unwrap(), &BTreeMap::new()).unwrap();
    loaded.environment.sites.into_iter().find(|site| site.name.as_str() == "shopping").unwrap()
}

/// A snapshot with a data folder as MariaDB would leave it, and an instance's clone of it.
fn place(disk: &MountedDisk) -> StateRoot {
    let root = disk.root();
    let data = root.folder(&snapshot("s1")).join("mysql");
    fs::create_dir_all(data.join("shop")).unwrap();
    let mut log = vec![0; 1 << 20];
    log[..4].copy_from_slice(b"Phys");
    log[0x1000..0x1008].copy_from_slice(&11_873_250_u64.to_be_bytes());
    log[0x2000..0x2008].copy_from_slice(&11_873_348_u64.to_be_bytes());
    fs::write(data.join("ib_logfile0"), log).unwrap();
    for name in ["ibdata1", "shop/a.ibd", "shop/a.frm", "shop/b.ibd", "shop/db.opt"] {
        fs::write(data.join(name), vec![7; 100_000]).unwrap();
    }
    fs::write(data.join("empty"), "").unwrap();
    // Blocks that are reserved but not written yet have no counterpart in a clone.
    let reserved = fs::File::options().write(true).open(data.join("ibdata1")).unwrap();
    rustix::fs::fallocate(&reserved, rustix::fs::FallocateFlags::empty(), 0, 1 << 20).unwrap();
    root.clone_tree(&snapshot("s1"), &instance(1)).unwrap();
    root
}

/// Returns whether the instance's database is recognized as the snapshot's.
fn is_rested(root: &StateRoot) -> bool {
    let site = shop();
    let folders = |tree: &StoreTree| -> Folders {
        site.state_mounts().into_iter().map(|mount| (mount, root.folder(tree))).collect()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let rested = runtime.block_on(Rested::look(&site, &folders(&instance(1)), &folders(&snapshot("s1"))));
    rested.stores().eq(["database"])
}

#[test]
fn a_clone_is_the_snapshots_until_anything_of_it_is_written() {
    let disk = MountedDisk::new("xfs", 3 << 30);
    let root = place(&disk);
    let data = root.folder(&instance(1)).join("mysql");
    assert!(is_rested(&root));
    let deeds: [(&str, &dyn Fn()); 6] = [
        ("the same bytes again", &|| {
            let file = fs::File::options().write(true).open(data.join("shop/a.ibd")).unwrap();
            file.write_all_at(&[7; 10], 50_000).unwrap();
        }),
        ("longer", &|| fs::write(data.join("shop/b.ibd"), vec![7; 200_000]).unwrap()),
        ("another file", &|| fs::write(data.join("shop/c.ibd"), "x").unwrap()),
        ("a file less", &|| fs::remove_file(data.join("shop/a.frm")).unwrap()),
        ("another mode", &|| fs::set_permissions(data.join("ibdata1"), fs::Permissions::from_mode(0o666)).unwrap()),
        ("a link", &|| {
            fs::remove_file(data.join("shop/a.frm")).unwrap();
            std::os::unix::fs::symlink("db.opt", data.join("shop/a.frm")).unwrap();
        }),
    ];
    for (what, deed) in deeds {
        deed();
        assert!(!is_rested(&root), "{what}");
        root.restore(&instance(1), &snapshot("s1")).unwrap();
        assert!(is_rested(&root), "brought back: {what}");
    }
    // Files beside the data folder are ignored.
    fs::write(root.folder(&instance(1)).join("picture"), "x").unwrap();
    assert!(is_rested(&root));
}

#[test]
fn what_the_log_does_not_tell_of_is_not_taken_for_known() {
    let disk = MountedDisk::new("xfs", 3 << 30);
    let root = place(&disk);
    let of_snapshot = root.folder(&snapshot("s1")).join("mysql");
    let again = || {
        root.discard(&instance(1)).unwrap();
        root.clone_tree(&snapshot("s1"), &instance(1)).unwrap();
        is_rested(&root)
    };
    // The table belongs to another storage engine.
    fs::write(of_snapshot.join("shop/c.MAD"), "x").unwrap();
    assert!(!again());
    fs::remove_file(of_snapshot.join("shop/c.MAD")).unwrap();
    assert!(again());
    // The log has the format of an earlier version.
    let log = fs::File::options().write(true).open(of_snapshot.join("ib_logfile0")).unwrap();
    log.write_all_at(&[0; 4], 0).unwrap();
    assert!(!again());
}

#[test]
fn copies_share_no_blocks() {
    let disk = MountedDisk::new("ext4", 3 << 30);
    assert!(!is_rested(&place(&disk)));
}

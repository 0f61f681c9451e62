//! Archives: all attributes that they can represent survive, and a truncated or invalid archive leaves no tree.

use std::fs;
use std::io::Read;
use std::process::Command;

use arenad_storage::{ArchiveLimits, StateRoot, Storage, StorageError};

use super::disk::{MountedDisk, path, snapshot};
use super::look::{Of, assert_same, look};
use super::sample;

/// An archive of a folder `data` as `tar` creates it; without holes, because engines write them as zeros too.
fn archive(above: &std::path::Path, options: &[&str]) -> Vec<u8> {
    let tar = Command::new("tar").args(options).args(["-C", path(above), "-cf", "-", "data"]).output().unwrap();
    assert!(!tar.stdout.is_empty(), "{}", String::from_utf8_lossy(&tar.stderr));
    tar.stdout
}

/// Options of `tar` that include everything it can represent.
const FULL: [&str; 4] = ["--format=pax", "--xattrs", "--xattrs-include=*", "--numeric-owner"];

#[test]
fn what_an_archive_says_survives() {
    MountedDisk::each(|disk| {
        let original = disk.path().join("data");
        sample::make(&original);
        fs::write(original.join("hollow"), "of no use to tar, which would fill it").unwrap();
        // `tar` omits these attributes of links, pipes and devices, and the masks of access control lists.
        for (name, key) in [("dangling", "trusted.link"), ("pipe", "trusted.pipe")] {
            rustix::fs::lremovexattr(original.join(name), key).unwrap();
        }
        let root = disk.root();
        let archive = archive(&disk.path(), &FULL);
        let received = root.receive(archive.as_slice(), &snapshot("s1"), ArchiveLimits::default()).unwrap();
        let folder = root.folder(&snapshot("s1"));
        assert_same(&look(&folder, Of::Archived), &look(&original, Of::Archived));
        assert_eq!((received.folders, received.bytes), (8, root.usage(&snapshot("s1")).unwrap().apparent_bytes));
    });
}

#[test]
fn older_forms_with_long_names_are_read_too() {
    let disk = MountedDisk::new("ext4", 64 << 20);
    let deep = disk.path().join("data").join("d".repeat(120)).join("e".repeat(120));
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("f".repeat(120)), "found").unwrap();
    std::os::unix::fs::symlink("l".repeat(300), deep.join("link")).unwrap();
    let root = disk.root();
    for (id, form) in [("s1", "--format=gnu"), ("s2", "--format=pax")] {
        let archive = archive(&disk.path(), &[form]);
        root.receive(archive.as_slice(), &snapshot(id), ArchiveLimits::default()).unwrap();
        let names = |of| look(of, Of::Archived).into_keys().collect::<Vec<_>>();
        assert_eq!(names(&root.folder(&snapshot(id))), names(&disk.path().join("data")));
    }
}

#[test]
fn long_runs_of_zeros_become_holes() {
    let disk = MountedDisk::new("xfs", 400 << 20);
    // A generated archive contains more zeros than the file system has space.
    const HOLLOW: u64 = 1 << 30;
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Directory);
    header.set_path("data/").unwrap();
    header.set_mode(0o755);
    header.set_size(0);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_cksum();
    let folder = header.as_bytes().to_vec();
    header.set_entry_type(tar::EntryType::Regular);
    header.set_path("data/hollow").unwrap();
    header.set_size(HOLLOW);
    header.set_cksum();
    let file = header.as_bytes().to_vec();
    let archive = folder.chain(&file[..]).chain(std::io::repeat(0).take(HOLLOW + 1024));
    let received = disk.root().receive(archive, &snapshot("s1"), ArchiveLimits::default()).unwrap();
    assert_eq!((received.bytes, received.written_bytes), (HOLLOW, 0));
}

trait Chain {
    fn chain(self, more: impl Read) -> impl Read;
}

impl Chain for Vec<u8> {
    fn chain(self, more: impl Read) -> impl Read {
        Read::chain(std::io::Cursor::new(self), more)
    }
}

/// Asserts that the state root has no tree and no partial work.
fn assert_nothing(root: &StateRoot) {
    assert_eq!(root.trees().unwrap(), []);
    assert_eq!(fs::read_dir(root.path().join("partial")).unwrap().count(), 0);
}

#[test]
fn an_archive_that_was_cut_off_anywhere_makes_no_tree() {
    let disk = MountedDisk::new("ext4", 64 << 20);
    let data = disk.path().join("data");
    fs::create_dir(&data).unwrap();
    fs::write(data.join("a"), [1; 1000]).unwrap();
    fs::write(data.join("b".repeat(150)), [2; 512]).unwrap();
    std::os::unix::fs::symlink("a", data.join("c")).unwrap();
    let whole = archive(&disk.path(), &["--format=pax", "--blocking-factor=1"]);
    let root = disk.root();
    // The end mark has two records, of which one suffices.
    let end = whole.len() - 512;
    for length in (0..end).step_by(256).chain([1, 511, 513, end - 1]) {
        let error = root.receive(&whole[..length], &snapshot("s1"), ArchiveLimits::default()).unwrap_err();
        assert!(matches!(error, StorageError::Stream(_)), "{length} of {}: {error}", whole.len());
        assert_nothing(&root);
    }
    root.receive(whole.as_slice(), &snapshot("s1"), ArchiveLimits::default()).unwrap();
}

#[test]
fn limits_are_kept() {
    let disk = MountedDisk::new("ext4", 64 << 20);
    let data = disk.path().join("data");
    fs::create_dir(&data).unwrap();
    for name in ["a", "b", "c"] {
        fs::write(data.join(name), [1; 1000]).unwrap();
    }
    let archive = archive(&disk.path(), &[]);
    let root = disk.root();
    let limits = |bytes, members| ArchiveLimits { bytes, members, ..ArchiveLimits::default() };
    for limits in [limits(2999, 4), limits(3000, 3)] {
        let error = root.receive(archive.as_slice(), &snapshot("s1"), limits).unwrap_err();
        assert!(error.to_string().contains("the archive h"), "{error}");
        assert_nothing(&root);
    }
    root.receive(archive.as_slice(), &snapshot("s1"), limits(3000, 4)).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_in_pieces_is_read_and_one_that_fails_or_is_dropped_makes_no_tree() {
    let disk = MountedDisk::new("ext4", 64 << 20);
    let data = disk.path().join("data");
    fs::create_dir(&data).unwrap();
    fs::write(data.join("a"), [1; 100_000]).unwrap();
    let archive = archive(&disk.path(), &[]);
    let storage = Storage::new(disk.root());
    let pieces = |length: usize| -> Vec<std::io::Result<bytes::Bytes>> {
        archive[..length].chunks(777).map(|piece| Ok(bytes::Bytes::copy_from_slice(piece))).collect()
    };
    let limits = ArchiveLimits::default();
    let mut failing = pieces(50_000);
    failing.push(Err(std::io::Error::other("the engine went away")));
    let failing = futures_util::stream::iter(failing);
    let error = storage.receive(failing, &snapshot("s1"), limits).await.unwrap_err();
    assert!(arenad_model::error::describe(&error).contains("the engine went away"), "{error:?}");
    assert_nothing(storage.root());
    {
        use futures_util::StreamExt;
        let endless = futures_util::stream::iter(pieces(50_000)).chain(futures_util::stream::pending());
        let tree = snapshot("s1");
        let receiving = storage.receive(Box::pin(endless), &tree, limits);
        tokio::time::timeout(std::time::Duration::from_millis(100), receiving).await.unwrap_err();
    }
    // The unpacking thread notices the end by itself.
    while fs::read_dir(storage.root().path().join("partial")).unwrap().count() > 0 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert_nothing(storage.root());
    let whole = futures_util::stream::iter(pieces(archive.len()));
    let received = storage.receive(whole, &snapshot("s1"), limits).await.unwrap();
    assert_eq!((received.files, received.bytes), (1, 100_000));
}

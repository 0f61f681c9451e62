//! Malicious archives and trees.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use arenad_storage::{ArchiveLimits, StorageError};
use tar::{EntryType, Header};

use super::disk::{MountedDisk, instance, snapshot};

use crate::alone::is_alone;

/// A member with any name, even one that the `tar` crate would refuse to write.
fn member(name: &str, kind: EntryType, link: &str, content: &[u8]) -> Vec<u8> {
    let mut header = Header::new_gnu();
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.as_old_mut().linkname[..link.len()].copy_from_slice(link.as_bytes());
    header.set_entry_type(kind);
    header.set_mode(0o755);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(content.len() as u64);
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    bytes.extend_from_slice(content);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

/// A pax record before a member.
fn extension(key: &str, value: &str) -> Vec<u8> {
    // The length of a record counts its own digits.
    let rest = key.len() + value.len() + 3;
    let length = (1..).map(|digits| rest + digits).find(|length| rest + length.to_string().len() == *length).unwrap();
    member("x", EntryType::XHeader, "", format!("{length} {key}={value}\n").as_bytes())
}

fn archive(members: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = member("data/", EntryType::Directory, "", b"");
    bytes.extend(members.concat());
    bytes.extend([0; 1024]);
    bytes
}

#[test]
fn nothing_leads_out_of_the_tree() {
    use EntryType::{Directory, Link, Regular, Symlink};
    let disk = MountedDisk::new("ext4", 64 << 20);
    let root = disk.root();
    let outside = disk.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "secret").unwrap();
    let up = "../../../outside";
    let there = outside.to_str().unwrap();
    let cases: [(&str, Vec<Vec<u8>>); 12] = [
        ("leads out of the archive", vec![member("data/../out", Regular, "", b"x")]),
        ("leads out of the archive", vec![member("../out", Regular, "", b"x")]),
        ("is not below the archive's one folder", vec![member("/etc/out", Regular, "", b"x")]),
        ("is not below the archive's one folder", vec![member("database/out", Regular, "", b"x")]),
        ("has its one folder twice", vec![member("data", Symlink, "/", b"")]),
        ("its folder is not in the archive", vec![member("data/no/file", Regular, "", b"x")]),
        (
            "its folder is not in the archive",
            vec![member("data/l", Symlink, up, b""), member("data/l/out", Regular, "", b"x")],
        ),
        (
            "its folder is not in the archive",
            vec![member("data/l", Symlink, there, b""), member("data/h", Link, "data/l/secret", b"")],
        ),
        ("leads out of the archive", vec![member("data/h", Link, "data/../../outside/secret", b"")]),
        ("is not below the archive's one folder", vec![member("data/h", Link, "/etc/passwd", b"")]),
        ("has it twice", vec![member("data/l", Symlink, there, b""), member("data/l", Regular, "", b"x")]),
        ("has it twice", vec![member("data/l", Symlink, there, b""), member("data/l", Directory, "", b"")]),
    ];
    for (says, members) in cases {
        let archive = archive(&members);
        let error = root.receive(archive.as_slice(), &snapshot("s1"), ArchiveLimits::default()).unwrap_err();
        assert!(matches!(error, StorageError::Archive { .. }) && error.to_string().contains(says), "{says}: {error}");
        assert_eq!(root.trees().unwrap(), []);
    }
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    assert_eq!(
        fs::metadata(outside.join("secret")).map(|found| std::os::unix::fs::MetadataExt::nlink(&found)).unwrap(),
        1
    );
}

#[test]
fn what_is_not_an_archive_of_one_folder_is_refused() {
    let disk = MountedDisk::new("ext4", 64 << 20);
    let root = disk.root();
    let file = [member("data", EntryType::Regular, "", b"x"), vec![0; 1024]].concat();
    let damaged = {
        let mut bytes = archive(&[member("data/a", EntryType::Regular, "", b"x")]);
        bytes[512 + 20] ^= 1;
        bytes
    };
    let cases: [(&str, Vec<u8>); 9] = [
        ("does not begin with a folder", vec![0; 1024]),
        ("does not begin with a folder", file),
        ("its header's sum is wrong", damaged),
        ("its header's sum is wrong", b"<!doctype html>".repeat(100)),
        ("more than 1048576", archive(&[member("x", EntryType::XHeader, "", &vec![b'1'; 2 << 20])])),
        (
            "no file is so long",
            archive(&[extension("size", &u64::MAX.to_string()), member("data/a", EntryType::Regular, "", b"x")]),
        ),
        (
            "has more than 4095 bytes",
            archive(&[
                member("x", EntryType::GNULongName, "", &vec![b'd'; 5000]),
                member("x", EntryType::Regular, "", b""),
            ]),
        ),
        ("are not pax records", archive(&[member("x", EntryType::XHeader, "", b"99999 a=b\n")])),
        ("is stored with holes", archive(&[member("data/a", EntryType::GNUSparse, "", b"x")])),
    ];
    for (says, archive) in cases {
        let error = root.receive(archive.as_slice(), &snapshot("s1"), ArchiveLimits::default()).unwrap_err();
        assert!(error.to_string().contains(says), "{says}: {error}");
    }
}

#[test]
fn a_tree_deeper_than_any_path_is_discarded_and_removed() {
    MountedDisk::each(|disk| {
        let root = disk.root();
        let tree = root.folder(&instance(1));
        fs::create_dir_all(&tree).unwrap();
        let mut at = rustix::fs::open(&tree, rustix::fs::OFlags::PATH, rustix::fs::Mode::empty()).unwrap();
        for _ in 0..2000 {
            rustix::fs::mkdirat(&at, "deep", rustix::fs::Mode::RWXU).unwrap();
            let flags = rustix::fs::OFlags::PATH;
            at = rustix::fs::openat(&at, "deep", flags, rustix::fs::Mode::empty()).unwrap();
        }
        drop(at);
        root.usage(&instance(1)).unwrap();
        let error = root.clone_tree(&instance(1), &snapshot("s1")).unwrap_err();
        assert!(arenad_model::error::describe(&error).contains("too long"), "{error:?}");
        assert!(root.discard(&instance(1)).unwrap());
        let removed = root.empty_trash().unwrap();
        assert!(removed.folders >= 2000, "{removed:?}");
        assert_eq!(fs::read_dir(root.path().join("trash")).unwrap().count(), 0);
    });
}

#[test]
fn links_and_mounts_in_a_tree_are_not_followed() {
    MountedDisk::each(|disk| {
        let root = disk.root();
        let outside = disk.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("kept"), "kept").unwrap();
        let tree = root.folder(&instance(1));
        fs::create_dir_all(tree.join("mounted")).unwrap();
        symlink(&outside, tree.join("link")).unwrap();
        super::disk::run("mount", &["--bind", super::disk::path(&outside), super::disk::path(&tree.join("mounted"))]);
        root.clone_tree(&instance(1), &snapshot("s1")).unwrap_err();
        assert!(root.discard(&instance(1)).unwrap());
        for generation in 2..8 {
            fs::create_dir_all(root.folder(&instance(generation))).unwrap();
            assert!(root.discard(&instance(generation)).unwrap());
        }
        let error = root.empty_trash().unwrap_err();
        let left = fs::read_dir(root.path().join("trash")).unwrap().count();
        assert_eq!(left, 1, "what cannot be removed does not keep the rest");
        let trash = trashed(&root.path().join("trash"));
        super::disk::run("umount", &[super::disk::path(&trash)]);
        root.empty_trash().unwrap();
        assert!(outside.join("kept").exists(), "{error}");
    });
}

/// The place of a mount in the trash, to which it moved with its tree.
fn trashed(trash: &Path) -> std::path::PathBuf {
    let mut found = walkdir::WalkDir::new(trash).into_iter().filter_map(Result::ok);
    found.find(|entry| entry.file_type().is_dir() && entry.path().join("kept").exists()).unwrap().into_path()
}

/// The peak of this process's memory, in bytes.
fn peak() -> u64 {
    procfs::process::Process::myself().unwrap().status().unwrap().vmhwm.unwrap() * 1024
}

/// An archive whose members after its folder repeat endlessly.
fn endless(members: impl IntoIterator<Item = Vec<u8>>) -> impl std::io::Read {
    let folder = member("data/", EntryType::Directory, "", b"");
    let members: Vec<u8> = members.into_iter().flatten().collect();
    std::io::Read::chain(std::io::Cursor::new(folder), Repeated { members, at: 0 })
}

struct Repeated {
    members: Vec<u8>,
    at: usize,
}

impl std::io::Read for Repeated {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let length = buffer.len().min(self.members.len() - self.at);
        buffer[..length].copy_from_slice(&self.members[self.at..self.at + length]);
        self.at = (self.at + length) % self.members.len();
        Ok(length)
    }
}

#[test]
fn extensions_without_end_are_refused() {
    if !is_alone(extensions_without_end_are_refused) {
        return;
    }
    let disk = MountedDisk::new("ext4", 64 << 20);
    let root = disk.root();
    let attribute = extension("SCHILY.xattr.user.a", &"x".repeat(60_000));
    let name = member("x", EntryType::GNULongName, "", &[b'd'; 4000]);
    let comment = member("x", EntryType::XGlobalHeader, "", b"");
    let before = peak();
    for extensions in [attribute, name, comment] {
        let error = root.receive(endless([extensions]), &snapshot("s1"), ArchiveLimits::default()).unwrap_err();
        assert!(error.to_string().contains("have more than 1048576"), "{error}");
    }
    // The header announces a size that never arrives; announced bytes take no memory.
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::GNULongName);
    header.set_size(1 << 40);
    header.set_cksum();
    let promised = [member("data/", EntryType::Directory, "", b""), header.as_bytes().to_vec()].concat();
    let error = root.receive(promised.as_slice(), &snapshot("s1"), ArchiveLimits::default()).unwrap_err();
    assert!(error.to_string().contains("have more than 1048576"), "{error}");
    assert!(peak() - before < 64 << 20, "{} MiB were taken", (peak() - before) >> 20);
}

#[test]
fn what_is_kept_of_folders_is_bounded() {
    let disk = MountedDisk::new("xfs", 400 << 20);
    let root = disk.root();
    let attribute = extension("SCHILY.xattr.user.a", &"x".repeat(2_000));
    let folders = (0..1000)
        .map(|number| [attribute.clone(), member(&format!("data/{number}/"), EntryType::Directory, "", b"")].concat());
    let archive = archive(&folders.collect::<Vec<_>>());
    let limits = ArchiveLimits { folder_bytes: 1 << 20, ..ArchiveLimits::default() };
    let error = root.receive(archive.as_slice(), &snapshot("s1"), limits).unwrap_err();
    assert!(error.to_string().contains("have more than 1048576 bytes"), "{error}");
    root.receive(archive.as_slice(), &snapshot("s1"), ArchiveLimits { folder_bytes: 4 << 20, ..limits }).unwrap();
}

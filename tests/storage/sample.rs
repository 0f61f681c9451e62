//! A folder with every kind of entry that a store can have.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions, hard_link};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt, chown, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, Timespec, Timestamps, XattrFlags, makedev, mknodat, utimensat};

/// The length of a file that consists almost entirely of a hole.
pub const HOLLOW: u64 = 24 << 20;

/// `cap_net_raw` and other capabilities, version 2 (`vfs_cap_data`), with a byte that is a line end.
const CAPABILITY: [u8; 20] = [1, 0, 0, 2, 10, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// An access control list: the owner, user 33, the group, the mask, others (`posix_acl_xattr`, version 2).
const ACL: [u8; 44] = [
    2, 0, 0, 0, 1, 0, 7, 0, 255, 255, 255, 255, 2, 0, 5, 0, 33, 0, 0, 0, 4, 0, 5, 0, 255, 255, 255, 255, 16, 0, 5, 0,
    255, 255, 255, 255, 32, 0, 0, 0, 255, 255, 255, 255,
];

/// Creates the sample at `top`, which must not exist.
pub fn make(top: &Path) {
    let at = |name: &str| top.join(name);
    fs::create_dir(top).unwrap();
    for folder in ["empty", "closed", "shared", "listed", "deep", "deep/er", "deep/er/still"] {
        fs::create_dir(at(folder)).unwrap();
    }
    let named = top.join(OsStr::from_bytes(b"a \n line, \xff\xfe bytes and \"quotes\""));
    fs::write(named, "named").unwrap();
    fs::write(at(&"n".repeat(255)), "a long name").unwrap();
    fs::write(at("nothing"), "").unwrap();
    fs::write(at("deep/er/still/file"), [7; 100_000]).unwrap();
    for number in 0..700 {
        fs::write(at(&format!("shared/{number}")), number.to_string()).unwrap();
    }
    let mut hollow = File::create(at("hollow")).unwrap();
    hollow.write_all_at(&[1; 4096], 10 << 20).unwrap();
    hollow.set_len(HOLLOW).unwrap();
    hollow = File::create(at("zeros")).unwrap();
    hollow.write_all_at(&[0; 300_000], 0).unwrap();
    links(top);
    nodes(top);
    attributes(top);
    // The times come last, because all changes above set the times of folders.
    for (second, entry) in (1_000_000_001..).zip(walkdir::WalkDir::new(top).contents_first(true)) {
        let time = |nanoseconds| Timespec { tv_sec: second, tv_nsec: nanoseconds };
        let times = Timestamps { last_access: time(987_654_321), last_modification: time(123_456_789) };
        utimensat(CWD, entry.unwrap().path(), &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
    }
}

fn links(top: &Path) {
    let at = |name: &str| top.join(name);
    hard_link(at("deep/er/still/file"), at("another name")).unwrap();
    hard_link(at("deep/er/still/file"), at("shared/a third")).unwrap();
    symlink("/etc/passwd", at("absolute")).unwrap();
    symlink("deep/er", at("to a folder")).unwrap();
    symlink("nowhere/at/all", at("dangling")).unwrap();
    hard_link(at("dangling"), at("dangling too")).unwrap();
    chown_link(&at("absolute"));
}

fn chown_link(link: &Path) {
    std::os::unix::fs::lchown(link, Some(1234), Some(4321)).unwrap();
}

fn nodes(top: &Path) {
    let node =
        |name: &str, kind, device| mknodat(CWD, top.join(name), kind, Mode::from_raw_mode(0o640), device).unwrap();
    node("pipe", FileType::Fifo, 0);
    node("null", FileType::CharacterDevice, makedev(1, 3));
    node("disk", FileType::BlockDevice, makedev(7, 200));
    drop(UnixListener::bind(top.join("socket")).unwrap());
    fs::set_permissions(top.join("socket"), Permissions::from_mode(0o777)).unwrap();
    chown(top.join("pipe"), Some(5), Some(6)).unwrap();
}

fn attributes(top: &Path) {
    let at = |name: &str| top.join(name);
    let mode = |name: &str, mode| fs::set_permissions(at(name), Permissions::from_mode(mode)).unwrap();
    for name in ["set-id", "capable"] {
        fs::write(at(name), name).unwrap();
        chown(at(name), Some(100), Some(101)).unwrap();
    }
    mode("set-id", 0o6755);
    mode("nothing", 0o000);
    mode("closed", 0o000);
    mode("shared", 0o3777);
    mode("deep/er", 0o555);
    mode("", 0o2700);
    chown(top, Some(70), Some(71)).unwrap();
    mode("", 0o2700);
    let xattr = |name: &str, key: &str, value: &[u8]| {
        rustix::fs::lsetxattr(at(name), key, value, XattrFlags::CREATE).unwrap();
    };
    xattr("capable", "security.capability", &CAPABILITY);
    xattr("capable", "user.lines", b"one\ntwo=2\n\nthree");
    xattr("capable", "user.empty", b"");
    xattr("zeros", "user.long", &[9; 2000]);
    xattr("deep", "user.folder", b"yes");
    xattr("dangling", "trusted.link", b"of a link");
    xattr("pipe", "trusted.pipe", b"of a pipe");
    xattr("set-id", "system.posix_acl_access", &ACL);
    xattr("listed", "system.posix_acl_default", &ACL);
    xattr("", "trusted.top", b"of the top");
}

//! A tree as programs outside arenad see it.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The attributes that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// All attributes, with times in nanoseconds.
    All,
    /// The attributes that a tar archive can represent; sockets are excluded.
    Archived,
}

/// Every entry by its path: kind, mode, owner, links, size, time, target, content, extended attributes.
pub fn look(tree: &Path, of: Of) -> BTreeMap<Vec<u8>, String> {
    let format = r"%P\1%y %m %U:%G links=%n size=%s mtime=%T@ leads=%l\0";
    let listed = Command::new("find").arg(tree).args(["-printf", format]).output().unwrap();
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let sums = sums(tree);
    let mut found = BTreeMap::new();
    for entry in listed.stdout.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()) {
        let divide = entry.iter().position(|byte| *byte == 1).unwrap();
        let (path, said) = (entry[..divide].to_vec(), String::from_utf8_lossy(&entry[divide + 1..]).into_owned());
        let full = tree.join(std::ffi::OsStr::from_bytes(&path));
        let mut said = match said.as_bytes()[0] {
            b's' if of == Of::Archived => continue,
            // The size and the link count of a folder depend on the file system.
            b'd' => without(&said, &["size=", "links="]),
            b'f' => format!("{said} content={}", sums[&full]),
            _ => said,
        };
        if let Ok(device) = rustix::fs::lstat(&full).map(|found| found.st_rdev) {
            said.push_str(&format!(" device={device}"));
        }
        for (name, value) in xattrs(&full) {
            said.push_str(&format!(" {name:?}={value:02x?}"));
        }
        found.insert(path, said);
    }
    found
}

fn without(said: &str, fields: &[&str]) -> String {
    let kept = said.split(' ').filter(|word| !fields.iter().any(|field| word.starts_with(field)));
    kept.collect::<Vec<_>>().join(" ")
}

/// The checksum of every file's content, including holes.
fn sums(tree: &Path) -> BTreeMap<PathBuf, String> {
    let find = Command::new("find").arg(tree).args(["-type", "f", "-exec", "sha256sum", "--zero", "{}", "+"]).output();
    let lines = find.unwrap().stdout;
    let lines = lines.split(|byte| *byte == 0).filter(|line| !line.is_empty());
    let divided = lines.map(|line| line.split_at(64));
    divided
        .map(|(sum, path)| {
            (PathBuf::from(std::ffi::OsStr::from_bytes(&path[2..])), String::from_utf8_lossy(sum).into_owned())
        })
        .collect()
}

fn xattrs(file: &Path) -> BTreeMap<CString, Vec<u8>> {
    let mut names = vec![0; 65536];
    let length = rustix::fs::llistxattr(file, names.as_mut_slice()).unwrap();
    // XFS lists access control lists twice, the second time in its own format.
    let names = names[..length].split_inclusive(|byte| *byte == 0).filter(|name| !name.starts_with(b"trusted.SGI_ACL"));
    names
        .map(|name| {
            let name = CString::from_vec_with_nul(name.to_vec()).unwrap();
            let mut value = vec![0; 65536];
            let length = rustix::fs::lgetxattr(file, &name, value.as_mut_slice()).unwrap();
            value.truncate(length);
            (name, value)
        })
        .collect()
}

/// Panics with the entries that differ.
pub fn assert_same(found: &BTreeMap<Vec<u8>, String>, expected: &BTreeMap<Vec<u8>, String>) {
    for (path, said) in expected {
        assert_eq!(found.get(path), Some(said), "{}", String::from_utf8_lossy(path));
    }
    let more: Vec<_> = found.keys().filter(|path| !expected.contains_key(*path)).collect();
    assert!(more.is_empty(), "{more:?}");
}

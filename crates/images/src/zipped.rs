//! Zip archives of data. They are read completely before their contents are trusted, and then unpacked.
//!
//! A zip describes its contents at its end and at each entry, and both may be forged. So entries are read only up to
//! their declared size, their total size is compared with the maximum that compression allows, and checksums are
//! verified.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::Path;

use zip::ZipArchive;
use zip::read::ZipFile;
use zip::result::ZipError;

use arenad_folders as folders;

/// First bytes of a zip that is not empty.
const MAGIC: [u8; 4] = *b"PK\x03\x04";

/// Maximum number of bytes that deflate produces from one byte. A zip that claims more has overlapping entries.
const EXPANSION_MAX: u64 = 1032;

/// Maximum length of a link's target, in bytes: the limit of the kernel.
const LINK_MAX: u64 = 4096;

/// Returns whether a file is a zip, judging by its first bytes because names are unreliable.
pub(super) fn is_zip(path: &Path) -> io::Result<bool> {
    let mut first = [0; MAGIC.len()];
    match File::open(path)?.read_exact(&mut first) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| first == MAGIC),
    }
}

/// Opens a zip and reads its directory.
pub(super) fn open<R: Read + Seek>(file: R) -> io::Result<ZipArchive<BufReader<R>>> {
    ZipArchive::new(BufReader::with_capacity(1 << 16, file)).map_err(|error| match error {
        ZipError::Io(error) => error,
        // The directory at the end of the file is missing or invalid.
        error => io::Error::new(io::ErrorKind::UnexpectedEof, error),
    })
}

/// Reads all entries and returns their total size, in bytes. `size_bytes` is the size of the zip itself.
///
/// Errors: with the entry's name if the entry is invalid.
pub(super) fn read_through<R: Read + Seek>(archive: &mut ZipArchive<R>, size_bytes: u64) -> io::Result<u64> {
    let most = size_bytes.saturating_mul(EXPANSION_MAX);
    let mut expanded_bytes: u64 = 0;
    for index in 0..archive.len() {
        let mut entry = entry(archive, index)?;
        expanded_bytes = expanded_bytes.saturating_add(entry.size());
        if expanded_bytes > most {
            return Err(io::Error::other("its entries claim to be larger together than any compression allows"));
        }
        copy(&mut entry, &mut io::sink())?;
    }
    Ok(expanded_bytes)
}

/// Returns an entry by its index.
pub(super) fn entry<R: Read + Seek>(archive: &mut ZipArchive<R>, index: usize) -> io::Result<ZipFile<'_, R>> {
    // The entry has a password or an unknown compression.
    archive.by_index(index).map_err(|error| match error {
        ZipError::Io(error) => error,
        error => io::Error::other(error),
    })
}

/// Writes an entry to a path that does not exist yet, in an existing folder.
///
/// A zip does not record owners, so its contents are made readable for everyone.
pub(super) fn write<R: Read>(entry: &mut ZipFile<'_, R>, target: &Path) -> io::Result<()> {
    if entry.is_dir() {
        return match fs::symlink_metadata(target) {
            Ok(found) if found.is_dir() => Ok(()),
            Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
            Err(_) => folders::make_readable(target),
        };
    }
    if entry.is_symlink() {
        let mut link = String::new();
        entry.take(LINK_MAX).read_to_string(&mut link)?;
        return symlink(link, target);
    }
    let executable = entry.unix_mode().unwrap_or(0) & 0o111;
    let mut file = File::options().write(true).create_new(true).mode(0o644).open(target)?;
    copy(entry, &mut file)?;
    file.set_permissions(fs::Permissions::from_mode(0o644 | executable))
}

/// Copies the declared size of an entry; the reader verifies its checksum at the end.
fn copy<R: Read>(entry: &mut ZipFile<'_, R>, to: &mut impl io::Write) -> io::Result<()> {
    let (size, name) = (entry.size(), entry.name().to_owned());
    let copied = io::copy(&mut entry.take(size.saturating_add(1)), to);
    match copied {
        Ok(copied) if copied == size => Ok(()),
        Ok(_) => Err(io::Error::other(format!("`{name}` is not as large as it says"))),
        Err(error) => Err(io::Error::new(error.kind(), format!("{error}, within `{name}`"))),
    }
}

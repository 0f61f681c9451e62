//! Unpacks folders of an archive beside their destinations; they are renamed once all are complete.
//!
//! The archive may come from anywhere and this may run as root, so its contents must not leave the folder: names are
//! split into components, and no component of a path may be a link. Owners and modes are preserved, because databases
//! check them; devices are not unpacked.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};

use tar::{Entry, EntryType};

use super::watch::WorkProgress;
use super::{ImagesError, compression, file, zipped};
use arenad_folders as folders;
use arenad_model::archive::Unpacking;

/// Unpacks all parts in one pass, each beside its destination.
///
/// Cancellation: blocks the thread until all parts are unpacked or the watch is cancelled.
pub(crate) fn unpack(archive: &Path, parts: &[Unpacking], watch: &WorkProgress) -> Result<(), ImagesError> {
    let opened = File::open(archive).map_err(file("read", archive))?;
    watch.begin("unpacking", opened.metadata().ok().map(|found| found.len()));
    for part in parts {
        let beside = beside(&part.to);
        match fs::remove_dir_all(&beside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(file("remove", &beside)(error)),
            _ => folders::make_readable(&beside).map_err(file("make the folder", &beside))?,
        }
    }
    let is_zip = zipped::is_zip(archive).map_err(file("read", archive))?;
    let counted = Counted { file: opened, watch };
    let found = if is_zip { from_zip(archive, counted, parts)? } else { from_tar(archive, counted, parts)? };
    if watch.is_cancelled() {
        return Err(ImagesError::Cancelled);
    }
    if let Some((part, _)) = parts.iter().zip(&found).find(|(_, found)| !**found) {
        let cause = io::Error::new(io::ErrorKind::NotFound, format!("it has no folder `{}`", part.from));
        return Err(file("unpack", archive)(cause));
    }
    Ok(())
}

/// Unpacks a tar archive. Returns for each part, in order, whether the archive contains it.
fn from_tar(archive: &Path, counted: Counted<'_>, parts: &[Unpacking]) -> Result<Vec<bool>, ImagesError> {
    let content = compression::open(BufReader::with_capacity(1 << 20, counted)).map_err(file("read", archive))?;
    let content = content.map_err(|other| file("read", archive)(io::Error::other(other.0)))?;
    let mut archive_reader = tar::Archive::new(content);
    archive_reader.set_preserve_permissions(true);
    archive_reader.set_preserve_ownerships(rustix::process::geteuid().is_root());
    let mut found = vec![false; parts.len()];
    for entry in archive_reader.entries().map_err(file("read", archive))? {
        let mut entry = entry.map_err(file("read", archive))?;
        let path = entry.path().map_err(file("read", archive))?.into_owned();
        let clean = clean(&path).map_err(file("unpack", archive))?;
        for (part, found) in parts.iter().zip(&mut found) {
            if let Ok(within) = clean.strip_prefix(&part.from) {
                *found = true;
                let root = beside(&part.to);
                write(&mut entry, &root, within, &part.from).map_err(file("unpack", &root.join(within)))?;
            }
        }
    }
    Ok(found)
}

/// Unpacks a zip. Returns for each part, in order, whether the archive contains it.
fn from_zip(archive: &Path, counted: Counted<'_>, parts: &[Unpacking]) -> Result<Vec<bool>, ImagesError> {
    let mut reader = zipped::open(counted).map_err(file("read", archive))?;
    let mut found = vec![false; parts.len()];
    for index in 0..reader.len() {
        let name = zipped::entry(&mut reader, index).map_err(file("read", archive))?.name().to_owned();
        let clean = clean(Path::new(&name)).map_err(file("unpack", archive))?;
        for (part, found) in parts.iter().zip(&mut found) {
            let Ok(within) = clean.strip_prefix(&part.from) else { continue };
            *found = true;
            // The folder itself already exists.
            if within.as_os_str().is_empty() {
                continue;
            }
            let root = beside(&part.to);
            let mut entry = zipped::entry(&mut reader, index).map_err(file("read", archive))?;
            let written = make_way(&root, within).and_then(|target| zipped::write(&mut entry, &target));
            written.map_err(file("unpack", &root.join(within)))?;
        }
    }
    Ok(found)
}

/// Moves an unpacked folder to its destination, which may be an empty folder or contain only placeholders.
pub(crate) fn settle(to: &Path) -> Result<(), ImagesError> {
    let is_placeholder = |entry: fs::DirEntry| entry.file_name().to_string_lossy().starts_with('.');
    if let Ok(mut entries) = fs::read_dir(to) {
        if entries.any(|entry| entry.is_ok_and(|entry| !is_placeholder(entry))) {
            let cause = io::Error::new(io::ErrorKind::AlreadyExists, "the folder has something in it; move it away");
            return Err(file("replace", to)(cause));
        }
        fs::remove_dir_all(to).map_err(file("replace", to))?;
    }
    fs::rename(beside(to), to).map_err(file("replace", to))?;
    super::shelf::sync_folder(to).map_err(file("write", to))
}

/// Returns the path of a folder that is not complete yet.
pub(crate) fn beside(to: &Path) -> PathBuf {
    let mut name = to.as_os_str().to_owned();
    name.push(".part");
    name.into()
}

/// Returns the path relative to the archive's root, without `.` components.
///
/// Errors: returned if the path has a `..` component, and so could lead out of the archive.
fn clean(path: &Path) -> io::Result<PathBuf> {
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => clean.push(name),
            Component::CurDir | Component::RootDir => {}
            Component::ParentDir | Component::Prefix(_) => {
                return Err(io::Error::other(format!("`{}` leads out of the archive", path.display())));
            }
        }
    }
    Ok(clean)
}

/// Creates the folders above a path within `root`, none of which may be a link, and returns the full path.
fn make_way(root: &Path, within: &Path) -> io::Result<PathBuf> {
    let mut above = root.to_owned();
    for component in within.parent().into_iter().flat_map(Path::components) {
        above.push(component);
        match fs::symlink_metadata(&above) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Err(io::Error::other("its path leads through something that is not a folder")),
            Err(_) => folders::make_readable(&above)?,
        }
    }
    Ok(root.join(within))
}

fn write(entry: &mut Entry<'_, impl Read>, root: &Path, within: &Path, from: &str) -> io::Result<()> {
    let target = make_way(root, within)?;
    match entry.header().entry_type() {
        EntryType::Directory if fs::symlink_metadata(&target).is_ok_and(|found| !found.is_dir()) => {
            return Err(io::Error::other("a folder takes the place of something else"));
        }
        EntryType::Link => {
            let link = entry.link_name()?.unwrap_or_default().into_owned();
            let linked = clean(&link)?;
            let linked = linked.strip_prefix(from).map_err(|_| io::Error::other("it links to what is not unpacked"))?;
            let linked = root.join(linked);
            let is_inside =
                linked.canonicalize().is_ok_and(|real| root.canonicalize().is_ok_and(|root| real.starts_with(root)));
            if !is_inside {
                return Err(io::Error::other("it links to what is not unpacked"));
            }
            return fs::hard_link(linked, target);
        }
        EntryType::Block | EntryType::Char | EntryType::Fifo => return Ok(()),
        _ => {}
    }
    entry.unpack(&target).map(drop)
}

/// A file that counts the bytes read, and fails when the watch is cancelled.
struct Counted<'a> {
    file: File,
    watch: &'a WorkProgress,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.watch.is_cancelled() {
            return Err(io::Error::other("interrupted"));
        }
        let read = self.file.read(buffer)?;
        self.watch.advance(read);
        Ok(read)
    }
}

impl Seek for Counted<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use zip::write::{SimpleFileOptions, ZipWriter};

    use super::*;

    fn archive(folder: &Path, entries: &[(&str, EntryType, &str)]) -> PathBuf {
        let path = folder.join("data.tar");
        let mut builder = tar::Builder::new(File::create(&path).expect("a file"));
        for (name, kind, content) in entries {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(*kind);
            header.set_mode(0o640);
            header.set_uid(0);
            header.set_gid(0);
            header.set_mtime(0);
            let bytes = if *kind == EntryType::Regular { content.as_bytes() } else { b"" };
            header.set_size(bytes.len() as u64);
            if *kind != EntryType::Regular {
                header.set_link_name_literal(content).expect("a link");
            }
            // Written by hand, because the library rejects names that hostile archives contain.
            header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
            header.set_cksum();
            builder.append(&header, bytes).expect("an entry");
        }
        builder.finish().expect("an archive");
        path
    }

    fn unpacked(entries: &[(&str, EntryType, &str)]) -> (tempfile::TempDir, Result<(), ImagesError>) {
        let folder = tempfile::tempdir().expect("a folder");
        let archive = archive(folder.path(), entries);
        let part = Unpacking { from: "car".to_owned(), to: folder.path().join("to/car") };
        let result = unpack(&archive, std::slice::from_ref(&part), &WorkProgress::default());
        (folder, result.and_then(|()| settle(&part.to)))
    }

    #[test]
    fn the_folder_is_unpacked_and_nothing_else() {
        let entries = [
            ("./car/a", EntryType::Regular, "A"),
            ("car/deep/b", EntryType::Regular, "B"),
            ("car/c", EntryType::Link, "car/deep/b"),
            ("bike/d", EntryType::Regular, "D"),
        ];
        let (folder, result) = unpacked(&entries);
        result.expect("it unpacks");
        let read = |name: &str| fs::read_to_string(folder.path().join("to/car").join(name)).expect("a file");
        assert_eq!((read("a"), read("deep/b"), read("c")), ("A".to_owned(), "B".to_owned(), "B".to_owned()));
        assert!(!folder.path().join("to/car/d").exists() && !folder.path().join("to/car.part").exists());
    }

    #[test]
    fn nothing_leads_out_of_the_folder() {
        let cases: [&[(&str, EntryType, &str)]; 4] = [
            &[("car/../../out", EntryType::Regular, "x")],
            &[("car/link", EntryType::Symlink, "../.."), ("car/link/out", EntryType::Regular, "x")],
            &[("car/link", EntryType::Link, "../../etc/passwd")],
            &[("car/link", EntryType::Symlink, "/etc"), ("car/hard", EntryType::Link, "car/link/passwd")],
        ];
        for entries in cases {
            let (folder, result) = unpacked(entries);
            result.expect_err(entries[0].0);
            assert!(!folder.path().join("out").exists() && !folder.path().join("to/out").exists());
            assert!(!folder.path().join("to/car").exists(), "nothing half-done is in place");
        }
    }

    fn zip(folder: &Path, entries: &[(&str, u32, &str)]) -> PathBuf {
        let path = folder.join("data.zip");
        let mut writer = ZipWriter::new(File::create(&path).expect("a file"));
        for (name, mode, content) in entries {
            let options = SimpleFileOptions::default().unix_permissions(*mode);
            match (name.ends_with('/'), *mode) {
                (true, _) => writer.add_directory(*name, options).expect("a folder"),
                (_, 0o777) => writer.add_symlink(*name, *content, options).expect("a link"),
                _ => {
                    writer.start_file(*name, options).expect("an entry");
                    writer.write_all(content.as_bytes()).expect("its content");
                }
            }
        }
        writer.finish().expect("an archive");
        path
    }

    fn unpacked_zip(entries: &[(&str, u32, &str)]) -> (tempfile::TempDir, Result<(), ImagesError>) {
        let folder = tempfile::tempdir().expect("a folder");
        let archive = zip(folder.path(), entries);
        let part = Unpacking { from: "site/mysql".to_owned(), to: folder.path().join("to/mysql") };
        let result = unpack(&archive, std::slice::from_ref(&part), &WorkProgress::default());
        (folder, result.and_then(|()| settle(&part.to)))
    }

    #[test]
    fn a_folder_of_a_zip_is_unpacked_so_that_everybody_can_read_it() {
        let entries = [
            ("site/", 0o700, ""),
            ("site/mysql/", 0o700, ""),
            ("site/mysql/dump.sql", 0o600, "insert"),
            ("site/mysql/deep/start.sh", 0o700, "run"),
            ("site/compose.yml", 0o644, "services"),
        ];
        let (folder, result) = unpacked_zip(&entries);
        result.expect("it unpacks");
        let mysql = folder.path().join("to/mysql");
        let mode = |name: &str| {
            use std::os::unix::fs::PermissionsExt;
            fs::metadata(mysql.join(name)).expect("it is there").permissions().mode() & 0o777
        };
        assert_eq!(fs::read_to_string(mysql.join("dump.sql")).expect("a file"), "insert");
        assert_eq!((mode("dump.sql"), mode("deep/start.sh"), mode("deep")), (0o644, 0o744, 0o755));
        assert!(!mysql.join("compose.yml").exists() && !folder.path().join("to/mysql.part").exists());
    }

    #[test]
    fn nothing_of_a_zip_leads_out_of_the_folder() {
        let cases: [&[(&str, u32, &str)]; 3] = [
            &[("site/mysql/../../../out", 0o644, "x")],
            &[("site/mysql/link", 0o777, "../.."), ("site/mysql/link/out", 0o644, "x")],
            &[("site/mysql/link", 0o777, "../../out"), ("site/mysql/./link", 0o644, "x")],
        ];
        for entries in cases {
            let (folder, result) = unpacked_zip(entries);
            result.expect_err(entries[0].0);
            assert!(!folder.path().join("out").exists() && !folder.path().join("to/out").exists());
            assert!(!folder.path().join("to/mysql").exists(), "nothing half-done is in place");
        }
    }
}

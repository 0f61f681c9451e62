//! The uploaded files: a tar archive of recordings and of the bodies beside them, or one recording.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use super::ReplayError;

/// The position of the magic in a tar header, and the magic.
const TAR_MAGIC: (u64, &[u8]) = (257, b"ustar");

/// The number of names in a message.
const NAMES_SHOWN: usize = 3;

/// A part of a file that is read without moving the positions of other readers.
#[derive(Debug, Clone)]
pub(crate) struct FileSlice {
    file: Arc<File>,
    start: u64,
    len: u64,
    at: u64,
}

impl FileSlice {
    fn new(file: &Arc<File>, start: u64, len: u64) -> Self {
        Self { file: Arc::clone(file), start, len, at: 0 }
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Returns the first bytes, fewer than asked for at the end.
    pub(crate) fn beginning(&self, bytes: usize) -> io::Result<Vec<u8>> {
        let mut found = Vec::new();
        Self::new(&self.file, self.start, self.len).take(bytes as u64).read_to_end(&mut found)?;
        Ok(found)
    }
}

impl Read for FileSlice {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let left = self.len.saturating_sub(self.at);
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(buf.len());
        let read = self.file.read_at(&mut buf[..most], self.start + self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Seek for FileSlice {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.len.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "seek before the beginning"))?;
        Ok(self.at)
    }
}

/// A file of an upload.
#[derive(Debug, Clone)]
pub(crate) struct SourceFile {
    /// The path in the upload, such as `session/1/session.har`.
    pub(crate) name: String,
    pub(crate) content: FileSlice,
}

/// The files from which a replay is made.
#[derive(Debug)]
pub struct SourceSet {
    files: Vec<SourceFile>,
    by_name: HashMap<String, usize>,
}

impl SourceSet {
    /// Opens an upload: a tar archive, or one recording, which has `name` in messages.
    ///
    /// Errors: `ReplayError::Broken` for an archive that ends early.
    pub fn open(path: &Path, name: &str) -> Result<Self, ReplayError> {
        let failed = |cause| ReplayError::File { doing: "read", path: path.to_owned(), cause };
        let file = File::open(path).map_err(failed)?;
        let len = file.metadata().map_err(failed)?.len();
        let file = Arc::new(file);
        let whole = FileSlice::new(&file, 0, len);
        let mut magic = [0; TAR_MAGIC.1.len()];
        let is_tar = file.read_exact_at(&mut magic, TAR_MAGIC.0).is_ok() && magic == *TAR_MAGIC.1;
        let files = match is_tar {
            true => unpacked(&file, &whole).map_err(|error| ReplayError::broken(name, error.to_string()))?,
            false => vec![SourceFile { name: name.to_owned(), content: whole }],
        };
        let by_name = files.iter().enumerate().map(|(index, file)| (file.name.clone(), index)).collect();
        Ok(Self { files, by_name })
    }

    pub(crate) fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// Returns the content of a file that lies beside another one.
    pub(crate) fn beside(&self, file: &str, name: &str) -> Option<FileSlice> {
        let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
        let path = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
        self.by_name.get(&path).map(|index| self.files[*index].content.clone())
    }

    /// Returns the number of files with the first names.
    pub(crate) fn described(&self) -> String {
        let names: Vec<&str> = self.files.iter().take(NAMES_SHOWN).map(|file| file.name.as_str()).collect();
        let more = if self.files.len() > NAMES_SHOWN { ", …" } else { "" };
        let files = if self.files.len() == 1 { "file" } else { "files" };
        format!("{} {files} ({}{more})", self.files.len(), names.join(", "))
    }
}

/// Returns the files of a tar archive, which stay in the archive.
fn unpacked(file: &Arc<File>, whole: &FileSlice) -> io::Result<Vec<SourceFile>> {
    let mut files = Vec::new();
    let mut archive = tar::Archive::new(whole.clone());
    for entry in archive.entries_with_seek()? {
        let entry = entry?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let path = entry.path()?.to_string_lossy().into_owned();
        let name = path.trim_start_matches("./").to_owned();
        let (start, len) = (entry.raw_file_position(), entry.size());
        if start.checked_add(len).is_none_or(|end| end > whole.len()) {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, format!("the archive ends within {name}")));
        }
        files.push(SourceFile { name, content: FileSlice::new(file, start, len) });
    }
    Ok(files)
}

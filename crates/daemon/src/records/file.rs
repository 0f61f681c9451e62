//! The file of a record, to which lines are appended.
//!
//! A line is written at the end of the last complete one. So an attempt that fails half way is overwritten by the next
//! one, and the rest of a line that a killed daemon was writing is cut off when the file is opened again.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use arenad_folders as folders;

/// The number of bytes that are read at once in the search for the last complete line.
const CHUNK: usize = 64 * 1024;

/// A file of lines.
#[derive(Debug)]
pub(super) struct RecordFile {
    file: File,
    length: u64,
}

impl RecordFile {
    /// Opens a file, or creates it with its folder. Only its owner can read it.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            folders::make_private(folder)?;
        }
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        let length = end_of_last_line(&file, file.metadata()?.len())?;
        file.set_len(length)?;
        Ok(Self { file, length })
    }

    /// Returns the size of all complete lines, in bytes.
    pub(super) fn len(&self) -> u64 {
        self.length
    }

    /// Appends a line, which ends with a line feed. When this returns, the line outlives the process, but not
    /// necessarily a failure of the host.
    pub(super) fn append(&mut self, line: &[u8]) -> io::Result<()> {
        self.file.write_all_at(line, self.length)?;
        self.length += line.len() as u64;
        Ok(())
    }

    /// Appends all complete lines to another file.
    pub(super) fn copy_to(&self, mut other: &File) -> io::Result<()> {
        // The lines are read and written by position, so the cursor is free. The kernel copies, by reference if it can.
        let mut source = &self.file;
        source.seek(SeekFrom::Start(0))?;
        let copied = io::copy(&mut source.take(self.length), &mut other)?;
        if copied == self.length { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    /// Waits until the lines would outlive a failure of the host.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// Returns the position after the last line feed.
fn end_of_last_line(file: &File, length: u64) -> io::Result<u64> {
    let mut end = length;
    let mut bytes = vec![0; CHUNK];
    while end > 0 {
        let size = CHUNK.min(usize::try_from(end).unwrap_or(CHUNK));
        let begin = end - size as u64;
        file.read_exact_at(&mut bytes[..size], begin)?;
        if let Some(at) = bytes[..size].iter().rposition(|byte| *byte == b'\n') {
            return Ok(begin + at as u64 + 1);
        }
        end = begin;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_torn_line_is_cut_off_and_the_next_one_stands_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ep-1/exchanges.jsonl");
        let mut file = RecordFile::open(&path).expect("a new file");
        assert_eq!(file.len(), 0);
        file.append(b"{\"a\":1}\n").expect("written");
        file.append(b"{\"b\":2}\n").expect("written");
        drop(file);
        for torn in ["{\"c\":", &"x".repeat(3 * CHUNK)] {
            let whole = fs::read_to_string(&path).expect("a file");
            fs::write(&path, format!("{whole}{torn}")).expect("written");
            let mut file = RecordFile::open(&path).expect("opened again");
            assert_eq!(file.len(), whole.len() as u64);
            file.append(b"{\"d\":4}\n").expect("written");
            assert_eq!(fs::read_to_string(&path).expect("a file"), format!("{whole}{{\"d\":4}}\n"));
        }
        fs::write(&path, "no line at all").expect("written");
        assert_eq!(RecordFile::open(&path).expect("opened again").len(), 0);
    }

    #[test]
    fn nobody_else_can_read_a_record() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("records/ep-1/exchanges.jsonl");
        RecordFile::open(&path).expect("a new file");
        let mode = |path: &Path| fs::metadata(path).expect("it exists").permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(&folder.path().join("records/ep-1")), 0o700);
        assert_eq!(mode(&folder.path().join("records")), 0o700);
    }
}

//! States on disk: rows of tables, texts of files and, for looks, the digest.
//!
//! ```text
//!   magic │ frames, each compressed: rows of a table, texts, digest │ index (JSON) │ length of the index
//! ```
//! A comparison reads only the tables that differ, so each table is a frame of its own. Files are written under a
//! temporary name and renamed, so a file with its final name is complete. A damaged file is an error, and its rows are
//! compared with the digest anyway ([`TableRows::is_of`]).

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::compare::StoreTexts;
use arenad_digest::{Digest, StoreRows, TableRows};
use arenad_folders as folders;

/// First bytes of a file; the number is the version of the format.
const MAGIC: &[u8; 8] = b"ARLOOK01";

/// Compression level: rows compress well at any level, and looks must not take long.
const LEVEL: i32 = 1;

/// Maximum length of a frame's content, in bytes: several times the longest that is written.
const FRAME_MAX: u64 = 1 << 30;

/// Maximum length of the index, in bytes.
const INDEX_MAX: u64 = 64 << 20;

/// The content of a file.
#[derive(Debug, Clone, Copy)]
pub struct LookContent<'a> {
    /// The digest; `None` for the baseline, whose digest the store keeps.
    pub digest: Option<&'a Digest>,
    /// Rows by store and table.
    pub rows: &'a StoreRows,
    /// Texts by store and path.
    pub texts: &'a StoreTexts,
}

/// Offset and length of a frame.
type Frame = (u64, u64);

#[derive(Debug, Default, Serialize, Deserialize)]
struct Index {
    digest: Option<Frame>,
    texts: Option<Frame>,
    tables: BTreeMap<String, BTreeMap<String, Frame>>,
}

/// An open file with a state.
#[derive(Debug)]
pub struct LookFile {
    file: File,
    index: Index,
}

impl LookFile {
    /// Writes a file, and its folder if it is missing.
    ///
    /// Errors: `AlreadyExists` if there is a file of this name.
    pub fn write(path: &Path, content: LookContent<'_>) -> io::Result<()> {
        let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
        folders::make_private(folder)?;
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(MAGIC)?;
        let mut writer = FrameWriter { file: &mut file, at: MAGIC.len() as u64 };
        let mut index = Index::default();
        for (store, tables) in content.rows {
            for (table, rows) in tables {
                let frame = writer.frame(rows)?;
                index.tables.entry(store.clone()).or_default().insert(table.clone(), frame);
            }
        }
        index.texts = Some(writer.frame(content.texts)?);
        index.digest = content.digest.map(|digest| writer.frame(digest)).transpose()?;
        let index = serde_json::to_vec(&index)?;
        file.write_all(&index)?;
        file.write_all(&(index.len() as u64).to_le_bytes())?;
        file.persist_noclobber(path).map_err(|error| error.error)?;
        Ok(())
    }

    /// Opens a file.
    ///
    /// Errors: `NotFound`; `InvalidData` if it is damaged, or of another version.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let damaged = || io::Error::from(io::ErrorKind::InvalidData);
        let (mut magic, mut length) = ([0; 8], [0; 8]);
        let size = file.metadata()?.len();
        let end = size.checked_sub(8).ok_or_else(damaged)?;
        file.read_exact_at(&mut magic, 0)?;
        file.read_exact_at(&mut length, end)?;
        let length = u64::from_le_bytes(length);
        let from = end.checked_sub(length).filter(|_| length <= INDEX_MAX && magic == *MAGIC).ok_or_else(damaged)?;
        let mut index = vec![0; usize::try_from(length).map_err(|_| damaged())?];
        file.read_exact_at(&mut index, from)?;
        Ok(Self { file, index: serde_json::from_slice(&index)? })
    }

    /// Returns the digest, if the file has one.
    pub fn digest(&self) -> io::Result<Option<Digest>> {
        self.index.digest.map(|frame| self.read(frame)).transpose()
    }

    /// Returns the rows of a table, if the file has them.
    pub fn rows(&self, store: &str, table: &str) -> io::Result<Option<TableRows>> {
        let frame = self.index.tables.get(store).and_then(|tables| tables.get(table));
        frame.map(|frame| self.read(*frame)).transpose()
    }

    /// Returns the texts of files.
    pub fn texts(&self) -> io::Result<StoreTexts> {
        self.index.texts.map(|frame| self.read(frame)).transpose().map(Option::unwrap_or_default)
    }

    fn read<T: DeserializeOwned>(&self, (offset, length): Frame) -> io::Result<T> {
        let size = self.file.metadata()?.len();
        if length > size || offset > size - length {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut bytes = vec![0; usize::try_from(length).map_err(|_| io::ErrorKind::InvalidData)?];
        self.file.read_exact_at(&mut bytes, offset)?;
        let mut content = Vec::new();
        zstd::Decoder::new(bytes.as_slice())?.take(FRAME_MAX).read_to_end(&mut content)?;
        Ok(serde_json::from_slice(&content)?)
    }
}

struct FrameWriter<'a, W: Write> {
    file: &'a mut W,
    at: u64,
}

impl<W: Write> FrameWriter<'_, W> {
    fn frame<T: Serialize>(&mut self, content: &T) -> io::Result<Frame> {
        let mut encoder = zstd::Encoder::new(Vec::new(), LEVEL)?;
        serde_json::to_writer(&mut encoder, content)?;
        let bytes = encoder.finish()?;
        self.file.write_all(&bytes)?;
        let frame = (self.at, bytes.len() as u64);
        self.at += frame.1;
        Ok(frame)
    }
}

#[cfg(test)]
mod tests {
    use arenad_digest::{RowHash, TableRow};

    use super::*;

    fn rows(count: u64) -> TableRows {
        let row = |number: u64| TableRow {
            hash: RowHash(number, u64::MAX),
            key: vec![Some(number.to_string())],
            values: Some(vec![None, Some("x".to_owned())]),
        };
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        TableRows { key: names(&["id"]), columns: names(&["a", "b"]), rows: (0..count).map(row).collect() }
    }

    #[test]
    fn what_was_written_is_found_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("deep/look");
        let tables = BTreeMap::from([("one".to_owned(), rows(3)), ("none".to_owned(), rows(0))]);
        let stored = StoreRows::from([("db".to_owned(), tables)]);
        let texts = StoreTexts::from([("files".to_owned(), BTreeMap::from([("a".to_owned(), "text\n".to_owned())]))]);
        let digest = Digest { declared: "d".to_owned(), stores: BTreeMap::new() };
        let content = LookContent { digest: Some(&digest), rows: &stored, texts: &texts };
        LookFile::write(&path, content).expect("written");
        let again = LookFile::write(&path, content).expect_err("it exists");
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        let found = LookFile::open(&path).expect("a file");
        assert_eq!(found.rows("db", "one").expect("rows"), Some(rows(3)));
        assert_eq!(found.rows("db", "none").expect("rows"), Some(rows(0)));
        assert_eq!(found.rows("db", "other").expect("none"), None);
        assert_eq!((found.texts().expect("texts"), found.digest().expect("a digest")), (texts, Some(digest)));
        assert_eq!(std::fs::read_dir(folder.path().join("deep")).expect("a folder").count(), 1);
    }

    #[test]
    fn a_damaged_file_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("look");
        let stored = StoreRows::from([("db".to_owned(), BTreeMap::from([("one".to_owned(), rows(300))]))]);
        LookFile::write(&path, LookContent { digest: None, rows: &stored, texts: &StoreTexts::new() })
            .expect("written");
        let whole = std::fs::read(&path).expect("bytes");
        for (length, byte) in
            [(0, None), (7, None), (whole.len() - 1, None), (whole.len(), Some(0)), (whole.len(), Some(30))]
        {
            let mut bytes = whole[..length].to_vec();
            if let Some(at) = byte {
                bytes[at] ^= 0xff;
            }
            std::fs::write(&path, &bytes).expect("written");
            let read = LookFile::open(&path).and_then(|file| file.rows("db", "one"));
            assert!(!matches!(&read, Ok(Some(found)) if *found == rows(300)), "{length} {byte:?}");
        }
    }
}

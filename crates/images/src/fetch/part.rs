//! A partial download: its bytes and their origin.

use std::fs;
use std::io::{self, SeekFrom};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};

use crate::shelf::{ArchivePaths, write_whole};

/// Number of written bytes after which they are synced to the disk.
const SYNC_BYTES: u64 = 256 << 20;

/// The origin and state of a partial download. It is stored as JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DownloadOrigin {
    /// URL of the mirror that delivered the first byte.
    pub mirror: String,
    /// ETag of the mirror's file.
    pub etag: Option<String>,
    /// Modification time that the mirror reported.
    pub last_modified: Option<String>,
    /// Size of the complete file in bytes, if it is known.
    pub total_bytes: Option<u64>,
    /// Whether other mirrors have delivered parts of it.
    pub is_mixed: bool,
    /// Number of bytes that have been synced to the disk.
    pub synced_bytes: u64,
    /// Boot ID of the system that wrote the file. Bytes that are not synced survive a crash of the program, but not of
    /// the system.
    pub boot: String,
}

/// A partial download that is open.
pub(crate) struct PartialDownload {
    file: tokio::fs::File,
    state: PathBuf,
    length: u64,
    restarts: u32,
    /// Origin of the bytes; `None` before the first byte.
    pub origin: Option<DownloadOrigin>,
}

impl PartialDownload {
    /// Opens a partial download, or creates an empty one.
    pub(crate) async fn open(place: &ArchivePaths) -> io::Result<Self> {
        let state = place.part_state();
        let origin: Option<DownloadOrigin> =
            fs::read(&state).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let path = place.part();
        let file = tokio::fs::File::options().create(true).truncate(false).read(true).write(true).open(&path).await?;
        let found = file.metadata().await?.len();
        let length = match &origin {
            Some(origin) if origin.boot == boot() => found,
            Some(origin) => found.min(origin.synced_bytes),
            // The origin of these bytes is unknown.
            None => 0,
        };
        let mut part = Self { file, state, length, restarts: 0, origin };
        part.cut(length).await?;
        Ok(part)
    }

    /// Returns the length of the partial download, in bytes.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Returns whether the download is complete, as far as its size is known.
    pub(crate) fn is_complete(&self) -> bool {
        self.origin.as_ref().and_then(|origin| origin.total_bytes) == Some(self.length)
    }

    /// Records the origin. This happens before the first byte is written, so that no byte has an unknown origin.
    pub(crate) fn remember(&mut self, origin: DownloadOrigin) -> io::Result<()> {
        let origin = DownloadOrigin { boot: boot(), ..origin };
        write_whole(&self.state, &origin)?;
        self.origin = Some(origin);
        Ok(())
    }

    /// Appends bytes, and syncs the file from time to time.
    pub(crate) async fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes).await?;
        self.length += bytes.len() as u64;
        let synced = self.origin.as_ref().map_or(0, |origin| origin.synced_bytes);
        if self.length >= synced + SYNC_BYTES {
            self.sync().await?;
        }
        Ok(())
    }

    /// Syncs the file to the disk and records its length.
    pub(crate) async fn sync(&mut self) -> io::Result<()> {
        self.file.flush().await?;
        self.file.sync_data().await?;
        if let Some(origin) = self.origin.clone() {
            self.remember(DownloadOrigin { synced_bytes: self.length, ..origin })?;
        }
        Ok(())
    }

    /// Reads bytes from an offset on.
    pub(crate) async fn read(&mut self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        self.file.flush().await?;
        self.file.seek(SeekFrom::Start(offset)).await?;
        let mut bytes = vec![0; length];
        self.file.read_exact(&mut bytes).await?;
        self.file.seek(SeekFrom::Start(self.length)).await?;
        Ok(bytes)
    }

    /// Truncates the file to a length.
    async fn cut(&mut self, length: u64) -> io::Result<()> {
        self.file.flush().await?;
        self.file.set_len(length).await?;
        self.file.seek(SeekFrom::Start(length)).await?;
        self.length = length;
        if let Some(origin) = self.origin.clone().filter(|origin| origin.synced_bytes > length) {
            self.remember(DownloadOrigin { synced_bytes: length, ..origin })?;
        }
        Ok(())
    }

    /// Returns how often the download turned out to belong to an outdated file.
    pub(crate) fn restarts(&self) -> u32 {
        self.restarts
    }

    /// Truncates the file to an offset from which the mirror's file has changed.
    pub(crate) async fn change_from(&mut self, offset: u64) -> io::Result<()> {
        self.restarts += 1;
        self.cut(offset).await
    }

    /// Discards all bytes and their origin.
    pub(crate) async fn restart(&mut self) -> io::Result<()> {
        self.restarts += 1;
        self.origin = None;
        match fs::remove_file(&self.state) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        self.cut(0).await
    }
}

/// Returns an ID that differs between boots of the system.
fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shelf::Shelf;
    use arenad_model::archive::SourceArchive;

    fn place(folder: &std::path::Path) -> ArchivePaths {
        let archive = SourceArchive { file: "x.tar".to_owned(), size_bytes: None, sha256: None, mirrors: Vec::new() };
        let place = Shelf::new(folder).place(&archive);
        drop(place.take_turn().expect("no other task works on it"));
        place
    }

    #[tokio::test]
    async fn bytes_of_unknown_origin_and_those_that_a_crash_may_have_lost_are_fetched_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = place(folder.path());
        fs::write(place.part(), b"whose?").expect("a file");
        let mut part = PartialDownload::open(&place).await.expect("it opens");
        assert_eq!(part.length(), 0);
        part.remember(DownloadOrigin { mirror: "http://mirror.test/x.tar".to_owned(), ..DownloadOrigin::default() })
            .expect("a state");
        part.append(b"lasting").await.expect("room");
        part.sync().await.expect("room");
        part.append(b" and perhaps not").await.expect("room");
        part.file.flush().await.expect("room");
        let origin = part.origin.clone().expect("an origin");
        drop(part);
        // After a crash of the program, the system still has all bytes.
        assert_eq!(PartialDownload::open(&place).await.expect("it opens").length(), 23);
        // After a crash of the system, only the synced bytes are trusted.
        write_whole(&place.part_state(), &DownloadOrigin { boot: "another".to_owned(), ..origin }).expect("a state");
        assert_eq!(PartialDownload::open(&place).await.expect("it opens").length(), 7);
    }
}

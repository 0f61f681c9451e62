//! Reads a file once from end to end, and determines its digest, whether it is complete, and which images it contains.
//!
//! Every digest that can be computed is verified: layers and configurations are hashed while they are read and compared
//! with their names. So a truncated or damaged archive is detected before the engine receives it, even if no digest of
//! the archive is known.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::compression;
pub use super::docker_archive::ArchivedImage;
use super::docker_archive::ImageArchiveWalk;
use super::member::MemberHeader;
use super::watch::WorkProgress;
use super::zipped;
use arenad_model::hex::hex;

/// Number of bytes that are read at a time.
const CHUNK: usize = 1 << 20;

/// The expected kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArchiveKind {
    /// An archive of images, as `docker save` writes it.
    Images,
    /// A tar or zip archive of arbitrary files.
    Files,
    /// A file of any kind.
    File,
}

impl ArchiveKind {
    /// Returns the word for the content of such an archive.
    fn wanted(self) -> &'static str {
        if self == Self::Images { "images" } else { "files" }
    }
}

/// The result of a scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scanned {
    /// SHA-256 (hex) of the file.
    pub sha256: String,
    /// Size of the file, in bytes.
    pub size_bytes: u64,
    /// Size of the uncompressed content, in bytes. For a file that is not an archive, it is the size of the file.
    pub expanded_bytes: u64,
    /// Images that the archive contains; empty unless images were expected.
    pub images: Vec<ArchivedImage>,
}

/// The reason why a scan failed.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// The file ends too early.
    #[error("the file is truncated: it ends after {size_bytes} bytes, {place}")]
    Truncated {
        /// Size of the file, in bytes.
        size_bytes: u64,
        /// Position in the content where the file ends.
        place: String,
    },
    /// The file is inconsistent; the text is the reason.
    #[error("the file is damaged: {0}")]
    Damaged(String),
    /// The file is of another kind.
    #[error("the file is not an archive of {wanted}: it is {found}")]
    Other {
        /// Expected kind of content.
        wanted: &'static str,
        /// Kind that was found.
        found: String,
    },
    /// Reading from the disk failed.
    #[error("read the file")]
    Unreadable(#[source] io::Error),
    /// The watch was cancelled.
    #[error("interrupted")]
    Cancelled,
}

/// Reads a file of an expected kind.
///
/// Cancellation: blocks the thread until the file is read or the watch is cancelled.
pub fn scan(path: &Path, kind: ArchiveKind, watch: &WorkProgress) -> Result<Scanned, ScanError> {
    let file = File::open(path).map_err(ScanError::Unreadable)?;
    let size = file.metadata().map_err(ScanError::Unreadable)?.len();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    watch.begin(format!("checking {}", name.trim_end_matches(".part")), Some(size));
    let mut meter = MeteredFile { file, watch, digest: Sha256::new(), size_bytes: 0, failure: None };
    let is_zip = kind == ArchiveKind::Files && zipped::is_zip(path).map_err(ScanError::Unreadable)?;
    let walk = match kind {
        ArchiveKind::File => None,
        ArchiveKind::Files if is_zip => None,
        ArchiveKind::Images | ArchiveKind::Files => match walk(&mut meter, kind) {
            Ok(walk) => Some(walk),
            Err(error) => return Err(meter.explain(error)),
        },
    };
    // Bytes after the end of the archive are part of the digest.
    if let Err(error) = io::copy(&mut BufReader::with_capacity(CHUNK, &mut meter), &mut io::sink()) {
        return Err(meter.explain(ScanStop::Io(error, "at its end".to_owned())));
    }
    let expanded_bytes = match &walk {
        Some(walk) => walk.expanded_bytes,
        None if is_zip => expanded(&mut meter)?,
        None => meter.size_bytes,
    };
    let images = match (kind, walk) {
        (ArchiveKind::Images, Some(walk)) => walk.images()?,
        _ => Vec::new(),
    };
    Ok(Scanned { sha256: hex(&meter.digest.finalize()), size_bytes: meter.size_bytes, expanded_bytes, images })
}

/// Returns the images of an uncompressed archive that an engine saves, after reading it to its end.
pub fn images(content: impl Read) -> Result<Vec<ArchivedImage>, ScanError> {
    walk_through(content, ArchiveKind::Images)
        .map_err(|stop| match stop {
            ScanStop::Known(error) => error,
            ScanStop::Short(place) => ScanError::Damaged(format!("it ends {place}")),
            ScanStop::First(error, wanted) => ScanError::Other { wanted, found: format!("something else ({error})") },
            ScanStop::Io(error, place) => ScanError::Damaged(format!("{error}, {place}")),
        })?
        .images()
}

/// Reads the entries of a zip after the whole file has been hashed, because the directory of a zip is at its end.
fn expanded(meter: &mut MeteredFile<'_>) -> Result<u64, ScanError> {
    let size = meter.size_bytes;
    let entries = Again { file: &meter.file, watch: meter.watch };
    let expanded = zipped::open(entries).and_then(|mut archive| zipped::read_through(&mut archive, size));
    expanded.map_err(|error| match error {
        _ if meter.watch.is_cancelled() => ScanError::Cancelled,
        error if error.kind() == io::ErrorKind::UnexpectedEof => {
            ScanError::Truncated { size_bytes: size, place: format!("where a zip says what is in it ({error})") }
        }
        error => ScanError::Damaged(error.to_string()),
    })
}

/// A file that is read for the second time: it is neither hashed nor counted, but reading fails when the watch is
/// cancelled.
struct Again<'a> {
    file: &'a File,
    watch: &'a WorkProgress,
}

impl Read for Again<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.watch.is_cancelled() {
            return Err(io::Error::other("cancelled"));
        }
        self.file.read(buffer)
    }
}

impl Seek for Again<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

/// The reason why a walk through an archive stopped.
enum ScanStop {
    /// The reader failed at the given place.
    Io(io::Error, String),
    /// The first header is invalid.
    First(io::Error, &'static str),
    /// An entry is shorter than declared.
    Short(String),
    /// The cause has been determined.
    Known(ScanError),
}

fn walk(meter: &mut MeteredFile<'_>, kind: ArchiveKind) -> Result<ImageArchiveWalk, ScanStop> {
    let start = |error| ScanStop::Io(error, "at its beginning".to_owned());
    let wanted = kind.wanted();
    match compression::open(BufReader::with_capacity(CHUNK, meter)).map_err(start)? {
        Ok(content) => walk_through(content, kind),
        Err(other) => Err(ScanStop::Known(ScanError::Other { wanted, found: other.0.to_owned() })),
    }
}

fn walk_through(content: impl Read, kind: ArchiveKind) -> Result<ImageArchiveWalk, ScanStop> {
    let start = |error| ScanStop::Io(error, "at its beginning".to_owned());
    let wanted = kind.wanted();
    let mut archive = tar::Archive::new(content);
    let mut walk = ImageArchiveWalk::default();
    let mut buffer = vec![0; CHUNK];
    let mut place = "at its beginning".to_owned();
    for entry in archive.entries().map_err(start)? {
        let mut entry = match entry {
            Ok(entry) => entry,
            Err(error) if walk.is_empty() => return Err(ScanStop::First(error, wanted)),
            Err(error) => return Err(ScanStop::Io(error, place)),
        };
        let path = entry.path().map_err(|error| ScanStop::Io(error, place.clone()))?.to_string_lossy().into_owned();
        place = format!("within `{path}`");
        let size = entry.size();
        let mut record = match kind {
            ArchiveKind::Images => {
                let member = MemberHeader::of(&mut entry)
                    .map_err(|ambiguity| ScanStop::Known(ScanError::Damaged(ambiguity.to_string())))?;
                Some(walk.begin(member, size).map_err(ScanStop::Known)?)
            }
            ArchiveKind::Files | ArchiveKind::File => {
                walk.pass(size);
                None
            }
        };
        let mut seen = 0;
        loop {
            let read = entry.read(&mut buffer).map_err(|error| ScanStop::Io(error, place.clone()))?;
            if read == 0 {
                break;
            }
            seen += read as u64;
            if let Some(record) = &mut record {
                record.take(&buffer[..read]);
            }
        }
        if seen < size {
            return Err(ScanStop::Short(place));
        }
        if let Some(record) = record {
            walk.end(record);
        }
        place = format!("after `{path}`");
    }
    // The checksum of the compressed data is at its end.
    let mut content = archive.into_inner();
    io::copy(&mut content, &mut io::sink()).map_err(|error| ScanStop::Io(error, place))?;
    Ok(walk)
}

/// A file that is hashed and counted while it is read.
struct MeteredFile<'a> {
    file: File,
    watch: &'a WorkProgress,
    digest: Sha256,
    size_bytes: u64,
    /// Error from reading the file itself, as opposed to errors in its content.
    failure: Option<io::Error>,
}

impl Read for MeteredFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.watch.is_cancelled() {
            return Err(io::Error::other("cancelled"));
        }
        let read = match self.file.read(buffer) {
            Ok(read) => read,
            Err(error) => {
                let kind = error.kind();
                self.failure = Some(error);
                return Err(kind.into());
            }
        };
        self.digest.update(&buffer[..read]);
        self.size_bytes += read as u64;
        self.watch.advance(read);
        Ok(read)
    }
}

impl MeteredFile<'_> {
    /// Determines the cause of a failed read: an error of the disk, a truncated file, or invalid content.
    fn explain(mut self, stop: ScanStop) -> ScanError {
        if self.watch.is_cancelled() {
            return ScanError::Cancelled;
        }
        if let Some(failure) = self.failure {
            return ScanError::Unreadable(failure);
        }
        match stop {
            ScanStop::Known(error) => error,
            ScanStop::Short(place) => ScanError::Truncated { size_bytes: self.size_bytes, place },
            ScanStop::First(error, _) if self.is_cut(&error) => {
                ScanError::Truncated { size_bytes: self.size_bytes, place: "at its beginning".to_owned() }
            }
            ScanStop::First(error, wanted) => ScanError::Other { wanted, found: format!("something else ({error})") },
            ScanStop::Io(error, place) if self.is_cut(&error) => {
                ScanError::Truncated { size_bytes: self.size_bytes, place }
            }
            ScanStop::Io(error, place) => ScanError::Damaged(format!("{error}, {place}")),
        }
    }

    /// Returns whether an error is caused by the end of the file, and the end has been reached.
    fn is_cut(&mut self, error: &io::Error) -> bool {
        let is_at_end = matches!(self.file.read(&mut [0]), Ok(0));
        is_at_end && (error.kind() == io::ErrorKind::UnexpectedEof || error.to_string().contains("entire block"))
    }
}

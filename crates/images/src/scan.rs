//! Reads a file once from end to end: its digest, whether it is whole, and what images it holds.
//!
//! Nothing is believed that can be computed: layers and configurations are hashed on the way and compared with the
//! names that they go by. So an archive that was cut off or damaged is found out before the engine sees it, also where
//! nobody has said what its digest should be.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::compression;
pub use super::docker_archive::ArchivedImage;
use super::docker_archive::Walk;
use super::member::Member;
use super::watch::Watch;
use super::zipped;
use arenad_model::hex::hex;

/// How much is read at a time, in bytes.
const CHUNK: usize = 1 << 20;

/// What a file is expected to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Images, as `docker save` writes them.
    Images,
    /// An archive of anything: tar, or zip.
    Files,
    /// Anything.
    File,
}

impl Kind {
    /// What an archive of this kind holds.
    fn wanted(self) -> &'static str {
        if self == Self::Images { "images" } else { "files" }
    }
}

/// What a file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scanned {
    /// SHA-256 (hex) of the file.
    pub sha256: String,
    /// How large the file is.
    pub size_bytes: u64,
    /// How large its content is, uncompressed; the file's own size where it is no archive.
    pub expanded_bytes: u64,
    /// The images in it, where it was expected to hold some.
    pub images: Vec<ArchivedImage>,
}

/// Why a file is not what it was expected to be.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// It ends too early.
    #[error("the file is truncated: it ends after {size_bytes} bytes, {place}")]
    Truncated {
        /// Where it ends.
        size_bytes: u64,
        /// Within what.
        place: String,
    },
    /// It contradicts itself.
    #[error("the file is damaged: {0}")]
    Damaged(String),
    /// It is something else.
    #[error("the file is no archive of {wanted}: it is {found}")]
    Other {
        /// The expected kind of content.
        wanted: &'static str,
        /// The kind that was found.
        found: String,
    },
    /// The disk failed.
    #[error("read the file")]
    Unreadable(#[source] io::Error),
    /// It was told to end.
    #[error("interrupted")]
    Cancelled,
}

/// Reads a file that is expected to be of a kind. Blocks for as long as that takes; ends early when cancelled.
pub fn scan(path: &Path, kind: Kind, watch: &Watch) -> Result<Scanned, ScanError> {
    let file = File::open(path).map_err(ScanError::Unreadable)?;
    let size = file.metadata().map_err(ScanError::Unreadable)?.len();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    watch.begin(format!("checking {}", name.trim_end_matches(".part")), Some(size));
    let mut meter = Meter { file, watch, digest: Sha256::new(), size_bytes: 0, failure: None };
    let is_zip = kind == Kind::Files && zipped::is_zip(path).map_err(ScanError::Unreadable)?;
    let walk = match kind {
        Kind::File => None,
        Kind::Files if is_zip => None,
        Kind::Images | Kind::Files => match walk(&mut meter, kind) {
            Ok(walk) => Some(walk),
            Err(error) => return Err(meter.explain(error)),
        },
    };
    // What follows the archive's end counts for the digest too.
    if let Err(error) = io::copy(&mut BufReader::with_capacity(CHUNK, &mut meter), &mut io::sink()) {
        return Err(meter.explain(Stop::Io(error, "at its end".to_owned())));
    }
    let expanded_bytes = match &walk {
        Some(walk) => walk.expanded_bytes,
        None if is_zip => expanded(&mut meter)?,
        None => meter.size_bytes,
    };
    let images = match (kind, walk) {
        (Kind::Images, Some(walk)) => walk.images()?,
        _ => Vec::new(),
    };
    Ok(Scanned { sha256: hex(&meter.digest.finalize()), size_bytes: meter.size_bytes, expanded_bytes, images })
}

/// The images of an archive as an engine saves it, uncompressed, read to its end.
pub fn images(content: impl Read) -> Result<Vec<ArchivedImage>, ScanError> {
    walk_through(content, Kind::Images)
        .map_err(|stop| match stop {
            Stop::Known(error) => error,
            Stop::Short(place) => ScanError::Damaged(format!("it ends {place}")),
            Stop::First(error, wanted) => ScanError::Other { wanted, found: format!("something else ({error})") },
            Stop::Io(error, place) => ScanError::Damaged(format!("{error}, {place}")),
        })?
        .images()
}

/// Reads the entries of a zip, after the whole file has been read: what is in it stands at its end.
fn expanded(meter: &mut Meter<'_>) -> Result<u64, ScanError> {
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

/// A file that is read for the second time: neither hashed nor counted, but ended when that is wished.
struct Again<'a> {
    file: &'a File,
    watch: &'a Watch,
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

/// Why a walk through an archive stopped.
enum Stop {
    /// The reader failed, there.
    Io(io::Error, String),
    /// The first header makes no sense.
    First(io::Error, &'static str),
    /// An entry is shorter than it says.
    Short(String),
    /// It is known what is wrong.
    Known(ScanError),
}

fn walk(meter: &mut Meter<'_>, kind: Kind) -> Result<Walk, Stop> {
    let start = |error| Stop::Io(error, "at its beginning".to_owned());
    let wanted = kind.wanted();
    match compression::open(BufReader::with_capacity(CHUNK, meter)).map_err(start)? {
        Ok(content) => walk_through(content, kind),
        Err(other) => Err(Stop::Known(ScanError::Other { wanted, found: other.0.to_owned() })),
    }
}

fn walk_through(content: impl Read, kind: Kind) -> Result<Walk, Stop> {
    let start = |error| Stop::Io(error, "at its beginning".to_owned());
    let wanted = kind.wanted();
    let mut archive = tar::Archive::new(content);
    let mut walk = Walk::default();
    let mut buffer = vec![0; CHUNK];
    let mut place = "at its beginning".to_owned();
    for entry in archive.entries().map_err(start)? {
        let mut entry = match entry {
            Ok(entry) => entry,
            Err(error) if walk.is_empty() => return Err(Stop::First(error, wanted)),
            Err(error) => return Err(Stop::Io(error, place)),
        };
        let path = entry.path().map_err(|error| Stop::Io(error, place.clone()))?.to_string_lossy().into_owned();
        place = format!("within `{path}`");
        let size = entry.size();
        let mut record = match kind {
            Kind::Images => {
                let member = Member::of(&mut entry)
                    .map_err(|ambiguity| Stop::Known(ScanError::Damaged(ambiguity.to_string())))?;
                Some(walk.begin(member, size).map_err(Stop::Known)?)
            }
            Kind::Files | Kind::File => {
                walk.pass(size);
                None
            }
        };
        let mut seen = 0;
        loop {
            let read = entry.read(&mut buffer).map_err(|error| Stop::Io(error, place.clone()))?;
            if read == 0 {
                break;
            }
            seen += read as u64;
            if let Some(record) = &mut record {
                record.take(&buffer[..read]);
            }
        }
        if seen < size {
            return Err(Stop::Short(place));
        }
        if let Some(record) = record {
            walk.end(record);
        }
        place = format!("after `{path}`");
    }
    // The decompressor's own checksum comes last.
    let mut content = archive.into_inner();
    io::copy(&mut content, &mut io::sink()).map_err(|error| Stop::Io(error, place))?;
    Ok(walk)
}

/// Hashes and counts what is read of a file.
struct Meter<'a> {
    file: File,
    watch: &'a Watch,
    digest: Sha256,
    size_bytes: u64,
    /// What reading the file itself said, in contrast to what is made of its content.
    failure: Option<io::Error>,
}

impl Read for Meter<'_> {
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

impl Meter<'_> {
    /// What a failed read means: an error of the disk, a file that has ended, or content that makes no sense.
    fn explain(mut self, stop: Stop) -> ScanError {
        if self.watch.is_cancelled() {
            return ScanError::Cancelled;
        }
        if let Some(failure) = self.failure {
            return ScanError::Unreadable(failure);
        }
        match stop {
            Stop::Known(error) => error,
            Stop::Short(place) => ScanError::Truncated { size_bytes: self.size_bytes, place },
            Stop::First(error, _) if self.is_cut(&error) => {
                ScanError::Truncated { size_bytes: self.size_bytes, place: "at its beginning".to_owned() }
            }
            Stop::First(error, wanted) => ScanError::Other { wanted, found: format!("something else ({error})") },
            Stop::Io(error, place) if self.is_cut(&error) => {
                ScanError::Truncated { size_bytes: self.size_bytes, place }
            }
            Stop::Io(error, place) => ScanError::Damaged(format!("{error}, {place}")),
        }
    }

    /// Whether an error is about the file's end, and the end has been reached.
    fn is_cut(&mut self, error: &io::Error) -> bool {
        let is_at_end = matches!(self.file.read(&mut [0]), Ok(0));
        is_at_end && (error.kind() == io::ErrorKind::UnexpectedEof || error.to_string().contains("entire block"))
    }
}

//! Reading the file of a snapshot, member by member; each member must have the position and the form that a writer
//! would have given it.

use std::io::{self, BufReader, ErrorKind, Read};

use serde::Deserialize;
use tar::{EntryType, Header};

use super::manifest::{MANIFEST_BYTES_MAX, Manifest, ManifestError, PartKind, SnapshotPart, VERSION};
use super::{FORMAT, MANIFEST, NAME, PIECE_BYTES};

/// The longest first member that is read, in bytes.
const FORMAT_BYTES_MAX: u64 = 4 << 10;
/// The largest window that the decompressor accepts, as a power of two; it limits the memory that a file can demand and
/// is slightly more than a writer needs.
const WINDOW_LOG_MAX: u32 = 27;

/// The reason why a file is not an exported snapshot, or is incomplete or damaged.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file is not an exported snapshot.
    #[error("it is not a snapshot that `arenad snapshot export` has written: {0}")]
    Other(String),
    /// The file has a format version that this arenad does not read.
    #[error("it is written in version {found} of the form; this arenad reads version {VERSION}")]
    Version {
        /// The version that the file states.
        found: u64,
    },
    /// The file ends too early.
    #[error("it is truncated: it ends within `{member}`")]
    Truncated {
        /// The member within which the file ends.
        member: String,
    },
    /// The file contradicts itself.
    #[error("it is damaged: {0}")]
    Damaged(String),
    /// The manifest is invalid, or its id does not follow from the content.
    #[error("it does not match its id")]
    Manifest(#[from] ManifestError),
    /// Reading from the disk failed.
    #[error("read it")]
    Unreadable(#[source] io::Error),
}

/// Reads the file of a snapshot; a manifest that it returns has been validated.
pub struct SnapshotReader<R: Read> {
    from: zstd::Decoder<'static, BufReader<R>>,
    /// The part that is being read.
    part: Option<SnapshotPart>,
    /// The parts that have been read completely.
    parts: Vec<SnapshotPart>,
    /// The next member, if its header has been read already.
    next: Option<(String, u64)>,
    /// The member that is being read, named in errors.
    member: String,
    /// The state of the piece that is being read: the bytes that are left, its length, and the hash of the bytes read
    /// so far.
    piece: Option<(u64, u64, blake3::Hasher)>,
}

/// The next item of a file.
pub enum Next<'a, R: Read> {
    /// A part. The caller may read it to its end; [`SnapshotReader::advance`] skips the rest.
    Part(PartKind, PartReader<'a, R>),
    /// The validated manifest, which ends the file.
    Manifest(Box<Manifest>),
}

#[derive(Deserialize)]
struct Format {
    format: String,
    version: u64,
}

impl<R: Read> SnapshotReader<R> {
    /// Opens a file and reads its first member. Errors: [`ReadError::Other`] and [`ReadError::Version`] for files of
    /// another kind.
    pub fn new(from: R) -> Result<Self, ReadError> {
        let mut from = zstd::Decoder::new(from).map_err(ReadError::Unreadable)?;
        from.window_log_max(WINDOW_LOG_MAX).map_err(ReadError::Unreadable)?;
        let mut reader =
            Self { from, part: None, parts: Vec::new(), next: None, member: "its beginning".to_owned(), piece: None };
        let first = reader.header().map_err(|error| match error {
            ReadError::Damaged(what) => ReadError::Other(what),
            error => error,
        })?;
        let Some((_, size)) = first.filter(|(name, size)| name == FORMAT && *size <= FORMAT_BYTES_MAX) else {
            return Err(ReadError::Other(format!("it does not begin with `{FORMAT}`")));
        };
        let text = reader.content(size)?;
        let format: Format =
            serde_json::from_slice(&text).map_err(|error| ReadError::Other(format!("`{FORMAT}`: {error}")))?;
        if format.format != NAME {
            return Err(ReadError::Other(format!("it calls itself `{}`", format.format.escape_default())));
        }
        if format.version != u64::from(VERSION) {
            return Err(ReadError::Version { found: format.version });
        }
        Ok(reader)
    }

    /// Returns the next item of the file; the unread rest of the previous part is skipped.
    pub fn advance(&mut self) -> Result<Next<'_, R>, ReadError> {
        if self.part.is_some() {
            let mut rest = PartReader { reader: self, failure: None };
            let passed = io::copy(&mut rest, &mut io::sink());
            if let Err(error) = passed {
                return Err(rest.failure.take().unwrap_or(ReadError::Unreadable(error)));
            }
        }
        if self.next.is_none() {
            self.next = self.header()?;
        }
        let Some((name, size)) = self.next.take() else {
            return Err(ReadError::Truncated { member: MANIFEST.to_owned() });
        };
        if name == MANIFEST {
            return self.manifest(size).map(Box::new).map(Next::Manifest);
        }
        let Some(kind) = name.strip_suffix("/000000").and_then(PartKind::parse) else {
            return Err(unexpected(&name));
        };
        self.part = Some(SnapshotPart { name: kind.to_string(), bytes: 0, pieces: Vec::new() });
        self.next = Some((name, size));
        Ok(Next::Part(kind, PartReader { reader: self, failure: None }))
    }

    fn manifest(&mut self, size: u64) -> Result<Manifest, ReadError> {
        if size > MANIFEST_BYTES_MAX {
            return Err(ReadError::Damaged(format!(
                "its manifest has {size} bytes; at most {MANIFEST_BYTES_MAX} are read"
            )));
        }
        let text = self.content(size)?;
        let manifest: Manifest =
            serde_json::from_slice(&text).map_err(|error| ReadError::Damaged(format!("`{MANIFEST}`: {error}")))?;
        if self.header()?.is_some() {
            return Err(ReadError::Damaged(format!("something follows `{MANIFEST}`")));
        }
        // Reading on to the end makes the decompressor verify its own checksum, which comes last.
        let mut rest = [0; 4096];
        loop {
            match self.read(&mut rest)? {
                0 => break,
                read if rest[..read].iter().all(|byte| *byte == 0) => {}
                _ => return Err(ReadError::Damaged("something follows its end mark".to_owned())),
            }
        }
        for (found, says) in self.parts.iter().zip(&manifest.parts) {
            if found != says {
                return Err(ReadError::Damaged(format!("`{}` is not what the manifest says", found.name)));
            }
        }
        if self.parts.len() != manifest.parts.len() {
            let (found, says) = (self.parts.len(), manifest.parts.len());
            return Err(ReadError::Damaged(format!("it has {found} parts, the manifest says {says}")));
        }
        manifest.check()?;
        Ok(manifest)
    }

    /// Reads the header of the next member and returns its name and length; `None` at the end mark.
    fn header(&mut self) -> Result<Option<(String, u64)>, ReadError> {
        let mut header = Header::new_old();
        self.fill(header.as_mut_bytes())?;
        if header.as_bytes().iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let damaged = |error: io::Error| ReadError::Damaged(error.to_string());
        let (before, after) = (&header.as_bytes()[..148], &header.as_bytes()[156..]);
        let sum = before.iter().chain(after).fold(8 * 32, |sum, byte| sum + u32::from(*byte));
        if header.cksum().map_err(damaged)? != sum || header.entry_type() != EntryType::Regular {
            return Err(ReadError::Damaged(format!("the entry after `{}` is not a regular file", self.member)));
        }
        let name = String::from_utf8_lossy(&header.path_bytes()).into_owned();
        let size = header.entry_size().map_err(damaged)?;
        self.member.clone_from(&name);
        Ok(Some((name, size)))
    }

    fn content(&mut self, size: u64) -> Result<Vec<u8>, ReadError> {
        let mut content = vec![0; usize::try_from(size).unwrap_or(usize::MAX)];
        self.fill(&mut content)?;
        self.pad(size)?;
        Ok(content)
    }

    fn pad(&mut self, size: u64) -> Result<(), ReadError> {
        let padding = size.next_multiple_of(512) - size;
        self.fill(&mut [0; 512][..padding as usize])
    }

    fn fill(&mut self, buffer: &mut [u8]) -> Result<(), ReadError> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.read(&mut buffer[filled..])? {
                0 => return Err(ReadError::Truncated { member: self.member.clone() }),
                read => filled += read,
            }
        }
        Ok(())
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ReadError> {
        self.from.read(buffer).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => ReadError::Truncated { member: self.member.clone() },
            // Errors of the operating system carry an error number; errors of the decompressor carry none.
            _ if error.raw_os_error().is_some() => ReadError::Unreadable(error),
            _ => ReadError::Damaged(format!("{error}, within `{}`", self.member)),
        })
    }
}

fn unexpected(name: &str) -> ReadError {
    ReadError::Damaged(format!("it has a member `{}` where none of that name belongs", name.escape_default()))
}

/// A reader of one part's content.
pub struct PartReader<'a, R: Read> {
    reader: &'a mut SnapshotReader<R>,
    failure: Option<ReadError>,
}

impl<R: Read> PartReader<'_, R> {
    /// Takes the reason why reading failed, which is more precise than the [`io::Error`] that was returned.
    pub fn failure(&mut self) -> Option<ReadError> {
        self.failure.take()
    }
}

impl<R: Read> SnapshotReader<R> {
    fn read_part(&mut self, buffer: &mut [u8]) -> Result<usize, ReadError> {
        if buffer.is_empty() {
            return Ok(0);
        }
        if self.piece.is_none() {
            let Some(size) = self.begin_piece()? else { return Ok(0) };
            self.piece = Some((size, size, blake3::Hasher::new()));
        }
        let Some((left, size, mut hasher)) = self.piece.take() else { return Ok(0) };
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.read(&mut buffer[..most])?;
        if read == 0 {
            return Err(ReadError::Truncated { member: self.member.clone() });
        }
        hasher.update(&buffer[..read]);
        match left - read as u64 {
            0 => self.end_piece(size, &hasher.finalize())?,
            left => self.piece = Some((left, size, hasher)),
        }
        Ok(read)
    }

    /// Returns the length of the part's next piece; `None` if the part has no more.
    fn begin_piece(&mut self) -> Result<Option<u64>, ReadError> {
        let Some(part) = &self.part else { return Ok(None) };
        let (count, has_ended) = (part.pieces.len(), part.bytes % PIECE_BYTES != 0);
        let expected = format!("{}/{count:06}", part.name);
        if self.next.is_none() {
            self.next = self.header()?;
        }
        let Some((name, size)) = self.next.take() else {
            return Err(ReadError::Truncated { member: MANIFEST.to_owned() });
        };
        if name == expected {
            if size == 0 || size > PIECE_BYTES || has_ended {
                return Err(ReadError::Damaged(format!("`{name}` has {size} bytes, which no piece there has")));
            }
            return Ok(Some(size));
        }
        self.next = Some((name, size));
        self.parts.extend(self.part.take());
        Ok(None)
    }

    fn end_piece(&mut self, size: u64, hash: &blake3::Hash) -> Result<(), ReadError> {
        self.pad(size)?;
        if let Some(part) = &mut self.part {
            part.pieces.push(hash.to_hex().to_string());
            part.bytes += size;
        }
        Ok(())
    }
}

impl<R: Read> Read for PartReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader.read_part(buffer).map_err(|error| {
            let said = io::Error::other(error.to_string());
            self.failure = Some(error);
            said
        })
    }
}

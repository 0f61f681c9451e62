//! Reads tar archives as engines send them: POSIX (pax) headers and GNU long names. Every length in an archive is
//! checked against a limit, and an archive without an end mark is an error.
//!
//! The `tar` crate decodes the headers. This module walks from one header to the next itself, because the crate's own
//! walk reads extensions of any length into memory, accepts an archive that was cut off between two members, and splits
//! extensions at line ends, which the values of extended attributes may contain.

use std::ffi::CString;
use std::io::{self, ErrorKind, Read};
use std::path::PathBuf;

use rustix::fs::Timespec;
use tar::{EntryType, Header};

use super::StorageError;
use super::attributes::Xattrs;
use super::walk::as_path;

const RECORD: usize = 512;

/// The maximum size of one member's extensions together, in bytes. A path has up to 4 KiB, an extended attribute up to
/// 64 KiB.
const EXTENSION_BYTES: u64 = 1 << 20;

/// The maximum length of a path and of a link's target, in bytes: Linux accepts no longer ones (`PATH_MAX`).
const PATH_BYTES: usize = 4095;

/// The maximum length of a member's content, in bytes: no file can be longer.
const CONTENT_BYTES: u64 = i64::MAX as u64;

/// The kind of an archive's member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArchiveMemberKind {
    /// A folder; its members follow it.
    Folder,
    /// A regular file, whose content follows its header.
    File,
    /// A symbolic link, whose target may not exist.
    Symlink,
    /// Another name of a file in the same archive.
    HardLink,
    /// A named pipe (FIFO), without content.
    Pipe,
    /// A character device, with its numbers.
    CharacterDevice,
    /// A block device, with its numbers.
    BlockDevice,
}

/// A member of an archive, without its content.
#[derive(Debug)]
pub struct ArchiveMember {
    /// The kind, which decides which of the other fields apply.
    pub kind: ArchiveMemberKind,
    /// The parts of the path, without empty parts and `.`; no part is `..`.
    pub path: Vec<CString>,
    /// The target of a link; that of a symbolic link is not normalized.
    pub link: Vec<u8>,
    /// The id of the owning user.
    pub uid: u32,
    /// The id of the owning group.
    pub gid: u32,
    /// The permission bits, including set-id and sticky bits.
    pub mode: u32,
    /// The time of the last access, if the archive states it.
    pub accessed: Option<Timespec>,
    /// The time of the last modification.
    pub modified: Timespec,
    /// The extended attributes, in the archive's order.
    pub xattrs: Xattrs,
    /// The major and minor number of a device; zeros for other kinds.
    pub device: (u32, u32),
    /// The length of the content, in bytes.
    pub size: u64,
}

/// Reads the members of an archive in order.
pub struct ArchiveReader<R> {
    input: R,
    /// The number of bytes of the last member's content that have not been read. `padding` fills its last record.
    left: u64,
    padding: u64,
}

/// The extension headers that precede a member's header and override its fields.
#[derive(Default)]
struct Extensions {
    path: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    size: Option<u64>,
    uid: Option<u64>,
    gid: Option<u64>,
    accessed: Option<Timespec>,
    modified: Option<Timespec>,
    xattrs: Xattrs,
}

impl<R: Read> ArchiveReader<R> {
    /// Starts at the first byte of an archive.
    pub fn new(input: R) -> Self {
        Self { input, left: 0, padding: 0 }
    }

    /// Returns the next member, or `None` at the end mark. Skips the unread content of the previous member.
    pub fn next_member(&mut self) -> Result<Option<ArchiveMember>, StorageError> {
        let (mut extensions, mut room) = (Extensions::default(), EXTENSION_BYTES);
        loop {
            self.pass_over()?;
            let Some(header) = self.header()? else { return Ok(None) };
            let size = header.entry_size().map_err(|error| unsound(&header, error))?;
            match header.entry_type() {
                EntryType::GNULongName => extensions.path = Some(text(self.extension(&header, size, &mut room)?)),
                EntryType::GNULongLink => extensions.link = Some(text(self.extension(&header, size, &mut room)?)),
                EntryType::XHeader => {
                    let records = self.extension(&header, size, &mut room)?;
                    extensions.read(&records).map_err(|what| unsound(&header, what))?;
                }
                // Global headers contain comments of the program that wrote the archive.
                EntryType::XGlobalHeader => drop(self.extension(&header, size, &mut room)?),
                kind => {
                    let member = extensions.complete(&header, kind, size).map_err(|what| unsound(&header, what))?;
                    self.expect(member.size);
                    return Ok(Some(member));
                }
            }
        }
    }

    /// Returns a reader of the last member's content.
    pub fn content(&mut self) -> impl Read + '_ {
        MemberContent(self)
    }

    fn expect(&mut self, size: u64) {
        self.left = size;
        self.padding = size.next_multiple_of(RECORD as u64) - size;
    }

    fn pass_over(&mut self) -> Result<(), StorageError> {
        let skipped = self.left.saturating_add(std::mem::take(&mut self.padding));
        self.left = 0;
        let passed = io::copy(&mut (&mut self.input).take(skipped), &mut io::sink()).map_err(StorageError::Stream)?;
        if passed < skipped { Err(cut_off()) } else { Ok(()) }
    }

    fn header(&mut self) -> Result<Option<Header>, StorageError> {
        let mut header = Header::new_old();
        self.input.read_exact(header.as_mut_bytes()).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => cut_off(),
            _ => StorageError::Stream(error),
        })?;
        if header.as_bytes().iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let (before, after) = (&header.as_bytes()[..148], &header.as_bytes()[156..]);
        // The checksum field itself counts as eight blanks.
        let sum = before.iter().chain(after).fold(8 * 32, |sum, byte| sum + u32::from(*byte));
        match header.cksum() {
            Ok(expected) if expected == sum => Ok(Some(header)),
            _ => Err(unsound(&header, "its header's sum is wrong: the archive was damaged on its way")),
        }
    }

    /// Reads an extension, within the limit. Its header counts too; otherwise an archive could contain endless
    /// extensions of length zero.
    fn extension(&mut self, header: &Header, size: u64, room: &mut u64) -> Result<Vec<u8>, StorageError> {
        *room = room.checked_sub(size.saturating_add(RECORD as u64)).ok_or_else(|| {
            unsound(header, format!("its extensions, the last of {size} bytes, have more than {EXTENSION_BYTES}"))
        })?;
        self.expect(size);
        let mut records = Vec::new();
        self.content().read_to_end(&mut records).map_err(StorageError::Stream)?;
        if (records.len() as u64) < size { Err(cut_off()) } else { Ok(records) }
    }
}

struct MemberContent<'a, R>(&'a mut ArchiveReader<R>);

impl<R: Read> Read for MemberContent<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.0.left).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.0.input.read(&mut buffer[..most])?;
        self.0.left -= read as u64;
        Ok(read)
    }
}

fn cut_off() -> StorageError {
    StorageError::Stream(io::Error::new(ErrorKind::UnexpectedEof, "it was cut off before its end"))
}

fn unsound(header: &Header, what: impl ToString) -> StorageError {
    let member = PathBuf::from(String::from_utf8_lossy(&header.path_bytes()).into_owned());
    StorageError::Archive { member, what: what.to_string() }
}

/// Removes the zero byte that ends GNU long names.
fn text(mut bytes: Vec<u8>) -> Vec<u8> {
    while bytes.pop_if(|last| *last == 0).is_some() {}
    bytes
}

arenad_model::text_error! {
    /// The reason why a member of an archive is refused.
    pub struct ArchiveFault;
}

impl Extensions {
    /// Reads pax records: `LENGTH KEY=VALUE\n`, where the length counts all of it.
    fn read(&mut self, mut records: &[u8]) -> Result<(), ArchiveFault> {
        while !records.is_empty() {
            let (record, rest) = record(records).ok_or("its extensions are not pax records")?;
            records = rest;
            let equals = record.iter().position(|byte| *byte == b'=').ok_or("its extensions are not pax records")?;
            let (key, value) = (String::from_utf8_lossy(&record[..equals]), &record[equals + 1..]);
            match key.as_ref() {
                "path" => self.path = Some(value.to_vec()),
                "linkpath" => self.link = Some(value.to_vec()),
                "size" => self.size = Some(number(value)?),
                "uid" => self.uid = Some(number(value)?),
                "gid" => self.gid = Some(number(value)?),
                "atime" => self.accessed = Some(time(value)?),
                "mtime" => self.modified = Some(time(value)?),
                key if key.starts_with("GNU.sparse.") => return Err(SPARSE.into()),
                key => {
                    if let Some(name) = key.strip_prefix("SCHILY.xattr.") {
                        let name = CString::new(name).map_err(|_| "an extended attribute's name has a zero byte")?;
                        self.xattrs.push((name, value.to_vec()));
                    }
                }
            }
        }
        Ok(())
    }

    fn complete(&mut self, header: &Header, kind: EntryType, size: u64) -> Result<ArchiveMember, ArchiveFault> {
        let fault = |error: io::Error| ArchiveFault(error.to_string());
        let kind = match kind {
            EntryType::Directory => ArchiveMemberKind::Folder,
            EntryType::Regular | EntryType::Continuous => ArchiveMemberKind::File,
            EntryType::Symlink => ArchiveMemberKind::Symlink,
            EntryType::Link => ArchiveMemberKind::HardLink,
            EntryType::Fifo => ArchiveMemberKind::Pipe,
            EntryType::Char => ArchiveMemberKind::CharacterDevice,
            EntryType::Block => ArchiveMemberKind::BlockDevice,
            EntryType::GNUSparse => return Err(SPARSE.into()),
            other => return Err(format!("its type `{}` is not known", other.as_byte().escape_ascii()).into()),
        };
        let path = self.path.take().unwrap_or_else(|| header.path_bytes().into_owned());
        let link = self.link.take().or_else(|| header.link_name_bytes().map(|link| link.into_owned()));
        let is_device = matches!(kind, ArchiveMemberKind::CharacterDevice | ArchiveMemberKind::BlockDevice);
        let part = |part: io::Result<Option<u32>>| part.map(Option::unwrap_or_default).map_err(fault);
        let device = if is_device { (part(header.device_major())?, part(header.device_minor())?) } else { (0, 0) };
        let seconds = |seconds: u64| Timespec { tv_sec: seconds.cast_signed(), tv_nsec: 0 };
        let link = link.unwrap_or_default();
        if path.len() > PATH_BYTES || link.len() > PATH_BYTES {
            return Err(format!("its path or its link has more than {PATH_BYTES} bytes").into());
        }
        let size = if kind == ArchiveMemberKind::File { self.size.take().unwrap_or(size) } else { size };
        if size > CONTENT_BYTES {
            return Err(format!("it has {size} bytes; no file is so long").into());
        }
        Ok(ArchiveMember {
            kind,
            path: parts(&path)?,
            link,
            uid: id(self.uid.take().map_or_else(|| header.uid().map_err(fault), Ok)?)?,
            gid: id(self.gid.take().map_or_else(|| header.gid().map_err(fault), Ok)?)?,
            mode: header.mode().map_err(fault)? & 0o7777,
            accessed: self.accessed.take(),
            modified: self.modified.take().map_or_else(|| header.mtime().map(seconds).map_err(fault), Ok)?,
            xattrs: std::mem::take(&mut self.xattrs),
            device,
            size,
        })
    }
}

const SPARSE: &str = "it is stored with holes, which the engine does not do; make the archive without `--sparse`";

/// Splits a path into its parts. A `..` part is an error, even if the path would remain in the archive.
pub fn parts(path: &[u8]) -> Result<Vec<CString>, ArchiveFault> {
    let named = path.split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b"."));
    named
        .map(|part| match part {
            b".." => Err("its path leads out of the archive".into()),
            part => CString::new(part).map_err(|_| "its path has a zero byte".into()),
        })
        .collect()
}

/// Joins the parts of a path for an error message.
pub fn shown(parts: &[CString]) -> PathBuf {
    parts.iter().map(|part| as_path(part)).collect()
}

fn record(records: &[u8]) -> Option<(&[u8], &[u8])> {
    let blank = records.iter().position(|byte| *byte == b' ')?;
    let length = str::from_utf8(records.get(..blank)?).ok()?.parse().ok()?;
    let (record, rest) = records.split_at_checked(length)?;
    Some((record.get(blank + 1..)?.strip_suffix(b"\n")?, rest))
}

fn number(value: &[u8]) -> Result<u64, ArchiveFault> {
    let found = str::from_utf8(value).ok().and_then(|text| text.parse().ok());
    found.ok_or_else(|| format!("`{}` is not a number", value.escape_ascii()).into())
}

fn id(number: u64) -> Result<u32, ArchiveFault> {
    // The kernel interprets the highest number as "no owner".
    u32::try_from(number)
        .ok()
        .filter(|id| *id != u32::MAX)
        .ok_or_else(|| format!("no owner has the number {number}").into())
}

/// Parses a time in seconds since 1970 with a decimal fraction.
fn time(value: &[u8]) -> Result<Timespec, ArchiveFault> {
    let fault = || ArchiveFault(format!("`{}` is not a time", value.escape_ascii()));
    let text = str::from_utf8(value).map_err(|_| fault())?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(fault());
    }
    let seconds: i64 = whole.parse().map_err(|_| fault())?;
    let digits: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    let nanoseconds: i64 = digits.parse().map_err(|_| fault())?;
    // -1.25 is a quarter of a second before -1, which is 0.75 s after -2.
    Ok(match whole.starts_with('-') && nanoseconds > 0 {
        true => Timespec { tv_sec: seconds.saturating_sub(1), tv_nsec: (1_000_000_000 - nanoseconds) as _ },
        false => Timespec { tv_sec: seconds, tv_nsec: nanoseconds as _ },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_1970_have_positive_fractions() {
        let parsed = |text: &str| time(text.as_bytes()).map(|time| (time.tv_sec, time.tv_nsec));
        assert_eq!(parsed("1700000000.123456789"), Ok((1_700_000_000, 123_456_789)));
        assert_eq!(parsed("5.5"), Ok((5, 500_000_000)));
        assert_eq!(parsed("-1.25"), Ok((-2, 750_000_000)));
        assert!(parsed("1.-5").is_err() && parsed("").is_err() && parsed("1.2.3").is_err());
    }

    #[test]
    fn values_may_contain_line_ends() {
        let mut extensions = Extensions::default();
        extensions.read(b"29 SCHILY.xattr.user.a=b\nc d=\n\n10 size=7\n").expect_err("a length that is wrong");
        let mut extensions = Extensions::default();
        extensions.read(b"30 SCHILY.xattr.user.a=b\nc d=\n10 size=7\n").expect("two records");
        assert_eq!(extensions.size, Some(7));
        assert_eq!(extensions.xattrs, [(c"user.a".to_owned(), b"b\nc d=".to_vec())]);
    }

    #[test]
    fn paths_that_lead_elsewhere_are_refused() {
        assert!(parts(b"a/../../b").is_err() && parts(b"..").is_err() && parts(b"a\0b").is_err());
        assert_eq!(parts(b"/./a//b/"), Ok(vec![c"a".to_owned(), c"b".to_owned()]));
    }
}

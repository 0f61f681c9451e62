//! Writing the file of a snapshot.

use std::io::{self, Write};

use tar::{EntryType, Header};

use super::manifest::{MANIFEST_BYTES_MAX, Manifest, PartKind, SnapshotPart, VERSION};
use super::{FORMAT, MANIFEST, NAME, PIECE_BYTES};

/// The Zstandard level; at this level, compression keeps up with disks.
const LEVEL: i32 = 3;

/// Writes the file of a snapshot: the parts in turn, then the manifest.
pub struct Writer<W: Write> {
    to: zstd::Encoder<'static, W>,
    parts: Vec<SnapshotPart>,
    /// The last piece of the current part, which is not full yet.
    piece: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Starts a file by writing its first member.
    pub fn new(to: W) -> io::Result<Self> {
        let mut to = zstd::Encoder::new(to, LEVEL)?;
        to.include_checksum(true)?;
        let mut writer = Self { to, parts: Vec::new(), piece: Vec::new() };
        let format = serde_json::json!({ "format": NAME, "version": VERSION });
        writer.member(FORMAT, format.to_string().as_bytes())?;
        Ok(writer)
    }

    /// Starts a part; all content written from now on belongs to it.
    pub fn begin(&mut self, kind: &PartKind) -> io::Result<()> {
        self.end_part()?;
        self.parts.push(SnapshotPart { name: kind.to_string(), bytes: 0, pieces: Vec::new() });
        Ok(())
    }

    /// Adds the parts to the manifest, writes it, and ends the file.
    pub fn finish(mut self, manifest: Manifest) -> io::Result<()> {
        self.end_part()?;
        let manifest = Manifest { parts: std::mem::take(&mut self.parts), ..manifest };
        let manifest = serde_json::to_vec(&manifest)?;
        if manifest.len() as u64 > MANIFEST_BYTES_MAX {
            let (length, most) = (manifest.len(), MANIFEST_BYTES_MAX);
            return Err(io::Error::other(format!("the manifest has {length} bytes, and at most {most} are read")));
        }
        self.member(MANIFEST, &manifest)?;
        self.to.write_all(&[0; 1024])?;
        self.to.finish()?.flush()
    }

    fn end_part(&mut self) -> io::Result<()> {
        if self.piece.is_empty() { Ok(()) } else { self.end_piece() }
    }

    fn end_piece(&mut self) -> io::Result<()> {
        let piece = std::mem::take(&mut self.piece);
        let Some(part) = self.parts.last_mut() else {
            return Err(io::Error::other("content was written before any part was begun"));
        };
        let name = format!("{}/{:06}", part.name, part.pieces.len());
        part.pieces.push(blake3::hash(&piece).to_hex().to_string());
        part.bytes += piece.len() as u64;
        self.member(&name, &piece)?;
        self.piece = piece;
        self.piece.clear();
        Ok(())
    }

    fn member(&mut self, name: &str, content: &[u8]) -> io::Result<()> {
        let mut header = Header::new_ustar();
        header.set_entry_type(EntryType::Regular);
        header.set_path(name)?;
        header.set_mode(0o600);
        header.set_size(content.len() as u64);
        header.set_cksum();
        self.to.write_all(header.as_bytes())?;
        self.to.write_all(content)?;
        let padding = content.len().next_multiple_of(512) - content.len();
        self.to.write_all(&[0; 512][..padding])
    }
}

impl<W: Write> Write for Writer<W> {
    fn write(&mut self, content: &[u8]) -> io::Result<usize> {
        let room = PIECE_BYTES as usize - self.piece.len();
        let taken = content.len().min(room);
        self.piece.extend_from_slice(&content[..taken]);
        if self.piece.len() as u64 == PIECE_BYTES {
            self.end_piece()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

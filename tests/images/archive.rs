//! Handmade archives in the two layouts of `docker save`, of any size, and damaged on request.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use arenad_model::hex::hex;
use serde_json::json;
use sha2::{Digest, Sha256};

/// The layout of an image archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArchiveLayout {
    /// `<id>/layer.tar`.
    Classic,
    /// `blobs/sha256/<digest>`.
    Blobs,
}

/// A saved image archive.
#[derive(Debug, Clone)]
pub struct Saved {
    pub id: String,
    /// SHA-256 (hex) of the archive.
    pub sha256: String,
}

/// Deterministic noise that differs for each seed, is cheap and does not compress.
struct Noise {
    block: Vec<u8>,
    left: u64,
    count: u64,
}

impl Noise {
    fn new(seed: u64, size: u64) -> Self {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let words = (0..1 << 17).flat_map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()
        });
        Self { block: words.collect(), left: size, count: 0 }
    }

    fn write(mut self, mut out: impl Write) -> io::Result<()> {
        while self.left > 0 {
            self.block[..8].copy_from_slice(&self.count.to_le_bytes());
            let size = usize::try_from(self.left).unwrap_or(usize::MAX).min(self.block.len());
            out.write_all(&self.block[..size])?;
            self.left -= size as u64;
            self.count += 1;
        }
        Ok(())
    }
}

/// Hashes the bytes that are written through it.
struct Hashed<W> {
    out: W,
    digest: Sha256,
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.digest.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn header(name: &str, size: u64) -> tar::Header {
    let mut header = tar::Header::new_ustar();
    header.set_path(name).unwrap();
    header.set_size(size);
    header.set_mode(0o644);
    header.set_cksum();
    header
}

/// The size of a layer with one file of this size.
fn layer_size(content: u64) -> u64 {
    512 + content.next_multiple_of(512) + 1024
}

fn write_layer(seed: u64, content: u64, out: &mut impl Write) -> io::Result<()> {
    out.write_all(header("srv/content", content).as_bytes())?;
    Noise::new(seed, content).write(&mut *out)?;
    let padding = content.next_multiple_of(512) - content + 1024;
    out.write_all(&vec![0; usize::try_from(padding).unwrap()])
}

fn layer_digest(seed: u64, content: u64) -> String {
    let mut hashed = Hashed { out: io::sink(), digest: Sha256::new() };
    write_layer(seed, content, &mut hashed).unwrap();
    hex(&hashed.digest.finalize())
}

/// Writes an image of one layer with one file of `content` bytes.
pub fn save(path: &Path, tag: &str, layout: ArchiveLayout, seed: u64, content: u64) -> Saved {
    let mut out = Hashed { out: BufWriter::new(File::create(path).unwrap()), digest: Sha256::new() };
    let digest = layer_digest(seed, content);
    let config = json!({
        "architecture": "amd64", "os": "linux", "config": { "Cmd": ["/bin/true"], "Labels": { "seed": seed.to_string() } },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{digest}")] },
    })
    .to_string();
    let id = hex(&Sha256::digest(&config));
    let (layer_name, config_name) = match layout {
        ArchiveLayout::Classic => (format!("{digest}/layer.tar"), format!("{id}.json")),
        ArchiveLayout::Blobs => (format!("blobs/sha256/{digest}"), format!("blobs/sha256/{id}")),
    };
    let manifest = json!([{ "Config": config_name, "RepoTags": [format!("{tag}:latest")], "Layers": [layer_name] }]);
    out.write_all(header(&layer_name, layer_size(content)).as_bytes()).unwrap();
    write_layer(seed, content, &mut out).unwrap();
    let mut texts = vec![(config_name, config), ("manifest.json".to_owned(), manifest.to_string())];
    if layout == ArchiveLayout::Blobs {
        let manifest = json!({ "schemaVersion": 2, "config": { "digest": format!("sha256:{id}") } }).to_string();
        let digest = hex(&Sha256::digest(&manifest));
        let index = json!({ "schemaVersion": 2, "manifests": [{ "digest": format!("sha256:{digest}") }] });
        texts.extend([(format!("blobs/sha256/{digest}"), manifest), ("index.json".to_owned(), index.to_string())]);
        texts.push(("oci-layout".to_owned(), json!({ "imageLayoutVersion": "1.0.0" }).to_string()));
    }
    for (name, text) in texts {
        out.write_all(header(&name, text.len() as u64).as_bytes()).unwrap();
        out.write_all(text.as_bytes()).unwrap();
        out.write_all(&vec![0; text.len().next_multiple_of(512) - text.len()]).unwrap();
    }
    out.write_all(&[0; 1024]).unwrap();
    out.flush().unwrap();
    Saved { id: format!("sha256:{id}"), sha256: hex(&out.digest.finalize()) }
}

/// Overwrites some bytes of a file.
pub fn damage(path: &Path, offset: u64) {
    use std::os::unix::fs::FileExt;
    let file = File::options().write(true).open(path).unwrap();
    file.write_all_at(b"damaged!", offset).unwrap();
}

/// Truncates a file to a size.
pub fn truncate(path: &Path, size: u64) {
    File::options().write(true).open(path).unwrap().set_len(size).unwrap();
}

//! Detects the compression of an archive by its first bytes, because names are unreliable.

use std::io::{self, BufRead, Read};

/// The compression of a file, judging by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    Gzip,
    Zstandard,
}

/// A file that cannot be an archive. The text completes the sentence "it is ...".
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NoArchive(pub &'static str);

/// Detects the compression from the first bytes.
pub(crate) fn recognize(first: &[u8]) -> Result<Compression, NoArchive> {
    let page = first.iter().skip_while(|byte| byte.is_ascii_whitespace()).take(9).map(u8::to_ascii_lowercase);
    let page: Vec<u8> = page.collect();
    match first {
        [] => Err(NoArchive("empty")),
        [0x1f, 0x8b, ..] => Ok(Compression::Gzip),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Ok(Compression::Zstandard),
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => {
            Err(NoArchive("compressed by bzip2; plain, gzip or Zstandard is wanted"))
        }
        [0xfd, b'7', b'z', b'X', b'Z', ..] => Err(NoArchive("compressed by xz; plain, gzip or Zstandard is wanted")),
        _ if page.starts_with(b"<!doctype") || page.starts_with(b"<html") => Err(NoArchive("a web page")),
        _ => Ok(Compression::None),
    }
}

/// Opens the content of a file that may be compressed.
pub(crate) fn open<'a>(mut file: impl BufRead + 'a) -> io::Result<Result<Box<dyn Read + 'a>, NoArchive>> {
    Ok(match recognize(file.fill_buf()?) {
        Ok(Compression::None) => Ok(Box::new(file)),
        Ok(Compression::Gzip) => Ok(Box::new(flate2::bufread::MultiGzDecoder::new(file))),
        Ok(Compression::Zstandard) => Ok(Box::new(zstd::stream::read::Decoder::with_buffer(file)?)),
        Err(no_archive) => Err(no_archive),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_decide() {
        assert_eq!(recognize(b"\x1f\x8b\x08"), Ok(Compression::Gzip));
        assert_eq!(recognize(b"\x28\xb5\x2f\xfd\x00"), Ok(Compression::Zstandard));
        assert_eq!(recognize(b"manifest.json\0\0\0"), Ok(Compression::None));
        assert_eq!(recognize(b"\n<!DOCTYPE html>"), Err(NoArchive("a web page")));
        assert_eq!(recognize(b"<HTML><body>"), Err(NoArchive("a web page")));
        assert_eq!(recognize(b""), Err(NoArchive("empty")));
        assert!(recognize(b"BZh91AY").is_err() && recognize(b"\xfd7zXZ\0").is_err());
    }
}

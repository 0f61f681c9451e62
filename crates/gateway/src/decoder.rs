//! Decompression of bodies whose addresses are replaced. It produces one piece at a time, so that a body which expands
//! a thousandfold takes no more memory than any other.

use std::io::{self, Write};

use bytes::{Buf, Bytes};
use flate2::write::{MultiGzDecoder, ZlibDecoder};

/// The maximum number of compressed bytes that are decompressed at a time.
const STEP: usize = 16 * 1024;

/// A content coding (RFC 9110, section 8.4.1) that can be decompressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContentCoding {
    Gzip,
    Deflate,
}

impl ContentCoding {
    /// Returns the coding of this name in lower case, if it is one of them.
    pub(super) fn of(name: &str) -> Option<Self> {
        match name {
            "gzip" | "x-gzip" => Some(Self::Gzip),
            "deflate" => Some(Self::Deflate),
            _ => None,
        }
    }
}

/// The decompression of one body.
pub(super) struct BodyDecoder {
    decoder: Decoder,
    /// The compressed bytes that wait.
    input: Bytes,
}

enum Decoder {
    Gzip(MultiGzDecoder<Vec<u8>>),
    Deflate(ZlibDecoder<Vec<u8>>),
}

impl BodyDecoder {
    pub(super) fn new(coding: ContentCoding) -> Self {
        let decoder = match coding {
            ContentCoding::Gzip => Decoder::Gzip(MultiGzDecoder::new(Vec::new())),
            ContentCoding::Deflate => Decoder::Deflate(ZlibDecoder::new(Vec::new())),
        };
        Self { decoder, input: Bytes::new() }
    }

    /// Adds compressed bytes. All earlier ones must have been decompressed.
    pub(super) fn add(&mut self, bytes: Bytes) {
        debug_assert!(self.input.is_empty());
        self.input = bytes;
    }

    /// Whether compressed bytes wait.
    pub(super) fn has_input(&self) -> bool {
        !self.input.is_empty()
    }

    /// Decompresses some of the bytes that wait. The result is empty if it depends on later ones.
    pub(super) fn decompress(&mut self) -> io::Result<Vec<u8>> {
        let step = &self.input[..self.input.len().min(STEP)];
        let (taken, output) = match &mut self.decoder {
            Decoder::Gzip(decoder) => (decoder.write(step)?, std::mem::take(decoder.get_mut())),
            Decoder::Deflate(decoder) => (decoder.write(step)?, std::mem::take(decoder.get_mut())),
        };
        if taken == 0 && !step.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "bytes follow the end of the compressed body"));
        }
        self.input.advance(taken);
        Ok(output)
    }

    /// Returns the last decompressed bytes. Fails if the compressed body is incomplete.
    pub(super) fn finish(&mut self) -> io::Result<Vec<u8>> {
        match &mut self.decoder {
            Decoder::Gzip(decoder) => {
                decoder.try_finish()?;
                Ok(std::mem::take(decoder.get_mut()))
            }
            Decoder::Deflate(decoder) => {
                decoder.try_finish()?;
                Ok(std::mem::take(decoder.get_mut()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};
    use proptest::prelude::*;

    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).expect("memory");
        encoder.finish().expect("memory")
    }

    fn deflate(text: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).expect("memory");
        encoder.finish().expect("memory")
    }

    /// Decompresses a body that arrives in chunks. Returns it with the length of the longest piece.
    fn whole<'a>(coding: &str, chunks: impl Iterator<Item = &'a [u8]>) -> io::Result<(Vec<u8>, usize)> {
        let mut decoder = BodyDecoder::new(ContentCoding::of(coding).expect("a coding"));
        let (mut text, mut longest) = (Vec::new(), 0);
        for chunk in chunks {
            decoder.add(Bytes::copy_from_slice(chunk));
            while decoder.has_input() {
                let piece = decoder.decompress()?;
                longest = longest.max(piece.len());
                text.extend(piece);
            }
        }
        let last = decoder.finish()?;
        longest = longest.max(last.len());
        text.extend(last);
        Ok((text, longest))
    }

    proptest! {
        #[test]
        fn a_body_is_the_same_however_it_is_divided(text in ".{0,2000}", size in 1..200_usize) {
            let text = text.repeat(20).into_bytes();
            let (zipped, deflated) = (gzip(&text), deflate(&text));
            prop_assert_eq!(&whole("gzip", zipped.chunks(size)).expect("gzip").0, &text);
            prop_assert_eq!(&whole("deflate", deflated.chunks(size)).expect("deflate").0, &text);
            // Several members count as one body.
            let twice = [gzip(&text), zipped.clone()].concat();
            prop_assert_eq!(whole("x-gzip", twice.chunks(size)).expect("gzip").0, [text.clone(), text].concat());
            prop_assert!(whole("gzip", zipped[..zipped.len() - 1].chunks(size)).is_err(), "its end is missing");
        }
    }

    #[test]
    fn pieces_stay_small_however_far_a_body_expands() {
        let (text, longest) = whole("gzip", std::iter::once(&*gzip(&vec![b'a'; 64 << 20]))).expect("gzip");
        assert_eq!(text.len(), 64 << 20);
        assert!(longest <= 1 << 20, "{longest} bytes at once");
        let (_, longest) = whole("deflate", std::iter::once(&*deflate(&vec![b'a'; 64 << 20]))).expect("deflate");
        assert!(longest <= 1 << 20, "{longest} bytes at once");
    }

    #[test]
    fn damaged_bodies_and_unknown_codings_are_errors() {
        let mut damaged = gzip(&b"http://localhost:7770/".repeat(100));
        let middle = damaged.len() / 2;
        damaged[middle] ^= 0xff;
        assert!(whole("gzip", std::iter::once(&*damaged)).is_err());
        assert!(whole("gzip", std::iter::once(&b"no gzip at all"[..])).is_err());
        assert!(whole("deflate", std::iter::once(&[deflate(b"a"), b"more".to_vec()].concat()[..])).is_err());
        assert!(["br", "zstd", "gzip, gzip", ""].into_iter().all(|coding| ContentCoding::of(coding).is_none()));
    }
}

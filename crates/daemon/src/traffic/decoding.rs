//! Decoding bodies from their content coding.

use std::borrow::Cow;
use std::io::{self, Read};

/// The largest size that a body may decompress to, in bytes; a larger body is treated as a decompression bomb.
const UNPACKED_MAX: u64 = 4 << 20;

/// The reason why a body cannot be decoded.
#[derive(Debug, thiserror::Error)]
pub(super) enum DecodingError {
    /// The content coding is unknown.
    #[error("not decoded: the coding `{0}` is unknown")]
    Unknown(String),
    /// The body does not have the declared coding.
    #[error("not decoded: invalid {coding}: {cause}")]
    Broken {
        /// The name of the coding.
        coding: String,
        /// The error of the decoder.
        cause: io::Error,
    },
    /// The body decompresses to too many bytes, by itself or together with the others.
    #[error("not decoded: it, or all bodies together, would be too long")]
    TooLong,
}

/// Returns the body as it was before `coding`, the value of Content-Encoding, was applied. The decompressed size is
/// subtracted from `room`, in bytes.
pub(super) fn decoded<'a>(bytes: &'a [u8], coding: &str, room: &mut u64) -> Result<Cow<'a, [u8]>, DecodingError> {
    let mut body = Cow::Borrowed(bytes);
    let most = UNPACKED_MAX.min(*room);
    // Codings are listed in the order in which they were applied (RFC 9110 section 8.4).
    for coding in coding.rsplit(',').map(|coding| coding.trim().to_ascii_lowercase()) {
        body = match coding.as_str() {
            "" | "identity" => body,
            "gzip" | "x-gzip" => unpack(flate2::read::MultiGzDecoder::new(&*body), &coding, most)?,
            "deflate" => unpack(flate2::read::ZlibDecoder::new(&*body), &coding, most)
                // Some servers omit the zlib wrapper.
                .or_else(|_| unpack(flate2::read::DeflateDecoder::new(&*body), &coding, most))?,
            "zstd" => {
                let decoder = zstd::stream::read::Decoder::new(&*body);
                unpack(
                    decoder.map_err(|cause| DecodingError::Broken { coding: coding.clone(), cause })?,
                    &coding,
                    most,
                )?
            }
            _ => return Err(DecodingError::Unknown(coding)),
        };
    }
    if let Cow::Owned(unpacked) = &body {
        *room -= unpacked.len() as u64;
    }
    Ok(body)
}

fn unpack<'a>(packed: impl Read, coding: &str, most: u64) -> Result<Cow<'a, [u8]>, DecodingError> {
    let mut unpacked = Vec::new();
    let read = packed.take(most + 1).read_to_end(&mut unpacked);
    read.map_err(|cause| DecodingError::Broken { coding: coding.to_owned(), cause })?;
    if unpacked.len() as u64 > most {
        return Err(DecodingError::TooLong);
    }
    Ok(Cow::Owned(unpacked))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    #[test]
    fn what_browsers_accept_is_unpacked_and_bombs_are_not() {
        let text = b"a page ".repeat(100);
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(&text).expect("memory");
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
        zlib.write_all(&text).expect("memory");
        let mut bare = DeflateEncoder::new(Vec::new(), Compression::fast());
        bare.write_all(&text).expect("memory");
        let zstd = zstd::encode_all(&text[..], 1).expect("memory");
        let packed =
            [("gzip", gzip.finish()), ("deflate", zlib.finish()), ("Deflate", bare.finish()), ("zstd", Ok(zstd))];
        let mut room = 10_000;
        for (coding, bytes) in packed {
            let bytes = bytes.expect("memory");
            assert_eq!(&*decoded(&bytes, coding, &mut room).expect("unpacked"), &text, "{coding}");
            let twice = zstd::encode_all(&bytes[..], 1).expect("memory");
            assert_eq!(&*decoded(&twice, &format!("{coding}, zstd"), &mut room).expect("unpacked"), &text, "{coding}");
        }
        assert_eq!(room, 10_000 - 8 * 700);
        assert_eq!(&*decoded(b"as it is", "", &mut 0).expect("plain"), b"as it is");
        assert!(matches!(
            decoded(&zstd::encode_all(&text[..], 1).expect("memory"), "zstd", &mut 99),
            Err(DecodingError::TooLong)
        ));
        let bomb = zstd::encode_all(&vec![0; 5 << 20][..], 1).expect("memory");
        assert!(matches!(decoded(&bomb, "zstd", &mut (8 << 20)), Err(DecodingError::TooLong)));
        assert!(matches!(decoded(b"x", "br", &mut 9), Err(DecodingError::Unknown(_))));
        assert!(matches!(decoded(b"no gzip", "gzip", &mut 9), Err(DecodingError::Broken { .. })));
    }
}

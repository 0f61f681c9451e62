//! Examination of the raw bytes of a request head, before hyper parses it.
//!
//! hyper is the parser, but it is lenient in places where a gateway must not be: it drops Content-Length if
//! Transfer-Encoding is present, accepts a bare LF as a line end, and hands over "gzip, chunked" with the chunks
//! removed. Two parsers that disagree about where a message ends make request smuggling possible (RFC 9112 section
//! 11.2). Heads that permit two readings are therefore refused here, and nothing is repaired. The examination also
//! determines the length of the body, from which the reader knows where the next head starts.

use memchr::{memchr, memchr_iter};

/// The way in which the end of a request's body is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// The body has the given number of bytes, possibly none.
    Length(u64),
    /// The body itself marks its end, which only hyper finds.
    Chunked,
}

/// The reason why a head is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeadFault {
    TooLarge,
    Malformed(&'static str),
    UnknownCoding,
    /// The client speaks TLS.
    Tls,
}

/// A head that leaves no doubt about its message's length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SoundHead {
    pub(super) framing: Framing,
    /// Whether the bytes after the message may belong to another protocol, because the client asks for an upgrade or a
    /// tunnel.
    pub(super) may_switch: bool,
}

/// Returns the number of bytes of empty lines before a request line, which RFC 9112 section 2.2 lets a server skip.
pub(super) fn leading_empty_lines(bytes: &[u8]) -> usize {
    bytes.chunks_exact(2).take_while(|pair| pair == b"\r\n").count() * 2
}

/// Finds the end of a head, whichever line ends it has; `examine` checks the line ends afterwards.
///
/// The first `seen` bytes have been searched before.
pub(super) fn end_of_head(bytes: &[u8], seen: usize) -> Option<usize> {
    let start = seen.saturating_sub(3);
    memchr_iter(b'\n', &bytes[start..]).map(|found| found + start).find_map(|feed| match bytes.get(feed + 1..)? {
        [b'\n', ..] => Some(feed + 2),
        [b'\r', b'\n', ..] => Some(feed + 3),
        _ => None,
    })
}

/// Examines a complete head, including the empty line.
pub(super) fn examine(head: &[u8]) -> Result<SoundHead, HeadFault> {
    let mut lengths = 0;
    let mut codings = 0;
    let mut framing = Framing::Length(0);
    let is_connect = head.starts_with(b"CONNECT ");
    let mut may_switch = is_connect;
    let mut start = 0;
    for feed in memchr_iter(b'\n', head) {
        let line = match head[start..feed].split_last() {
            Some((b'\r', line)) => line,
            _ => return Err(HeadFault::Malformed("a line ends with a bare LF")),
        };
        if memchr(b'\r', line).is_some() {
            return Err(HeadFault::Malformed("a bare CR"));
        }
        if start > 0 {
            match line.first() {
                Some(b' ' | b'\t') => return Err(HeadFault::Malformed("a folded header line")),
                Some(b'c' | b'C') => {
                    if let Some(value) = value_of(line, b"content-length")? {
                        lengths += 1;
                        framing = Framing::Length(length(value)?);
                    }
                }
                Some(b't' | b'T') => {
                    if let Some(value) = value_of(line, b"transfer-encoding")? {
                        codings += 1;
                        framing = Framing::Chunked;
                        if !value.eq_ignore_ascii_case(b"chunked") {
                            return Err(HeadFault::UnknownCoding);
                        }
                    }
                }
                Some(b'u' | b'U') => may_switch |= value_of(line, b"upgrade")?.is_some(),
                _ => {}
            }
        }
        start = feed + 1;
    }
    match (lengths, codings) {
        // The bytes after CONNECT belong to the tunnel (RFC 9110 section 9.3.6).
        (0..=1, 0..=1) if is_connect && framing != Framing::Length(0) => {
            Err(HeadFault::Malformed("a CONNECT with a body"))
        }
        (0..=1, 0) | (0, 1) => Ok(SoundHead { framing, may_switch }),
        (_, 0) => Err(HeadFault::Malformed("more than one Content-Length")),
        (0, _) => Err(HeadFault::Malformed("more than one Transfer-Encoding")),
        _ => Err(HeadFault::Malformed("both Transfer-Encoding and Content-Length")),
    }
}

/// Returns the line's value without surrounding whitespace, if the line has this name.
fn value_of<'a>(line: &'a [u8], name: &[u8]) -> Result<Option<&'a [u8]>, HeadFault> {
    let Some((found, rest)) = line.split_at_checked(name.len()) else {
        return Ok(None);
    };
    if !found.eq_ignore_ascii_case(name) {
        return Ok(None);
    }
    match rest.first() {
        Some(b':') => Ok(Some(rest[1..].trim_ascii())),
        // With whitespace before the colon, some parsers read another name and others the same (RFC 9112 section 5.1).
        Some(b' ' | b'\t') | None => Err(HeadFault::Malformed("a header name without its colon")),
        Some(_) => Ok(None),
    }
}

fn length(value: &[u8]) -> Result<u64, HeadFault> {
    let fault = HeadFault::Malformed("a Content-Length that is not a number");
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return Err(fault);
    }
    std::str::from_utf8(value).ok().and_then(|digits| digits.parse().ok()).ok_or(fault)
}

/// Examines the first byte of a request; for TLS and binary data, the gateway does not wait for more.
pub(super) fn examine_first(byte: u8) -> Result<(), HeadFault> {
    match byte {
        b'\r' => Ok(()),
        _ if byte.is_ascii_alphabetic() => Ok(()),
        // The type of a TLS record that contains a handshake (RFC 8446 section 5.1).
        0x16 => Err(HeadFault::Tls),
        _ => Err(HeadFault::Malformed("no request line")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(head: &str) -> HeadFault {
        examine(head.as_bytes()).expect_err("the head is refused")
    }

    #[test]
    fn framing_is_read_from_sound_heads() {
        let sound = |head: &str| examine(head.as_bytes()).expect("the head is sound");
        assert_eq!(sound("GET / HTTP/1.1\r\nHost: a\r\n\r\n").framing, Framing::Length(0));
        assert_eq!(sound("POST / HTTP/1.1\r\nCONTENT-LENGTH:  12 \r\n\r\n").framing, Framing::Length(12));
        assert_eq!(sound("POST / HTTP/1.1\r\nTransfer-encoding: Chunked\r\n\r\n").framing, Framing::Chunked);
        assert!(sound("GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n").may_switch);
        assert!(!sound("GET / HTTP/1.1\r\nUpgrade-Insecure-Requests: 1\r\n\r\n").may_switch);
        assert!(sound("CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\nContent-Length: 0\r\n\r\n").may_switch);
    }

    #[test]
    fn heads_that_can_be_read_in_two_ways_are_refused() {
        for head in [
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 3, 3\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: +3\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length : 3\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding\t: chunked\r\n\r\n",
            "GET / HTTP/1.1\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nA: b\rc\r\n\r\n",
            "GET / HTTP/1.1\r\nA: b\r\n folded\r\n\r\n",
            "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\nContent-Length: 3\r\n\r\n",
            "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\nTransfer-Encoding: chunked\r\n\r\n",
        ] {
            assert!(matches!(fault(head), HeadFault::Malformed(_)), "{head:?}");
        }
        assert_eq!(fault("POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"), HeadFault::UnknownCoding);
        assert_eq!(fault("POST / HTTP/1.1\r\nTransfer-Encoding: identity\r\n\r\n"), HeadFault::UnknownCoding);
    }

    #[test]
    fn the_end_is_found_wherever_the_reads_were_split() {
        let head = b"GET / HTTP/1.1\r\nHost: a\r\n\r\nrest";
        for split in 0..head.len() - 4 {
            assert_eq!(end_of_head(&head[..split], 0), None);
            assert_eq!(end_of_head(head, split), Some(head.len() - 4), "split at {split}");
        }
        assert_eq!(end_of_head(b"GET / HTTP/1.1\n\nrest", 0), Some(16));
        assert_eq!(leading_empty_lines(b"\r\n\r\nGET"), 4);
    }
}

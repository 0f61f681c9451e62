//! A strict HTTP/1.1 parser: a message that two parsers could understand differently breaks a property.

use std::io::{self, BufRead};

/// A message as it was sent.
#[derive(Debug, Clone)]
pub struct WireMessage {
    pub first: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl WireMessage {
    /// The second word of the first line: a request's target, an answer's status.
    pub fn second(&self) -> &str {
        self.first.split(' ').nth(1).unwrap_or_default()
    }

    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.headers.iter().filter(move |(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// The length of a body.
enum BodyLength {
    Bytes(usize),
    Chunks,
    ToTheEnd,
}

/// Reads a request. Errors: the connection ended within it. Panics: parsers could disagree about the request.
pub fn request(from: &mut impl BufRead) -> io::Result<WireMessage> {
    let mut message = head(from)?;
    let words: Vec<&str> = message.first.split(' ').collect();
    let [method, target, "HTTP/1.1"] = words[..] else { panic!("no request line: {:?}", message.first) };
    assert!(!target.contains('\t'), "no request line: {:?}", message.first);
    assert!(is_token(method) && target.starts_with(['/', '*']), "no request line: {:?}", message.first);
    assert_eq!(message.all("host").count(), 1, "{message:?}");
    let length = match length(&message) {
        BodyLength::ToTheEnd => BodyLength::Bytes(0),
        length => length,
    };
    message.body = body(from, length)?;
    Ok(message)
}

/// Reads an answer to a request with this method. Errors: the connection ended within the answer, which marks it as
/// broken.
pub fn answer(from: &mut impl BufRead, to: &str) -> io::Result<WireMessage> {
    let mut message = head(from)?;
    let status = message.second();
    let is_status = status.len() == 3 && status.bytes().all(|byte| byte.is_ascii_digit());
    assert!(message.first.starts_with("HTTP/1.") && is_status, "no status line: {:?}", message.first);
    let has_none = to == "HEAD" || status.starts_with('1') || matches!(status, "204" | "304");
    let length = if has_none { BodyLength::Bytes(0) } else { length(&message) };
    message.body = body(from, length)?;
    Ok(message)
}

fn head(from: &mut impl BufRead) -> io::Result<WireMessage> {
    let first = line(from)?;
    // The reason of a status may have tabs (RFC 9112 section 4).
    assert!(first.chars().all(|c| c == '\t' || !c.is_ascii_control()), "a control character: {first:?}");
    let mut headers = Vec::new();
    loop {
        let line = line(from)?;
        if line.is_empty() {
            return Ok(WireMessage { first, headers, body: Vec::new() });
        }
        let (name, value) = line.split_once(':').unwrap_or_else(|| panic!("no header: {line:?}"));
        assert!(is_token(name), "no name of a header: {line:?}");
        assert!(value.bytes().all(|byte| byte >= b' ' || byte == b'\t'), "a control character: {line:?}");
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
}

/// Reads a line without its end, which must be CR LF.
fn line(from: &mut impl BufRead) -> io::Result<String> {
    let mut line = Vec::new();
    from.read_until(b'\n', &mut line)?;
    let Some(line) = line.strip_suffix(b"\n") else { return Err(io::ErrorKind::UnexpectedEof.into()) };
    let line = line.strip_suffix(b"\r").unwrap_or_else(|| panic!("half an end of a line: {:?}", line.escape_ascii()));
    assert!(!line.contains(&b'\r'), "half an end of a line: {:?}", line.escape_ascii());
    // Each byte becomes a character: HTTP does not interpret bytes beyond ASCII.
    Ok(line.iter().map(|byte| char::from(*byte)).collect())
}

fn is_token(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

fn length(message: &WireMessage) -> BodyLength {
    let lengths: Vec<&str> = message.all("content-length").collect();
    let codings: Vec<&str> = message.all("transfer-encoding").collect();
    match (lengths[..].as_ref(), codings[..].as_ref()) {
        ([], []) => BodyLength::ToTheEnd,
        ([length], []) => {
            assert!(length.bytes().all(|byte| byte.is_ascii_digit()), "{message:?}");
            BodyLength::Bytes(length.parse().unwrap_or(usize::MAX))
        }
        ([], ["chunked"]) => BodyLength::Chunks,
        _ => panic!("two statements of length: {message:?}"),
    }
}

fn body(from: &mut impl BufRead, length: BodyLength) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    match length {
        BodyLength::Bytes(length) => exactly(from, length, &mut body)?,
        BodyLength::ToTheEnd => drop(from.read_to_end(&mut body)?),
        BodyLength::Chunks => loop {
            let size = line(from)?;
            let size = usize::from_str_radix(&size, 16).unwrap_or_else(|_| panic!("no size of a chunk: {size:?}"));
            if size == 0 {
                while !line(from)?.is_empty() {}
                break;
            }
            exactly(from, size, &mut body)?;
            assert_eq!(line(from)?, "", "what follows a chunk");
        },
    }
    Ok(body)
}

/// Reads this number of bytes, and allocates memory only as they arrive.
fn exactly(from: &mut impl BufRead, length: usize, to: &mut Vec<u8>) -> io::Result<()> {
    let mut left = length;
    while left > 0 {
        let ready = from.fill_buf()?;
        if ready.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let taken = left.min(ready.len());
        to.extend_from_slice(&ready[..taken]);
        from.consume(taken);
        left -= taken;
    }
    Ok(())
}

//! Reads WARC files, plain or compressed record by record, as WACZ archives contain them.
//!
//! Responses keep the coding in which they were sent. Requests are found by `WARC-Concurrent-To`; a response without one
//! answers GET.
//!
//! Source: <https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/>.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;

use super::builder::ReplayBuilder;
use super::exchange::{HeaderField, ReadExchange, shortened, value};
use super::{BODY_MAX, ReplayError};

/// The maximum size of the header of a record, in bytes.
const HEADER_MAX: u64 = 256 << 10;

/// The number of header fields of a message that are read.
const FIELDS_MAX: usize = 256;

/// A request whose response has not been read yet.
struct PendingRequest {
    method: String,
    headers: Vec<HeaderField>,
    body: Vec<u8>,
}

/// A response whose request has not been read yet.
struct PendingResponse {
    id: String,
    concurrent: Vec<String>,
    exchange: ReadExchange,
}

/// Reads a WARC file.
pub(crate) fn read(builder: &mut ReplayBuilder, name: &str, content: impl Read) -> Result<(), ReplayError> {
    let broken = |error: io::Error| ReplayError::broken(name, error.to_string());
    let mut content = BufReader::new(content);
    let is_compressed = content.fill_buf().map_err(broken)?.starts_with(b"\x1f\x8b");
    let mut reader: Box<dyn BufRead + '_> = match is_compressed {
        true => Box::new(BufReader::new(MultiGzDecoder::new(content))),
        false => Box::new(content),
    };
    let mut requests: HashMap<String, (PendingRequest, Vec<String>)> = HashMap::new();
    let mut responses: Vec<PendingResponse> = Vec::new();
    let mut payloads: HashMap<String, (u16, Vec<HeaderField>, Vec<u8>)> = HashMap::new();
    let mut number = 0;
    while let Some(header) = record_header(reader.as_mut()).map_err(|error| at_record(name, number + 1, &error))? {
        number += 1;
        let place = format!("record {number}");
        let field = |name: &str| value(&header, name).map(str::trim);
        let length: u64 = match field("content-length").and_then(|length| length.parse().ok()) {
            Some(length) => length,
            None => {
                let what = "Content-Length is missing or is not a number";
                return Err(at_record(name, number, &io::Error::other(what)));
            }
        };
        if length > BODY_MAX {
            return Err(ReplayError::TooLarge { what: "the size of a record", limit: "256 MiB".to_owned() });
        }
        let mut block = Vec::new();
        reader.by_ref().take(length).read_to_end(&mut block).map_err(|error| at_record(name, number, &error))?;
        if (block.len() as u64) < length {
            let what = format!("the file ends within the record: {} of {length} bytes are there", block.len());
            return Err(at_record(name, number, &io::Error::other(what)));
        }
        let id = field("warc-record-id").unwrap_or_default().to_owned();
        let concurrent: Vec<String> = header
            .iter()
            .filter(|field| field.is("warc-concurrent-to"))
            .map(|field| field.1.trim().to_owned())
            .collect();
        let url = field("warc-target-uri").unwrap_or_default().trim_matches(['<', '>']).to_owned();
        let at = field("warc-date").map(str::to_owned);
        if let (Some(reason), Some("response")) = (field("warc-truncated"), field("warc-type")) {
            builder.problem(&place, format!("{} was cut off when it was recorded ({reason})", shortened(&url)));
            continue;
        }
        let is_http = field("content-type").is_none_or(|kind| kind.starts_with("application/http"));
        let exchange = |status, headers, body| ReadExchange {
            place: place.clone(),
            method: "GET".to_owned(),
            url: url.clone(),
            request_headers: Vec::new(),
            sent: None,
            status,
            headers,
            body,
            at: at.clone(),
        };
        match field("warc-type").unwrap_or_default() {
            "request" if is_http => match request(&block) {
                Ok(request) => drop(requests.insert(id, (request, concurrent))),
                Err(what) => builder.problem(&place, format!("the request for {}: {what}", shortened(&url))),
            },
            "response" if is_http => match response(&block) {
                Ok((status, headers, body)) => {
                    if let Some(digest) = field("warc-payload-digest") {
                        payloads.insert(digest.to_owned(), (status, headers.clone(), body.clone()));
                    }
                    let exchange = exchange(status, headers, body);
                    responses.push(PendingResponse { id, concurrent, exchange });
                }
                Err(what) => builder.problem(&place, format!("the response to {}: {what}", shortened(&url))),
            },
            "revisit" => match field("warc-payload-digest").and_then(|digest| payloads.get(digest)) {
                Some((status, headers, body)) => {
                    let exchange = exchange(*status, headers.clone(), body.clone());
                    responses.push(PendingResponse { id, concurrent, exchange });
                }
                None => {
                    let what = format!("{} refers to an earlier response that the file lacks", shortened(&url));
                    builder.problem(&place, what);
                }
            },
            "resource" => {
                let kind = field("content-type").unwrap_or("application/octet-stream").to_owned();
                let headers = vec![HeaderField("content-type".to_owned(), kind)];
                let exchange = exchange(200, headers, block);
                responses.push(PendingResponse { id, concurrent, exchange });
            }
            // Descriptions of the file and of its records.
            _ => {}
        }
    }
    if number == 0 {
        return Err(ReplayError::broken(name, "the file has no records"));
    }
    let of_response: HashMap<&str, &str> = requests
        .iter()
        .flat_map(|(id, (_, concurrent))| concurrent.iter().map(move |to| (to.as_str(), id.as_str())))
        .collect();
    for PendingResponse { id, concurrent, mut exchange } in responses {
        let known = concurrent.iter().find_map(|to| requests.get(to));
        if let Some((request, _)) = known.or_else(|| requests.get(*of_response.get(id.as_str())?)) {
            exchange.method.clone_from(&request.method);
            exchange.request_headers.clone_from(&request.headers);
            exchange.sent = (!request.body.is_empty()).then(|| request.body.clone());
        }
        builder.add(exchange)?;
    }
    Ok(())
}

fn at_record(name: &str, number: usize, error: &io::Error) -> ReplayError {
    ReplayError::broken(name, format!("record {number}: {error}"))
}

/// Reads the header of a record; `None` at the end of the file.
fn record_header(reader: &mut dyn BufRead) -> io::Result<Option<Vec<HeaderField>>> {
    let mut fields: Vec<HeaderField> = Vec::new();
    let (mut has_version, mut taken) = (false, 0);
    loop {
        let mut line = Vec::new();
        let read = (&mut *reader).take(HEADER_MAX).read_until(b'\n', &mut line)?;
        taken += read as u64;
        if read == 0 && !has_version {
            return Ok(None);
        }
        if read == 0 || taken > HEADER_MAX {
            return Err(io::Error::other("the header of the record does not end"));
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end_matches(['\r', '\n']);
        if !has_version {
            // Records end with empty lines.
            if text.is_empty() {
                continue;
            }
            if !text.starts_with("WARC/") {
                return Err(io::Error::other(format!("expected `WARC/1.x`, found {:?}", shortened(text))));
            }
            has_version = true;
        } else if text.is_empty() {
            return Ok(Some(fields));
        } else if let (true, Some(last)) = (text.starts_with([' ', '\t']), fields.last_mut()) {
            last.1.push(' ');
            last.1.push_str(text.trim());
        } else if let Some((name, value)) = text.split_once(':') {
            fields.push(HeaderField(name.trim().to_owned(), value.trim().to_owned()));
        }
    }
}

fn request(block: &[u8]) -> Result<PendingRequest, String> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut head = httparse::Request::new(&mut fields);
    let httparse::Status::Complete(end) = head.parse(block).map_err(|error| error.to_string())? else {
        return Err("the head ends early".to_owned());
    };
    let method = head.method.unwrap_or("GET").to_owned();
    let headers = owned(head.headers);
    Ok(PendingRequest { method, body: content(&headers, &block[end..])?, headers })
}

fn response(block: &[u8]) -> Result<(u16, Vec<HeaderField>, Vec<u8>), String> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut head = httparse::Response::new(&mut fields);
    let httparse::Status::Complete(end) = head.parse(block).map_err(|error| error.to_string())? else {
        return Err("the head ends early".to_owned());
    };
    let status = head.code.unwrap_or_default();
    let headers = owned(head.headers);
    let body = content(&headers, &block[end..])?;
    let stated = value(&headers, "content-length").and_then(|length| length.trim().parse::<usize>().ok());
    let is_chunked = value(&headers, "transfer-encoding").is_some();
    match stated {
        Some(stated) if !is_chunked && body.len() < stated && !matches!(status, 204 | 304) && !body.is_empty() => {
            Err(format!("the body ends early: {} of {stated} bytes are there", body.len()))
        }
        _ => Ok((status, headers, body)),
    }
}

fn owned(fields: &[httparse::Header<'_>]) -> Vec<HeaderField> {
    let owned = |field: &httparse::Header<'_>| {
        HeaderField(field.name.to_owned(), String::from_utf8_lossy(field.value).into_owned())
    };
    fields.iter().map(owned).collect()
}

/// Returns the body without chunks. Some recorders remove the chunks and keep the header.
fn content(headers: &[HeaderField], bytes: &[u8]) -> Result<Vec<u8>, String> {
    let is_chunked =
        value(headers, "transfer-encoding").is_some_and(|coding| coding.to_ascii_lowercase().contains("chunked"));
    if !is_chunked {
        return Ok(bytes.to_vec());
    }
    let (mut rest, mut body) = (bytes, Vec::new());
    loop {
        let (start, size) = match httparse::parse_chunk_size(rest) {
            Ok(httparse::Status::Complete(parsed)) => parsed,
            _ if body.is_empty() => return Ok(bytes.to_vec()),
            _ => return Err("the chunks of the body end early".to_owned()),
        };
        if size == 0 {
            return Ok(body);
        }
        let size = usize::try_from(size).map_err(|_| "a chunk of the body is too large".to_owned())?;
        let end = start.checked_add(size).filter(|end| *end <= rest.len());
        let end = end.ok_or_else(|| "the chunks of the body end early".to_owned())?;
        body.extend_from_slice(&rest[start..end]);
        rest = rest[end..].strip_prefix(b"\r\n").unwrap_or(&rest[end..]);
    }
}

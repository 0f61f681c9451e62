//! Minimal HTTP exchanges that return responses unchanged.

use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// The time limit for one read.
const READ_LIMIT: Duration = Duration::from_secs(40);

/// The answer to an HTTP request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpResponse {
    pub status: u16,
    pub head: String,
    pub body: String,
}

/// Fetches a page from a port of this host. Returns `None` if the port is closed or the connection broke.
pub fn get(port: u16, path: &str) -> Option<HttpResponse> {
    let stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(READ_LIMIT)).ok()?;
    exchange(stream, path)
}

/// Fetches a page from within a network namespace.
pub fn get_within(namespace: &Path, port: u16, path: &str) -> Option<HttpResponse> {
    in_namespace(namespace, || get(port, path))
}

/// Fetches a URL through a proxy whose port is open within a network namespace.
pub fn get_through_within(namespace: &Path, proxy: u16, credentials: (&str, &str), url: &str) -> Option<HttpResponse> {
    let host = url.strip_prefix("http://")?.split('/').next()?;
    let credentials = STANDARD.encode(format!("{}:{}", credentials.0, credentials.1));
    in_namespace(namespace, || {
        let mut stream = TcpStream::connect(("127.0.0.1", proxy)).ok()?;
        stream.set_read_timeout(Some(READ_LIMIT)).ok()?;
        let head = format!("GET {url} HTTP/1.0\r\nHost: {host}\r\nProxy-Authorization: Basic {credentials}");
        write!(stream, "{head}\r\n\r\n").ok()?;
        answer(stream)
    })
}

/// Enters a network namespace in a thread of its own, because the thread cannot return.
fn in_namespace<T: Send>(namespace: &Path, fetch: impl FnOnce() -> Option<T> + Send) -> Option<T> {
    let enter_and_fetch = || {
        let namespace = File::open(namespace).ok()?;
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).ok()?;
        fetch()
    };
    std::thread::scope(|scope| scope.spawn(enter_and_fetch).join()).ok().flatten()
}

/// Fetches a resource of the API.
pub fn get_unix(socket: &Path, path: &str) -> Option<HttpResponse> {
    let stream = UnixStream::connect(socket).ok()?;
    stream.set_read_timeout(Some(READ_LIMIT)).ok()?;
    exchange(stream, path)
}

/// Posts JSON to a resource of the API.
pub fn post_unix(socket: &Path, path: &str, json: &str) -> Option<HttpResponse> {
    let mut stream = UnixStream::connect(socket).ok()?;
    stream.set_read_timeout(Some(READ_LIMIT)).ok()?;
    let length = json.len();
    let head = format!(
        "POST {path} HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}"
    );
    write!(stream, "{head}\r\n\r\n{json}").ok()?;
    answer(stream)
}

fn exchange(mut stream: impl Read + Write, path: &str) -> Option<HttpResponse> {
    // HTTP/1.0 avoids chunked bodies and persistent connections.
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").ok()?;
    answer(stream)
}

fn answer(mut stream: impl Read) -> Option<HttpResponse> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split_whitespace().nth(1)?.parse().ok()?;
    Some(HttpResponse { status, head: head.to_owned(), body: body.to_owned() })
}

//! A mirror with correct and faulty behaviour. It implements HTTP by hand, because a library would prevent the faults.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

/// A request to the mirror.
#[derive(Debug, Clone)]
pub struct MirrorRequest {
    /// The number of the request, from 0.
    pub number: usize,
    /// The request's target: a path, or a URL in a request to a proxy.
    pub target: String,
    /// The first byte of the requested range.
    pub range: Option<usize>,
    /// The value of `If-Range`.
    pub if_range: Option<String>,
}

/// The event at the end of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyEnd {
    /// The connection is closed.
    Close,
    /// The mirror sends no further bytes.
    Stall,
}

/// The mirror's answer to a request.
pub struct MirrorReply {
    /// Everything up to the empty line.
    pub head: String,
    /// The bytes of the body that are sent.
    pub body: Vec<u8>,
    /// The action after the body.
    pub end: BodyEnd,
}

impl MirrorReply {
    /// Sends the whole content.
    pub fn whole(content: &[u8], headers: &str) -> Self {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{headers}", content.len());
        Self { head, body: content.to_vec(), end: BodyEnd::Close }
    }

    /// Sends the whole content, or the requested range.
    pub fn asked(content: &[u8], asked: &MirrorRequest, headers: &str) -> Self {
        let Some(start) = asked.range else { return Self::whole(content, headers) };
        let total = content.len();
        if start >= total {
            let head = format!("HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: bytes */{total}\r\n{headers}");
            return Self { head, body: Vec::new(), end: BodyEnd::Close };
        }
        let rest = &content[start..];
        let head = format!(
            "HTTP/1.1 206 Partial Content\r\nContent-Length: {}\r\nContent-Range: bytes {start}-{}/{total}\r\n{headers}",
            rest.len(),
            total - 1
        );
        Self { head, body: rest.to_vec(), end: BodyEnd::Close }
    }

    /// An answer with a status and without the file.
    pub fn status(status: &str) -> Self {
        Self { head: format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n"), body: Vec::new(), end: BodyEnd::Close }
    }

    /// Shortens the body to its first bytes.
    pub fn cut(mut self, size: usize, end: BodyEnd) -> Self {
        self.body.truncate(size);
        self.end = end;
        self
    }
}

type MirrorScript = dyn Fn(&MirrorRequest) -> MirrorReply + Send + Sync;

/// A mirror that serves until it is dropped.
pub struct TestMirror {
    port: u16,
    asked: Arc<Mutex<Vec<MirrorRequest>>>,
    sent: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
}

impl TestMirror {
    /// Starts a mirror that answers by a script.
    pub fn start(script: impl Fn(&MirrorRequest) -> MirrorReply + Send + Sync + 'static) -> Self {
        Self::behind(None, script)
    }

    /// Starts such a mirror behind TLS.
    pub fn secure(
        tls: Arc<ServerConfig>,
        script: impl Fn(&MirrorRequest) -> MirrorReply + Send + Sync + 'static,
    ) -> Self {
        Self::behind(Some(tls), script)
    }

    fn behind(
        tls: Option<Arc<ServerConfig>>,
        script: impl Fn(&MirrorRequest) -> MirrorReply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let mirror = Self {
            port: listener.local_addr().unwrap().port(),
            asked: Arc::default(),
            sent: Arc::default(),
            stop: Arc::default(),
        };
        let script: Arc<MirrorScript> = Arc::new(script);
        let (asked, sent, stop) = (mirror.asked.clone(), mirror.sent.clone(), mirror.stop.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let (script, asked, sent, stop) = (script.clone(), asked.clone(), sent.clone(), stop.clone());
                let tls = tls.clone();
                std::thread::spawn(move || match tls {
                    None => serve(stream, &*script, &asked, &sent, &stop),
                    Some(tls) => {
                        let connection = ServerConnection::new(tls).unwrap();
                        serve(StreamOwned::new(connection, stream), &*script, &asked, &sent, &stop);
                    }
                });
            }
        });
        mirror
    }

    /// Starts a mirror that behaves correctly.
    pub fn good(content: Vec<u8>) -> Self {
        Self::start(move |asked| MirrorReply::asked(&content, asked, "ETag: \"good\"\r\nAccept-Ranges: bytes\r\n"))
    }

    /// The URL of the archive.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/shop.tar", self.port)
    }

    /// The port on which it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the requests so far.
    pub fn asked(&self) -> Vec<MirrorRequest> {
        self.asked.lock().unwrap().clone()
    }

    /// The number of body bytes sent so far.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }
}

impl Drop for TestMirror {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

fn serve(
    mut stream: impl Read + Write,
    script: &MirrorScript,
    log: &Mutex<Vec<MirrorRequest>>,
    sent: &AtomicU64,
    stop: &AtomicBool,
) {
    let Some(reply) = answer(&mut stream, script, log) else { return };
    if write!(stream, "{}Connection: close\r\n\r\n", reply.head).is_err() {
        return;
    }
    for piece in reply.body.chunks(64 << 10) {
        if stream.write_all(piece).is_err() {
            return;
        }
        sent.fetch_add(piece.len() as u64, Ordering::Relaxed);
    }
    let _ = stream.flush();
    while reply.end == BodyEnd::Stall && !stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn answer(stream: impl Read, script: &MirrorScript, log: &Mutex<Vec<MirrorRequest>>) -> Option<MirrorReply> {
    let mut lines = BufReader::new(stream.take(16 << 10)).lines();
    let target = lines.next()?.ok()?.split_whitespace().nth(1)?.to_owned();
    let mut asked = MirrorRequest { number: 0, target, range: None, if_range: None };
    for line in lines.map_while(Result::ok).take_while(|line| !line.is_empty()) {
        let (name, value) = line.split_once(": ")?;
        match name.to_ascii_lowercase().as_str() {
            "range" => asked.range = value.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok(),
            "if-range" => asked.if_range = Some(value.to_owned()),
            _ => {}
        }
    }
    {
        let mut log = log.lock().unwrap();
        asked.number = log.len();
        log.push(asked.clone());
    }
    Some(script(&asked))
}

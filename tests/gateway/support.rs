//! Raw clients and scripted sites. All calls block, and every wait has a deadline that ends the test.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use arenad_gateway::{Gateway, GatewaySettings, HoldLimits, RecordingFilter, Route, Target, WriteRules};

pub use super::doors::{Door, Entrance, serving_through};

/// A limit that no operation reaches on a busy machine; only a failing test waits for it.
pub const DEADLINE: Duration = Duration::from_secs(30);

pub fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// A loopback address of one test. A port of it that was closed stays free: other tests listen and connect at 127.0.0.1,
/// where the kernel may give a port to someone else as soon as it is free.
pub fn own_loopback() -> SocketAddr {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    SocketAddr::from(([127, 0, 1, NEXT.fetch_add(1, Ordering::Relaxed)], 0))
}

pub fn gateway_with(change: impl FnOnce(&mut GatewaySettings)) -> Gateway {
    let mut settings = GatewaySettings::default();
    settings.workers = 2;
    change(&mut settings);
    Gateway::start(settings).expect("the gateway starts")
}

pub fn gateway() -> Gateway {
    gateway_with(|_| {})
}

pub fn hold_limits() -> HoldLimits {
    HoldLimits { requests: 64, timeout: DEADLINE }
}

pub fn target(site: &ScriptedSite, generation: u64) -> Target {
    Target { address: site.address, instance: "shop-1".to_owned(), generation }
}

/// A gateway with one route that serves the site.
pub fn serving(site: &ScriptedSite) -> (Gateway, Route) {
    let gateway = gateway();
    let route = gateway
        .open(loopback(), hold_limits(), WriteRules::default(), RecordingFilter::Nothing, "shop")
        .expect("a free port");
    route.serve(target(site, 1));
    (gateway, route)
}

pub fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
}

/// Waits until the condition holds.
pub fn eventually(what: &str, condition: impl Fn() -> bool) {
    let until = Instant::now() + DEADLINE;
    while !condition() {
        assert!(Instant::now() < until, "{what} did not happen in time");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A message as it was sent.
#[derive(Debug, Clone)]
pub struct SentMessage {
    pub first: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub trailers: Vec<(String, String)>,
}

impl SentMessage {
    pub fn status(&self) -> u16 {
        self.first.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status line")
    }

    pub fn path(&self) -> &str {
        self.first.split(' ').nth(1).expect("a request line")
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(found, _)| found.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, what.to_owned())
}

fn read_line(from: &mut impl BufRead) -> io::Result<String> {
    let mut line = Vec::new();
    from.read_until(b'\n', &mut line)?;
    match line.strip_suffix(b"\r\n") {
        Some(line) => Ok(String::from_utf8_lossy(line).into_owned()),
        None => Err(broken("no whole line")),
    }
}

fn read_headers(from: &mut impl BufRead) -> io::Result<Vec<(String, String)>> {
    let mut headers = Vec::new();
    loop {
        let line = read_line(from)?;
        if line.is_empty() {
            return Ok(headers);
        }
        let (name, value) = line.split_once(':').ok_or_else(|| broken("no colon"))?;
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
}

pub fn read_head(from: &mut impl BufRead) -> io::Result<SentMessage> {
    Ok(SentMessage { first: read_line(from)?, headers: read_headers(from)?, body: Vec::new(), trailers: Vec::new() })
}

pub fn read_chunk(from: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let line = read_line(from)?;
    let size = line.split(';').next().unwrap_or_default().trim();
    let size = usize::from_str_radix(size, 16).map_err(|_| broken("no chunk size"))?;
    let mut chunk = vec![0; size];
    from.read_exact(&mut chunk)?;
    if size > 0 && !read_line(from)?.is_empty() {
        return Err(broken("a chunk without its end"));
    }
    Ok(chunk)
}

/// Reads a body as its head announces it. With `until_end`, an unannounced body lasts until the connection ends.
pub fn read_body(from: &mut impl BufRead, message: &mut SentMessage, until_end: bool) -> io::Result<()> {
    if message.header("transfer-encoding").is_some() {
        loop {
            let chunk = read_chunk(from)?;
            if chunk.is_empty() {
                message.trailers = read_headers(from)?;
                return Ok(());
            }
            message.body.extend_from_slice(&chunk);
        }
    }
    match message.header("content-length").map(|length| length.parse::<usize>().expect("a length")) {
        Some(length) => {
            message.body = vec![0; length];
            from.read_exact(&mut message.body)
        }
        None if until_end => from.read_to_end(&mut message.body).map(|_| ()),
        None => Ok(()),
    }
}

/// A client that sends given bytes.
pub struct RawClient {
    pub reader: BufReader<TcpStream>,
    pub door: Door,
}

impl RawClient {
    pub fn connect(address: SocketAddr) -> Self {
        Self::on(TcpStream::connect_timeout(&address, DEADLINE).expect("the gateway accepts"))
    }

    pub fn on(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
        stream.set_write_timeout(Some(DEADLINE)).expect("a timeout");
        stream.set_nodelay(true).expect("no delay");
        Self { reader: BufReader::new(stream), door: Door::Port }
    }

    pub fn stream(&self) -> &TcpStream {
        self.reader.get_ref()
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.reader.get_mut().write_all(bytes.as_ref())
    }

    /// Sends a request, or several, in the form that the door requires.
    pub fn request(&mut self, text: impl AsRef<str>) -> io::Result<()> {
        self.send(self.door.requests(text.as_ref()))
    }

    pub fn get(&mut self, path: &str) -> io::Result<SentMessage> {
        self.request(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"))?;
        self.answer()
    }

    pub fn answer(&mut self) -> io::Result<SentMessage> {
        let mut message = self.head()?;
        let has_body = !matches!(message.status(), 100..=199 | 204 | 304);
        if has_body {
            read_body(&mut self.reader, &mut message, true).map_err(in_time)?;
        }
        Ok(message)
    }

    pub fn head(&mut self) -> io::Result<SentMessage> {
        read_head(&mut self.reader).map_err(in_time)
    }

    /// Returns whether the connection ends here, orderly or not.
    pub fn is_ended(&mut self) -> bool {
        let mut rest = Vec::new();
        let _ = self.reader.read_to_end(&mut rest).map_err(in_time);
        rest.is_empty()
    }
}

/// Panics if a read reached the deadline, which means that the gateway hangs.
pub fn in_time(error: io::Error) -> io::Error {
    assert!(!matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut), "nothing came in time");
    error
}

/// One connection to a site.
pub struct SiteConnection {
    pub reader: BufReader<TcpStream>,
}

impl SiteConnection {
    pub fn request(&mut self) -> io::Result<SentMessage> {
        let mut message = read_head(&mut self.reader)?;
        read_body(&mut self.reader, &mut message, false)?;
        Ok(message)
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.reader.get_mut().write_all(bytes.as_ref())
    }

    pub fn answer(&mut self, text: &str) -> io::Result<()> {
        self.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len()))
    }
}

/// A site with a thread per connection; each thread runs the script until it fails or returns.
pub struct ScriptedSite {
    pub address: SocketAddr,
    pub visits: Arc<AtomicU64>,
}

impl ScriptedSite {
    pub fn start(script: impl Fn(&mut SiteConnection) -> io::Result<()> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(loopback()).expect("a free port");
        let address = listener.local_addr().expect("an address");
        let visits = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&visits);
        let script = Arc::new(script);
        // The thread ends with the process, which is soon enough in tests.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                counter.fetch_add(1, Ordering::SeqCst);
                let script = Arc::clone(&script);
                std::thread::spawn(move || {
                    let _ = stream.set_nodelay(true);
                    let _ = script(&mut SiteConnection { reader: BufReader::new(stream) });
                });
            }
        });
        Self { address, visits }
    }

    /// A site that answers every request with the result of the script.
    pub fn answering(script: impl Fn(&SentMessage) -> String + Send + Sync + 'static) -> Self {
        Self::start(move |visit| {
            loop {
                let request = visit.request()?;
                visit.send(script(&request))?;
            }
        })
    }

    /// A site that answers with the first line of the request.
    pub fn echoing() -> Self {
        Self::answering(|request| ok(&request.first))
    }

    pub fn visits(&self) -> u64 {
        self.visits.load(Ordering::SeqCst)
    }
}

pub fn ok(text: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len())
}

/// A small generator with a seed, so that a run can be repeated.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }

    /// Returns a number below `count`.
    pub fn index(&mut self, count: usize) -> usize {
        usize::try_from(self.roll(count as u64)).expect("small")
    }
}

/// The state that all clients of a storm share: whether it is over, and their findings.
#[derive(Default)]
pub struct StormRun {
    is_over: AtomicBool,
    violations: Mutex<Vec<String>>,
    /// Number of connections that were cut.
    pub cut: AtomicU64,
}

impl StormRun {
    pub fn violation(&self, what: String) {
        self.violations.lock().expect("no panic").push(what);
    }

    /// Ends the storm, in which nothing may have been violated.
    #[track_caller]
    pub fn end(&self, clients: Vec<JoinHandle<()>>) {
        self.is_over.store(true, Ordering::SeqCst);
        for client in clients {
            client.join().expect("no panic");
        }
        let violations = self.violations.lock().expect("no panic");
        assert!(violations.is_empty(), "{} violations, such as {:?}", violations.len(), violations.first());
    }
}

/// Starts clients that connect anew whenever an exchange returns false or fails, until the storm is over.
pub fn storm_clients<S: AsRef<StormRun> + Send + Sync + 'static>(
    count: usize,
    address: SocketAddr,
    shared: &Arc<S>,
    exchange: fn(&S, &mut RawClient, &mut Dice) -> io::Result<bool>,
) -> Vec<JoinHandle<()>> {
    let client = |number: usize| {
        let shared = Arc::clone(shared);
        std::thread::spawn(move || {
            let mut dice = Dice(0x9e37_79b9 + number as u64);
            let run = shared.as_ref().as_ref();
            while !run.is_over.load(Ordering::SeqCst) {
                let mut client = RawClient::connect(address);
                while !run.is_over.load(Ordering::SeqCst) {
                    match exchange(&shared, &mut client, &mut dice) {
                        Ok(true) => {}
                        Ok(false) => break,
                        Err(_) => {
                            run.cut.fetch_add(1, Ordering::SeqCst);
                            break;
                        }
                    }
                }
            }
        })
    };
    (0..count).map(client).collect()
}

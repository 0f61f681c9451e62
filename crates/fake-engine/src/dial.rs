//! Connections to programs that listen in containers.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper_util::rt::TokioIo;
use tokio::io::DuplexStream;

use super::FakeEngine;
use super::program::{ProgramRequest, ProgramResponse};
use super::world::{EngineWorld, FakeContainer, ProcessState};

/// Size of a connection's buffer in each direction, in bytes.
const BUFFER: usize = 64 << 10;

impl FakeContainer {
    pub(super) fn has_address(&self, address: IpAddr) -> bool {
        self.addresses.values().any(|own| IpAddr::V4(*own) == address)
    }
}

impl EngineWorld {
    /// Returns the ID and the run of the container that listens on an address.
    fn listener(&self, address: SocketAddr) -> io::Result<(String, u64)> {
        let mut containers = self.holdings.containers.iter();
        let Some((id, container)) = containers.find(|(_, container)| container.has_address(address.ip())) else {
            return Err(io::ErrorKind::HostUnreachable.into());
        };
        if !container.program.is_listening(address.port(), container.uptime(self.now)) {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        Ok((id.clone(), container.run))
    }

    pub(super) fn request(&mut self, address: SocketAddr, request: &ProgramRequest) -> io::Result<ProgramResponse> {
        let (id, _) = self.listener(address)?;
        let (now, disk_full) = (self.now, self.disk_full);
        let container = self.holdings.containers.get_mut(&id).ok_or(io::ErrorKind::HostUnreachable)?;
        if let ProcessState::Frozen(_) = container.process {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let (program, mut inside) = container.inside(&mut self.holdings.volumes, disk_full, now);
        let response = program.answer(request, &mut inside);
        self.is_news = true;
        Ok(response)
    }

    fn is_run(&self, id: &str, run: u64) -> bool {
        self.holdings.containers.get(id).is_some_and(|container| container.run == run && container.is_alive())
    }
}

impl FakeEngine {
    /// Connects to the program that listens on an address, which speaks HTTP/1.1.
    ///
    /// A paused container accepts the connection, as its kernel would, and answers once it is resumed. The connection
    /// breaks when the container's process ends.
    ///
    /// Errors: those of [`FakeEngine::request`], except for `TimedOut`.
    #[expect(clippy::unused_async, reason = "dialers are asynchronous")]
    pub async fn dial(&self, address: SocketAddr) -> io::Result<DuplexStream> {
        let (id, run) = self.look(|world| world.listener(address))?;
        let (near, far) = tokio::io::duplex(BUFFER);
        let engine = self.clone();
        tokio::spawn(async move {
            let ended = engine.ended(&id, run);
            let answering = engine.clone();
            let service = hyper::service::service_fn(move |request| {
                let engine = answering.clone();
                async move { engine.answer(address, request).await }
            });
            let serving = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(far), service);
            tokio::select! {
                biased;
                () = ended => {}
                _ = serving => {}
            }
        });
        Ok(near)
    }

    async fn ended(&self, id: &str, run: u64) {
        loop {
            let seen = self.news_count();
            if !self.look(|world| world.is_run(id, run)) {
                return;
            }
            self.news(seen).await;
        }
    }

    async fn answer(
        &self,
        address: SocketAddr,
        request: hyper::Request<Incoming>,
    ) -> io::Result<hyper::Response<Whole>> {
        let (head, body) = request.into_parts();
        let headers = head.headers.iter();
        let headers =
            headers.map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()));
        let path = head.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        let headers = headers.collect();
        let request = ProgramRequest { method: head.method.to_string(), path, headers, body: collect(body).await? };
        let response = loop {
            let seen = self.news_count();
            match self.look(|world| world.request(address, &request)) {
                Err(error) if error.kind() == io::ErrorKind::TimedOut => self.news(seen).await,
                answered => break answered?,
            }
        };
        let mut built = hyper::Response::builder().status(response.status);
        for (name, value) in &response.headers {
            built = built.header(name, value);
        }
        built.body(Whole(Some(response.body))).map_err(io::Error::other)
    }
}

async fn collect(mut body: Incoming) -> io::Result<Bytes> {
    let mut whole = Vec::new();
    while let Some(frame) = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        if let Ok(data) = frame.map_err(io::Error::other)?.into_data() {
            whole.extend_from_slice(&data);
        }
    }
    Ok(whole.into())
}

/// A body that is already complete.
struct Whole(Option<Bytes>);

impl Body for Whole {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().filter(|bytes| !bytes.is_empty()).map(|bytes| Ok(Frame::data(bytes))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, Bytes::len) as u64)
    }
}

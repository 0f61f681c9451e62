//! Connections to simulated containers: HTTP/1.1 with one request for each connection, answered by the in-memory
//! engine.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use arenad_fake_engine::{FakeEngine, ProgramRequest, ProgramResponse};
use arenad_site_client::dial::{Dial, Duplex};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use crate::chaos::Chaos;

/// The latency of an answer.
const TRAVELS: Duration = Duration::from_millis(2);
/// The interval at which a paused container is asked again.
const ASKS_AGAIN: Duration = Duration::from_millis(100);

/// The dialer through which the daemon reaches the containers.
pub struct SimulatedDial {
    pub engine: FakeEngine,
    pub chaos: Chaos,
}

#[async_trait::async_trait]
impl Dial for SimulatedDial {
    async fn dial(&self, address: SocketAddr) -> io::Result<Box<dyn Duplex>> {
        self.chaos.point().await;
        if self.engine.owner_of(address.ip()).is_none() {
            return Err(io::ErrorKind::HostUnreachable.into());
        }
        Ok(Box::new(DialedConnection {
            engine: self.engine.clone(),
            address,
            sent: Vec::new(),
            answer: None,
            read: 0,
            pause: Box::pin(tokio::time::sleep(TRAVELS)),
            waiting: None,
        }))
    }
}

/// A connection to a simulated container, with one request and its answer.
struct DialedConnection {
    engine: FakeEngine,
    address: SocketAddr,
    sent: Vec<u8>,
    answer: Option<Vec<u8>>,
    read: usize,
    pause: Pin<Box<Sleep>>,
    waiting: Option<std::task::Waker>,
}

/// Parses the request in these bytes, if it is complete.
fn whole(bytes: &[u8]) -> Option<ProgramRequest> {
    let head_end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..head_end]).ok()?;
    let mut lines = head.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, path) = (first.next()?.to_owned(), first.next()?.to_owned());
    let length = lines
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse::<usize>().ok())
        .unwrap_or(0);
    let body = bytes.get(head_end + 4..head_end + 4 + length)?.to_vec();
    Some(ProgramRequest { method, path, headers: Vec::new(), body: body.into() })
}

fn written(response: &ProgramResponse) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        response.status,
        response.body.len()
    );
    let mut all = head.into_bytes();
    all.extend_from_slice(&response.body);
    all
}

impl AsyncWrite for DialedConnection {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.sent.extend_from_slice(bytes);
        self.waiting.take().into_iter().for_each(std::task::Waker::wake);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for DialedConnection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            if self.answer.is_none() {
                let Some(request) = whole(&self.sent) else {
                    self.waiting = Some(cx.waker().clone());
                    return Poll::Pending;
                };
                if self.pause.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
                let answered = self.engine.request(self.address, &request);
                match answered {
                    Ok(response) => self.answer = Some(written(&response)),
                    Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                        self.pause.as_mut().reset(tokio::time::Instant::now() + ASKS_AGAIN);
                        continue;
                    }
                    Err(error) => return Poll::Ready(Err(error)),
                }
            }
            let this = &mut *self;
            if let Some(answer) = &this.answer {
                let rest = &answer[this.read.min(answer.len())..];
                let length = rest.len().min(buffer.remaining());
                buffer.put_slice(&rest[..length]);
                this.read += length;
            }
            return Poll::Ready(Ok(()));
        }
    }
}

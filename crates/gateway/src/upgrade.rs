//! A connection that has left HTTP (WebSocket or another protocol): bytes flow both ways until either side, or a
//! switch, ends it.
//!
//! A switch aborts both sockets, which ends the copying.

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::client_io::ClientIo;
use super::local::LocalRoute;
use super::pool::Upgraded;

/// Size of the buffer for one direction, in bytes; small, because tunnels are many and mostly idle.
const BUFFER: usize = 8 * 1024;

/// Copies until both directions have ended or one has failed.
pub(super) async fn run(mut client: ClientIo, target: Upgraded, route: &Rc<LocalRoute>) {
    let from_client = client.take_pending();
    let mut client = ClientEnd { io: client, ahead: Bytes::from(from_client), route: Some(Rc::clone(route)) };
    let Upgraded { mut io, ahead, entry } = target;
    let mut copied = Ok((0, 0));
    if !ahead.is_empty() {
        copied = tokio::io::AsyncWriteExt::write_all(&mut client, &ahead).await.map(|()| (0, 0));
    }
    if copied.is_ok() {
        copied = tokio::io::copy_bidirectional_with_sizes(&mut client, &mut io, BUFFER, BUFFER).await;
    }
    if copied.is_err() {
        // The data in transit is incomplete, and both sides must notice.
        client.io.link().cut();
    }
    drop(entry);
}

/// The client's side of a connection that has left HTTP.
pub(super) struct ClientEnd {
    io: ClientIo,
    ahead: Bytes,
    /// The route whose counters count the bytes; `None` if requests inside are counted.
    route: Option<Rc<LocalRoute>>,
}

impl ClientEnd {
    /// Takes over a connection whose bytes belong to no route.
    pub(super) fn new(mut io: ClientIo) -> Self {
        Self { ahead: Bytes::from(io.take_pending()), io, route: None }
    }
}

impl AsyncRead for ClientEnd {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let end = self.get_mut();
        let before = buf.filled().len();
        if end.ahead.is_empty() {
            ready!(end.io.read_half().poll_read(cx, buf))?;
        } else {
            let given = end.ahead.len().min(buf.remaining());
            buf.put_slice(&end.ahead[..given]);
            end.ahead.advance(given);
        }
        let read = buf.filled().len() - before;
        end.route.iter().for_each(|route| route.count_to_site(read));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ClientEnd {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(self.io.link().wire.poll_write(cx, bytes))?;
        self.route.iter().for_each(|route| route.count_from_site(written));
        Poll::Ready(Ok(written))
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().io.poll_finish(cx).map(Ok)
    }
}

//! A listener that has a limited number of connections at the same time. Further clients wait in the kernel's queue, so
//! that they use none of the daemon's file descriptors.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A listener with a limit of open connections.
pub(crate) struct BoundedListener<L> {
    listener: L,
    free: Arc<Semaphore>,
}

impl<L> BoundedListener<L> {
    /// Bounds the connections of a listener.
    pub(crate) fn new(listener: L, limit: usize) -> Self {
        Self { listener, free: Arc::new(Semaphore::new(limit)) }
    }
}

impl<L: Listener> Listener for BoundedListener<L> {
    type Io = BoundedConnection<L::Io>;
    type Addr = L::Addr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        // The semaphore is never closed.
        let permit = self.free.clone().acquire_owned().await.ok();
        let (connection, address) = self.listener.accept().await;
        (BoundedConnection { connection, _permit: permit }, address)
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

/// A connection that counts until it is closed.
pub(crate) struct BoundedConnection<C> {
    connection: C,
    _permit: Option<OwnedSemaphorePermit>,
}

impl<C: AsyncRead + Unpin> AsyncRead for BoundedConnection<C> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_read(cx, buffer)
    }
}

impl<C: AsyncWrite + Unpin> AsyncWrite for BoundedConnection<C> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.connection).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.connection).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.connection.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    #[tokio::test]
    async fn a_connection_beyond_the_limit_waits_for_the_end_of_another() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let mut bounded = BoundedListener::new(listener, 2);
        let clients = [TcpStream::connect(address), TcpStream::connect(address), TcpStream::connect(address)];
        let _clients = futures_util::future::try_join_all(clients).await.expect("the kernel accepts them");
        let first = bounded.accept().await;
        let _second = bounded.accept().await;
        let third = tokio::time::timeout(Duration::from_millis(100), bounded.accept()).await;
        assert!(third.is_err(), "it waits");
        drop(first);
        tokio::time::timeout(Duration::from_secs(60), bounded.accept()).await.expect("a place is free");
    }
}

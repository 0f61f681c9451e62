//! One TCP connection that any thread may end at once.
//!
//! Ending it from another thread must not depend on the worker that owns the connection, which may be in the middle of
//! a write. The abort is therefore one system call on the socket itself. `connect(AF_UNSPEC)` disconnects a TCP socket
//! (Linux, `tcp_disconnect`): under the socket's own lock it discards unsent bytes, sends RST and leaves the socket
//! closed. A write by the owner comes either before it, and its unsent bytes are discarded, or after it, and fails.
//! Once `abort` has returned, no byte leaves through this socket.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

/// The writing half of a TCP connection, shared by its owner and by the threads that may have to end it.
#[derive(Debug)]
pub(super) struct SharedWriteHalf {
    // The half keeps the descriptor open, so that an abort can never hit another socket with a reused number.
    half: OwnedWriteHalf,
}

impl SharedWriteHalf {
    pub(super) fn split(stream: TcpStream) -> (OwnedReadHalf, Self) {
        let (read, half) = stream.into_split();
        (read, Self { half })
    }

    fn stream(&self) -> &TcpStream {
        self.half.as_ref()
    }

    /// Ends the connection with RST and discards unsent bytes.
    pub(super) fn abort(&self) {
        if rustix::net::connect_unspec(self.stream()).is_err() {
            self.close();
        }
    }

    /// Ends the connection in both directions, after the bytes that have already been written.
    pub(super) fn close(&self) {
        // Fails only if the connection has already ended.
        let _ = SockRef::from(self.stream()).shutdown(std::net::Shutdown::Both);
    }

    /// Ends the writing direction, after the bytes that have already been written.
    pub(super) fn finish(&self) {
        let _ = SockRef::from(self.stream()).shutdown(std::net::Shutdown::Write);
    }

    /// Returns whether written bytes are still in this machine's send buffer.
    ///
    /// With a low-water mark of one byte, the kernel reports a TCP socket as writable only when everything has been
    /// sent (Linux, `tcp_stream_memory_free`). The mark is set only for the query, so it costs nothing otherwise.
    pub(super) fn has_unsent(&self) -> bool {
        let socket = SockRef::from(self.stream());
        if socket.set_tcp_notsent_lowat(1).is_err() {
            return true;
        }
        let writable = self.polled(PollFlags::OUT);
        // Zero restores the system's default.
        let restored = socket.set_tcp_notsent_lowat(0);
        !writable || restored.is_err()
    }

    /// Returns whether the peer has closed its side, even if bytes from it are still unread.
    pub(super) fn peer_gone(&self) -> bool {
        self.polled(PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR)
    }

    fn polled(&self, flags: PollFlags) -> bool {
        let mut fds = [PollFd::new(self.stream(), flags)];
        let none = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut fds, Some(&none)).is_ok() && fds[0].revents().intersects(flags)
    }

    /// Writes as many bytes as the socket accepts at once; meant for the first bytes of a connection, which it always
    /// accepts.
    pub(super) fn write_now(&self, bytes: &[u8]) -> io::Result<usize> {
        // Bypasses tokio, which has not yet registered that the socket is writable.
        SockRef::from(self.stream()).send(bytes)
    }

    pub(super) fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.stream().poll_write_ready(cx))?;
            match self.stream().try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return Poll::Ready(done),
            }
        }
    }

    pub(super) fn poll_write_vectored(
        &self,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.stream().poll_write_ready(cx))?;
            match self.stream().try_write_vectored(slices) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return Poll::Ready(done),
            }
        }
    }
}

/// A connection to a target, as its owner reads and writes it.
#[derive(Debug)]
pub(super) struct TargetIo {
    read: OwnedReadHalf,
    wire: std::sync::Arc<SharedWriteHalf>,
}

impl TargetIo {
    pub(super) fn new(read: OwnedReadHalf, wire: std::sync::Arc<SharedWriteHalf>) -> Self {
        Self { read, wire }
    }
}

impl AsyncRead for TargetIo {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.read).poll_read(cx, buf)
    }
}

impl AsyncWrite for TargetIo {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.wire.poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.wire.poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.wire.finish();
        Poll::Ready(Ok(()))
    }
}

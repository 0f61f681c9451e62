//! The bytes between hyper and a client.
//!
//! Reading proceeds one head at a time. A head is held back until it is complete and has passed examination; then hyper
//! receives exactly that head, then exactly its body, and so on. No head reaches the parser unexamined, pipelined or
//! not. The end of a body is not known for chunked bodies and for upgrades, so such a request is the last on its
//! connection (`ClientConnection::is_last_answer`).
//!
//! A refused head is replaced by a harmless one, and the request is answered with the refusal in its turn. Order,
//! flushing and closing therefore need no second path. After CONNECT, hyper receives nothing; if the tunnel leads to a
//! site, the bytes in it are read as requests like those before (`enter_tunnel`).
//!
//! Writing and closing: hyper flushes only when its buffer is empty, that is, when a response has left the process.
//! Closing waits until the kernel has sent everything, because a switch cannot abort a closed descriptor. It then
//! continues to read for a moment: closing with unread bytes makes the kernel send RST, which may destroy the response
//! before the client reads it.

use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::rt::ReadBufCursor;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::tcp::OwnedReadHalf;
use tokio::time::{Instant, Sleep};

use super::client::ClientConnection;
use super::head::{self, Framing, HeadFault};
use super::link::ClientLink;

/// Time for which a closing connection continues to be read.
const LINGER: Duration = Duration::from_secs(2);
/// Time within which a closing connection must empty the kernel's send buffer, and the interval at which the buffer is
/// checked.
const SETTLE: Duration = Duration::from_secs(60);
const SETTLE_TICK: Duration = Duration::from_millis(20);
/// Maximum number of bytes read from a socket at a time.
const SCRATCH: usize = 32 * 1024;
const STAND_IN: &[u8] = b"GET / HTTP/1.1\r\nhost: refused\r\nconnection: close\r\n\r\n";

thread_local! {
    // One buffer per worker suffices: its content is copied out before the worker turns to another connection.
    static READ_SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; SCRATCH].into_boxed_slice());
}

#[derive(Debug, Clone, Copy)]
enum Expecting {
    Head,
    /// The given number of body bytes, then a head, or silence if the request was the last.
    Body(u64),
    /// A body whose end is known only to hyper.
    Anything,
    /// No bytes for hyper; bytes that arrive are kept for the tunnel.
    Silence,
}

pub(super) struct ClientIo {
    read: TokioIo<OwnedReadHalf>,
    client: Rc<ClientConnection>,
    expecting: Expecting,
    /// Whether the bytes after the current request may be something other than a request.
    is_last: bool,
    head_limit: usize,
    /// Bytes that have been read but not given to hyper; the first `sound` of them may be given.
    pending: Vec<u8>,
    sound: usize,
    searched: usize,
    closing: Closing,
}

enum Closing {
    No,
    Settling(Pin<Box<dyn Future<Output = ()>>>),
    Lingering(Pin<Box<Sleep>>),
}

impl ClientIo {
    pub(super) fn new(read: OwnedReadHalf, client: Rc<ClientConnection>, head_limit: usize) -> Self {
        Self {
            read: TokioIo::new(read),
            client,
            expecting: Expecting::Head,
            is_last: false,
            head_limit,
            pending: Vec::new(),
            sound: 0,
            searched: 0,
            closing: Closing::No,
        }
    }

    /// Reads once from the socket; `take` receives an empty slice at the end of the stream.
    fn poll_socket<R>(
        &mut self,
        cx: &mut Context<'_>,
        limit: usize,
        take: impl FnOnce(&mut Self, &[u8]) -> R,
    ) -> Poll<io::Result<R>> {
        READ_SCRATCH.with_borrow_mut(|scratch| {
            let limit = limit.min(scratch.len());
            let mut buf = ReadBuf::new(&mut scratch[..limit]);
            ready!(Pin::new(self.read.inner_mut()).poll_read(cx, &mut buf))?;
            Poll::Ready(Ok(take(self, buf.filled())))
        })
    }

    fn poll_keep(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.poll_socket(cx, SCRATCH, |io, bytes| {
            io.pending.extend_from_slice(bytes);
            bytes.len()
        })
    }

    /// Lets the head at the start of `bytes` through if it is complete. Returns its length.
    fn admit(&mut self, bytes: &[u8]) -> Result<Option<usize>, HeadFault> {
        head::examine_first(bytes[0])?;
        let Some(end) = head::end_of_head(bytes, self.searched) else {
            if bytes.len() > self.head_limit {
                return Err(HeadFault::TooLarge);
            }
            if self.searched == 0 {
                self.client.begin_head();
            }
            self.searched = bytes.len();
            return Ok(None);
        };
        if end > self.head_limit {
            return Err(HeadFault::TooLarge);
        }
        let sound = head::examine(&bytes[..end])?;
        self.searched = 0;
        self.is_last = sound.may_switch;
        self.expecting = match sound.framing {
            Framing::Length(length) => Expecting::Body(length),
            Framing::Chunked => Expecting::Anything,
        };
        self.client.deliver(sound.may_switch || sound.framing == Framing::Chunked);
        Ok(Some(end))
    }

    fn refuse(&mut self, fault: HeadFault) {
        self.client.refuse(fault);
        self.expecting = Expecting::Silence;
        self.pending.clear();
        self.pending.extend_from_slice(STAND_IN);
        self.sound = STAND_IN.len();
    }

    /// Examines the pending bytes, none of which has been let through.
    fn examine_pending(&mut self) {
        let empty = head::leading_empty_lines(&self.pending);
        self.pending.drain(..empty);
        if self.pending.is_empty() {
            return;
        }
        let pending = std::mem::take(&mut self.pending);
        let admitted = self.admit(&pending);
        self.pending = pending;
        match admitted {
            Ok(Some(end)) => self.sound = end,
            Ok(None) => {}
            Err(fault) => self.refuse(fault),
        }
    }

    fn give_pending(&mut self, cursor: &mut ReadBufCursor<'_>, most: usize) -> usize {
        let given = most.min(cursor.remaining()).min(self.pending.len());
        cursor.put_slice(&self.pending[..given]);
        self.pending.drain(..given);
        given
    }

    /// Takes the bytes that the client sent ahead of an upgrade.
    pub(super) fn take_pending(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.pending)
    }

    /// Reads requests again, after the answer to CONNECT; the bytes that the client sent ahead come first.
    pub(super) fn enter_tunnel(&mut self) {
        self.expecting = Expecting::Head;
        self.is_last = false;
        self.client.enter_tunnel();
    }

    pub(super) fn read_half(&mut self) -> Pin<&mut OwnedReadHalf> {
        Pin::new(self.read.inner_mut())
    }

    pub(super) fn link(&self) -> &Arc<ClientLink> {
        &self.client.link
    }

    /// Waits until all written bytes have been sent, then shuts down the writing direction.
    pub(super) fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Closing::No = self.closing {
            self.closing = Closing::Settling(Box::pin(settle(Arc::clone(&self.client.link))));
        }
        if let Closing::Settling(settling) = &mut self.closing {
            ready!(settling.as_mut().poll(cx));
            self.client.link.wire.finish();
            self.closing = Closing::Lingering(Box::pin(tokio::time::sleep(LINGER)));
        }
        Poll::Ready(())
    }
}

async fn settle(link: Arc<ClientLink>) {
    let patience = Instant::now() + SETTLE;
    while !link.is_cut() && link.wire.has_unsent() {
        if Instant::now() > patience {
            link.cut();
        }
        tokio::time::sleep(SETTLE_TICK).await;
    }
}

impl hyper::rt::Read for ClientIo {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, mut cursor: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        let io = self.get_mut();
        loop {
            if io.sound > 0 {
                let given = io.give_pending(&mut cursor, io.sound);
                io.sound -= given;
                return Poll::Ready(Ok(()));
            }
            match io.expecting {
                Expecting::Head => {
                    if io.pending.len() > io.searched {
                        io.examine_pending();
                        if io.sound > 0 {
                            continue;
                        }
                    }
                    if ready!(io.poll_keep_or_pass(cx, &mut cursor))? {
                        return Poll::Ready(Ok(()));
                    }
                }
                Expecting::Body(0) if io.is_last => io.expecting = Expecting::Silence,
                Expecting::Body(0) => io.expecting = Expecting::Head,
                Expecting::Body(left) => {
                    let most = usize::try_from(left).unwrap_or(usize::MAX);
                    let given = if io.pending.is_empty() {
                        let most = most.min(cursor.remaining());
                        ready!(io.poll_socket(cx, most, |_, bytes| {
                            cursor.put_slice(bytes);
                            bytes.len()
                        }))?
                    } else {
                        io.give_pending(&mut cursor, most)
                    };
                    io.expecting = Expecting::Body(left - given as u64);
                    return Poll::Ready(Ok(()));
                }
                Expecting::Anything if io.pending.is_empty() => return Pin::new(&mut io.read).poll_read(cx, cursor),
                Expecting::Anything => {
                    io.give_pending(&mut cursor, usize::MAX);
                    return Poll::Ready(Ok(()));
                }
                Expecting::Silence => {
                    // Continued reading shows when the client leaves. A client that has sent this much ahead is not
                    // read any further before its response is there.
                    if io.pending.len() >= io.head_limit {
                        return Poll::Pending;
                    }
                    if ready!(io.poll_keep(cx))? == 0 {
                        return Poll::Ready(Ok(()));
                    }
                }
            }
        }
    }
}

impl ClientIo {
    /// Reads a head. Returns true if hyper received it or the stream has ended, and false if there are pending bytes to
    /// examine.
    fn poll_keep_or_pass(&mut self, cx: &mut Context<'_>, cursor: &mut ReadBufCursor<'_>) -> Poll<io::Result<bool>> {
        self.poll_socket(cx, SCRATCH, |io, bytes| {
            if bytes.is_empty() {
                return true;
            }
            // In the usual case, one read contains one whole head, which is passed on without being stored.
            if io.pending.is_empty() && bytes.len() <= cursor.remaining() && bytes[0].is_ascii_alphabetic() {
                match io.admit(bytes) {
                    Ok(Some(end)) => {
                        cursor.put_slice(&bytes[..end]);
                        io.pending.extend_from_slice(&bytes[end..]);
                        return true;
                    }
                    Ok(None) => {}
                    Err(fault) => {
                        io.refuse(fault);
                        return false;
                    }
                }
            }
            io.pending.extend_from_slice(bytes);
            false
        })
    }
}

impl hyper::rt::Write for ClientIo {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.client.link.wire.poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.client.link.wire.poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.client.flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let io = self.get_mut();
        ready!(io.poll_finish(cx));
        if let Closing::Lingering(patience) = &mut io.closing
            && patience.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(Ok(()));
        }
        loop {
            match ready!(io.poll_socket(cx, SCRATCH, |_, bytes| bytes.len())) {
                Ok(0) | Err(_) => return Poll::Ready(Ok(())),
                Ok(_) => {}
            }
        }
    }
}

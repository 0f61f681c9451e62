//! Connections of one worker to the target of one route.
//!
//! hyper's connection future is polled by the request that uses the connection, not by a task of its own. An idle
//! connection is not polled at all: if the target has closed it, this is noticed when the connection is taken or swept.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;

use super::body::{BodyProgress, RequestBody};
use super::link::Epoch;
use super::local::LocalRoute;
use super::nudge::Nudge;
use super::route::{SharedRoute, TargetEntry};
use super::wire::{SharedWriteHalf, TargetIo};
use super::writes::is_safe;

/// Maximum number of idle connections that one worker keeps per route.
const MOST_IDLE: usize = 128;
/// Age at which an idle connection is dropped; common servers drop theirs after 2 s (gunicorn) to 75 s (nginx).
const IDLE_TIMEOUT: Duration = Duration::from_secs(15);
const SWEEP_PERIOD: Duration = Duration::from_secs(5);
/// Age up to which an idle connection may carry a request that cannot be sent twice.
///
/// The target may be closing the connection at this moment, and then the gateway cannot tell whether the target
/// received the request. Below the shortest common keep-alive timeout this does not happen; a new connection on the
/// same machine takes well under 1 ms.
const FRESH_ENOUGH: Duration = Duration::from_secs(1);

/// One connection to a target.
pub(super) struct TargetConnection {
    sender: SendRequest<RequestBody>,
    connection: Connection<TokioIo<TargetIo>, RequestBody>,
    wire: Arc<SharedWriteHalf>,
    nudge: Rc<Nudge>,
    entry: TargetEntry,
    /// Progress of the body of the latest request, if it had one.
    progress: Option<Rc<BodyProgress>>,
    idle_since: Instant,
    is_ended: bool,
    /// Whether no further request is sent on the connection. A server that expects no body with a GET may parse that
    /// body as the next request, whose response would then go to another visitor.
    is_last: bool,
    /// Whether an earlier request was answered on the connection, so that the target may have closed it in the
    /// meantime.
    pub(super) is_reused: bool,
}

/// A connection to a target that both ends have switched from HTTP to another protocol.
pub(super) struct Upgraded {
    pub(super) io: TargetIo,
    /// Bytes that the target sent after its response.
    pub(super) ahead: Bytes,
    /// Keeps the connection in the register, so that a switch can abort it.
    pub(super) entry: TargetEntry,
}

/// The reason why a connection could not be made.
#[derive(Debug)]
pub(super) enum ConnectError {
    /// A switch came first; nothing was sent.
    Overtaken,
    TimedOut,
    Io(io::Error),
}

/// A socket that is connected to a target and registered with its route.
pub(super) struct TargetSocket {
    pub(super) read: OwnedReadHalf,
    pub(super) wire: Arc<SharedWriteHalf>,
    pub(super) entry: TargetEntry,
}

impl TargetSocket {
    /// Connects to the target, unless the route leaves `epoch` first.
    pub(super) async fn open(
        route: &Arc<SharedRoute>,
        address: std::net::SocketAddr,
        epoch: Epoch,
        timeout: Duration,
    ) -> Result<Self, ConnectError> {
        let mut changes = route.changes();
        if route.epoch() != epoch {
            return Err(ConnectError::Overtaken);
        }
        let stream = tokio::select! {
            stream = tokio::time::timeout(timeout, TcpStream::connect(address)) => {
                stream.map_err(|_| ConnectError::TimedOut)?.map_err(ConnectError::Io)?
            }
            _ = changes.wait_for(|now| *now > epoch) => return Err(ConnectError::Overtaken),
        };
        stream.set_nodelay(true).map_err(ConnectError::Io)?;
        let (read, wire) = SharedWriteHalf::split(stream);
        let wire = Arc::new(wire);
        // From here on a switch can abort the connection; before, nothing has been sent on it.
        let entry = route.enter_target(epoch, Some(Arc::clone(&wire))).ok_or(ConnectError::Overtaken)?;
        Ok(Self { read, wire, entry })
    }
}

impl TargetConnection {
    /// Connects to the target, unless the route leaves `epoch` first.
    pub(super) async fn open(
        route: &Arc<SharedRoute>,
        address: std::net::SocketAddr,
        epoch: Epoch,
        timeout: Duration,
    ) -> Result<Box<Self>, ConnectError> {
        let TargetSocket { read, wire, entry } = TargetSocket::open(route, address, epoch, timeout).await?;
        let (sender, connection) = Builder::new()
            .max_buf_size(super::BUFFER_LIMIT)
            .handshake(TokioIo::new(TargetIo::new(read, Arc::clone(&wire))))
            .await
            .map_err(|error| ConnectError::Io(io::Error::other(error)))?;
        Ok(Box::new(Self {
            sender,
            connection,
            wire,
            nudge: Rc::new(Nudge::new()),
            entry,
            progress: None,
            idle_since: Instant::now(),
            is_ended: false,
            is_last: false,
            is_reused: false,
        }))
    }

    /// Lets hyper read and write until `wanted` is ready.
    pub(super) fn drive<T>(
        &mut self,
        cx: &Context<'_>,
        mut wanted: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let nudge = Rc::clone(&self.nudge);
        nudge.poll(cx, |cx| {
            // Polled first, so that the connection has registered the demand before it is driven.
            let polled = wanted(cx);
            if polled.is_ready() || self.is_ended {
                return polled;
            }
            // Errors reach the request or the body that they concern.
            self.is_ended = self.connection.poll_without_shutdown(cx).is_ready();
            wanted(cx)
        })
    }

    /// Sends a request and waits for the head of its response.
    pub(super) async fn send(
        &mut self,
        request: Request<RequestBody>,
    ) -> Result<Response<Incoming>, TrySendError<Request<RequestBody>>> {
        self.progress = request.body().progress();
        self.is_last = self.progress.is_some() && is_safe(request.method());
        let sender = &mut self.sender;
        let mut answer = pin!(self.nudge.quietly(|| sender.try_send_request(request)));
        std::future::poll_fn(|cx| self.drive(cx, |cx| answer.as_mut().poll(cx))).await
    }

    /// Ends the use of HTTP on this connection, after a response with status 101.
    pub(super) async fn upgrade(mut self: Box<Self>) -> Upgraded {
        std::future::poll_fn(|cx| {
            let _ = self.drive(cx, |_| Poll::<()>::Pending);
            if self.is_ended { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        let parts = self.connection.into_parts();
        Upgraded { io: parts.io.into_inner(), ahead: parts.read_buf, entry: self.entry }
    }

    /// Returns the part of the socket that any thread can abort.
    pub(super) fn wire(&self) -> &Arc<SharedWriteHalf> {
        &self.wire
    }

    /// Returns whether the route still serves the target of this connection.
    pub(super) fn is_current(&self, route: &SharedRoute) -> bool {
        self.entry.epoch == route.epoch()
    }

    fn is_usable(&mut self, cx: &Context<'_>) -> bool {
        let _ = self.drive(cx, |_| Poll::<()>::Pending);
        !self.is_ended && self.sender.is_ready()
    }

    /// Returns whether hyper still holds a request body that the client has not finished; the client's connection
    /// depends on its outcome.
    fn is_sending(&self) -> bool {
        self.progress.as_ref().is_some_and(|progress| !progress.is_ended.get())
    }
}

/// Restricts the idle connections on which a request may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reuse {
    /// Any idle connection: the request can be sent again if the target closes the connection at this moment.
    Always,
    /// Only a connection younger than [`FRESH_ENOUGH`]: the request cannot be sent again.
    IfYoung,
    /// None: the target has just closed a reused connection under this request.
    Never,
}

/// The idle connections of one worker to the current target of one route.
#[derive(Default)]
#[expect(
    clippy::vec_box,
    reason = "a connection is moved at every request, through futures that would grow by its size"
)]
pub(super) struct Pool {
    idle: RefCell<Vec<Box<TargetConnection>>>,
    is_swept: Cell<bool>,
}

impl Pool {
    /// Takes the most recently used connection that is usable.
    pub(super) async fn take(&self, epoch: Epoch, reuse: Reuse) -> Option<Box<TargetConnection>> {
        if reuse == Reuse::Never {
            return None;
        }
        std::future::poll_fn(|cx| {
            loop {
                let Some(mut connection) = self.idle.borrow_mut().pop() else {
                    return Poll::Ready(None);
                };
                let is_young = reuse == Reuse::Always || connection.idle_since.elapsed() < FRESH_ENOUGH;
                if connection.entry.epoch == epoch && is_young && connection.is_usable(cx) {
                    return Poll::Ready(Some(connection));
                }
            }
        })
        .await
    }

    /// Keeps a connection whose response has been read to its end.
    pub(super) fn put(&self, route: &Rc<LocalRoute>, mut connection: Box<TargetConnection>) {
        if connection.is_ended
            || connection.is_last
            || connection.is_sending()
            || connection.entry.epoch != route.shared.epoch()
        {
            return;
        }
        connection.progress = None;
        connection.nudge.detach();
        connection.is_reused = true;
        connection.idle_since = Instant::now();
        let mut idle = self.idle.borrow_mut();
        if idle.len() < MOST_IDLE {
            idle.push(connection);
        }
        if !self.is_swept.replace(true) {
            tokio::task::spawn_local(sweep(Rc::clone(route)));
        }
    }

    pub(super) fn clear(&self) {
        // Dropped outside the borrow: ending a connection runs code that may access the pool.
        let idle = std::mem::take(&mut *self.idle.borrow_mut());
        drop(idle);
    }
}

/// Drops idle connections that are too old, closed by the target, or made to a previous target; ends when none is left.
async fn sweep(route: Rc<LocalRoute>) {
    loop {
        tokio::time::sleep(SWEEP_PERIOD).await;
        let mut idle = std::mem::take(&mut *route.pool.idle.borrow_mut());
        let epoch = route.shared.epoch();
        let cx = Context::from_waker(Waker::noop());
        idle.retain_mut(|connection| {
            connection.entry.epoch == epoch
                && connection.idle_since.elapsed() < IDLE_TIMEOUT
                && connection.is_usable(&cx)
        });
        let is_empty = idle.is_empty();
        // No other task has run in between, because there was no await.
        *route.pool.idle.borrow_mut() = idle;
        if is_empty {
            route.pool.is_swept.set(false);
            return;
        }
    }
}

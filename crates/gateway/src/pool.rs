//! Connections to the target of one route, kept by one worker.
//!
//! hyper's connection future is polled by whoever uses the connection, not by a task of its own. An idle connection is
//! polled by nobody: that the target closed it is seen when it is taken or swept.

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

use super::body::{Progress, RequestBody};
use super::link::Epoch;
use super::local::LocalRoute;
use super::nudge::Nudge;
use super::route::{SharedRoute, TargetEntry};
use super::wire::{TargetIo, Wire};
use super::writes::is_safe;

/// Idle connections that one worker keeps per route.
const MOST_IDLE: usize = 128;
/// Age at which an idle connection is dropped; common servers drop theirs after 2 s (gunicorn) to 75 s (nginx).
const IDLE_TIMEOUT: Duration = Duration::from_secs(15);
const SWEEP_PERIOD: Duration = Duration::from_secs(5);
/// Age up to which an idle connection carries a request that cannot be sent twice.
///
/// The target may be closing the connection at this moment, and then nobody can tell whether it saw the request. Below the
/// shortest common keep-alive timeout that does not happen; a fresh connection on the same machine costs well under 1 ms.
const FRESH_ENOUGH: Duration = Duration::from_secs(1);

/// One connection to a target.
pub(super) struct TargetConnection {
    sender: SendRequest<RequestBody>,
    connection: Connection<TokioIo<TargetIo>, RequestBody>,
    nudge: Rc<Nudge>,
    entry: TargetEntry,
    /// Progress of the body of the latest request, if it had one.
    progress: Option<Rc<Progress>>,
    idle_since: Instant,
    is_ended: bool,
    /// Whether nothing more is sent on it. A server that expects no body with a GET may take it for the next request, whose answer
    /// would be another visitor's.
    is_last: bool,
    /// Whether an earlier request was answered on it, so that the target may have closed it meanwhile.
    pub(super) is_reused: bool,
}

/// A target's connection that both ends agreed to use for something else than HTTP.
pub(super) struct Upgraded {
    pub(super) io: TargetIo,
    /// What the target sent behind its answer.
    pub(super) ahead: Bytes,
    /// Keeps the connection within reach of a switch.
    pub(super) entry: TargetEntry,
}

/// Why no connection could be made.
#[derive(Debug)]
pub(super) enum ConnectError {
    /// A switch came first; nothing was sent.
    Overtaken,
    TimedOut,
    Io(io::Error),
}

impl TargetConnection {
    /// Connects, unless the route's configuration stops being that of `epoch` first.
    pub(super) async fn open(
        route: &Arc<SharedRoute>,
        address: std::net::SocketAddr,
        epoch: Epoch,
        timeout: Duration,
    ) -> Result<Box<Self>, ConnectError> {
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
        let (read, wire) = Wire::split(stream);
        let wire = Arc::new(wire);
        // From here on a switch can reach the connection; before, nothing has been sent on it.
        let entry = route.enter_target(epoch, Some(Arc::clone(&wire))).ok_or(ConnectError::Overtaken)?;
        let (sender, connection) = Builder::new()
            .max_buf_size(super::BUFFER_LIMIT)
            .handshake(TokioIo::new(TargetIo::new(read, wire)))
            .await
            .map_err(|error| ConnectError::Io(io::Error::other(error)))?;
        Ok(Box::new(Self {
            sender,
            connection,
            nudge: Rc::new(Nudge::new()),
            entry,
            progress: None,
            idle_since: Instant::now(),
            is_ended: false,
            is_last: false,
            is_reused: false,
        }))
    }

    /// Lets hyper read and write until `wanted` has come of it.
    pub(super) fn drive<T>(
        &mut self,
        cx: &Context<'_>,
        mut wanted: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let nudge = Rc::clone(&self.nudge);
        nudge.poll(cx, |cx| {
            // Asked first, so that the connection knows that something is wanted.
            let polled = wanted(cx);
            if polled.is_ready() || self.is_ended {
                return polled;
            }
            // Errors reach the request or the body that they concern.
            self.is_ended = self.connection.poll_without_shutdown(cx).is_ready();
            wanted(cx)
        })
    }

    /// Sends a request and waits for the head of its answer.
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

    /// Gives up HTTP on this connection, after an answer 101.
    pub(super) async fn upgrade(mut self: Box<Self>) -> Upgraded {
        std::future::poll_fn(|cx| {
            let _ = self.drive(cx, |_| Poll::<()>::Pending);
            if self.is_ended { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        let parts = self.connection.into_parts();
        Upgraded { io: parts.io.into_inner(), ahead: parts.read_buf, entry: self.entry }
    }

    /// Whether the target is still the one that the route serves.
    pub(super) fn is_current(&self, route: &SharedRoute) -> bool {
        self.entry.epoch == route.epoch()
    }

    fn is_usable(&mut self, cx: &Context<'_>) -> bool {
        let _ = self.drive(cx, |_| Poll::<()>::Pending);
        !self.is_ended && self.sender.is_ready()
    }

    /// Whether hyper still holds a body that the client has not finished; the client's connection waits for its fate.
    fn is_sending(&self) -> bool {
        self.progress.as_ref().is_some_and(|progress| !progress.is_ended.get())
    }
}

/// Which idle connections a request may be sent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reuse {
    /// It can be sent again if the target closes the connection at this moment.
    Always,
    /// It cannot.
    IfYoung,
    /// That has just happened.
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
    /// Takes the connection that was used last, if one is usable.
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

    /// Keeps a connection whose answer has been read to its end.
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
        // Dropped outside the borrow: ending a connection runs code that may look at the pool.
        let idle = std::mem::take(&mut *self.idle.borrow_mut());
        drop(idle);
    }
}

/// Drops idle connections that are old, closed by the target, or of a target of the past; ends when none is left.
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
        // Nothing else ran in between: there was no await.
        *route.pool.idle.borrow_mut() = idle;
        if is_empty {
            route.pool.is_swept.set(false);
            return;
        }
    }
}

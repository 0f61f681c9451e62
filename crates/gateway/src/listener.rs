//! A port: the public port of a route, or a port of the episode proxy.
//!
//! One socket listens, without SO_REUSEPORT: otherwise another process that also sets it could share the port unnoticed
//! and take every other connection. One worker accepts connections and hands each to the worker with the fewest.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::time::MissedTickBehavior;

use super::workers::{Door, GatewayWorker};

const BACKLOG: i32 = 1024;
/// Pause after a failed accept; when file descriptors have run out, the next attempt would fail just as fast.
const PAUSE: Duration = Duration::from_millis(50);
const FASTEST_SWEEP: Duration = Duration::from_millis(50);
const SLOWEST_SWEEP: Duration = Duration::from_secs(5);

/// Binds the port. SO_REUSEADDR only lets a restarted daemon bind it while old connections are in TIME_WAIT.
pub(super) fn bind(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Accepts connections until `stop` is signalled; when this returns, the port is free.
pub(super) async fn accept(
    worker: Rc<GatewayWorker>,
    door: Door,
    listener: std::net::TcpListener,
    mut stop: oneshot::Receiver<()>,
) {
    let listener = match TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::error!(%error, "port {} of {} cannot be served", door.address(), door.name());
            return;
        }
    };
    let settings = &worker.team.settings;
    let period = (settings.head_timeout.min(settings.idle_timeout) / 4).clamp(FASTEST_SWEEP, SLOWEST_SWEEP);
    let mut sweep = tokio::time::interval(period);
    sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut has_clients = false;
    loop {
        tokio::select! {
            biased;
            _ = &mut stop => return,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    has_clients = true;
                    worker.place(stream, &door);
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection to {} could not be accepted", door.name());
                    tokio::time::sleep(PAUSE).await;
                }
            },
            // The sweep does not tick without clients.
            _ = sweep.tick(), if has_clients => {
                door.each_client(|link| link.close_if_overdue(settings.head_timeout, settings.idle_timeout));
                // A connection counts from its placement: its worker may not have entered it in the register yet.
                has_clients = worker.team.has_connections();
            }
        }
    }
}

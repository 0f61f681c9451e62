//! The listeners of the API, always the Unix socket and TCP if it is enabled, and of the compatible server.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::Router;
use axum::serve::{ListenerExt, TapIo};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::bounded::BoundedListener;

/// The time for which a peer on TCP may leave data unacknowledged.
const PEER_SILENCE: Duration = Duration::from_secs(10);

/// The most connections of each listener of the API. An episode may be held by one, and another may wait for it.
pub(crate) const API_CONNECTIONS: usize = 4096;

/// The most connections of the compatible server. A harness has one for each of its processes.
pub(crate) const COMPAT_CONNECTIONS: usize = 256;

/// The reason why the API could not listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The Unix socket could not be created.
    #[error("listen on {path}")]
    Unix {
        /// The path of the socket.
        path: PathBuf,
        /// The error that the system reported.
        #[source]
        cause: std::io::Error,
    },
    /// The daemon could not listen on the TCP address.
    #[error("listen on {address}")]
    Tcp {
        /// The address that was requested.
        address: SocketAddr,
        /// The error that the system reported.
        #[source]
        cause: std::io::Error,
    },
}

impl ListenError {
    /// Whether another program listens on the address.
    pub(crate) fn is_taken(&self) -> bool {
        matches!(self, Self::Tcp { cause, .. } if cause.kind() == std::io::ErrorKind::AddrInUse)
    }
}

/// Listens on a Unix socket that its owner, and the group if one is given, may use. The caller holds the lock of the
/// state directory, so an existing socket belongs to a dead daemon.
pub(crate) fn listen_unix(path: &Path, group: Option<u32>) -> Result<UnixListener, ListenError> {
    let failed = |cause| ListenError::Unix { path: path.to_owned(), cause };
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    // The folder is closed to other users, so no other user can connect before the socket has its permissions.
    let listener = UnixListener::bind(path).map_err(failed)?;
    let mode = if group.is_some() { 0o660 } else { 0o600 };
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).map_err(failed)?;
    if let Some(group) = group {
        std::os::unix::fs::chown(path, None, Some(group)).map_err(failed)?;
    }
    Ok(listener)
}

/// A TCP listener that prepares each connection.
pub(crate) type PreparingListener = TapIo<TcpListener, fn(&mut TcpStream)>;

/// Listens on a TCP address.
pub(crate) async fn listen_tcp(address: SocketAddr) -> Result<PreparingListener, ListenError> {
    let listener = TcpListener::bind(address).await.map_err(|cause| ListenError::Tcp { address, cause })?;
    Ok(listener.tap_io(bound_silence as fn(&mut TcpStream)))
}

/// Returns the address on which a listener listens.
pub(crate) fn local_address(listener: &PreparingListener) -> std::io::Result<SocketAddr> {
    axum::serve::Listener::local_addr(listener)
}

/// Makes a connection end if its peer vanishes without closing it. The kernel's default is a quarter of an hour, for
/// which the hold of a client whose host has crashed would block its sites.
fn bound_silence(connection: &mut TcpStream) {
    let limit = u32::try_from(PEER_SILENCE.as_millis()).unwrap_or(u32::MAX);
    if let Err(error) = rustix::net::sockopt::set_tcp_user_timeout(&*connection, limit) {
        tracing::debug!(%error, "the silence of a peer is not bounded");
    }
}

/// Serves a router on a number of connections until `stop` is cancelled; requests in progress are finished.
pub(crate) fn serve<L>(tasks: &TaskTracker, listener: L, most: usize, router: Router, stop: CancellationToken)
where
    L: axum::serve::Listener,
    L::Addr: std::fmt::Debug,
{
    let served =
        axum::serve(BoundedListener::new(listener, most), router).with_graceful_shutdown(stop.cancelled_owned());
    tasks.spawn(async move {
        if let Err(error) = served.await {
            tracing::error!(%error, "a listener ended");
        }
    });
}

//! Tunnels to recorded sites of `https`: the gateway ends TLS, with a certificate for the host, and reads the requests in
//! it as those of any tunnel to a site.
//!
//! ```text
//!   client ══ TLS ══► serve ── bytes, loopback ──► a connection of the proxy, whose requests have one place
//! ```
//! The inner connection is a TCP connection of this process with itself, so the requests in it are parsed, recorded,
//! limited and cut as all others are. The outer one is cut when the access of the episode is revoked, as a tunnel to an
//! external host is.

use std::future::Future;
use std::io;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::client::{SiteTunnel, TlsTunnel};
use super::client_io::ClientIo;
use super::connection;
use super::link::{BeginDecision, ExchangeLink};
use super::proxy::SharedProxy;
use super::upgrade::ClientEnd;
use super::workers::GatewayWorker;

/// Size of the buffer for one direction, in bytes.
const BUFFER: usize = 16 * 1024;

/// Serves a client in TLS until one side ends the connection.
pub(super) async fn serve(io: ClientIo, tls: TlsTunnel, proxy: Arc<SharedProxy>, worker: Rc<GatewayWorker>) {
    let link = Arc::clone(io.link());
    let exchange = Arc::new(ExchangeLink::new(Arc::clone(&link)));
    let Ok(entry) = tls.access.enter(Arc::clone(&exchange)) else {
        link.cut();
        return;
    };
    // Committed for good: the tunnel has no response that ends, so a revocation cuts the connection at any time.
    if exchange.begin(0) != BeginDecision::Begun || !exchange.commit(0) {
        link.cut();
        return;
    }
    if let Err(error) = pass(ClientEnd::new(io), tls, proxy, worker).await {
        tracing::debug!(%error, "a TLS connection to a recorded site ended early");
        link.cut();
    }
    drop(entry);
}

async fn pass(client: ClientEnd, tls: TlsTunnel, proxy: Arc<SharedProxy>, worker: Rc<GatewayWorker>) -> io::Result<()> {
    let TlsTunnel { tunnel, server, .. } = tls;
    let limit = worker.team.settings.head_timeout;
    let accepted = tokio::time::timeout(limit, TlsAcceptor::from(server).accept(client)).await;
    let mut stream = accepted.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    // A client that connects to an address asks for no name.
    let name = stream.get_ref().1.server_name();
    if let Some(name) = name.filter(|name| !name.eq_ignore_ascii_case(&tunnel.place.host)) {
        return Err(io::Error::other(format!("the tunnel leads to {}, and TLS asks for {name}", tunnel.place)));
    }
    let (mut near, far) = pair().await?;
    tokio::task::spawn_local(inner(far, tunnel, proxy, worker));
    tokio::io::copy_bidirectional_with_sizes(&mut stream, &mut near, BUFFER, BUFFER).await.map(drop)
}

/// Boxed: a connection in a tunnel may open further tunnels, so the future contains itself.
fn inner(
    stream: TcpStream,
    tunnel: SiteTunnel,
    proxy: Arc<SharedProxy>,
    worker: Rc<GatewayWorker>,
) -> std::pin::Pin<Box<dyn Future<Output = ()>>> {
    Box::pin(connection::serve_tunnel(stream, tunnel, proxy, worker))
}

/// Connects this process with itself.
async fn pair() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let near = TcpStream::connect(listener.local_addr()?).await?;
    let own = near.local_addr()?;
    loop {
        // Another program may connect first.
        let (far, peer) = listener.accept().await?;
        if peer == own {
            return Ok((near, far));
        }
    }
}

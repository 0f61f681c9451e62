//! One client connection, from accept to close.

use std::rc::Rc;
use std::sync::Arc;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use tokio::net::TcpStream;

use super::client::ClientConnection;
use super::client_io::ClientIo;
use super::forward;
use super::gateway::GatewaySettings;
use super::link::ClientLink;
use super::local::LocalRoute;
use super::refusal::TOO_MANY_CONNECTIONS;
use super::upgrade;
use super::wire::SharedWriteHalf;

/// Serves a client until one side ends the connection.
pub(super) async fn serve(stream: TcpStream, route: Rc<LocalRoute>, settings: Arc<GatewaySettings>) {
    let (Ok(peer), Ok(local)) = (stream.peer_addr(), stream.local_addr()) else {
        return;
    };
    // Fails only if the client has disconnected.
    let _ = stream.set_nodelay(true);
    let (read, wire) = SharedWriteHalf::split(stream);
    let link = Arc::new(ClientLink::new(wire));
    let Some(entry) = route.shared.enter_client(Arc::clone(&link), settings.connections_per_route) else {
        let _ = link.wire.write_now(TOO_MANY_CONNECTIONS);
        return;
    };
    let client = ClientConnection::new(Arc::clone(&link), peer, local);
    let io = ClientIo::new(read, Rc::clone(&client), settings.head_limit);
    let connect_timeout = settings.connect_timeout;
    let service =
        service_fn(|request| forward::answer(Rc::clone(&client), Rc::clone(&route), connect_timeout, request));
    let mut connection = http1::Builder::new().max_buf_size(super::BUFFER_LIMIT).serve_connection(io, service);
    let ended = (&mut connection).await;
    let upgraded = client.upgraded.borrow_mut().take();
    match (ended, upgraded) {
        (Ok(()), Some((target, visit))) => {
            let parts = connection.into_parts();
            upgrade::run(parts.io, &parts.read_buf, target, &route).await;
            drop(visit);
        }
        (Ok(()), None) => {}
        (Err(error), _) => {
            tracing::debug!(site.name = %route.shared.name, client = %peer, %error, "client connection ended early");
            // A switch could not abort bytes that are still in the kernel once the descriptor is closed.
            link.cut();
        }
    }
    drop(entry);
}

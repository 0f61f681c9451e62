//! One client connection, from accept to close.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::rt::Write;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use tokio::net::TcpStream;

use super::body::AnswerBody;
use super::client::{ClientConnection, Continuation, SiteTunnel};
use super::client_io::ClientIo;
use super::forward::{self, Gone};
use super::link::{ClientLink, ExchangeLink};
use super::local::LocalRoute;
use super::proxied::ProxyConnection;
use super::proxy::SharedProxy;
use super::refusal::TOO_MANY_CONNECTIONS;
use super::slot_port::{SharedSlotPort, SlotLease};
use super::slotted::SlotConnection;
use super::tls;
use super::upgrade;
use super::wire::SharedWriteHalf;
use super::workers::GatewayWorker;

/// Serves a client of a public port until one side ends the connection.
pub(super) async fn serve_port(stream: TcpStream, route: Rc<LocalRoute>, worker: Rc<GatewayWorker>) {
    let settings = &worker.team.settings;
    let Some((io, client)) = begin(stream, route.shared.draining(), settings.head_limit) else { return };
    let exchange = Arc::new(ExchangeLink::new(Arc::clone(&client.link)));
    let Some(entry) = route.shared.enter_client(Arc::clone(&exchange), settings.connections_per_route) else {
        let _ = client.link.wire.write_now(TOO_MANY_CONNECTIONS);
        return;
    };
    let connect_timeout = settings.connect_timeout;
    let answer = |request| {
        forward::answer(Rc::clone(&client), Rc::clone(&route), Arc::clone(&exchange), connect_timeout, request)
    };
    if let Some(served) = serve(io, &client, answer, &route.shared.name).await {
        follow(served).await;
    }
    drop(entry);
}

/// Serves a client of the episode proxy until one side ends the connection.
pub(super) async fn serve_proxy(stream: TcpStream, proxy: Arc<SharedProxy>, worker: Rc<GatewayWorker>) {
    if proxy.admits(&stream).await {
        serve_proxy_client(stream, None, proxy, worker).await;
    }
}

/// Serves the requests in a tunnel to a site, which arrive on a connection of this process with itself.
pub(super) async fn serve_tunnel(
    stream: TcpStream,
    tunnel: SiteTunnel,
    proxy: Arc<SharedProxy>,
    worker: Rc<GatewayWorker>,
) {
    serve_proxy_client(stream, Some(tunnel), proxy, worker).await;
}

async fn serve_proxy_client(
    stream: TcpStream,
    tunnel: Option<SiteTunnel>,
    proxy: Arc<SharedProxy>,
    worker: Rc<GatewayWorker>,
) {
    let settings = Arc::clone(&worker.team.settings);
    let Some((mut io, client)) = begin(stream, proxy.port.draining(), settings.head_limit) else { return };
    let Some(entry) = proxy.port.enter_client(Arc::clone(&client.link), settings.connections_per_proxy) else {
        let _ = client.link.wire.write_now(TOO_MANY_CONNECTIONS);
        return;
    };
    let connection = ProxyConnection::new(Arc::clone(&proxy), Rc::clone(&worker), Rc::clone(&client));
    connection.tunnel.replace(tunnel.map(Rc::new));
    while let Some((next, continuation)) = serve(io, &client, |request| connection.answer(request), "proxy").await {
        io = next;
        match continuation {
            Continuation::SiteTunnel(tunnel) => {
                connection.tunnel.replace(Some(Rc::new(tunnel)));
                io.enter_tunnel();
            }
            Continuation::Upgraded(target, visit) => {
                upgrade::run(io, target, visit.route()).await;
                break;
            }
            Continuation::TlsTunnel(tunnel) => {
                // Boxed: recorded sites of `https` are rare, and would enlarge the future of every connection.
                Box::pin(tls::serve(io, tunnel, proxy, worker)).await;
                break;
            }
        }
    }
    drop(entry);
}

/// Serves a client of a slot's own port until one side ends the connection.
pub(super) async fn serve_slot(
    stream: TcpStream,
    slot: Arc<SharedSlotPort>,
    lease: Option<SlotLease>,
    worker: Rc<GatewayWorker>,
) {
    let settings = Arc::clone(&worker.team.settings);
    let Some((io, client)) = begin(stream, slot.port.draining(), settings.head_limit) else { return };
    let Some(entry) = slot.port.enter_client(Arc::clone(&client.link), settings.connections_per_route) else {
        let _ = client.link.wire.write_now(TOO_MANY_CONNECTIONS);
        return;
    };
    let name = slot.name.clone();
    let connection = SlotConnection::new(slot, worker, Rc::clone(&client), lease);
    if let Some(served) = serve(io, &client, |request| connection.answer(request), &name).await {
        follow(served).await;
    }
    drop(entry);
}

fn begin(
    stream: TcpStream,
    draining: Arc<std::sync::atomic::AtomicBool>,
    head_limit: usize,
) -> Option<(ClientIo, Rc<ClientConnection>)> {
    let (peer, local) = (stream.peer_addr().ok()?, stream.local_addr().ok()?);
    // Fails only if the client has disconnected.
    let _ = stream.set_nodelay(true);
    let (read, wire) = SharedWriteHalf::split(stream);
    let link = Arc::new(ClientLink::new(wire));
    let client = ClientConnection::new(link, peer, local, draining);
    Some((ClientIo::new(read, Rc::clone(&client), head_limit), client))
}

/// Does what follows the last response of a client of a site: carries the bytes of an upgrade, or ends the connection.
async fn follow((io, continuation): (ClientIo, Continuation)) {
    match continuation {
        Continuation::Upgraded(target, visit) => {
            upgrade::run(io, target, visit.route()).await;
            drop(visit);
        }
        Continuation::SiteTunnel(_) | Continuation::TlsTunnel(_) => end(io).await,
    }
}

/// Answers requests until the connection ends or continues in another way.
async fn serve<A>(
    io: ClientIo,
    client: &Rc<ClientConnection>,
    answer: impl Fn(Request<Incoming>) -> A,
    name: &str,
) -> Option<(ClientIo, Continuation)>
where
    A: Future<Output = Result<Response<AnswerBody>, Gone>>,
{
    let mut connection =
        http1::Builder::new().max_buf_size(super::BUFFER_LIMIT).serve_connection(io, service_fn(answer));
    let ended = (&mut connection).await;
    match (ended, client.take_continuation()) {
        (Ok(()), Some(continuation)) => {
            let parts = connection.into_parts();
            // The reader gives hyper no byte after a head that may switch.
            debug_assert!(parts.read_buf.is_empty());
            return Some((parts.io, continuation));
        }
        // hyper leaves the end of the connection to others after a request for an upgrade or a tunnel.
        (Ok(()), None) => end(connection.into_parts().io).await,
        (Err(error), _) => {
            tracing::debug!(door = name, %error, "client connection ended early");
            // A switch could not abort bytes that are still in the kernel once the descriptor is closed.
            client.link.cut();
        }
    }
    None
}

/// Ends a connection so that the client receives the last response.
async fn end(mut io: ClientIo) {
    // Fails only if the connection has ended.
    let _ = std::future::poll_fn(|cx| Pin::new(&mut io).poll_shutdown(cx)).await;
}

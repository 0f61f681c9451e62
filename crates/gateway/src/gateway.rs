//! The handles that the rest of the daemon holds: the gateway, and one route per public port.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::directory::ProxyDirectory;
use super::egress;
use super::episode_recorder::EpisodeRecorder;
use super::gather::RecordedEpisode;
use super::guests::{self, GuestPort, PortListener};
use super::link::ClientLink;
use super::listener;
use super::phase::{HoldLimits, RouteCommand, RouteState, Target};
use super::proxy::{Proxy, ProxyClient, ProxyPort, SharedProxy};
use super::recorder::Recorder;
use super::recording::RecordingFilter;
use super::route::{RouteStats, SharedRoute};
use super::slot_port::{SharedSlotPort, SlotPort, SlotPortDirectory};
use super::workers::{Door, Team, WorkerOrder};
use super::writes::WriteRules;

/// Interval at which a shutdown checks whether the last connection has ended.
const SHUTDOWN_TICK: Duration = Duration::from_millis(10);

/// Settings that apply to all routes of a gateway.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct GatewaySettings {
    /// Number of worker threads; by default one per processor, at most four.
    pub workers: usize,
    /// Number of client connections that one route serves at a time; further ones are answered 503.
    pub connections_per_route: usize,
    /// Number of client connections that one port of the episode proxy serves at a time; further ones are answered 503.
    pub connections_per_proxy: usize,
    /// Maximum size of a request head in bytes; a larger one is answered 431.
    pub head_limit: usize,
    /// Maximum time between the first byte of a head and its last.
    pub head_timeout: Duration,
    /// Time for which a connection may stay open between requests.
    pub idle_timeout: Duration,
    /// Time within which a target must accept a connection; otherwise the request is answered 504.
    pub connect_timeout: Duration,
    /// Whether a host outside of the arena may have this address. The default allows public addresses of other hosts.
    pub may_be_external: fn(IpAddr) -> bool,
}

impl Default for GatewaySettings {
    fn default() -> Self {
        Self {
            workers: std::thread::available_parallelism().map_or(1, usize::from).min(4),
            connections_per_route: 4096,
            // A browser opens up to 32 connections to a proxy, for each of its contexts.
            connections_per_proxy: 8192,
            head_limit: 64 * 1024,
            head_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(120),
            connect_timeout: Duration::from_secs(2),
            may_be_external: egress::is_external,
        }
    }
}

/// An error that prevents a route from being opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another socket of this or another process listens on the port.
    #[error("port of {address} is taken")]
    PortTaken {
        /// Address of the port that was to be opened.
        address: SocketAddr,
    },
    /// The operating system refused to listen on the address.
    #[error("listen on {address}")]
    Listen {
        /// Address of the port that was to be opened.
        address: SocketAddr,
        /// The error that the operating system returned.
        #[source]
        cause: io::Error,
    },
    /// The gateway has been shut down.
    #[error("the gateway is shut down")]
    ShutDown,
}

impl OpenError {
    pub(super) fn of(address: SocketAddr, cause: io::Error) -> Self {
        match cause.kind() {
            io::ErrorKind::AddrInUse => Self::PortTaken { address },
            _ => Self::Listen { address, cause },
        }
    }
}

/// The gateway: its threads, and every route that has been opened.
///
/// Dropping it stops the threads and cuts all connections; `shutdown` first lets responses finish.
pub struct Gateway {
    /// `None` for a gateway without sockets, whose requests arrive through `Route::pass`.
    team: Option<Arc<Team>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    routes: Mutex<Vec<Route>>,
    proxies: Mutex<Vec<Proxy>>,
    slot_ports: Mutex<Vec<SlotPort>>,
    next_id: AtomicU64,
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway").finish_non_exhaustive()
    }
}

impl Gateway {
    /// Starts the workers.
    ///
    /// Errors: a thread or its runtime could not be created.
    pub fn start(settings: GatewaySettings) -> io::Result<Self> {
        let (team, threads) = Team::start(settings)?;
        Ok(Self {
            team: Some(team),
            threads: Mutex::new(threads),
            routes: Mutex::new(Vec::new()),
            proxies: Mutex::default(),
            slot_ports: Mutex::default(),
            next_id: AtomicU64::new(0),
        })
    }

    /// Creates a gateway without threads and sockets, whose routes make the same decisions as any others: opening a
    /// port only marks it as taken within this gateway, and requests arrive through [`Route::pass`].
    pub fn without_sockets() -> Self {
        Self {
            team: None,
            threads: Mutex::default(),
            routes: Mutex::new(Vec::new()),
            proxies: Mutex::default(),
            slot_ports: Mutex::default(),
            next_id: AtomicU64::new(0),
        }
    }

    /// Returns the routes whose ports are open.
    pub fn listening(&self) -> Vec<Route> {
        let routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        routes.iter().filter(|route| route.is_listening()).cloned().collect()
    }

    /// Opens a public port. Until the first call of `serve`, the route answers 503.
    ///
    /// `name` is the name of the site, for pages and logs that people read. Port 0 selects a free port; see
    /// `Route::local_addr`. `writes` says which requests may write, `record` how much of the traffic is recorded.
    ///
    /// Errors: `OpenError::PortTaken` if a socket listens on the port already.
    pub fn open(
        &self,
        listen: SocketAddr,
        hold: HoldLimits,
        writes: WriteRules,
        record: RecordingFilter,
        name: &str,
    ) -> Result<Route, OpenError> {
        let failed = |cause| OpenError::of(listen, cause);
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (shared, listening) = match &self.team {
            Some(team) => {
                let listener = listener::bind(listen).map_err(failed)?;
                let address = listener.local_addr().map_err(failed)?;
                let shared = SharedRoute::new(id, name, address, hold, writes, record);
                let listening = order_listener(team, id, Door::Port(Arc::clone(&shared)), listener)?;
                (shared, Listening::Socket(listening))
            }
            None if self.is_marked(listen) => return Err(OpenError::PortTaken { address: listen }),
            None => (SharedRoute::new(id, name, listen, hold, writes, record), Listening::Nothing),
        };
        Ok(self.register(shared, Some(listening)))
    }

    fn register(&self, shared: Arc<SharedRoute>, listening: Option<Listening>) -> Route {
        let route = Route { shared, listening: Arc::new(Mutex::new(listening)), team: self.team.clone() };
        let mut routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        routes.retain(|route| route.state() != RouteState::Closed);
        routes.push(route.clone());
        route
    }

    /// Opens a route without a public port, which [`Route::pass`] and the callers of its handles reach. It takes part in
    /// [`Self::shutdown`] like any other route.
    pub fn open_without_port(
        &self,
        hold: HoldLimits,
        writes: WriteRules,
        record: RecordingFilter,
        name: &str,
    ) -> Route {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        self.register(SharedRoute::new(id, name, nowhere, hold, writes, record), None)
    }

    /// Opens a port of the episode proxy. `directory` decides on each request.
    ///
    /// Errors: `OpenError::PortTaken` if a socket listens on the port already; `OpenError::ShutDown` also for a gateway
    /// without sockets.
    pub fn open_proxy(&self, listen: SocketAddr, directory: Arc<dyn ProxyDirectory>) -> Result<Proxy, OpenError> {
        self.open_proxy_port(ProxyPort::bind(listen)?, directory, None)
    }

    /// Opens a port of the episode proxy for one client, which sends no credentials.
    ///
    /// Errors: as [`Self::open_proxy`].
    pub fn open_proxy_for(
        &self,
        port: ProxyPort,
        directory: Arc<dyn ProxyDirectory>,
        client: ProxyClient,
    ) -> Result<Proxy, OpenError> {
        self.open_proxy_port(port, directory, Some(client))
    }

    fn open_proxy_port(
        &self,
        ProxyPort { listener, address }: ProxyPort,
        directory: Arc<dyn ProxyDirectory>,
        only: Option<ProxyClient>,
    ) -> Result<Proxy, OpenError> {
        let team = self.team.as_ref().ok_or(OpenError::ShutDown)?;
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let shared = SharedProxy::new(address, directory, only);
        let listening = order_listener(team, id, Door::Proxy(Arc::clone(&shared)), listener)?;
        let proxy = Proxy { shared, listener: Arc::new(Mutex::new(Some(listening))) };
        let mut proxies = self.proxies.lock().unwrap_or_else(PoisonError::into_inner);
        proxies.retain(|proxy| !proxy.shared.port.is_closed());
        proxies.push(proxy.clone());
        Ok(proxy)
    }

    /// Opens the own port of a slot. `directory` decides on each request, `name` is the name of the site.
    ///
    /// Errors: `OpenError::PortTaken` if a socket listens on the port already.
    pub fn open_slot_port(
        &self,
        listen: SocketAddr,
        directory: Arc<dyn SlotPortDirectory>,
        name: &str,
    ) -> Result<SlotPort, OpenError> {
        let failed = |cause| OpenError::of(listen, cause);
        let shared = |address| {
            let (port, name) = (Arc::new(GuestPort::new(address)), name.to_owned());
            Arc::new(SharedSlotPort { port, name, directory })
        };
        let port = match &self.team {
            Some(team) => {
                let listener = listener::bind(listen).map_err(failed)?;
                let shared = shared(listener.local_addr().map_err(failed)?);
                let id = self.next_id.fetch_add(1, Ordering::Relaxed);
                let listening = order_listener(team, id, Door::Slot(Arc::clone(&shared)), listener)?;
                SlotPort { shared, listener: Arc::new(Mutex::new(Some(listening))) }
            }
            None if self.is_marked(listen) => return Err(OpenError::PortTaken { address: listen }),
            None => SlotPort { shared: shared(listen), listener: Arc::default() },
        };
        let mut ports = self.slot_ports.lock().unwrap_or_else(PoisonError::into_inner);
        ports.retain(|port| !port.shared.port.is_closed());
        ports.push(port.clone());
        Ok(port)
    }

    /// Whether a port is open in a gateway without sockets.
    fn is_marked(&self, address: SocketAddr) -> bool {
        let ports = self.slot_ports.lock().unwrap_or_else(PoisonError::into_inner);
        let is_slots = ports.iter().any(|port| port.local_addr() == address && !port.shared.port.is_closed());
        is_slots || self.listening().iter().any(|route| route.local_addr() == address)
    }

    /// Stops accepting, lets responses finish until `deadline` has passed, cuts the remaining connections and ends the
    /// threads.
    ///
    /// Held requests are answered 503 at once, because no target will be served again.
    pub async fn shutdown(&self, deadline: Duration) {
        let until = Instant::now() + deadline;
        let routes = std::mem::take(&mut *self.routes.lock().unwrap_or_else(PoisonError::into_inner));
        let proxies = std::mem::take(&mut *self.proxies.lock().unwrap_or_else(PoisonError::into_inner));
        let slot_ports = std::mem::take(&mut *self.slot_ports.lock().unwrap_or_else(PoisonError::into_inner));
        for listener in proxies.iter().map(|it| &it.listener).chain(slot_ports.iter().map(|it| &it.listener)) {
            guests::unlisten(listener).await;
        }
        let guest_ports: Vec<&Arc<GuestPort>> =
            proxies.iter().map(|it| &it.shared.port).chain(slot_ports.iter().map(|it| &it.shared.port)).collect();
        guest_ports.iter().for_each(|port| port.drain());
        for route in &routes {
            route.unlisten().await;
            route.shared.drain();
            if let RouteState::Holding { .. } = route.state() {
                route.shared.change(RouteCommand::Close);
            }
        }
        let has_clients = || {
            routes.iter().any(|route| route.shared.connections() > 0)
                || guest_ports.iter().any(|port| port.connections() > 0)
        };
        while Instant::now() < until && has_clients() {
            routes.iter().for_each(|route| route.shared.each_client(ClientLink::close_if_idle));
            guest_ports.iter().for_each(|port| port.each_client(ClientLink::close_if_idle));
            tokio::time::sleep(SHUTDOWN_TICK).await;
        }
        for route in &routes {
            route.shared.change(RouteCommand::Close);
        }
        guest_ports.iter().for_each(|port| port.close());
        self.team.iter().for_each(|team| team.stop());
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        // The threads end as soon as they receive the order. Joining them takes little time, but it blocks.
        let joined = tokio::task::spawn_blocking(move || threads.into_iter().try_for_each(JoinHandle::join));
        if !matches!(joined.await, Ok(Ok(()))) {
            tracing::error!("a gateway thread panicked");
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.team.iter().for_each(|team| team.stop());
    }
}

/// Has a worker listen on a socket for the clients of a door.
fn order_listener(
    team: &Team,
    id: u64,
    door: Door,
    listener: std::net::TcpListener,
) -> Result<PortListener, OpenError> {
    let (stop, stopped) = oneshot::channel();
    let (done, finished) = oneshot::channel();
    match team.order_one(id, WorkerOrder::Listen { door, listener, stop: stopped, done }) {
        true => Ok(PortListener { stop, finished }),
        false => Err(OpenError::ShutDown),
    }
}

#[derive(Debug)]
enum Listening {
    /// A worker listens on a socket until `stop` is signalled.
    Socket(PortListener),
    /// The port has no socket: it is only marked as open.
    Nothing,
}

/// The way to one slot of one site, in most cases through a public port. Clones are handles to the same route.
///
/// The methods that switch the route take effect before they return, whatever the workers are doing, and never wait for
/// a client. After `serve`, `hold` or `refuse` has returned, no byte of a response of the previous target reaches a
/// client, and no request reaches that target. The effect on a request that was under way depends on its progress:
///
/// - A GET, HEAD or OPTIONS request without a body, none of whose response has been forwarded, is held, sent to the new
///   target or refused, as if it had just arrived.
/// - Any other request, none of whose response has been forwarded, is answered 503 with `Retry-After`.
/// - If part of the response has been forwarded, the connection is reset (RST), so that the client cannot mistake the
///   response for a complete one.
#[derive(Clone)]
pub struct Route {
    pub(super) shared: Arc<SharedRoute>,
    listening: Arc<Mutex<Option<Listening>>>,
    team: Option<Arc<Team>>,
}

impl std::fmt::Debug for Route {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Route").field("name", &self.shared.name).field("address", &self.shared.address).finish()
    }
}

impl Route {
    /// Sends requests, including held ones, to the target from now on. Serving the same target again changes nothing.
    pub fn serve(&self, target: Target) {
        tracing::debug!(site.name = %self.shared.name, instance.id = %target.instance, "route serves {}", target.address);
        self.shared.change(RouteCommand::Serve(target));
    }

    /// Holds requests from now on, until the next `serve` or `refuse`.
    pub fn hold(&self, reason: impl Into<String>) {
        self.shared.change(RouteCommand::Hold { reason: reason.into() });
    }

    /// Answers requests, including held ones, with 503 and `Retry-After` from now on.
    pub fn refuse(&self, reason: impl Into<String>, retry_after: Duration) {
        self.shared.change(RouteCommand::Refuse { reason: reason.into(), retry_after });
    }

    /// Refuses requests as [`Self::refuse`] does, and cuts every client connection, idle ones included. So a client
    /// cannot send a request on a connection that it has kept when the route serves again.
    pub fn fence(&self, reason: impl Into<String>, retry_after: Duration) {
        self.refuse(reason, retry_after);
        self.shared.each_client(ClientLink::cut);
    }

    /// Records the requests to the public port of a generation for an episode, or for none. Requests through the episode
    /// proxy belong to the episode whose credentials they bear. The call applies to requests that arrive later.
    pub fn record_for(&self, episode: Option<(u64, Arc<EpisodeRecorder>)>) {
        let recording =
            episode.map(|(generation, recorder)| RecordedEpisode { recorder, generation: Some(generation) });
        self.shared.record_for(recording);
    }

    /// Returns the current state of the route.
    pub fn state(&self) -> RouteState {
        self.shared.state().1
    }

    /// Whether a request can have reached a generation that has left service. The next one may not be served yet, because
    /// the route is fenced. Without knowledge of the generation, the answer is true.
    pub fn may_have_reached(&self, generation: u64) -> bool {
        self.shared.may_have_reached(generation)
    }

    /// Returns the counters of the route.
    pub fn stats(&self) -> RouteStats {
        self.shared.stats()
    }

    /// Registers a function that is called with the number of each generation at its first connection, before anything
    /// is sent on that connection. Only the first registration per route takes effect.
    ///
    /// The function runs under the route's mutex, so it must be quick and must not call the route.
    pub fn on_first(&self, told: impl Fn(u64) + Send + Sync + 'static) {
        self.shared.on_first(told);
    }

    /// Returns the recorder of the route's traffic, or `None` if nothing is recorded.
    pub fn recorder(&self) -> Option<Arc<Recorder>> {
        self.shared.recorder.clone()
    }

    /// Starts the recording of a generation anew and marks it as late, because the generation has already served
    /// unrecorded.
    pub fn take_up(&self, generation: u64) {
        if let Some(recorder) = &self.shared.recorder {
            recorder.take_up(generation);
        }
    }

    /// Discards what has been recorded and starts the recording of the current generation anew.
    pub fn forget_recorded(&self) {
        if let Some(recorder) = &self.shared.recorder {
            recorder.forget();
        }
    }

    /// Returns the address of the public port. Its port is 0 if the route has none.
    pub fn local_addr(&self) -> SocketAddr {
        self.shared.address
    }

    /// Releases the port: when this returns, the port can be opened again. Requests under way end as they do at a
    /// switch.
    pub async fn close(self) {
        self.shared.change(RouteCommand::Close);
        self.unlisten().await;
        self.shared.drain();
        self.team.iter().for_each(|team| team.forget(&self.shared));
    }

    async fn unlisten(&self) {
        let listening = self.listening().take();
        if let Some(Listening::Socket(listener)) = listening {
            listener.end().await;
        }
    }

    pub(super) fn is_listening(&self) -> bool {
        self.listening().is_some()
    }

    fn listening(&self) -> MutexGuard<'_, Option<Listening>> {
        self.listening.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! The handles that the rest of the daemon holds: the gateway, and one route per public port.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::link::ClientLink;
use super::listener;
use super::phase::{Command, HoldLimits, RouteState, Target};
use super::recorder::Recorder;
use super::recording::Record;
use super::route::{RouteStats, SharedRoute};
use super::workers::{Order, Team};
use super::writes::WriteRules;

/// How often a shutdown looks whether the last connection is gone.
const SHUTDOWN_TICK: Duration = Duration::from_millis(10);

/// What may be set about a gateway as a whole.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct GatewaySettings {
    /// Threads; by default one per processor, at most four.
    pub workers: usize,
    /// Client connections that one route serves at a time; further ones are answered 503.
    pub connections_per_route: usize,
    /// Bytes that a request's head may have, before it is answered 431.
    pub head_limit: usize,
    /// Time from the first byte of a head to its last.
    pub head_timeout: Duration,
    /// Time that a connection may stay open between requests.
    pub idle_timeout: Duration,
    /// Time that a target may take to accept a connection, before the request is answered 504.
    pub connect_timeout: Duration,
}

impl Default for GatewaySettings {
    fn default() -> Self {
        Self {
            workers: std::thread::available_parallelism().map_or(1, usize::from).min(4),
            connections_per_route: 4096,
            head_limit: 64 * 1024,
            head_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(120),
            connect_timeout: Duration::from_secs(2),
        }
    }
}

/// Why a route could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another socket listens there, of this process or of another.
    #[error("port of {address} is taken")]
    PortTaken {
        /// The address that was asked for.
        address: SocketAddr,
    },
    /// The address cannot be listened on.
    #[error("listen on {address}")]
    Listen {
        /// The address that was asked for.
        address: SocketAddr,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// The gateway was shut down.
    #[error("the gateway is shut down")]
    ShutDown,
}

/// The gateway: its threads, and every route that was opened.
///
/// Dropping it stops the threads and cuts everything; `shutdown` lets answers end first.
pub struct Gateway {
    /// None: nothing listens, and requests come by `Route::pass`.
    team: Option<Arc<Team>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    routes: Mutex<Vec<Route>>,
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
    /// Errors: a thread or its runtime could not be made.
    pub fn start(settings: GatewaySettings) -> io::Result<Self> {
        let (team, threads) = Team::start(settings)?;
        Ok(Self {
            team: Some(team),
            threads: Mutex::new(threads),
            routes: Mutex::new(Vec::new()),
            next_id: AtomicU64::new(0),
        })
    }

    /// A gateway without threads and sockets, whose routes decide like any others: a port is taken by being opened here, and
    /// requests come by [`Route::pass`].
    pub fn without_sockets() -> Self {
        Self { team: None, threads: Mutex::default(), routes: Mutex::new(Vec::new()), next_id: AtomicU64::new(0) }
    }

    /// The routes whose ports are open.
    pub fn listening(&self) -> Vec<Route> {
        let routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        routes.iter().filter(|route| route.is_listening()).cloned().collect()
    }

    /// Opens a public port. Until it is told what to serve, the route answers 503.
    ///
    /// `name` is the site's, for the pages and logs that people read. Port 0 takes a free one, see `Route::local_addr`.
    ///
    /// Errors: `OpenError::PortTaken` if anything listens on the port already.
    pub fn open(&self, listen: SocketAddr, hold: HoldLimits, name: &str) -> Result<Route, OpenError> {
        self.open_with(listen, hold, WriteRules::default(), Record::Nothing, name)
    }

    /// The same for a site of which it is known what only reads, to which nobody may write, or whose traffic is recorded.
    pub fn open_with(
        &self,
        listen: SocketAddr,
        hold: HoldLimits,
        writes: WriteRules,
        record: Record,
        name: &str,
    ) -> Result<Route, OpenError> {
        let failed = |cause: io::Error| match cause.kind() {
            io::ErrorKind::AddrInUse => OpenError::PortTaken { address: listen },
            _ => OpenError::Listen { address: listen, cause },
        };
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (shared, listening) = match &self.team {
            Some(team) => {
                let listener = listener::bind(listen).map_err(failed)?;
                let address = listener.local_addr().map_err(failed)?;
                let shared = SharedRoute::new(id, name, address, hold, writes, record);
                let (stop, stopped) = oneshot::channel();
                let (done, finished) = oneshot::channel();
                let order = Order::Listen { route: Arc::clone(&shared), listener, stop: stopped, done };
                if !team.order_one(id, order) {
                    return Err(OpenError::ShutDown);
                }
                (shared, Listening::Socket { stop, finished })
            }
            None if self.listening().iter().any(|route| route.local_addr() == listen) => {
                return Err(OpenError::PortTaken { address: listen });
            }
            None => (SharedRoute::new(id, name, listen, hold, writes, record), Listening::Nothing),
        };
        let route = Route { shared, listening: Arc::new(Mutex::new(Some(listening))), team: self.team.clone() };
        let mut routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        routes.retain(|route| route.state() != RouteState::Closed);
        routes.push(route.clone());
        Ok(route)
    }

    /// Stops accepting, lets answers end until `deadline` has passed, cuts the rest and ends the threads.
    ///
    /// Held requests are answered 503 at once: what they wait for will not come.
    pub async fn shutdown(&self, deadline: Duration) {
        let until = Instant::now() + deadline;
        let routes = std::mem::take(&mut *self.routes.lock().unwrap_or_else(PoisonError::into_inner));
        for route in &routes {
            route.unlisten().await;
            route.shared.drain();
            if let RouteState::Holding { .. } = route.state() {
                route.shared.change(Command::Close);
            }
        }
        while Instant::now() < until && routes.iter().any(|route| route.shared.connections() > 0) {
            for route in &routes {
                route.shared.each_client(ClientLink::close_if_idle);
            }
            tokio::time::sleep(SHUTDOWN_TICK).await;
        }
        for route in &routes {
            route.shared.change(Command::Close);
        }
        self.team.iter().for_each(|team| team.stop());
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        // The threads end as soon as they see the order; joining them is short, but it blocks.
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

#[derive(Debug)]
enum Listening {
    /// A worker listens on a socket until it is told to stop.
    Socket { stop: oneshot::Sender<()>, finished: oneshot::Receiver<()> },
    /// The port is open in name only.
    Nothing,
}

/// One public port, which is one site of one slot. Clones are handles of the same route.
///
/// The methods that switch take effect before they return, whatever the workers are doing, and never wait for a client: after
/// `serve`, `hold` or `refuse` has returned, no byte of an answer of the previous target reaches a client, and no request
/// reaches that target. What a request that was under way sees instead:
///
/// - a GET, HEAD or OPTIONS without a body of which no answer was forwarded yet is held, sent to the new target or refused,
///   as if it came now;
/// - another request of which no answer was forwarded yet is answered 503 with `Retry-After`;
/// - an answer that was partly forwarded ends with the connection (RST), so that it is never taken for whole.
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
    /// Sends requests to the target from now on, held ones included. The same target again changes nothing.
    pub fn serve(&self, target: Target) {
        tracing::debug!(site.name = %self.shared.name, instance.id = %target.instance, "route serves {}", target.address);
        self.shared.change(Command::Serve(target));
    }

    /// Holds requests from now on, until the next `serve` or `refuse`.
    pub fn hold(&self, reason: impl Into<String>) {
        self.shared.change(Command::Hold { reason: reason.into() });
    }

    /// Answers requests with 503 and `Retry-After` from now on, held ones included.
    pub fn refuse(&self, reason: impl Into<String>, retry_after: Duration) {
        self.shared.change(Command::Refuse { reason: reason.into(), retry_after });
    }

    /// Returns what the route does with requests.
    pub fn state(&self) -> RouteState {
        self.shared.state().1
    }

    /// Returns what the route has done.
    pub fn stats(&self) -> RouteStats {
        self.shared.stats()
    }

    /// Has `told` told of each generation's first connection, before anything is sent on that. The first caller is heard.
    ///
    /// Called under the route's mutex, so it must be quick and not come back to the route.
    pub fn on_first(&self, told: impl Fn(u64) + Send + Sync + 'static) {
        self.shared.on_first(told);
    }

    /// Returns what keeps the route's traffic; `None` where nothing is recorded.
    pub fn recorder(&self) -> Option<Arc<Recorder>> {
        self.shared.recorder.clone()
    }

    /// Tells the recorder that the generation that is served next has served before, unrecorded.
    pub fn take_up(&self, generation: u64) {
        if let Some(recorder) = &self.shared.recorder {
            recorder.take_up(generation);
        }
    }

    /// Forgets what was recorded: what is served is as a new generation would be.
    pub fn forget_recorded(&self) {
        if let Some(recorder) = &self.shared.recorder {
            recorder.forget();
        }
    }

    /// Returns the address of the public port.
    pub fn local_addr(&self) -> SocketAddr {
        self.shared.address
    }

    /// Returns the name that was given at `open`.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Releases the port: when this returns, it can be opened again. Requests under way end as at a switch.
    pub async fn close(self) {
        self.shared.change(Command::Close);
        self.unlisten().await;
        self.shared.drain();
        self.team.iter().for_each(|team| team.forget(&self.shared));
    }

    async fn unlisten(&self) {
        let listening = self.listening().take();
        if let Some(Listening::Socket { stop, finished }) = listening {
            // Either fails only if the worker is gone, and the listener with it.
            let _ = stop.send(());
            let _ = finished.await;
        }
    }

    pub(super) fn is_listening(&self) -> bool {
        self.listening().is_some()
    }

    fn listening(&self) -> MutexGuard<'_, Option<Listening>> {
        self.listening.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

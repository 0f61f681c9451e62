//! The gateway's threads.
//!
//! Each worker is one thread with its own single-threaded runtime. A client's connection and the connections to targets
//! that serve it live on one worker, so a request crosses no thread. Workers share only a route's register and
//! counters.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc as blocking};
use std::thread::JoinHandle;

use tokio::net::TcpStream;
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::{mpsc, oneshot};

use super::connection;
use super::gateway::GatewaySettings;
use super::link::ClientLink;
use super::listener;
use super::local::LocalRoute;
use super::phase::RouteState;
use super::proxy::SharedProxy;
use super::route::SharedRoute;
use super::slot_port::{SharedSlotPort, SlotLease};

/// A command to a worker.
pub(super) enum WorkerOrder {
    Listen {
        door: Door,
        listener: std::net::TcpListener,
        stop: oneshot::Receiver<()>,
        done: oneshot::Sender<()>,
    },
    Serve {
        door: Door,
        stream: std::net::TcpStream,
        share: Share,
        /// The lease that the slot had when the connection was accepted, if the door is a slot's own port.
        lease: Option<SlotLease>,
    },
    /// The route is closed, so the worker may drop its pool.
    Forget {
        route: Arc<SharedRoute>,
    },
    Stop,
}

/// A port on which clients arrive.
#[derive(Clone)]
pub(super) enum Door {
    /// The public port of a route.
    Port(Arc<SharedRoute>),
    /// A port of the episode proxy.
    Proxy(Arc<SharedProxy>),
    /// The own port of a slot.
    Slot(Arc<SharedSlotPort>),
}

impl Door {
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Port(route) => &route.name,
            Self::Proxy(_) => "episode proxy",
            Self::Slot(slot) => &slot.name,
        }
    }

    pub(super) fn address(&self) -> SocketAddr {
        match self {
            Self::Port(route) => route.address,
            Self::Proxy(proxy) => proxy.port.address,
            Self::Slot(slot) => slot.port.address,
        }
    }

    /// Returns the lease to which a connection belongs that is accepted now.
    fn lease(&self) -> Option<SlotLease> {
        match self {
            Self::Port(_) | Self::Proxy(_) => None,
            Self::Slot(slot) => slot.directory.lease(),
        }
    }

    pub(super) fn each_client(&self, act: impl Fn(&ClientLink)) {
        match self {
            Self::Port(route) => route.each_client(act),
            Self::Proxy(proxy) => proxy.port.each_client(act),
            Self::Slot(slot) => slot.port.each_client(act),
        }
    }
}

/// The state that all workers share: the settings, and each worker's queue and load.
pub(super) struct Team {
    pub(super) settings: Arc<GatewaySettings>,
    members: Vec<TeamMember>,
}

struct TeamMember {
    // Not bounded: the queue holds at most one order per open connection, and connections are bounded per route.
    orders: mpsc::UnboundedSender<WorkerOrder>,
    connections: Arc<AtomicUsize>,
}

/// One connection in a worker's load; dropping it reduces the load.
pub(super) struct Share(Arc<AtomicUsize>);

impl Share {
    fn take(connections: &Arc<AtomicUsize>) -> Self {
        connections.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(connections))
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One thread of the gateway, with the routes that it has served.
pub(super) struct GatewayWorker {
    pub(super) team: Arc<Team>,
    index: usize,
    routes: RefCell<HashMap<u64, Rc<LocalRoute>>>,
}

impl GatewayWorker {
    async fn run(self: Rc<Self>, mut orders: mpsc::UnboundedReceiver<WorkerOrder>) {
        while let Some(order) = orders.recv().await {
            match order {
                WorkerOrder::Listen { door, listener, stop, done } => {
                    let worker = Rc::clone(&self);
                    tokio::task::spawn_local(async move {
                        listener::accept(worker, door, listener, stop).await;
                        // The listener is closed; a closing route waits for this signal.
                        let _ = done.send(());
                    });
                }
                WorkerOrder::Serve { door, stream, share, lease } => {
                    if let Ok(stream) = TcpStream::from_std(stream) {
                        self.serve(stream, &door, share, lease);
                    }
                }
                WorkerOrder::Forget { route } => {
                    self.routes.borrow_mut().remove(&route.id);
                }
                WorkerOrder::Stop => return,
            }
        }
    }

    /// Returns this worker's part of a route.
    pub(super) fn local(&self, route: &Arc<SharedRoute>) -> Rc<LocalRoute> {
        // The order to forget a route has gone out with its closing, and comes only once.
        if route.state().1 == RouteState::Closed {
            return LocalRoute::new(Arc::clone(route));
        }
        Rc::clone(self.routes.borrow_mut().entry(route.id).or_insert_with(|| LocalRoute::new(Arc::clone(route))))
    }

    fn serve(self: &Rc<Self>, stream: TcpStream, door: &Door, share: Share, lease: Option<SlotLease>) {
        let worker = Rc::clone(self);
        match door {
            Door::Port(route) => {
                let local = self.local(route);
                tokio::task::spawn_local(async move {
                    connection::serve_port(stream, local, worker).await;
                    drop(share);
                });
            }
            Door::Proxy(proxy) => {
                let proxy = Arc::clone(proxy);
                tokio::task::spawn_local(async move {
                    connection::serve_proxy(stream, proxy, worker).await;
                    drop(share);
                });
            }
            Door::Slot(slot) => {
                let slot = Arc::clone(slot);
                tokio::task::spawn_local(async move {
                    connection::serve_slot(stream, slot, lease, worker).await;
                    drop(share);
                });
            }
        }
    }

    /// Gives an accepted connection to the worker with the fewest connections.
    pub(super) fn place(self: &Rc<Self>, stream: TcpStream, door: &Door) {
        let members = self.team.members.iter().enumerate();
        let Some((index, member)) = members.min_by_key(|(_, member)| member.connections.load(Ordering::Relaxed)) else {
            return;
        };
        let share = Share::take(&member.connections);
        // Here, in the order of the connections: the worker that serves this one may be busy.
        let lease = door.lease();
        if index == self.index {
            self.serve(stream, door, share, lease);
        } else if let Ok(stream) = stream.into_std() {
            // Fails only while the gateway stops.
            let _ = member.orders.send(WorkerOrder::Serve { door: door.clone(), stream, share, lease });
        }
    }
}

impl Team {
    /// Starts one thread per worker and waits until each has its runtime.
    ///
    /// Errors: a thread or its runtime could not be created.
    pub(super) fn start(settings: GatewaySettings) -> io::Result<(Arc<Self>, Vec<JoinHandle<()>>)> {
        let (members, seats): (Vec<_>, Vec<_>) = (0..settings.workers.max(1))
            .map(|_| {
                let (orders, received) = mpsc::unbounded_channel();
                (TeamMember { orders, connections: Arc::new(AtomicUsize::new(0)) }, received)
            })
            .unzip();
        let team = Arc::new(Self { settings: Arc::new(settings), members });
        let mut threads = Vec::new();
        for (index, received) in seats.into_iter().enumerate() {
            let (report, started) = blocking::sync_channel(1);
            let own = Arc::clone(&team);
            let thread = std::thread::Builder::new().name(format!("gateway-{index}")).spawn(move || {
                // A local runtime stays on the thread that created it.
                let runtime =
                    Builder::new_current_thread().enable_io().enable_time().build_local(LocalOptions::default());
                match runtime {
                    Ok(runtime) => {
                        let _ = report.send(Ok(()));
                        let worker = Rc::new(GatewayWorker { team: own, index, routes: RefCell::new(HashMap::new()) });
                        runtime.block_on(worker.run(received));
                    }
                    Err(error) => {
                        let _ = report.send(Err(error));
                    }
                }
            })?;
            threads.push(thread);
            if let Err(error) = started.recv().map_err(io::Error::other).and_then(|started| started) {
                team.stop();
                return Err(error);
            }
        }
        Ok((team, threads))
    }

    /// Returns whether a client is connected to any port.
    pub(super) fn has_connections(&self) -> bool {
        self.members.iter().any(|member| member.connections.load(Ordering::Relaxed) > 0)
    }

    /// Gives the order to one worker, chosen by the route's number. Returns false if the gateway has stopped.
    pub(super) fn order_one(&self, number: u64, order: WorkerOrder) -> bool {
        let index = usize::try_from(number).unwrap_or(0) % self.members.len();
        self.members[index].orders.send(order).is_ok()
    }

    pub(super) fn forget(&self, route: &Arc<SharedRoute>) {
        for member in &self.members {
            let _ = member.orders.send(WorkerOrder::Forget { route: Arc::clone(route) });
        }
    }

    pub(super) fn stop(&self) {
        for member in &self.members {
            let _ = member.orders.send(WorkerOrder::Stop);
        }
    }
}

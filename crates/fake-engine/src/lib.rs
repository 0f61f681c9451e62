//! An engine in memory for simulations and tests. It implements all of [`Engine`](arenad_engine::Engine), and a script
//! controls each call.
//!
//! The engine uses no random numbers, host clock, threads or sockets: the same calls at the same times give the same
//! results. Its time is that of [`FakeClock`], which follows tokio's clock, so a paused runtime controls its speed.
//!
//! A real engine completes a call even if the caller has disconnected. So a call that was sent takes effect at its due
//! time even if its future is dropped, or the whole runtime has ended: effects wait in a queue in the order of their
//! due times, and are applied as soon as the engine is accessed at that time or later.
//!
//! The behaviour of a container is defined by a [`Program`]. A container has the files of its image, a writable layer,
//! the engine's volumes, and mounted folders of the real host; [`FakeEngine::request`] and [`FakeEngine::dial`] connect
//! to its address.
//!
//! Docker 20.10 is the reference for this engine's behaviour: `tests/contract` runs the same cases on both.
//!
//! The crate depends on `engine` and `seams`. Start reading at [`FakeEngine`], then [`Script`].

mod clock;
mod containers;
mod dial;
mod dockerfile;
mod engine;
mod errors;
mod events;
mod exchange;
mod faults;
mod files;
mod idle;
mod images;
mod layers;
mod logs;
mod networks;
mod program;
mod script;
mod shell;
mod streams;
mod toy_site;
mod world;

#[cfg(test)]
mod tests;

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arenad_seams::ordered_watch as watch;

pub use clock::FakeClock;
pub use faults::ShelvedEngine;
pub use images::FakeImage;
pub use program::{
    CommandOutcome, ContainerView, ProcessLife, Program, ProgramMaker, ProgramRequest, ProgramResponse, Termination,
};
pub use script::{CallFailure, CallFate, CallScript, EngineCall, EngineMethod};
pub use shell::Shell;
pub use toy_site::ToySite;

use world::EngineWorld;

/// An engine in memory. Clones refer to the same engine.
#[derive(Clone)]
pub struct FakeEngine {
    shared: Arc<SharedEngine>,
}

struct SharedEngine {
    endpoint: String,
    clock: FakeClock,
    world: Mutex<EngineWorld>,
    script: Mutex<Box<dyn CallScript>>,
    /// Count of changes that waiting callers may depend on.
    news: watch::Sender<u64>,
}

impl Default for FakeEngine {
    fn default() -> Self {
        Self::new()
    }
}

impl FakeEngine {
    /// Creates an empty engine with its own clock, on which every call proceeds.
    pub fn new() -> Self {
        Self::with_clock(FakeClock::default())
    }

    /// Creates an empty engine that follows a clock.
    pub fn with_clock(clock: FakeClock) -> Self {
        let world = Mutex::new(EngineWorld::new(clock.clone()));
        let script: Box<dyn CallScript> = Box::new(|_: &EngineCall<'_>| CallFate::proceed());
        let shared = SharedEngine {
            endpoint: "fake://engine".to_owned(),
            clock,
            world,
            script: Mutex::new(script),
            news: watch::Sender::new(0),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Returns the clock that the engine follows.
    pub fn clock(&self) -> &FakeClock {
        &self.shared.clock
    }

    /// Advances the clock outside any runtime, and applies the effects that are due by then.
    pub fn pass(&self, duration: Duration) {
        self.shared.clock.pass(duration);
        self.look(|_| ());
    }

    /// Sets the script that controls every call from now on.
    pub fn set_script(&self, script: impl CallScript + 'static) {
        *self.shared.script.lock().unwrap_or_else(PoisonError::into_inner) = Box::new(script);
    }

    /// Removes the script, so that every call proceeds.
    pub fn clear_script(&self) {
        self.set_script(|_: &EngineCall<'_>| CallFate::proceed());
    }

    /// Registers a program under the name by which images refer to it.
    pub fn install_program(&self, name: &str, maker: ProgramMaker) {
        self.look(|world| drop(world.programs.insert(name.to_owned(), maker)));
    }

    /// Adds an image to the engine and returns its ID.
    pub fn add_image(&self, image: &FakeImage) -> String {
        self.look(|world| world.add_image(image))
    }

    /// Adds an image to the registry, for [`pull`](arenad_engine::Engine::pull) and `FROM`.
    pub fn offer_image(&self, image: FakeImage) {
        self.look(|world| drop(world.registry.insert(image.reference.clone(), image)));
    }

    /// Returns the address of a container, by its name or ID, or `None` if the container does not run.
    pub fn address_of(&self, container: &str) -> Option<IpAddr> {
        self.look(|world| {
            let id = world.container_id(container)?;
            world.holdings.containers.get(&id)?.address()
        })
    }

    /// Returns the name of the container that has an address.
    pub fn owner_of(&self, address: IpAddr) -> Option<String> {
        self.look(|world| {
            let mut containers = world.holdings.containers.values();
            containers.find(|container| container.has_address(address)).map(|container| container.name.clone())
        })
    }

    /// Sends a request to the program that listens on an address, and returns its response without any passage of time.
    ///
    /// Errors: `HostUnreachable` if no running container has the address, `ConnectionRefused` if the container does not
    /// listen on the port, `TimedOut` if the container is paused.
    pub fn request(&self, address: SocketAddr, request: &ProgramRequest) -> std::io::Result<ProgramResponse> {
        self.look(|world| world.request(address, request))
    }

    /// Reads a file of a container, including its mounts.
    pub fn read_file(&self, container: &str, path: &str) -> Option<Vec<u8>> {
        self.look(|world| match world.view("read", container).ok()?.get(&files::normal(path))?.content {
            files::NodeContent::File(bytes) => Some(bytes.to_vec()),
            files::NodeContent::Folder | files::NodeContent::Link(_) => None,
        })
    }

    /// Writes a file of a container, including its mounts, like a process in the container.
    pub fn write_file(&self, container: &str, path: &str, content: &[u8]) -> std::io::Result<()> {
        self.look(|world| {
            let mut view = world.view("write", container).map_err(std::io::Error::other)?;
            view.put(&files::normal(path), files::FileNode::file(content.to_vec()))
        })
    }

    /// Removes a file or folder of a container, like a process in the container.
    pub fn remove_file(&self, container: &str, path: &str) -> std::io::Result<()> {
        self.look(|world| {
            let mut view = world.view("remove", container).map_err(std::io::Error::other)?;
            view.remove(&files::normal(path))
        })
    }

    /// Returns the CPU weight of a container.
    pub fn weight_of(&self, container: &str) -> Option<arenad_engine::CpuWeight> {
        self.look(|world| {
            let id = world.container_id(container)?;
            world.holdings.containers.get(&id).map(|container| container.weight)
        })
    }

    /// Returns the differences between a container's files and its image, like `docker diff`: `A` for added, `C` for
    /// changed, `D` for removed. Returns `None` if there is no such container.
    pub fn layer_changes(&self, container: &str) -> Option<Vec<(String, char)>> {
        self.look(|world| Some(world.view("compare", container).ok()?.changes()))
    }

    /// Returns the number of pending effects: of calls, including those whose callers have gone, and of processes that
    /// will end.
    pub fn pending(&self) -> usize {
        self.look(|world| world.pending())
    }

    /// Returns the number of calls of a kind so far.
    pub fn calls(&self, operation: EngineMethod) -> u64 {
        self.look(|world| world.calls.get(&operation).copied().unwrap_or_default())
    }

    fn world(&self) -> MutexGuard<'_, EngineWorld> {
        self.shared.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies the effects that are due, then runs `act`, and notifies waiting callers of changes.
    fn look<T>(&self, act: impl FnOnce(&mut EngineWorld) -> T) -> T {
        let mut world = self.world();
        world.settle();
        let result = act(&mut world);
        let is_news = std::mem::take(&mut world.is_news);
        drop(world);
        if is_news {
            self.shared.news.send_modify(|count| *count += 1);
        }
        result
    }
}

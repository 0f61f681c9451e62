//! An engine in memory, for simulations and tests: all of [`Engine`](arenad_engine::Engine), scripted per call.
//!
//! Nothing here is random, reads the host's clock, starts a thread or opens a socket: the same calls at the same times give
//! the same answers. Time is [`FakeClock`]'s, which follows tokio's, so a paused runtime decides how fast it goes.
//!
//! A real engine goes on when its caller has gone away. So a call that was sent takes effect at its time even when its
//! future is dropped, and even when the whole runtime is gone: effects wait in a queue in the order of their due times,
//! and happen as soon as anybody looks at the engine at that time or later.
//!
//! What a container does is a [`Program`]. A container has its image's files, a writable layer, the engine's volumes, and
//! folders of the real host where they are mounted; [`FakeEngine::request`] and [`FakeEngine::dial`] reach what listens
//! on its address.
//!
//! Where this engine and Docker 20.10 differ, this one is wrong: `tests/contract` runs the same cases on both.

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
pub use program::{CommandOutcome, Inside, Life, Program, ProgramMaker, Request, Response, Termination};
pub use script::{Call, Failure, Fate, Operation, Script};
pub use shell::Shell;
pub use toy_site::ToySite;

use world::World;

/// An engine in memory. Clones are handles to the same engine.
#[derive(Clone)]
pub struct FakeEngine {
    shared: Arc<Shared>,
}

struct Shared {
    endpoint: String,
    clock: FakeClock,
    world: Mutex<World>,
    script: Mutex<Box<dyn Script>>,
    /// Changes whenever something has happened that someone may wait for.
    news: watch::Sender<u64>,
}

impl Default for FakeEngine {
    fn default() -> Self {
        Self::new()
    }
}

impl FakeEngine {
    /// An empty engine with a clock of its own, of which every call proceeds.
    pub fn new() -> Self {
        Self::with_clock(FakeClock::default())
    }

    /// An empty engine that follows a clock.
    pub fn with_clock(clock: FakeClock) -> Self {
        let world = Mutex::new(World::new(clock.clone()));
        let script: Box<dyn Script> = Box::new(|_: &Call<'_>| Fate::proceed());
        let shared = Shared {
            endpoint: "fake://engine".to_owned(),
            clock,
            world,
            script: Mutex::new(script),
            news: watch::Sender::new(0),
        };
        Self { shared: Arc::new(shared) }
    }

    /// The engine's clock.
    pub fn clock(&self) -> &FakeClock {
        &self.shared.clock
    }

    /// Lets time pass that no runtime counts, and everything happen that is due by then.
    pub fn pass(&self, duration: Duration) {
        self.shared.clock.pass(duration);
        self.look(|_| ());
    }

    /// Asks a script at every call from now on.
    pub fn set_script(&self, script: impl Script + 'static) {
        *self.shared.script.lock().unwrap_or_else(PoisonError::into_inner) = Box::new(script);
    }

    /// Lets every call proceed from now on.
    pub fn clear_script(&self) {
        self.set_script(|_: &Call<'_>| Fate::proceed());
    }

    /// Makes a program known, for images to name.
    pub fn install_program(&self, name: &str, maker: ProgramMaker) {
        self.look(|world| drop(world.programs.insert(name.to_owned(), maker)));
    }

    /// Puts an image into the engine; returns its id.
    pub fn add_image(&self, image: &FakeImage) -> String {
        self.look(|world| world.add_image(image))
    }

    /// Puts an image into the registry, for [`pull`](arenad_engine::Engine::pull) and `FROM` to find.
    pub fn offer_image(&self, image: FakeImage) {
        self.look(|world| drop(world.registry.insert(image.reference.clone(), image)));
    }

    /// The address at which a container of that name (or id) is reached; none unless it runs.
    pub fn address_of(&self, container: &str) -> Option<IpAddr> {
        self.look(|world| {
            let id = world.container_id(container)?;
            world.holdings.containers.get(&id)?.address()
        })
    }

    /// The name of the container that has an address.
    pub fn owner_of(&self, address: IpAddr) -> Option<String> {
        self.look(|world| {
            let mut containers = world.holdings.containers.values();
            containers.find(|container| container.has_address(address)).map(|container| container.name.clone())
        })
    }

    /// Sends a request to what listens at an address, and has its answer at once: time does not pass.
    ///
    /// Errors: `HostUnreachable` where no running container has the address, `ConnectionRefused` where it does not listen
    /// on the port, `TimedOut` where it is frozen.
    pub fn request(&self, address: SocketAddr, request: &Request) -> std::io::Result<Response> {
        self.look(|world| world.request(address, request))
    }

    /// Reads a file of a container, mounts included.
    pub fn read_file(&self, container: &str, path: &str) -> Option<Vec<u8>> {
        self.look(|world| match world.view("read", container).ok()?.get(&files::normal(path))?.content {
            files::Content::File(bytes) => Some(bytes.to_vec()),
            files::Content::Folder | files::Content::Link(_) => None,
        })
    }

    /// Writes a file of a container, mounts included, as a process in it would.
    pub fn write_file(&self, container: &str, path: &str, content: &[u8]) -> std::io::Result<()> {
        self.look(|world| {
            let mut view = world.view("write", container).map_err(std::io::Error::other)?;
            view.put(&files::normal(path), files::Node::file(content.to_vec()))
        })
    }

    /// Removes a file or folder of a container, as a process in it would.
    pub fn remove_file(&self, container: &str, path: &str) -> std::io::Result<()> {
        self.look(|world| {
            let mut view = world.view("remove", container).map_err(std::io::Error::other)?;
            view.remove(&files::normal(path))
        })
    }

    /// How much a container gets of the processors.
    pub fn weight_of(&self, container: &str) -> Option<arenad_engine::CpuWeight> {
        self.look(|world| {
            let id = world.container_id(container)?;
            world.holdings.containers.get(&id).map(|container| container.weight)
        })
    }

    /// What a container's writable layer has that its image has not, as `docker diff` tells it: `A` added, `C` changed, `D`
    /// removed. `None`: there is no such container.
    pub fn layer_changes(&self, container: &str) -> Option<Vec<(String, char)>> {
        self.look(|world| Some(world.view("compare", container).ok()?.changes()))
    }

    /// How many effects are on their way: of calls whose callers wait or have gone, and of processes that will end.
    pub fn pending(&self) -> usize {
        self.look(|world| world.pending())
    }

    /// The number of calls of each kind so far.
    pub fn calls(&self, operation: Operation) -> u64 {
        self.look(|world| world.calls.get(&operation).copied().unwrap_or_default())
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.shared.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets everything happen that is due, then does something, and tells those who wait.
    fn look<T>(&self, act: impl FnOnce(&mut World) -> T) -> T {
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

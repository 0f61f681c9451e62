//! Faults of the whole engine, and of containers without a call.

use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use super::FakeEngine;
use super::containers::KILLED;
use super::errors::unreachable;
use super::world::{EngineWorld, Holdings};
use arenad_engine::EngineHandle;

/// The state of an engine that another one has replaced.
pub struct ShelvedEngine(Holdings);

impl EngineWorld {
    fn cut_off(&mut self, endpoint: &str) {
        self.session += 1;
        self.forget_pending();
        for subscriber in self.subscribers.values_mut() {
            subscriber.end(Some(unreachable(endpoint, io::ErrorKind::ConnectionReset)));
        }
        self.is_news = true;
    }
}

impl FakeEngine {
    /// Kills a container's processes from outside, as `kill -9` on its host does. Returns `false` if it has no process.
    pub fn kill(&self, container: &str) -> bool {
        self.end(container, KILLED, false)
    }

    /// Ends a container's first process with an exit code, as if it had ended by itself. Returns `false` if it has no
    /// process.
    pub fn exit(&self, container: &str, code: i64) -> bool {
        self.end(container, code, false)
    }

    /// Kills a container as the kernel does when it is out of memory. Returns `false` if it has no process.
    pub fn oom(&self, container: &str) -> bool {
        self.end(container, KILLED, true)
    }

    fn end(&self, container: &str, code: i64, is_oom: bool) -> bool {
        self.look(|world| {
            let Some(id) = world.container_id(container) else { return false };
            let is_alive = world.holdings.containers.get(&id).is_some_and(super::world::FakeContainer::is_alive);
            world.end(&id, code, is_oom);
            is_alive
        })
    }

    /// Pauses a container without the daemon's knowledge. Returns `false` if it does not run.
    pub fn pause(&self, container: &str) -> bool {
        self.look(|world| world.freeze("pause", container).is_ok())
    }

    /// Resumes a paused container without the daemon's knowledge. Returns `false` if it is not paused.
    pub fn unpause(&self, container: &str) -> bool {
        self.look(|world| world.thaw("unpause", container).is_ok())
    }

    /// Removes a container without the daemon's knowledge, as `docker rm --force` does. Returns `false` if it does not
    /// exist.
    pub fn discard(&self, container: &str) -> bool {
        self.look(|world| {
            let is_there = world.container_id(container).is_some();
            world.remove_container(container);
            is_there
        })
    }

    /// Removes an image and its names without the daemon's knowledge, even if it is in use. Returns `false` if it does
    /// not exist.
    pub fn discard_image(&self, reference: &str) -> bool {
        self.look(|world| {
            let Some(id) = world.image_id(reference) else { return false };
            world.holdings.tags.retain(|_, named| *named != id);
            world.holdings.images.remove(&id).is_some()
        })
    }

    /// Returns all containers with their names, whether they run or not, including those that the daemon did not
    /// create.
    pub fn all_containers(&self) -> Vec<(EngineHandle, String)> {
        self.look(|world| {
            let containers = world.holdings.containers.iter();
            containers.map(|(id, container)| (EngineHandle(id.clone()), container.name.clone())).collect()
        })
    }

    /// Takes the engine down: calls fail, event streams break, and calls in transit are lost. `containers_die`
    /// determines whether containers continue to run or end.
    pub fn go_down(&self, containers_die: bool) {
        let endpoint = self.shared.endpoint.clone();
        self.look(|world| {
            world.is_up = false;
            world.cut_off(&endpoint);
            if containers_die {
                let all: Vec<String> = world.holdings.containers.keys().cloned().collect();
                for id in all {
                    world.end(&id, KILLED, false);
                }
            }
        });
    }

    /// Brings the engine back with its previous state.
    pub fn come_up(&self) {
        self.look(|world| {
            world.is_up = true;
            world.is_news = true;
        });
    }

    /// Returns whether the engine is up.
    pub fn is_up(&self) -> bool {
        self.look(|world| world.is_up)
    }

    /// Replaces the engine behind the address by an empty one with a new ID. The state of the replaced engine is
    /// inaccessible until [`FakeEngine::restore`].
    pub fn replace(&self) -> ShelvedEngine {
        self.exchange_holdings(|world| Holdings { id: world.engine_id(), ..Holdings::default() })
    }

    /// Brings an earlier engine back behind the address, and returns the replaced one.
    pub fn restore(&self, earlier: ShelvedEngine) -> ShelvedEngine {
        self.exchange_holdings(|_| earlier.0)
    }

    fn exchange_holdings(&self, make: impl FnOnce(&mut EngineWorld) -> Holdings) -> ShelvedEngine {
        let endpoint = self.shared.endpoint.clone();
        self.look(|world| {
            world.cut_off(&endpoint);
            let next = make(world);
            ShelvedEngine(std::mem::replace(&mut world.holdings, next))
        })
    }

    /// Returns the engine's ID, as in [`details`](arenad_engine::Engine::details).
    pub fn id(&self) -> String {
        self.look(|world| world.holdings.id.clone())
    }

    /// Starts or stops losing events. While events are lost, subscribers do not notice it.
    pub fn drop_events(&self, are_lost: bool) {
        self.look(|world| world.drops_events = are_lost);
    }

    /// Breaks all event streams; new ones can be opened.
    pub fn break_events(&self) {
        let endpoint = self.shared.endpoint.clone();
        self.look(|world| {
            for subscriber in world.subscribers.values_mut() {
                subscriber.end(Some(unreachable(&endpoint, io::ErrorKind::ConnectionReset)));
            }
            world.is_news = true;
        });
    }

    /// Fills or empties the engine's disk. While it is full, calls that need space fail, and processes cannot write to
    /// layers and volumes.
    pub fn fill_disk(&self, is_full: bool) {
        self.look(|world| world.disk_full = is_full);
    }

    /// Attaches an endpoint of another program to a network, and returns its address. The endpoint is not a container
    /// of this engine.
    pub fn attach_foreign(&self, network: &str, endpoint: &str) -> Option<Ipv4Addr> {
        self.look(|world| {
            let address = world.free_address("attach", network).ok()?;
            world.network("attach", network).ok()?.foreign.insert(endpoint.to_owned(), address);
            Some(address)
        })
    }

    /// Detaches such an endpoint. Returns `false` if it does not exist.
    pub fn detach_foreign(&self, network: &str, endpoint: &str) -> bool {
        self.look(|world| {
            let found = world.network("detach", network);
            found.is_ok_and(|network| network.foreign.remove(endpoint).is_some())
        })
    }

    /// Ends a container after a while, unless its current run has ended before.
    pub fn die_later(&self, container: &str, after: Duration, code: i64) {
        self.look(|world| world.die_later(container, super::script::Death { after, code, is_oom: false }));
    }
}

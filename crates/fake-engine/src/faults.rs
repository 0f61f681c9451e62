//! What happens to an engine as a whole, and to containers without a call.

use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use super::FakeEngine;
use super::containers::KILLED;
use super::errors::unreachable;
use super::world::{Holdings, World};
use arenad_engine::EngineHandle;

/// What an engine held that another one has taken the place of.
pub struct ShelvedEngine(Holdings);

impl World {
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
    /// Kills a container's processes from outside, as `kill -9` on its host does. False: it has none.
    pub fn kill(&self, container: &str) -> bool {
        self.end(container, KILLED, false)
    }

    /// Ends a container's first process with an exit code, as if by itself.
    pub fn exit(&self, container: &str, code: i64) -> bool {
        self.end(container, code, false)
    }

    /// Lets the kernel kill a container for want of memory.
    pub fn oom(&self, container: &str) -> bool {
        self.end(container, KILLED, true)
    }

    fn end(&self, container: &str, code: i64, is_oom: bool) -> bool {
        self.look(|world| {
            let Some(id) = world.container_id(container) else { return false };
            let is_alive = world.holdings.containers.get(&id).is_some_and(super::world::Container::is_alive);
            world.end(&id, code, is_oom);
            is_alive
        })
    }

    /// Pauses a container behind the daemon's back. False: it does not run.
    pub fn pause(&self, container: &str) -> bool {
        self.look(|world| world.freeze("pause", container).is_ok())
    }

    /// Lets a paused container go on behind the daemon's back. False: it is not paused.
    pub fn unpause(&self, container: &str) -> bool {
        self.look(|world| world.thaw("unpause", container).is_ok())
    }

    /// Removes a container behind the daemon's back, as `docker rm --force` does. False: there is none.
    pub fn discard(&self, container: &str) -> bool {
        self.look(|world| {
            let is_there = world.container_id(container).is_some();
            world.remove_container(container);
            is_there
        })
    }

    /// Removes an image and its names behind the daemon's back, whoever uses it. False: there is none.
    pub fn discard_image(&self, reference: &str) -> bool {
        self.look(|world| {
            let Some(id) = world.image_id(reference) else { return false };
            world.holdings.tags.retain(|_, named| *named != id);
            world.holdings.images.remove(&id).is_some()
        })
    }

    /// All containers, running or not, with their names; those of others included.
    pub fn all_containers(&self) -> Vec<(EngineHandle, String)> {
        self.look(|world| {
            let containers = world.holdings.containers.iter();
            containers.map(|(id, container)| (EngineHandle(id.clone()), container.name.clone())).collect()
        })
    }

    /// Takes the engine down: nothing answers, event streams break, and calls on their way are lost. Containers live on,
    /// or all end.
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

    /// Brings the engine back, with all that it held.
    pub fn come_up(&self) {
        self.look(|world| {
            world.is_up = true;
            world.is_news = true;
        });
    }

    /// Whether the engine answers.
    pub fn is_up(&self) -> bool {
        self.look(|world| world.is_up)
    }

    /// Puts another engine behind the same address: empty, with an id of its own. What the present one holds is out of
    /// everybody's reach until [`FakeEngine::restore`].
    pub fn replace(&self) -> ShelvedEngine {
        self.exchange_holdings(|world| Holdings { id: world.engine_id(), ..Holdings::default() })
    }

    /// Puts an earlier engine back behind the address; returns the one that was there.
    pub fn restore(&self, earlier: ShelvedEngine) -> ShelvedEngine {
        self.exchange_holdings(|_| earlier.0)
    }

    fn exchange_holdings(&self, make: impl FnOnce(&mut World) -> Holdings) -> ShelvedEngine {
        let endpoint = self.shared.endpoint.clone();
        self.look(|world| {
            world.cut_off(&endpoint);
            let next = make(world);
            ShelvedEngine(std::mem::replace(&mut world.holdings, next))
        })
    }

    /// The engine's id, as [`details`](arenad_engine::Engine::details) says it.
    pub fn id(&self) -> String {
        self.look(|world| world.holdings.id.clone())
    }

    /// Loses all events from now on, or no longer: listeners hear nothing and are not told so.
    pub fn drop_events(&self, are_lost: bool) {
        self.look(|world| world.drops_events = are_lost);
    }

    /// Breaks all event streams off; new ones can be opened.
    pub fn break_events(&self) {
        let endpoint = self.shared.endpoint.clone();
        self.look(|world| {
            for subscriber in world.subscribers.values_mut() {
                subscriber.end(Some(unreachable(&endpoint, io::ErrorKind::ConnectionReset)));
            }
            world.is_news = true;
        });
    }

    /// Fills the engine's disk, or makes room: what needs space fails, and processes cannot write to layers and volumes.
    pub fn fill_disk(&self, is_full: bool) {
        self.look(|world| world.disk_full = is_full);
    }

    /// Attaches an endpoint that is no container of this engine to a network, as another program's; returns its address.
    pub fn attach_foreign(&self, network: &str, endpoint: &str) -> Option<Ipv4Addr> {
        self.look(|world| {
            let address = world.free_address("attach", network).ok()?;
            world.network("attach", network).ok()?.foreign.insert(endpoint.to_owned(), address);
            Some(address)
        })
    }

    /// Takes a foreign endpoint away. False: there is none.
    pub fn detach_foreign(&self, network: &str, endpoint: &str) -> bool {
        self.look(|world| {
            let found = world.network("detach", network);
            found.is_ok_and(|network| network.foreign.remove(endpoint).is_some())
        })
    }

    /// Ends a container after a while, unless this run of it has ended by then.
    pub fn die_later(&self, container: &str, after: Duration, code: i64) {
        self.look(|world| world.die_later(container, super::script::Death { after, code, is_oom: false }));
    }
}

//! Random sequences of requests, starts and ends of episodes, and switches, held against a model: a response comes only
//! from the slot that the episode of the credentials has at that moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arenad_gateway::{Gateway, Proxy, Route};

use super::arena::*;
use super::support::*;

const SITES: [&str; 2] = ["shop", "forum"];
const SLOTS: usize = 3;
const CLIENTS: usize = 3;
const SEEDS: u64 = 24;
const STEPS: usize = 250;

/// A slot of a site, as the model knows it.
struct ModelSlot {
    site: ScriptedSite,
    route: Route,
    /// The generation that the route serves; connections of the site belong to the generation in which they began.
    generation: Arc<AtomicU64>,
    owner: Option<usize>,
}

/// An episode: for each site, its slot and its generation there.
struct ModelEpisode {
    id: String,
    leases: [(usize, u64); SITES.len()],
    is_over: bool,
}

/// A connection of a client, and the tunnel that it is.
struct ModelConnection {
    client: RawClient,
    tunnel: Option<(usize, usize)>,
}

struct Model {
    seed: u64,
    dice: Dice,
    _gateway: Gateway,
    proxy: Proxy,
    arena: Arc<TestArena>,
    slots: Vec<Vec<ModelSlot>>,
    episodes: Vec<ModelEpisode>,
    connections: Vec<Option<ModelConnection>>,
    /// Number of requests that sites received.
    reached: Arc<AtomicU64>,
    expected: u64,
    statuses: std::collections::BTreeMap<u16, u64>,
}

impl Model {
    fn new(seed: u64) -> Self {
        let (gateway, proxy, arena) = proxy();
        let reached: Arc<AtomicU64> = Arc::default();
        let slot = |site: &'static str, number: usize| {
            let generation = Arc::new(AtomicU64::new(1));
            let (now, reached) = (Arc::clone(&generation), Arc::clone(&reached));
            let scripted = ScriptedSite::start(move |visit| {
                let own = now.load(Ordering::SeqCst);
                loop {
                    let request = visit.request()?;
                    reached.fetch_add(1, Ordering::SeqCst);
                    let episode = request.header("x-episode").unwrap_or_default().to_owned();
                    visit.answer(&format!("{site} {number} {own} {episode} {}", request.path()))?;
                }
            });
            let route = route_to(&gateway, &scripted, 1);
            ModelSlot { site: scripted, route, generation, owner: None }
        };
        let slots = SITES.iter().map(|site| (0..SLOTS).map(|number| slot(site, number)).collect()).collect();
        let dice = Dice(0x9e37_79b9_7f4a_7c15 ^ (seed + 1));
        let connections = (0..CLIENTS * 2).map(|_| None).collect();
        let (episodes, statuses) = (Vec::new(), std::collections::BTreeMap::new());
        Self {
            seed,
            dice,
            _gateway: gateway,
            proxy,
            arena,
            slots,
            episodes,
            connections,
            reached,
            expected: 0,
            statuses,
        }
    }

    fn step(&mut self) {
        match self.dice.roll(12) {
            0 => self.start(),
            1 => self.end(),
            2 => self.switch(),
            _ => self.request(),
        }
        assert_eq!(self.reached.load(Ordering::SeqCst), self.expected, "seed {}: requests of sites", self.seed);
    }

    fn start(&mut self) {
        let free = |slots: &Vec<ModelSlot>| slots.iter().position(|slot| slot.owner.is_none());
        let [Some(shop), Some(forum)] = [free(&self.slots[0]), free(&self.slots[1])] else { return };
        let number = self.episodes.len();
        let id = format!("e{number}");
        self.arena.start(&id);
        let leases = [shop, forum];
        let leases = std::array::from_fn(|site| {
            let slot = &mut self.slots[site][leases[site]];
            slot.owner = Some(number);
            let generation = slot.generation.load(Ordering::SeqCst);
            let addresses: &[&str] =
                if site == 0 { &["shop.test:80", "localhost:7770"] } else { &["forum.test:80", "localhost:9999"] };
            self.arena.add_site(&id, addresses, "localhost:7770", &slot.route, Some(generation));
            (leases[site], generation)
        });
        self.episodes.push(ModelEpisode { id, leases, is_over: false });
    }

    fn end(&mut self) {
        let open: Vec<usize> = (0..self.episodes.len()).filter(|number| !self.episodes[*number].is_over).collect();
        if open.is_empty() {
            return;
        }
        let number = open[self.dice.index(open.len())];
        let is_revoked_first = self.dice.roll(2) == 0;
        if is_revoked_first {
            self.arena.end(&self.episodes[number].id);
        }
        self.episodes[number].is_over = true;
        for site in 0..SITES.len() {
            let (slot, _) = self.episodes[number].leases[site];
            self.slots[site][slot].route.hold("the slot is being recycled");
            self.slots[site][slot].owner = None;
        }
        if !is_revoked_first {
            self.arena.end(&self.episodes[number].id);
        }
        for site in 0..SITES.len() {
            let (slot, _) = self.episodes[number].leases[site];
            self.renew(site, slot);
        }
    }

    fn renew(&self, site: usize, slot: usize) {
        let slot = &self.slots[site][slot];
        let generation = slot.generation.fetch_add(1, Ordering::SeqCst) + 1;
        slot.route.serve(target(&slot.site, generation));
    }

    /// The environment replaces a generation on its own account.
    fn switch(&mut self) {
        let (site, slot) = (self.dice.index(SITES.len()), self.dice.index(SLOTS));
        self.renew(site, slot);
    }

    /// Returns the status of a request and, if a site answers, the beginning of its text.
    fn promised(&self, episode: usize, site: Option<usize>) -> (u16, Option<String>) {
        let known = &self.episodes[episode];
        if known.is_over {
            return (407, None);
        }
        let Some(site) = site else { return (403, None) };
        let (slot, generation) = known.leases[site];
        match self.slots[site][slot].generation.load(Ordering::SeqCst) == generation {
            true => (200, Some(format!("{} {slot} {generation} {}", SITES[site], known.id))),
            false => (503, None),
        }
    }

    fn request(&mut self) {
        if self.episodes.is_empty() {
            return;
        }
        let at = self.dice.index(self.connections.len());
        let is_tunnel = at >= CLIENTS;
        // Recent episodes, of which some have ended.
        let recent = self.episodes.len().min(6);
        let mut episode = self.episodes.len() - 1 - self.dice.index(recent);
        let mut site = Some(self.dice.index(SITES.len())).filter(|_| is_tunnel || self.dice.roll(10) > 0);
        let host = match (site, self.dice.roll(2)) {
            (Some(0), 0) => "shop.test",
            (Some(0), _) => "localhost:7770",
            (Some(_), 0) => "forum.test",
            (Some(_), _) => "localhost:9999",
            (None, _) => "other.test",
        };
        if let Some((owner, of)) = self.connections[at].as_ref().and_then(|connection| connection.tunnel) {
            (episode, site) = (owner, Some(of));
        }
        let (status, text) = self.promised(episode, site);
        let is_post = self.dice.roll(2) == 0;
        let path = format!("/{}", self.dice.roll(1000));
        for is_last in [false, true] {
            let outcome = match is_tunnel {
                false => self.ask(at, episode, host, &path, is_post),
                true => self.ask_in_tunnel(at, episode, site.expect("a site"), &path, is_post),
            };
            let answer = match outcome {
                Ok(answer) => answer,
                // An end or a switch may have cut the connection while nothing was asked on it. A tunnel to another
                // place may be opened then, so the step is over.
                Err(_) if !is_last && !is_tunnel => continue,
                Err(_) if is_tunnel => return,
                Err(error) => panic!("seed {}: {error}", self.seed),
            };
            let what = format!("seed {}: {} {host}{path} tunnel {is_tunnel}", self.seed, self.episodes[episode].id);
            assert_eq!(answer.status(), status, "{what}: {}", answer.text());
            if let Some(text) = &text {
                assert_eq!(answer.text(), format!("{text} {path}"), "{what}");
                self.expected += 1;
            }
            *self.statuses.entry(status).or_default() += 1;
            if answer.header("connection").is_some_and(|value| value.contains("close")) {
                self.connections[at] = None;
            }
            return;
        }
    }

    fn headers(&self, episode: usize, is_post: bool) -> String {
        let body = if is_post { "Content-Length: 2\r\n" } else { "" };
        format!("X-Episode: {}\r\n{body}", self.episodes[episode].id)
    }

    fn ask(
        &mut self,
        at: usize,
        episode: usize,
        host: &str,
        path: &str,
        is_post: bool,
    ) -> std::io::Result<SentMessage> {
        let address = self.proxy.local_addr();
        let (method, body) = if is_post { ("POST", "hi") } else { ("GET", "") };
        let headers = self.headers(episode, is_post);
        let id = self.episodes[episode].id.clone();
        let mut connection = self.connections[at]
            .take()
            .unwrap_or_else(|| ModelConnection { client: RawClient::connect(address), tunnel: None });
        connection.client.send_as(&id, method, &format!("http://{host}{path}"), &headers)?;
        connection.client.send(body)?;
        let answer = connection.client.answer()?;
        self.connections[at] = Some(connection);
        Ok(answer)
    }

    /// Opens a tunnel, or uses the one that is open.
    fn ask_in_tunnel(
        &mut self,
        at: usize,
        episode: usize,
        site: usize,
        path: &str,
        is_post: bool,
    ) -> std::io::Result<SentMessage> {
        let place = ["shop.test:80", "localhost:9999"][site];
        let mut connection = match self.connections[at].take() {
            Some(connection) => connection,
            None => {
                let mut client = RawClient::connect(self.proxy.local_addr());
                let answer = client.connect_as(&self.episodes[episode].id, place)?;
                if answer.status() != 200 {
                    return Ok(answer);
                }
                ModelConnection { client, tunnel: Some((episode, site)) }
            }
        };
        let (method, body) = if is_post { ("POST", "hi") } else { ("GET", "") };
        let headers = self.headers(episode, is_post);
        connection.client.send(format!("{method} {path} HTTP/1.1\r\nHost: {place}\r\n{headers}\r\n{body}"))?;
        let answer = connection.client.answer()?;
        // Tunnels of ended episodes are used once more and then closed.
        self.connections[at] = Some(connection).filter(|_| !self.episodes[episode].is_over && self.dice.roll(4) > 0);
        Ok(answer)
    }
}

#[test]
fn a_response_comes_only_from_the_slot_that_the_episode_has_at_that_moment() {
    let mut all: std::collections::BTreeMap<u16, u64> = std::collections::BTreeMap::new();
    for seed in 0..SEEDS {
        let mut model = Model::new(seed);
        for _ in 0..STEPS {
            model.step();
        }
        for (status, count) in model.statuses {
            *all.entry(status).or_default() += count;
        }
    }
    println!("answers by status: {all:?}");
    for status in [200, 403, 407, 503] {
        assert!(all.get(&status).is_some_and(|count| *count > 20), "{status} is rare: {all:?}");
    }
}

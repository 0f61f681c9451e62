//! Episodes whose clients, connections, containers, daemon and engine are killed. Each ends for a true reason, nothing is
//! doubled, and nothing leaks.
//!
//! The steps follow from a seed: ARENAD_EPISODES_SEED (1). ARENAD_EPISODES is the number of episodes (16).

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use reqwest::{Method, Response};
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

use super::EpisodeClient;
use super::proxied::BASELINE;
use crate::support::http::get_through_within;
use crate::support::wait::{PATIENCE, within};
use crate::support::world::{RunningCommand, list};
use crate::support::{OwnEngine, World, until};

/// The number of slots, and of clients at the same time, some of which wait.
const SLOTS: u64 = 3;
const CLIENTS: usize = 5;
/// The port of the episode proxy, the same for each daemon, in the network namespace of the engine.
const PROXY: u16 = 7500;
/// The time to live of the episodes of clients that go away at once.
const SHORT: u64 = 2;
/// The time after its cause within which a void episode must have ended.
const CAUSE_WITHIN: Duration = Duration::from_secs(180);

/// How a client has its episode, and how the client ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClientKind {
    /// It asks with an idempotency key, and releases the episode.
    Releases,
    /// It sends a request, and is never heard of again.
    Abandons,
    /// It holds the episode by a connection, which is cut.
    Holds,
    /// It is `arenad run`, which is killed.
    Runs,
}

/// The way in which a client has left its episode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaving {
    Released,
    Cut,
    Abandoned,
}

/// An episode and its client.
struct KilledEpisode {
    kind: ClientKind,
    number: usize,
    id: String,
    token: String,
    hold: Option<Response>,
    wrapper: Option<RunningCommand>,
    /// The words that the site has acknowledged.
    written: Vec<String>,
    /// A word whose request was not answered: the site may have it.
    uncertain: Option<String>,
    leaving: Option<Leaving>,
}

/// Something that the test has killed.
#[derive(Debug, Clone)]
enum Mishap {
    Daemon,
    Engine,
    Container(u64),
}

/// The world, its clients, and what has happened.
struct KillingRun {
    engine: OwnEngine,
    world: World,
    api: EpisodeClient,
    random: StdRng,
    live: Vec<KilledEpisode>,
    ended: Vec<KilledEpisode>,
    mishaps: Vec<(Timestamp, Mishap)>,
    /// The number of pages that were compared with what their client had written.
    compared: usize,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn episodes_end_for_true_reasons_whatever_is_killed() {
    let number = |name: &str, default: u64| match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|error| panic!("{name}={text}: {error}")),
        Err(_) => default,
    };
    let (episodes, seed) = (number("ARENAD_EPISODES", 16) as usize, number("ARENAD_EPISODES_SEED", 1));
    eprintln!("killed: {episodes} episodes, seed {seed}");
    let engine = OwnEngine::start();
    let world = World::on(&engine, "killed");
    world.edit("environment", "title: Toy", &format!("title: Toy\n    slots: {{ min: {SLOTS}, max: {SLOTS} }}"));
    up(&world);
    let api = EpisodeClient::of(&world);
    let random = StdRng::seed_from_u64(seed);
    let (live, ended, mishaps) = (Vec::new(), Vec::new(), Vec::new());
    let mut run = KillingRun { engine, world, api, random, live, ended, mishaps, compared: 0 };
    run.come_to_rest();
    while run.ended.len() + run.live.len() < episodes || !run.live.is_empty() {
        let is_complete = run.ended.len() + run.live.len() >= episodes;
        run.step(is_complete).await;
        run.no_slot_is_taken_twice().await;
        run.collect().await;
    }
    run.each_request_has_one_episode(episodes).await;
    run.come_to_rest();
    run.all_slots_are_pristine().await;
    let KillingRun { world, mishaps, compared, ended, .. } = &run;
    let mut endings: BTreeMap<String, usize> = BTreeMap::new();
    for episode in ended {
        *endings
            .entry(run.api.get(&format!("/v1/episodes/{}", episode.id)).await.1["ending"]["code"].to_string())
            .or_default() += 1;
    }
    eprintln!("killed: {} mishaps, {compared} pages compared, endings {endings:?}", mishaps.len());
    assert!(*compared >= episodes / 4, "only {compared} pages were compared");
    world.run(&["down"]).code(0);
    world.assert_down();
}

/// Starts a daemon whose episode proxy has the known port, and brings the site up. The kernel releases the lock of a
/// killed daemon before its sockets, so the first attempt may find the port taken.
fn up(world: &World) {
    within("the site is up", PATIENCE * 2, || {
        let mut command = world.command(&["up", &world.name]);
        command.env("ARENAD_PROXY", format!("127.0.0.1:{PROXY}"));
        let ended = world.start_command(command).ended();
        if ended.code != 0 {
            eprintln!("killed: up: {}", ended.err.lines().last().unwrap_or_default());
        }
        (ended.code == 0).then_some(())
    });
}

impl KillingRun {
    /// Does one thing, chosen at random. Once all episodes have begun, only the rest of them go on.
    async fn step(&mut self, is_complete: bool) {
        // At a random moment of what the daemon is doing in the background.
        tokio::time::sleep(Duration::from_millis(self.random.random_range(0..200))).await;
        let may_kill = self.mishaps.len() < (self.ended.len() + self.live.len()) * 3 / 2;
        match self.random.random_range(0..100) {
            0..=34 if !is_complete && self.live.len() < CLIENTS => self.begin().await,
            0..=59 => self.visit().await,
            60..=79 => self.leave().await,
            80..=89 if may_kill => self.kill_container(),
            90..=95 if may_kill => self.kill_daemon(),
            96.. if may_kill => self.kill_engine(),
            _ => {}
        }
    }

    async fn begin(&mut self) {
        let number = self.ended.len() + self.live.len();
        let kinds = [ClientKind::Releases, ClientKind::Abandons, ClientKind::Holds, ClientKind::Runs];
        let kind = kinds[self.random.random_range(0..kinds.len())];
        let labels = json!({ "number": number.to_string() });
        let mut episode = KilledEpisode {
            kind,
            number,
            id: String::new(),
            token: String::new(),
            hold: None,
            wrapper: None,
            written: Vec::new(),
            uncertain: None,
            leaving: None,
        };
        match kind {
            ClientKind::Releases | ClientKind::Abandons => {
                let ttl = if kind == ClientKind::Abandons { SHORT } else { 3600 };
                let body = json!({
                    "sites": ["toy"], "labels": labels, "ttl_seconds": ttl, "wait_seconds": 600, "detach": true,
                });
                let key = format!("killed-{number}");
                // The repetition of a request gets the same episode.
                for _ in 0..self.random.random_range(1..=2) {
                    let (status, started) =
                        self.api.with_key(Method::POST, "/v1/episodes", Some(body.clone()), Some(&key)).await;
                    assert!((200..203).contains(&status), "{started:#}");
                    episode.id = super::id(&started);
                    episode.token = started["token"].as_str().unwrap().to_owned();
                }
                episode.leaving = (kind == ClientKind::Abandons).then_some(Leaving::Abandoned);
            }
            ClientKind::Holds => {
                let body = json!({ "sites": ["toy"], "labels": labels, "wait_seconds": 600, "hold": true });
                let mut answer = self.api.client.post("http://arenad/v1/episodes").json(&body).send().await.unwrap();
                assert!(answer.status().is_success(), "{}", answer.status());
                let first = answer.chunk().await.unwrap().unwrap();
                let data = std::str::from_utf8(&first).unwrap().strip_prefix("event: started\ndata: ").unwrap();
                let started: Value = serde_json::from_str(data.split("\n\n").next().unwrap()).unwrap();
                episode.id = super::id(&started);
                episode.token = started["token"].as_str().unwrap().to_owned();
                episode.hold = Some(answer);
            }
            ClientKind::Runs => {
                let label = format!("number={number}");
                let words = ["run", "--sites", "toy", "--label", &label, "--wait", "10m", "--", "sleep", "3600"];
                let wrapper = self.world.start(&words);
                episode.id = within("the episode of `arenad run`", PATIENCE, || {
                    let path = format!("/v1/episodes?label=number%3D{number}");
                    Some(self.world.api(&path)?["episodes"][0]["id"].as_str()?.to_owned())
                });
                episode.wrapper = Some(wrapper);
            }
        }
        self.live.push(episode);
    }

    /// Lets a client read its site, which must have what the client wrote and nothing else, and write a word.
    async fn visit(&mut self) {
        let Some((place, seen)) = self.active().await else { return };
        let episode = &mut self.live[place];
        let namespace = self.world.namespace().unwrap();
        let fetch = |path: &str| {
            let url = format!("http://toy.arena.test/cgi-bin/{path}");
            get_through_within(namespace, PROXY, (&episode.id, &episode.token), &url)
        };
        // The container may be dead, which is noticed a moment later.
        if let Some(page) = fetch("page").filter(|answer| answer.status == 200) {
            let mut expected = vec![BASELINE.to_owned()];
            expected.extend(episode.written.iter().map(|word| format!("{word}\n")));
            let shown = match &episode.uncertain {
                Some(word) => page.body.replace(&format!("{word}\n"), ""),
                None => page.body,
            };
            assert_eq!(shown, expected.concat(), "{} {:?}: {seen:#}", episode.id, episode.kind);
            self.compared += 1;
        }
        if episode.uncertain.is_none() {
            let word = format!("e{}-{}", episode.number, episode.written.len());
            match fetch(&format!("write?{word}")) {
                Some(answer) if answer.status == 200 => episode.written.push(word),
                _ => episode.uncertain = Some(word),
            }
        }
    }

    /// Returns the place of a client whose episode is active, and the episode. Waits a while for one, since slots are
    /// brought back after a mishap.
    async fn active(&mut self) -> Option<(usize, Value)> {
        let deadline = Instant::now() + Duration::from_secs(10);
        let can_visit = |episode: &KilledEpisode| episode.leaving.is_none() && !episode.token.is_empty();
        while self.live.iter().any(can_visit) && Instant::now() < deadline {
            let (_, found) = self.api.get("/v1/episodes?live=true").await;
            let active = found["episodes"].as_array().unwrap().iter().filter(|seen| seen["state"] == "active");
            let by_id: BTreeMap<&str, &Value> = active.map(|seen| (seen["id"].as_str().unwrap(), seen)).collect();
            if let Some(place) = self.any(|episode| can_visit(episode) && by_id.contains_key(episode.id.as_str())) {
                return Some((place, by_id[self.live[place].id.as_str()].clone()));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        None
    }

    /// Ends a client in the way of its kind.
    async fn leave(&mut self) {
        let Some(place) = self.any(|episode| episode.leaving.is_none()) else { return };
        let episode = &mut self.live[place];
        episode.leaving = match episode.kind {
            ClientKind::Releases => {
                let (status, problem) =
                    self.api.ask(Method::DELETE, &format!("/v1/episodes/{}", episode.id), None).await;
                assert!([204, 410].contains(&status), "{status}: {problem:#}");
                Some(Leaving::Released)
            }
            ClientKind::Holds => {
                episode.hold = None;
                Some(Leaving::Cut)
            }
            ClientKind::Runs => {
                // The wrapper of a void episode has ended by itself.
                if let Some(pid) = episode.wrapper.as_ref().and_then(RunningCommand::within_namespaces) {
                    let _ = kill_process(pid, Signal::KILL);
                }
                Some(Leaving::Cut)
            }
            ClientKind::Abandons => unreachable!("it has left from the beginning"),
        };
    }

    fn kill_container(&mut self) {
        let slot = self.random.random_range(1..=SLOTS);
        let containers = self.world.containers_of_slot(slot);
        self.happens(Mishap::Container(slot));
        for container in containers {
            // It may have been removed meanwhile.
            let _ = self.world.engine.try_docker(&["kill", "--signal", "KILL", &container]);
        }
    }

    fn kill_daemon(&mut self) {
        self.happens(Mishap::Daemon);
        self.world.signal_daemon(Signal::KILL);
        for episode in &mut self.live {
            if episode.hold.take().is_some() {
                episode.leaving = Some(Leaving::Cut);
            }
        }
        up(&self.world);
    }

    fn kill_engine(&mut self) {
        self.happens(Mishap::Engine);
        self.engine.stop_dockerd(Signal::KILL);
        self.engine.start_dockerd();
        up(&self.world);
    }

    fn happens(&mut self, mishap: Mishap) {
        eprintln!("killed: {mishap:?}");
        self.mishaps.push((Timestamp::now(), mishap));
    }

    /// Returns the place of a random client that fulfils a condition.
    fn any(&mut self, is_it: impl Fn(&KilledEpisode) -> bool) -> Option<usize> {
        let places: Vec<usize> = (0..self.live.len()).filter(|place| is_it(&self.live[*place])).collect();
        (!places.is_empty()).then(|| places[self.random.random_range(0..places.len())])
    }

    async fn no_slot_is_taken_twice(&self) {
        let (_, found) = self.api.get("/v1/episodes?live=true").await;
        let mut taken = BTreeSet::new();
        for episode in found["episodes"].as_array().unwrap() {
            if let Some(slot) = episode["sites"][0]["slot"].as_u64() {
                assert!(taken.insert(slot), "slot {slot} is taken twice: {found:#}");
            }
        }
    }

    /// Moves the episodes that have ended to the others, and asserts that each ended for a true reason. An episode whose
    /// client has left ends soon if nothing else happens.
    async fn collect(&mut self) {
        let mut still_live = Vec::new();
        for episode in std::mem::take(&mut self.live) {
            let path = format!("/v1/episodes/{}", episode.id);
            let limit = match episode.leaving {
                Some(Leaving::Released) => PATIENCE,
                // A daemon that restarts waits for holds of the time before.
                Some(Leaving::Cut) => PATIENCE * 2,
                // It may wait for a slot.
                Some(Leaving::Abandoned) | None => Duration::ZERO,
            };
            match self.ending_within(&path, limit).await {
                Some(seen) => {
                    self.assert_reason_is_true(&episode, &seen);
                    self.ended.push(episode);
                }
                None if limit.is_zero() => still_live.push(episode),
                None => panic!("{} {:?} does not end: {:#}", episode.id, episode.kind, self.api.get(&path).await.1),
            }
        }
        self.live = still_live;
    }

    /// Looks at an episode until it has ended, or a time is over; at least once.
    async fn ending_within(&self, path: &str, limit: Duration) -> Option<Value> {
        let deadline = Instant::now() + limit;
        loop {
            let (status, seen) = self.api.get(path).await;
            assert_eq!(status, 200, "{path}: {seen:#}");
            if !seen["ending"].is_null() {
                return Some(seen);
            }
            if Instant::now() >= deadline {
                return None;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn assert_reason_is_true(&self, episode: &KilledEpisode, seen: &Value) {
        let (state, code) = (seen["state"].as_str().unwrap(), seen["ending"]["code"].as_str().unwrap());
        let time = |name: &str| seen[name].as_str().unwrap().parse::<Timestamp>().unwrap();
        let (asked, ended) = (time("asked_at"), time("ended_at"));
        // A slot that dies is noticed later, and so a little before an episode gets it.
        let during: Vec<&Mishap> = (self.mishaps.iter())
            .filter(|(at, _)| *at <= ended && asked.duration_since(*at) < CAUSE_WITHIN.try_into().unwrap())
            .map(|(_, mishap)| mishap)
            .collect();
        let slot = seen["ending"]["slot"].as_str().and_then(|id| id.rsplit('/').next()?.parse::<u64>().ok());
        let is_true = match code {
            "client" => episode.leaving == Some(Leaving::Released),
            "hold_closed" => episode.leaving == Some(Leaving::Cut),
            "ttl" => episode.leaving == Some(Leaving::Abandoned),
            "container_died" | "instance_failed" | "reset_failed" => during.iter().any(|mishap| match mishap {
                Mishap::Container(number) => Some(*number) == slot,
                Mishap::Engine => true,
                Mishap::Daemon => false,
            }),
            "engine_lost" | "preparation_timed_out" => during.iter().any(|mishap| matches!(mishap, Mishap::Engine)),
            "daemon_restarted" => during.iter().any(|mishap| matches!(mishap, Mishap::Daemon)),
            _ => false,
        };
        assert!(is_true, "{state} {code} of {:?} {:?} after {during:?}: {seen:#}", episode.kind, episode.leaving);
    }

    async fn each_request_has_one_episode(&self, episodes: usize) {
        for number in 0..episodes {
            let (_, found) = self.api.get(&format!("/v1/episodes?label=number%3D{number}")).await;
            assert_eq!(found["episodes"].as_array().map(Vec::len), Some(1), "{number}: {found:#}");
        }
    }

    /// Waits until all slots are free, and ready for what they are for. Slot 1 stays as it is after the death of its
    /// container: people see to it, and the next episode that asks for it gets it reset.
    fn come_to_rest(&self) {
        let slots = || self.world.site().and_then(|site| site["slots"].as_array().cloned()).unwrap_or_default();
        let is_at_rest = |slot: &Value| slot["state"] == "ready" || slot["number"] == 1 && slot["state"] == "unhealthy";
        let is_free = |slot: &Value| slot["occupation"] == "free" && is_at_rest(slot);
        until("all slots are free", PATIENCE * 3, slots, |slots| {
            slots.len() as u64 == SLOTS && slots.iter().all(is_free)
        });
    }

    /// An episode in each slot sees the baseline and nothing that an earlier episode wrote.
    async fn all_slots_are_pristine(&self) {
        let mut containers = Vec::new();
        for slot in 1..=SLOTS {
            let started = self.api.start(json!({ "sites": ["toy"], "slots": { "toy": slot } })).await;
            let (id, token) = (super::id(&started), started["token"].as_str().unwrap());
            let page = get_through_within(
                self.world.namespace().unwrap(),
                PROXY,
                (&id, token),
                "http://toy.arena.test/cgi-bin/page",
            );
            assert_eq!(page.map(|answer| answer.body).as_deref(), Some(BASELINE), "slot {slot}");
            containers.extend(self.world.containers_of_slot(slot));
            self.api.end(&id).await;
        }
        let (_, live) = self.api.get("/v1/episodes?live=true").await;
        assert_eq!(list(&live["episodes"], "id"), [""; 0], "live episodes");
        assert_eq!(containers.iter().collect::<BTreeSet<_>>().len() as u64, SLOTS, "{containers:?}");
    }
}

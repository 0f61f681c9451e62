//! Resets of real sites, one after the other, by every tier, while clients write: after each, tools that know nothing of
//! arenad find the databases and files as they were at the beginning.
//!
//! `ARENAD_RESETS` says how many; a number that fits between other tests otherwise.

#[path = "../mini/arena.rs"]
mod arena;
mod clients;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use arena::Arena;
use clients::{Clients, Written, half_sent};

/// The sites, and what prints the state of each: a program of its image that uses the database's own tools.
const SITES: [(&str, &[&str]); 5] = [
    ("shopping", &["sh", "-c", "/srv/shop/db-dump && cd /data/media && find . -type f | sort | xargs sha256sum"]),
    ("reddit", &["/srv/forum/dump"]),
    ("gitlab", &["/srv/forge/dump"]),
    ("turkle", &["/srv/turkle/dump"]),
    ("homepage", &["/srv/homepage/dump"]),
];

/// Each site meets them in turn.
const WAYS: [Before; 4] = [Before::AwaitStandby, Before::TakeStandby, Before::AwaitStandby, Before::Kill];

/// What is done before a reset, so that each tier has its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    /// There is a standby.
    AwaitStandby,
    /// There is none yet, for another reset has just taken it.
    TakeStandby,
    /// The same, and what serves has crashed.
    Kill,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_every_reset_of_every_tier_the_baseline_is_back() {
    let resets = std::env::var("ARENAD_RESETS").ok().and_then(|text| text.parse().ok()).unwrap_or(20);
    let names = SITES.map(|(name, _)| name);
    let arena = Arena::up(&names);
    let baselines: BTreeMap<&str, String> = SITES.iter().map(|(name, dump)| (*name, arena.exec(name, dump))).collect();
    for (site, dump) in &baselines {
        assert!(dump.lines().count() > 10, "a real dump of {site}: {dump}");
    }
    // Fixed, so that a failure can be had again.
    let mut random = StdRng::seed_from_u64(20_261_121);
    let clients = Clients::of(&arena, &names);
    let mut world = World { arena: &arena, baselines: &baselines, tiers: BTreeMap::new() };
    let mut written = 0;
    for round in 0.. {
        if world.resets() >= resets {
            break;
        }
        let (site, _) = SITES[round % SITES.len()];
        let before = WAYS[(round + round / SITES.len()) % WAYS.len()];
        let what = format!("round {round}, {site}, {before:?}");
        match before {
            // The first reset is what makes arenad want one.
            Before::AwaitStandby if round < SITES.len() => {}
            Before::AwaitStandby => arena.await_standby(site),
            Before::TakeStandby | Before::Kill => world.reset_to_baseline(site, &what),
        }
        written += world.reset_under_load(site, &clients, before, &mut random, &what).await;
    }
    let World { tiers, .. } = world;
    eprintln!("{written} writes acknowledged, resets by tier: {tiers:?}");
    assert!(written > resets, "the load was real: {written} writes");
    for tier in ["swap", "rewind", "recreate"] {
        assert!(tiers.contains_key(tier), "every tier had its turn: {tiers:?}");
    }
}

struct World<'a> {
    arena: &'a Arena,
    baselines: &'a BTreeMap<&'static str, String>,
    /// How many resets each tier did.
    tiers: BTreeMap<String, usize>,
}

impl World<'_> {
    fn resets(&self) -> usize {
        self.tiers.values().sum()
    }

    /// Resets, and says by which tier.
    #[track_caller]
    fn reset(&mut self, site: &str) -> String {
        let tier = self.arena.reset(site);
        *self.tiers.entry(tier.clone()).or_default() += 1;
        tier
    }

    fn dump(&self, site: &str) -> String {
        let (_, dump) = SITES.iter().find(|(name, _)| *name == site).expect("a known site");
        self.arena.exec(site, dump)
    }

    /// Resets while nobody writes, after a visit: what nobody has reached would stand by again at once.
    #[track_caller]
    fn reset_to_baseline(&mut self, site: &str, what: &str) {
        visit(&self.arena.url(site));
        let tier = self.reset(site);
        assert_same(&self.baselines[site], &self.dump(site), &format!("{what}, quiet {tier}"));
    }

    /// Resets while clients write; returns how often they were told that it was done.
    async fn reset_under_load(
        &mut self,
        site: &str,
        clients: &Clients,
        before: Before,
        random: &mut StdRng,
        what: &str,
    ) -> usize {
        let mut load = clients.start(site);
        // Others answer before they have read the whole of a request.
        let past = if site == "homepage" { Some(half_sent(&self.arena.url(site)).await) } else { None };
        tokio::time::sleep(Duration::from_millis(random.random_range(20..300))).await;
        if before == Before::Kill {
            self.arena.kill(site);
        }
        // From here on nobody begins to write; what is on its way goes on.
        load.begin_no_more();
        let asked = Instant::now();
        let tier = self.reset(site);
        let what = format!("{what}, {tier}");
        if let Some(past) = past {
            past.assert_ended(&what).await;
        }
        let all = load.end().await;
        let after = self.dump(site);
        let is_old = |write: &&Written| write.acknowledged.is_some_and(|at| at <= asked);
        for write in all.iter().filter(is_old) {
            assert!(!after.contains(&write.token), "{what}: {} was acknowledged before the reset", write.token);
        }
        let acknowledged = all.iter().filter(|write| write.acknowledged.is_some()).count();
        if all.iter().filter(is_old).count() == acknowledged {
            assert_same(&self.baselines[site], &after, &what);
        } else {
            // What was held went to the new instance, as it should; without it there is nothing but the baseline.
            self.reset_to_baseline(site, &what);
        }
        acknowledged
    }
}

fn visit(url: &str) {
    let place = url.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = TcpStream::connect(place).expect("the gateway");
    write!(stream, "GET / HTTP/1.0\r\nHost: {place}\r\n\r\n").expect("a request");
    stream.read_to_end(&mut Vec::new()).expect("an answer");
}

#[track_caller]
fn assert_same(baseline: &str, found: &str, what: &str) {
    if baseline == found {
        return;
    }
    let differing = baseline.lines().zip(found.lines()).find(|(before, after)| before != after);
    let (before, after) = (baseline.lines().count(), found.lines().count());
    panic!("{what}: not the baseline: {before} lines, now {after}; the first that differ: {differing:#?}");
}

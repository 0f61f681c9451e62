//! Resets of real sites, one after the other, by every way, while clients write and containers and the daemon are
//! killed and paused. After each reset, tools that are independent of arenad find databases, files and pages as they
//! were at the beginning. See README.md.
//!
//! `ARENAD_RESETS` sets the number of resets; the default fits between other tests. `ARENAD_RESETS_SEED` changes the
//! delays, `ARENAD_RESETS_SITES` selects sites.

mod clients;
mod harm;
mod pages;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use self::clients::{ClientWrite, Clients, Load, half_sent};
use self::pages::Pages;
use crate::arena::Arena;

/// The sites, each with the command that prints its state: a program of its image that uses the database's own tools.
const SITES: [(&str, &[&str]); 5] = [
    ("shopping", &["sh", "-c", "/srv/shop/db-dump && cd /data/media && find . -type f | sort | xargs sha256sum"]),
    ("reddit", &["/srv/forum/dump"]),
    ("gitlab", &["/srv/forge/dump"]),
    ("turkle", &["/srv/turkle/dump"]),
    ("homepage", &["/srv/homepage/dump"]),
];

/// Each site gets the events in turn; a test of 20 resets includes each of them at least once.
const CIRCUMSTANCES: [ResetCircumstance; 11] = [
    ResetCircumstance::AwaitStandby,
    ResetCircumstance::TakeStandby,
    ResetCircumstance::Kill,
    ResetCircumstance::Pause,
    ResetCircumstance::KillDaemon,
    ResetCircumstance::KillStandby,
    ResetCircumstance::KillWhileReset,
    ResetCircumstance::PauseStandby,
    ResetCircumstance::KillDaemonWhileReset,
    ResetCircumstance::PauseWhileReset,
    ResetCircumstance::PauseDaemon,
];

/// How often a reset is repeated whose container or daemon was killed meanwhile.
const ATTEMPTS: usize = 5;

/// The event before or during a reset. Together these events cover every way of resetting and every component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ResetCircumstance {
    /// A standby is ready.
    AwaitStandby,
    /// There is no standby yet, because another reset has just taken it.
    TakeStandby,
    /// The same, and the serving container has crashed.
    Kill,
    /// The serving container is paused by another process and stays paused.
    Pause,
    /// `kill -9` of the daemon before the reset; another is started.
    KillDaemon,
    /// The standby has crashed.
    KillStandby,
    /// The serving container crashes during the reset.
    KillWhileReset,
    /// The standby is paused by another process and stays paused.
    PauseStandby,
    /// `kill -9` of the daemon during the reset; another is started.
    KillDaemonWhileReset,
    /// The serving container is paused for half a second during the reset.
    PauseWhileReset,
    /// A signal stops the daemon for a second, as on a machine that swaps.
    PauseDaemon,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_every_reset_of_every_tier_the_baseline_is_back() {
    let number_of = |variable: &str| std::env::var(variable).ok().and_then(|text| text.parse::<u64>().ok());
    let resets = number_of("ARENAD_RESETS").map_or(20, |resets| usize::try_from(resets).unwrap_or(usize::MAX));
    let names = sites();
    let arena = Arena::up_alone(&names, |definition| definition);
    let clients = Clients::of(&arena, &names);
    let pages = Pages::of(&arena, &clients);
    let mut baselines = BTreeMap::new();
    for &site in &names {
        let dump = arena.exec(site, dump_of(site));
        assert!(dump.lines().count() > 10, "a real dump of {site}: {dump}");
        baselines.insert(site, ComparedState { dump, pages: pages.read(site).await });
    }
    for &site in &names {
        let token = clients.write_once(site).await;
        let is_there = |text: &String| text.contains(&token);
        assert!(is_there(&arena.exec(site, dump_of(site))), "the dump of {site} shows what is written");
        assert!(pages.read(site).await.iter().any(is_there), "a page of {site} shows what is written");
    }
    // The seed is fixed, so that a failure can be reproduced.
    let mut random = StdRng::seed_from_u64(number_of("ARENAD_RESETS_SEED").unwrap_or(20_261_121));
    let mut world =
        ResetWorld { arena: &arena, pages: &pages, baselines: &baselines, ways: BTreeMap::new(), refused: 0 };
    let mut written = 0;
    let mut circumstances: BTreeMap<ResetCircumstance, usize> = BTreeMap::new();
    let begun = Instant::now();
    for round in 0.. {
        if world.resets() >= resets && round >= CIRCUMSTANCES.len() {
            break;
        }
        let site = names[round % names.len()];
        // The number of events is a prime, so each site gets all of them.
        let before = CIRCUMSTANCES[round % CIRCUMSTANCES.len()];
        let what = format!("round {round}, {site}, {before:?}");
        match before {
            // The first reset makes arenad prepare a standby.
            ResetCircumstance::AwaitStandby if round < names.len() => {}
            ResetCircumstance::AwaitStandby | ResetCircumstance::KillStandby | ResetCircumstance::PauseStandby => {
                world.have_standby(site, &what).await
            }
            ResetCircumstance::TakeStandby | ResetCircumstance::Kill => world.reset_to_baseline(site, &what).await,
            _ => {}
        }
        written += world.reset_under_load(site, &clients, before, &mut random, &what).await;
        eprintln!("{what}: {:?}", world.ways);
        *circumstances.entry(before).or_default() += 1;
        if round % 50 == 49 {
            eprintln!("{} resets in {:.0?}, {written} writes: {:?}", world.resets(), begun.elapsed(), world.ways);
        }
    }
    let ResetWorld { ways, refused, .. } = world;
    eprintln!("{written} writes acknowledged, resets by way: {ways:?}, {refused} failed in their circumstances");
    eprintln!("circumstances: {circumstances:?}");
    assert!(written > resets, "the load was real: {written} writes");
    for way in ["swap", "rewind", "recreate"] {
        assert!(ways.contains_key(way), "every way had its turn: {ways:?}");
    }
    harm::assert_nothing_is_left(&arena);
}

/// The sites to reset; `ARENAD_RESETS_SITES` selects some of them.
fn sites() -> Vec<&'static str> {
    let named = std::env::var("ARENAD_RESETS_SITES").ok();
    let is_meant = |site: &&str| named.as_ref().is_none_or(|named| named.split(',').any(|name| name == *site));
    let meant: Vec<&str> = SITES.iter().map(|(site, _)| *site).filter(is_meant).collect();
    assert!(!meant.is_empty(), "ARENAD_RESETS_SITES names sites: {}", SITES.map(|(site, _)| site).join(","));
    meant
}

/// The command that prints the state of a site.
fn dump_of(site: &str) -> &'static [&'static str] {
    SITES.iter().find(|(name, _)| *name == site).expect("a known site").1
}

/// The state of a site, for comparison.
#[derive(Debug)]
struct ComparedState {
    dump: String,
    pages: Vec<String>,
}

struct ResetWorld<'a> {
    arena: &'a Arena,
    pages: &'a Pages,
    baselines: &'a BTreeMap<&'static str, ComparedState>,
    /// The number of resets by each way.
    ways: BTreeMap<String, usize>,
    /// The number of resets that reported a failure because of the interference.
    refused: usize,
}

impl ResetWorld<'_> {
    fn resets(&self) -> usize {
        self.ways.values().sum()
    }

    fn is_done(&mut self, way: &str) {
        *self.ways.entry(way.to_owned()).or_default() += 1;
    }

    /// Resets a site and returns the way of the reset.
    #[track_caller]
    fn reset(&mut self, site: &str) -> String {
        let way = self.arena.reset(site);
        self.is_done(&way);
        way
    }

    async fn state(&self, site: &str) -> ComparedState {
        ComparedState { dump: self.arena.exec(site, dump_of(site)), pages: self.pages.read(site).await }
    }

    /// Waits for a standby; the first reset of a site makes arenad prepare one.
    async fn have_standby(&mut self, site: &str, what: &str) {
        if !harm::has_standby(self.arena, site) {
            self.reset_to_baseline(site, what).await;
        }
        self.arena.await_standby(site);
    }

    /// Resets while no client writes, after a visit; a generation that received no connection would return to the pool
    /// at once.
    async fn reset_to_baseline(&mut self, site: &str, what: &str) {
        visit(&self.arena.url(site));
        let way = self.reset(site);
        assert_same(&self.baselines[site], &self.state(site).await, &format!("{what}, quiet {way}"));
    }

    /// Resets while clients write; returns how often a reset was reported as done.
    async fn reset_under_load(
        &mut self,
        site: &str,
        clients: &Clients,
        before: ResetCircumstance,
        random: &mut StdRng,
        what: &str,
    ) -> usize {
        let mut load = clients.start(site);
        // The other sites answer before they have read the whole request.
        let past = if site == "homepage" { Some(half_sent(&self.arena.url(site)).await) } else { None };
        tokio::time::sleep(Duration::from_millis(random.random_range(20..300))).await;
        let delay = Duration::from_millis(random.random_range(0..400));
        match before {
            ResetCircumstance::Kill => harm::kill_serving(self.arena, site),
            ResetCircumstance::Pause => harm::pause_serving(self.arena, site),
            ResetCircumstance::KillStandby => harm::each_standby(self.arena, site, "kill"),
            ResetCircumstance::PauseStandby => harm::each_standby(self.arena, site, "pause"),
            ResetCircumstance::KillDaemon => harm::kill_daemon(self.arena),
            _ => {}
        }
        let (asked, way) = self.reset_meanwhile(site, before, delay, &mut load, what);
        let what = format!("{what}, {way}");
        if let Some(past) = past {
            past.assert_ended(&what).await;
        }
        let all = load.end().await;
        let after = self.state(site).await;
        let is_old = |write: &&ClientWrite| write.acknowledged.is_some_and(|at| at <= asked);
        for write in all.iter().filter(is_old) {
            let is_there = |text: &String| text.contains(&write.token);
            assert!(!is_there(&after.dump), "{what}: {} was acknowledged before the reset", write.token);
            assert!(!after.pages.iter().any(is_there), "{what}: {} is on a page after the reset", write.token);
        }
        let acknowledged = all.iter().filter(|write| write.acknowledged.is_some()).count();
        if all.iter().filter(is_old).count() == acknowledged {
            assert_same(&self.baselines[site], &after, &what);
        } else {
            // Held requests went to the new instance, as they should; without their writes the site shows only the
            // baseline.
            self.reset_to_baseline(site, &what).await;
        }
        acknowledged
    }

    /// Requests a reset, and again if the interference ended it. Returns the time of the successful request, and the
    /// way of the reset.
    fn reset_meanwhile(
        &mut self,
        site: &str,
        before: ResetCircumstance,
        delay: Duration,
        load: &mut Load,
        what: &str,
    ) -> (Instant, String) {
        if before == ResetCircumstance::KillDaemonWhileReset {
            load.begin_no_more();
            let asked = Instant::now();
            let told = harm::reset_while(self.arena, site, || {
                std::thread::sleep(delay);
                harm::kill_daemon(self.arena);
            });
            if let Ok(way) = told {
                self.is_done(&way);
                return (asked, way);
            }
            // An interrupted reset is not reported as done. Its effects do not stay either, because the reset is
            // requested again below.
            self.refused += 1;
        }
        // From here on no client starts a write; writes in flight continue.
        load.begin_no_more();
        for _ in 0..ATTEMPTS {
            let asked = Instant::now();
            let meant = harm::serving(self.arena, site);
            let told = harm::reset_while(self.arena, site, || match before {
                ResetCircumstance::KillWhileReset => harm::to_each(&meant, "kill", delay, None),
                ResetCircumstance::PauseWhileReset => {
                    harm::to_each(&meant, "pause", delay, Some((Duration::from_millis(500), "unpause")));
                }
                ResetCircumstance::PauseDaemon => harm::stop_daemon_for(self.arena, delay, Duration::from_secs(1)),
                _ => {}
            });
            match told {
                // If the reset was faster, the new serving container was killed.
                Ok(way) if before == ResetCircumstance::KillWhileReset && harm::serving(self.arena, site) == meant => {
                    self.is_done(&way);
                    let asked = Instant::now();
                    return (asked, self.reset(site));
                }
                Ok(way) => {
                    self.is_done(&way);
                    return (asked, way);
                }
                Err(said) => {
                    let may_fail =
                        matches!(before, ResetCircumstance::KillWhileReset | ResetCircumstance::PauseWhileReset);
                    assert!(may_fail, "{what}: nothing was in the way of the reset, and it failed: {said}");
                    eprintln!("{what}: {said}");
                    self.refused += 1;
                }
            }
        }
        panic!("{what}: {ATTEMPTS} resets have failed");
    }
}

fn visit(url: &str) {
    let place = url.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = TcpStream::connect(place).expect("the gateway");
    write!(stream, "GET / HTTP/1.0\r\nHost: {place}\r\n\r\n").expect("a request");
    stream.read_to_end(&mut Vec::new()).expect("an answer");
}

#[track_caller]
fn assert_same(baseline: &ComparedState, found: &ComparedState, what: &str) {
    let pairs = baseline.pages.iter().zip(&found.pages).map(|(before, after)| ("a page", before, after));
    for (of_what, before, after) in pairs.chain([("the dump", &baseline.dump, &found.dump)]) {
        if before == after {
            continue;
        }
        let differing = before.lines().zip(after.lines()).find(|(before, after)| before != after);
        let (before, after) = (before.lines().count(), after.lines().count());
        panic!(
            "{what}: {of_what} is not the baseline's: {before} lines, now {after}; the first that differ: {differing:#?}"
        );
    }
}

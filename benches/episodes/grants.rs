//! Grants of five sites from standbys, beside the plain loop of all five, and the time until slots are free again.

use std::time::{Duration, Instant};

use tokio::runtime::Runtime;

use crate::FIVE;
use crate::arena::Arena;
use crate::client::{EpisodeApi, EpisodeVisitor};
use crate::docker_loop::DockerLoop;
use crate::figures::quantile;
use crate::resetter::Resetter;
use crate::sites::SITES;

/// The number of requests that an episode sends before it ends: two to each site.
const REQUESTS: usize = 2 * FIVE.len();
/// The number of deaths of clients that are measured.
const DEATHS: usize = 20;

/// Measures grants of both kinds, ends and deaths of clients, and prints them beside the plain loop.
pub fn compare(arena: &Arena, runtime: &Runtime, api: &EpisodeApi, grants: usize, rounds: usize) {
    let plain = plain_loop(arena, rounds);
    println!(
        "\nan episode on five sites, {grants} grants of each kind; ms; the plain loop of the five takes {plain:.0} ms\n"
    );
    println!("{:40} {:>8} {:>8} {:>8} {:>8}", "", "p50", "p99", "worst", "ratio");
    for (what, requests) in
        [("grant, after episodes without requests", 0), ("grant, after episodes that wrote", REQUESTS)]
    {
        let times = runtime.block_on(episodes(api, grants, requests));
        let p50 = quantile(&times, 0.5);
        let (p99, worst) = (quantile(&times, 0.99), quantile(&times, 1.0));
        println!("{what:40} {p50:>8.1} {p99:>8.1} {worst:>8.1} {:>7.0}x", plain / p50);
    }
    let (ended, recycled) = runtime.block_on(deaths(api));
    for (what, times) in [
        ("a client dies, until its episode has ended", ended),
        ("a client dies, until the next one has its slots", recycled),
    ] {
        println!("{what:48} {:>8.1} {:>8.1}", quantile(&times, 0.5), quantile(&times, 1.0));
    }
}

/// Measures the plain loop of all five sites, one after the other, in milliseconds.
fn plain_loop(arena: &Arena, rounds: usize) -> f64 {
    let resetter = Resetter::of(arena);
    let medians = SITES.iter().filter(|site| FIVE.contains(&site.name)).map(|site| {
        let image = resetter.image(arena, site.name);
        let plain = DockerLoop::of(&image, site);
        let times: Vec<f64> = (0..rounds)
            .map(|_| {
                let begun = Instant::now();
                plain.cycle();
                begun.elapsed().as_secs_f64() * 1e3
            })
            .collect();
        quantile(&times, 0.5)
    });
    medians.sum()
}

async fn episodes(api: &EpisodeApi, grants: usize, requests: usize) -> Vec<f64> {
    let mut times = Vec::new();
    // The first episode is not counted: standbys are made after it.
    for number in 0..=grants {
        api.await_rest(&FIVE).await;
        let grant = api.start(&FIVE, 60).await;
        if number > 0 {
            times.push(grant.took);
        }
        if requests > 0 {
            EpisodeVisitor::of(&grant).visit(requests).await;
        }
        api.end(&grant.id).await;
    }
    times
}

/// Returns the times from a client's death until its episode has ended, and until the next client has the same slots,
/// in milliseconds.
async fn deaths(api: &EpisodeApi) -> (Vec<f64>, Vec<f64>) {
    let (mut ended, mut recycled) = (Vec::new(), Vec::new());
    for _ in 0..DEATHS {
        api.await_rest(&FIVE).await;
        let grant = api.start(&FIVE, 60).await;
        let hold = api.hold(&grant).await;
        EpisodeVisitor::of(&grant).visit(REQUESTS).await;
        let begun = Instant::now();
        drop(hold);
        while api.episode(&grant.id).await["ended_at"].is_null() {
            assert!(begun.elapsed() < Duration::from_secs(10), "the episode goes on without its client");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        ended.push(begun.elapsed().as_secs_f64() * 1e3);
        let next = api.start(&FIVE, 60).await;
        recycled.push(begun.elapsed().as_secs_f64() * 1e3);
        api.end(&next.id).await;
    }
    (ended, recycled)
}

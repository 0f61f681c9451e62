//! Compares resets by arenad with the plain loop of `docker rm -f` and `docker run` until the site is ready, on the
//! same images in the same run, and measures the cost of the idle daemon.
//!
//! Run with `cargo bench --bench reset` or `make bench`. The state root is on its own XFS if the host allows its
//! creation. ARENAD_BENCH_RESETS: swaps of each site (200). ARENAD_BENCH_ROUNDS: rounds of the docker loop and of
//! rewinds (5). ARENAD_BENCH_SECONDS: duration of the sustained resets (180).

#[expect(dead_code, reason = "the tests use the rest")]
#[path = "../../tests/support/arena.rs"]
mod arena;
mod cost;
#[expect(dead_code, reason = "the other benchmarks use the rest")]
mod disk;
mod docker_loop;
mod figures;
mod harness;
mod resetter;
mod sites;
mod sustained;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use arena::Arena;
use disk::end;
use docker_loop::DockerLoop;
use figures::{quantile, setting};
use resetter::{Resetter, TimedReset};
use sites::{BenchedSite, SITES};

fn main() {
    let swaps = setting("ARENAD_BENCH_RESETS", 200);
    let rounds = setting("ARENAD_BENCH_ROUNDS", 5);
    let seconds = setting("ARENAD_BENCH_SECONDS", 180);
    let arena = Arena::prepared(own_disk, |definition| definition);
    let resetter = Resetter::of(&arena);

    println!(
        "\nreset of one site against `docker rm -f` + `docker run` + ready; {swaps} swaps, {rounds} rounds of the loop; ms, ratios of medians\n"
    );
    println!("{:16} {:>11} {:>9} {:>7} {:>7} {:>8}", "site", "docker loop", "swap p50", "p99", "CLI p50", "ratio");
    let loops: Vec<f64> = SITES.iter().map(|site| swap(&arena, &resetter, site, swaps, rounds)).collect();
    whole_environment(&resetter, rounds.max(swaps / 5));
    harness::full_reset(&arena, &resetter, rounds);
    digests(&resetter, rounds.max(swaps / 5));
    sustained::compare(&arena, &resetter, &SITES[0], Duration::from_secs(seconds as u64));
    cost::idle(&arena);
    end(arena);

    // Without standbys no background work competes with the measurement.
    let arena = Arena::prepared(own_disk, |definition| definition.replace("standby: 1", "standby: 0"));
    let resetter = Resetter::of(&arena);
    println!("\nwithout a standby, {rounds} rounds; ms\n");
    println!("{:16} {:>11} {:>7} {:>7}  stages", "site", "docker loop", "p50", "ratio");
    for (site, theirs) in SITES.iter().zip(loops) {
        rewind(&arena, &resetter, site, theirs, rounds);
    }
    end(arena);
}

/// Puts an environment's state on an XFS of its own.
fn own_disk(arena: &Arena) {
    let made = arena.arenad(&["storage", "init", "--size", "10G"]);
    let said = String::from_utf8_lossy(if made.status.success() { &made.stdout } else { &made.stderr }).into_owned();
    println!("storage: {}", said.trim());
}

/// Measures resets for which a standby is ready, and the plain loop, whose median it returns.
fn swap(arena: &Arena, resetter: &Resetter, site: &BenchedSite, swaps: usize, rounds: usize) -> f64 {
    let image = resetter.image(arena, site.name);
    // The first reset finds no standby; it makes arenad prepare one.
    resetter.reset(&[site.name]);
    resetter.await_standbys(&[site.name]);
    let plain = DockerLoop::of(&image, site);
    let theirs: Vec<f64> = (0..rounds).map(|_| milliseconds(|| _ = plain.cycle())).collect();
    // The loop's container must not compete with the measurement that follows.
    drop(plain);
    let (mut calls, mut commands) = (Vec::new(), Vec::new());
    for round in 0..swaps {
        resetter.await_standbys(&[site.name]);
        // The command line is measured in every fifth round.
        if round % 5 == 4 {
            commands.push(milliseconds(|| drop(arena.json(&["reset", site.name, "--json"]))));
        } else {
            let (took, done) = resetter.reset(&[site.name]);
            if done[0].way == "swap" {
                calls.push(took);
            }
        }
    }
    let (docker, swap) = (quantile(&theirs, 0.5), quantile(&calls, 0.5));
    println!(
        "{:16} {docker:>11.0} {swap:>9.1} {:>7.1} {:>7.1} {:>7.0}x",
        site.name,
        quantile(&calls, 0.99),
        quantile(&commands, 0.5),
        docker / swap
    );
    docker
}

/// Measures resets that find no standby, each after a visit.
fn rewind(arena: &Arena, resetter: &Resetter, site: &BenchedSite, theirs: f64, rounds: usize) {
    let mut all: Vec<TimedReset> = Vec::new();
    // The first round is not counted: its clones are not prepared in advance.
    for _ in 0..=rounds {
        resetter.visit(&arena.url(site.name), site.path);
        all.push(resetter.reset(&[site.name]).1.remove(0));
    }
    let all = &all[1..];
    let ours = quantile(&all.iter().map(|done| done.took).collect::<Vec<_>>(), 0.5);
    let ways: BTreeSet<&str> = all.iter().map(|done| done.way.as_str()).collect();
    println!(
        "{:16} {theirs:>11.0} {ours:>7.0} {:>6.1}x  {}: {}",
        site.name,
        theirs / ours,
        ways.into_iter().collect::<Vec<_>>().join(", "),
        stages(all)
    );
}

/// The medians of the stages that took a millisecond or more.
fn stages(done: &[TimedReset]) -> String {
    let names: BTreeSet<&str> = done.iter().flat_map(|done| &done.stages).map(|(name, _)| name.as_str()).collect();
    let median = |wanted: &str| {
        let times = done.iter().map(|done| stage(done, wanted)).filter(|took| !took.is_nan());
        quantile(&times.collect::<Vec<_>>(), 0.5)
    };
    let told = names.into_iter().map(|name| (name, median(name))).filter(|(_, took)| *took >= 1.0);
    told.map(|(name, took)| format!("{name} {took:.0}")).collect::<Vec<_>>().join(", ")
}

/// Resets all sites to which clients write, in one call.
fn whole_environment(resetter: &Resetter, rounds: usize) {
    let names: Vec<&str> = SITES.iter().map(|site| site.name).collect();
    let mut all = Vec::new();
    for _ in 0..rounds {
        resetter.await_standbys(&names);
        let (took, done) = resetter.reset(&names);
        if done.iter().all(|done| done.way == "swap") {
            all.push(took);
        }
    }
    println!(
        "\nthe {} sites in one call, by swap: p50 {:.1} ms, worst {:.1} ms, {} of {rounds} times",
        names.len(),
        quantile(&all, 0.5),
        quantile(&all, 1.0),
        all.len()
    );
}

/// Measures how long it takes to determine whether a site is equal to its snapshot.
fn digests(resetter: &Resetter, rounds: usize) {
    println!("\ndigest, {rounds} times; ms\n\n{:16} {:>13} {:>9}", "site", "untouched p50", "full p50");
    for site in &SITES {
        resetter.reset(&[site.name]);
        let full: Vec<f64> = (0..rounds).map(|_| resetter.verify(site.name)).collect();
        // The first comparison is skipped: after so many reads it may find that something has changed.
        let looks: Vec<TimedReset> = (0..=rounds).map(|_| resetter.reset_if_dirty(site.name)).skip(1).collect();
        let untouched: Vec<f64> =
            looks.iter().filter(|look| look.way == "untouched").map(|look| stage(look, "verify")).collect();
        println!("{:16} {:>13.1} {:>9.1}", site.name, quantile(&untouched, 0.5), quantile(&full, 0.5));
    }
}

/// How long one stage took, in milliseconds; NaN if there was none.
fn stage(done: &TimedReset, wanted: &str) -> f64 {
    done.stages.iter().find(|(name, _)| name == wanted).map_or(f64::NAN, |(_, took)| *took)
}

/// How long something takes, in milliseconds.
fn milliseconds(what: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    what();
    begun.elapsed().as_secs_f64() * 1e3
}

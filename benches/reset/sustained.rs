//! Resets one after the other for as long as somebody keeps asking, beside the plain loop for as long; and whether anything
//! grows meanwhile.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::arena::Arena;
use crate::cost::Held;
use crate::docker_loop::DockerLoop;
use crate::resetter::Resetter;
use crate::{Site, quantile};

/// Resets that are done before what is held is counted: the first ones fill pools and caches.
const BEFORE: usize = 10;

/// Keeps resetting one site.
pub fn compare(arena: &Arena, resetter: &Resetter, site: &Site, time: Duration) {
    let image = resetter.image(arena, site.name);
    let plain = DockerLoop::of(&image, site);
    let begun = Instant::now();
    let mut cycles = 0;
    while begun.elapsed() < time / 3 {
        plain.cycle();
        cycles += 1;
    }
    let theirs = per_minute(cycles, begun.elapsed());
    drop(plain);

    for _ in 0..BEFORE {
        resetter.reset(&[site.name]);
    }
    resetter.await_standbys(&[site.name]);
    let before = Held::by(arena);
    let mut ways: BTreeMap<String, usize> = BTreeMap::new();
    let mut took = Vec::new();
    let begun = Instant::now();
    while begun.elapsed() < time {
        let (call, mut done) = resetter.reset(&[site.name]);
        took.push(call);
        *ways.entry(done.remove(0).way).or_default() += 1;
    }
    let ours = per_minute(took.len(), begun.elapsed());
    resetter.await_standbys(&[site.name]);
    let after = Held::by(arena);
    println!(
        "\nsustained resets of {} for {} s: {ours:.0} a minute (p50 {:.0} ms; {ways:?}) against {theirs:.1} by the docker loop: {:.1}x",
        site.name,
        time.as_secs(),
        quantile(&took, 0.5),
        ours / theirs
    );
    println!("held before and after: {before} / {after}");
}

fn per_minute(count: usize, time: Duration) -> f64 {
    count as f64 * 60.0 / time.as_secs_f64()
}

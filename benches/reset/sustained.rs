//! Resets one after the other for as long as somebody keeps asking, beside the plain loop; and whether anything grows meanwhile.
//! Once with nobody at the site in between, and once with a visitor each time, after whom it must be brought back.

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
    println!(
        "\nsustained resets of {} for {} s each; the docker loop: {theirs:.1} a minute",
        site.name,
        time.as_secs()
    );
    for (what, visits) in [("nobody in between", false), ("a visitor in between", true)] {
        let before = Held::by(arena);
        let mut ways: BTreeMap<String, usize> = BTreeMap::new();
        let mut took = Vec::new();
        let begun = Instant::now();
        while begun.elapsed() < time {
            if visits {
                resetter.visit(&arena.url(site.name), "/");
            }
            let (call, mut done) = resetter.reset(&[site.name]);
            took.push(call);
            *ways.entry(done.remove(0).way).or_default() += 1;
        }
        let ours = per_minute(took.len(), begun.elapsed());
        resetter.await_standbys(&[site.name]);
        let after = Held::by(arena);
        println!(
            "{what:22} {ours:>6.0} a minute, {:.1}x (p50 {:.0} ms; {ways:?})",
            ours / theirs,
            quantile(&took, 0.5)
        );
        println!("{:22} held before and after: {before} / {after}", "");
    }
}

fn per_minute(count: usize, time: Duration) -> f64 {
    count as f64 * 60.0 / time.as_secs_f64()
}

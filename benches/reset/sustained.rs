//! Resets in immediate succession, beside the plain loop, with a check that no resource grows meanwhile. There are two
//! runs: one without visitors, and one in which a visitor reads and writes before each reset. The plain loop's shop
//! gets the same visitor.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::arena::Arena;
use crate::cost::Held;
use crate::docker_loop::DockerLoop;
use crate::figures::{busy_seconds, quantile};
use crate::resetter::Resetter;
use crate::sites::BenchedSite;

/// The number of resets before resources are first counted: the first ones fill pools and caches.
const BEFORE: usize = 10;

/// Resets one site repeatedly for this time.
pub fn compare(arena: &Arena, resetter: &Resetter, site: &BenchedSite, time: Duration) {
    let image = resetter.image(arena, site.name);
    let plain = DockerLoop::of(&image, site);
    let theirs = [false, true].map(|visits| {
        let (begun, busy) = (Instant::now(), busy_seconds());
        let mut cycles = 0;
        while begun.elapsed() < time / 3 {
            let address = plain.cycle();
            if visits {
                resetter.shop(&format!("http://{address}"));
            }
            cycles += 1;
        }
        (per_minute(cycles, begun.elapsed()), (busy_seconds() - busy) / cycles as f64)
    });
    drop(plain);

    for _ in 0..BEFORE {
        resetter.reset(&[site.name]);
    }
    resetter.await_standbys(&[site.name]);
    println!(
        "\nsustained resets of {} for {} s each; processor seconds are the machine's, visitor included",
        site.name,
        time.as_secs()
    );
    for ((what, visits), (theirs, their_seconds)) in
        [("no visitor between resets", false), ("a visitor between resets", true)].into_iter().zip(theirs)
    {
        let before = Held::by(arena);
        let mut ways: BTreeMap<String, usize> = BTreeMap::new();
        let mut took = Vec::new();
        let (begun, busy) = (Instant::now(), busy_seconds());
        while begun.elapsed() < time {
            if visits {
                resetter.shop(&arena.url(site.name));
            }
            let (call, mut done) = resetter.reset(&[site.name]);
            took.push(call);
            *ways.entry(done.remove(0).way).or_default() += 1;
        }
        let ours = per_minute(took.len(), begun.elapsed());
        let our_seconds = (busy_seconds() - busy) / took.len() as f64;
        resetter.await_standbys(&[site.name]);
        let after = Held::by(arena);
        println!(
            "{what:22} {ours:>6.0} a minute, {:.1}x the docker loop's {theirs:.1} (p50 {:.0} ms; {ways:?})",
            ours / theirs,
            quantile(&took, 0.5)
        );
        println!("{:22} processor seconds for each: {our_seconds:.2}; the docker loop: {their_seconds:.2}", "");
        println!("{:22} held before and after: {before} / {after}", "");
    }
}

fn per_minute(count: usize, time: Duration) -> f64 {
    count as f64 * 60.0 / time.as_secs_f64()
}

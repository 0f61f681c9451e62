//! Measures the environment service: how long a reset takes from the request to the first observation, what a step takes
//! beyond the browser itself, and many sessions at once.
//!
//! Run with `cargo bench --bench openenv` or `make bench`. Needs Chromium. ARENAD_BENCH_RESETS: resets of a session that is
//! alone, of each site (10). ARENAD_BENCH_STEPS: steps of each kind (100). ARENAD_BENCH_SESSIONS: sessions at once (8).
//! ARENAD_BENCH_SECONDS: their duration (600).

#[expect(dead_code, reason = "the tests use the rest")]
#[path = "../../tests/support/arena.rs"]
mod arena;
#[expect(dead_code, reason = "the benchmark of episodes uses the rest")]
#[path = "../episodes/client.rs"]
mod client;
#[expect(dead_code, reason = "the benchmark of resets uses the rest")]
#[path = "../reset/cost.rs"]
mod cost;
mod direct;
#[path = "../reset/disk.rs"]
mod disk;
#[path = "../../tests/support/family.rs"]
mod family;
#[expect(dead_code, reason = "the benchmark of episodes uses the rest")]
#[path = "../reset/figures.rs"]
mod figures;
mod resets;
#[expect(dead_code, reason = "the benchmark of resets uses the rest")]
#[path = "../reset/resetter.rs"]
mod resetter;
mod session;
mod sessions;
mod steps;

use std::net::TcpListener;

use arena::Arena;
use client::EpisodeApi;
use disk::{end, own_disk};
use figures::setting;

/// The site of most episodes.
pub const SITE: &str = "shopping";

/// The task of all episodes that have one: it signs its account in.
pub const TASK: &str = "shopping.order-total.1";

fn main() {
    let resets = setting("ARENAD_BENCH_RESETS", 10);
    let steps = setting("ARENAD_BENCH_STEPS", 100);
    let sessions = setting("ARENAD_BENCH_SESSIONS", 8);
    let seconds = setting("ARENAD_BENCH_SECONDS", 600);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime");

    let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port();
    let address = format!("127.0.0.1:{port}");
    // The shop is the first site, and has a slot for each session from the beginning, beside slot 1 for people. The other
    // sites have one slot for sessions.
    let variables = [("ARENAD_OPENENV", address.as_str()), ("ARENAD_COMPAT", "127.0.0.1:0"), ("ARENAD_SLOTS", "2")];
    let declared = "slots: { min: 1, max: \"${ARENAD_SLOTS:-1}\" }";
    let number = sessions + 1;
    let slots = format!("slots: {{ min: {number}, max: {number} }}");
    let edit = |definition: String| definition.replacen(declared, &slots, 1);
    let arena = Arena::prepared_with(&variables, own_disk, edit);
    let api = EpisodeApi::of(&arena.state_dir());
    runtime.block_on(api.await_slots(&[SITE], number));
    runtime.block_on(resets::measure(&arena, &api, port, resets));
    runtime.block_on(steps::compare(&arena, &api, port, steps));
    sessions::run(&arena, &runtime, &api, port, (sessions, seconds));
    end(arena);
}

//! Measures episodes: how long the grant of five sites takes beside removing and starting their containers, when slots
//! are free after the death of a client, many clients that wait, forks, and a long run of parallel episodes with its
//! cost.
//!
//! Run with `cargo bench --bench episodes` or `make bench`. ARENAD_BENCH_GRANTS: grants of each kind (100).
//! ARENAD_BENCH_ROUNDS: rounds of the docker loop (3). ARENAD_BENCH_WAITING: clients that wait at once (200).
//! ARENAD_BENCH_EPISODES: episodes at once in the long run (8). ARENAD_BENCH_SECONDS: its duration (3600).
//! ARENAD_BENCH_FORKS: forks of an episode (5).

#[expect(dead_code, reason = "the tests use the rest")]
#[path = "../../tests/support/arena.rs"]
mod arena;
mod client;
#[expect(dead_code, reason = "the benchmark of resets uses the rest")]
#[path = "../reset/cost.rs"]
mod cost;
#[path = "../reset/disk.rs"]
mod disk;
#[path = "../reset/docker_loop.rs"]
mod docker_loop;
#[path = "../reset/figures.rs"]
mod figures;
mod forks;
mod grants;
mod parallel;
#[expect(dead_code, reason = "the benchmark of resets uses the rest")]
#[path = "../reset/resetter.rs"]
mod resetter;
#[path = "../reset/sites.rs"]
mod sites;
mod waiting;

use arena::Arena;
use client::EpisodeApi;
use disk::{end, own_disk};
use figures::setting;

/// The sites of an episode.
pub const FIVE: [&str; 5] = ["shopping", "shopping_admin", "reddit", "gitlab", "turkle"];

/// The episode proxy takes a free port, beside the one of an installation.
const VARIABLES: [(&str, &str); 2] = [("ARENAD_PROXY", "127.0.0.1:0"), ("ARENAD_COMPAT", "127.0.0.1:0")];

fn main() {
    let grants = setting("ARENAD_BENCH_GRANTS", 100);
    let rounds = setting("ARENAD_BENCH_ROUNDS", 3);
    let clients = setting("ARENAD_BENCH_WAITING", 200);
    let parallel = setting("ARENAD_BENCH_EPISODES", 8);
    let seconds = setting("ARENAD_BENCH_SECONDS", 3600);
    let forks = setting("ARENAD_BENCH_FORKS", 5);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime");

    let arena = Arena::prepared_with(&VARIABLES, own_disk, |definition| definition);
    let api = EpisodeApi::of(&arena.state_dir());
    grants::compare(&arena, &runtime, &api, grants, rounds);
    runtime.block_on(waiting::queue(&api, clients));
    end(arena);

    // All slots exist before the first request. Slot 1 is left to people.
    let declared = "slots: { min: 1, max: \"${ARENAD_SLOTS:-1}\" }";
    let number = parallel.max(forks::CHILDREN + 1) + 1;
    let slots = format!("slots: {{ min: {number}, max: {number} }}");
    let edit = |definition: String| definition.replace(declared, &slots);
    let arena = Arena::prepared_with(&VARIABLES, own_disk, edit);
    let api = EpisodeApi::of(&arena.state_dir());
    runtime.block_on(api.await_slots(&FIVE, number));
    runtime.block_on(forks::measure(&arena, &api, forks));
    parallel::run(&arena, &runtime, &api, parallel, seconds);
    end(arena);
}

//! Hostile servers of every protocol that arenad speaks. The client of such a server gets a refusal or an error in
//! bounded time and memory, and continues to work. Digests of databases are covered in `tests/digest/hostile.rs`,
//! hostile clients in `tests/gateway`.

mod browsers;
mod databases;
mod redis;
mod sites;
mod tunnels;

use std::time::Duration;

/// The limit on the growth of this process's memory, in bytes, whatever one server sends.
const GROWTH_MAX: u64 = 256 << 20;

/// The maximum by which an operation may exceed its own time limit.
const PATIENCE: Duration = Duration::from_secs(60);

/// The peak memory of this process so far, in bytes.
fn memory() -> u64 {
    let status = procfs::process::Process::myself().and_then(|this| this.status()).expect("a status");
    status.vmhwm.expect("a peak") * 1024
}

/// Queries a server in bounded time and memory.
async fn bounded<T>(name: &str, asked: impl Future<Output = T>) -> T {
    let before = memory();
    let answer = tokio::time::timeout(PATIENCE, asked).await.unwrap_or_else(|_| panic!("{name}: it goes on"));
    let growth = memory().saturating_sub(before);
    assert!(growth < GROWTH_MAX, "{name}: it took {} MiB", growth >> 20);
    answer
}

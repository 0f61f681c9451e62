//! One component at a time, against real sockets, file systems, browsers' protocols and hostile servers.

mod accounts;
#[path = "support/alone.rs"]
mod alone;
mod browsers;
mod definitions;
mod evaluators;
mod gateway;
mod hostile;
#[path = "support/hostile/mod.rs"]
#[expect(dead_code, reason = "the attacks use the rest")]
mod hostile_servers;
mod judge;
mod storage;
#[expect(dead_code, unused_imports, reason = "few components need the program and an engine")]
mod support;

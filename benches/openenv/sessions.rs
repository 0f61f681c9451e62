//! Many sessions at once: an episode after the other, each with its browser, a few steps and a verdict.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use procfs::process::Process;
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::arena::Arena;
use crate::client::EpisodeApi;
use crate::cost::Held;
use crate::family::family;
use crate::figures::quantile;
use crate::session::{CLOSED, Session};
use crate::{SITE, TASK};

/// The number of steps of an episode before `stop`.
const STEPS: usize = 5;

/// The pause before a session whose connection was lost is followed by another one.
const PAUSE: Duration = Duration::from_secs(1);

/// The times of a run in milliseconds, and the errors.
#[derive(Default)]
struct Times {
    resets: Vec<f64>,
    steps: Vec<f64>,
    verdicts: Vec<f64>,
    errors: Vec<String>,
}

/// Runs a number of sessions for a number of seconds, and prints the table.
pub fn run(arena: &Arena, runtime: &Runtime, api: &EpisodeApi, port: u16, (sessions, seconds): (usize, usize)) {
    runtime.block_on(api.await_rest(&[SITE]));
    let (before, begun) = (Held::by(arena), Instant::now());
    let (times, memory) = runtime.block_on(async {
        let (times, limit) = (Arc::<Mutex<Times>>::default(), Duration::from_secs(seconds as u64));
        let mut clients = JoinSet::new();
        for _ in 0..sessions {
            clients.spawn(client(port, Arc::clone(&times), begun + limit));
        }
        tokio::time::sleep(limit / 2).await;
        // While all of them are open.
        let memory = browsers_memory(arena);
        while let Some(ended) = clients.join_next().await {
            ended.expect("a client fails");
        }
        let times = std::mem::take(&mut *times.lock().expect("no panic"));
        (times, memory)
    });
    let took = begun.elapsed().as_secs_f64();
    runtime.block_on(api.await_rest(&[SITE]));
    let episodes = times.verdicts.len();
    println!("\n{sessions} sessions at once for {took:.0} s, {STEPS} steps and a verdict an episode; ms\n");
    println!("{:20} {:>8} {:>10} {:>8} {:>8} {:>8}", "", "number", "a minute", "p50", "p99", "worst");
    for (what, times) in [("resets", &times.resets), ("steps", &times.steps), ("verdicts", &times.verdicts)] {
        let [p50, p99, worst] = [0.5, 0.99, 1.0].map(|part| quantile(times, part));
        let a_minute = times.len() as f64 * 60.0 / took;
        println!("{what:20} {:>8} {a_minute:>10.1} {p50:>8.0} {p99:>8.0} {worst:>8.0}", times.len());
    }
    println!("{episodes} episodes had a verdict; errors: {}", times.errors.len());
    for error in times.errors.iter().take(3) {
        println!("  {error}");
    }
    println!("memory of the browsers: {memory:.0} MB, {:.0} MB a session", memory / sessions as f64);
    println!("held before and after: {before} / {}", Held::by(arena));
}

/// Uses one episode after the other until a time.
async fn client(port: u16, times: Arc<Mutex<Times>>, until: Instant) {
    let mut session = Session::open(port).await;
    while Instant::now() < until {
        if let Err(error) = episode(&mut session, &times).await {
            let is_closed = error.contains(CLOSED);
            times.lock().expect("no panic").errors.push(error);
            if is_closed {
                tokio::time::sleep(PAUSE).await;
                session = Session::open(port).await;
            }
        }
    }
}

async fn episode(session: &mut Session, times: &Mutex<Times>) -> Result<(), String> {
    let begun = session.reset(json!({ "task": TASK })).await?;
    times.lock().expect("no panic").resets.push(begun.took);
    for number in 0..STEPS {
        let step = session.step(if number % 2 == 0 { "scroll [down]" } else { "scroll [up]" }).await?;
        times.lock().expect("no panic").steps.push(step.took);
    }
    let last = session.step("stop [0]").await?;
    if last.data["reward"].as_f64() != Some(0.0) {
        return Err(format!("the wrong answer has the reward {}", last.data["reward"]));
    }
    times.lock().expect("no panic").verdicts.push(last.took);
    Ok(())
}

/// Returns the memory of the browsers' processes in megabytes. Pages that they share count once.
fn browsers_memory(arena: &Arena) -> f64 {
    let family = family(vec![arena.daemon().as_raw_nonzero().get()]);
    let is_browser = |process: &Process| {
        let program = process.cmdline().ok().and_then(|words| words.into_iter().next()).unwrap_or_default();
        program.contains("chrom") || program.contains("headless")
    };
    // A process may have ended meanwhile.
    let processes = family.into_iter().filter_map(|pid| Process::new(pid).ok());
    let parts = processes.filter(is_browser).filter_map(|process| {
        let memory = process.smaps_rollup().ok()?;
        memory.memory_map_rollup.0.first()?.extension.map.get("Pss").copied()
    });
    parts.sum::<u64>() as f64 / 1e6
}

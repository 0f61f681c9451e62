//! The tasks of the mini environment, each with an oracle that solves it and near misses that almost do. Oracles and near
//! misses are scripted agents that use pages and forms as people do. Every oracle must pass its task's check, and every
//! near miss must fail it.
//!
//! An attempt that changes a site begins on a fresh baseline. The near misses of a template are divided among its tasks:
//! each near miss is tried with one task. Several agents work at the same time, but never two on the same site.

mod across;
mod attempt;
mod board;
pub mod crowd;
mod files;
mod forge;
mod gitlab;
mod homepage;
mod map;
mod office;
mod queue;
mod reddit;
mod shop;
mod shopping;
mod shopping_admin;
mod stage;
mod turkle;
pub mod visitor;
mod wikipedia;

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use self::attempt::{AgentAttempt, AttemptOutcome};
use self::files::TemplateTask;
use self::queue::Queue;
use self::stage::AgentStage;
use crate::arena::shared::{SITES, SharedArena};

/// The number of agents that work at the same time.
const LANES: usize = 3;

/// An environment variable with a prefix of task names: only the tasks that match it are tried.
const ONLY: &str = "ARENAD_TASKS";

fn tasks() -> &'static [TemplateTask] {
    files::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("environments/mini/tasks"))
}

fn attempts(task: &'static TemplateTask) -> Option<Vec<AgentAttempt>> {
    shopping::attempts(task)
        .or_else(|| shopping_admin::attempts(task))
        .or_else(|| wikipedia::attempts(task))
        .or_else(|| reddit::attempts(task))
        .or_else(|| gitlab::attempts(task))
        .or_else(|| map::attempts(task))
        .or_else(|| turkle::attempts(task))
        .or_else(|| homepage::attempts(task))
        .or_else(|| across::attempts(task))
}

#[test]
fn every_task_has_an_oracle_and_three_near_misses() {
    let tasks = tasks();
    assert!(tasks.len() >= 150, "a set of {} tasks", tasks.len());
    for task in tasks {
        let attempts = attempts(task).unwrap_or_else(|| panic!("{} has no oracle", task.name));
        assert!(attempts[0].is_oracle, "{}: the oracle comes first", task.name);
        assert!(attempts[1..].iter().all(|attempt| !attempt.is_oracle), "{}: one oracle", task.name);
        // To do nothing is another near miss of every task and is not counted here.
        assert!(attempts.len() >= 4, "{} has {} near misses", task.name, attempts.len() - 1);
    }
    for kind in ["information", "navigation", "content", "unachievable"] {
        assert!(tasks.iter().filter(|task| task.kind == kind).count() >= 5, "several tasks of {kind}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_oracle_passes_and_every_near_miss_fails() {
    let arena = SharedArena::alone_with(&SITES);
    let linted = arena.arenad(&["tasks", "lint", "mini", "--live"]);
    assert!(linted.status.success(), "{}", String::from_utf8_lossy(&linted.stderr));

    let stage = AgentStage::new(&arena, &SITES).await;
    let only = std::env::var(ONLY).unwrap_or_default();
    let queue = Arc::new(Queue::new(tasks().iter().filter(|task| task.name.starts_with(&only)).collect()));
    let lanes = [(); LANES].map(|()| tokio::spawn(lane(stage.clone(), queue.clone())));
    let mut tally = AttemptTally::default();
    for lane in lanes {
        tally = tally.and(lane.await.expect("the lane ends"));
    }
    eprintln!("{} oracles, {} near misses", tally.oracles, tally.misses);
    assert_eq!(tally.wrong, 0, "so many came out otherwise than they should");
}

/// Counts of the attempts, and of those with an unexpected outcome.
#[derive(Default)]
struct AttemptTally {
    oracles: usize,
    misses: usize,
    wrong: usize,
}

impl AttemptTally {
    fn and(mut self, other: Self) -> Self {
        self.oracles += other.oracles;
        self.misses += other.misses;
        self.wrong += other.wrong;
        self
    }

    fn note(&mut self, task: &TemplateTask, name: &str, is_oracle: bool, done: &AttemptOutcome, report: &Value) {
        *(if is_oracle { &mut self.oracles } else { &mut self.misses }) += 1;
        let wanted = if is_oracle { "passed" } else { "failed" };
        if report["verdict"] != wanted {
            self.wrong(&format!(
                "{}, {name}: {} instead of {wanted}; {done:?}\n{report:#}",
                task.name, report["verdict"]
            ));
        }
    }

    /// Prints the message at once, because the end of the test is minutes away.
    fn wrong(&mut self, what: &str) {
        eprintln!("{what}");
        self.wrong += 1;
    }
}

/// Tries tasks one after the other until none is left.
async fn lane(stage: AgentStage, queue: Arc<Queue>) -> AttemptTally {
    let mut tally = AttemptTally::default();
    while let Some(task) = queue.next().await {
        // The attempt runs in a task of its own, so that the sites are returned to the queue even if it panics.
        match tokio::spawn(tried(stage.clone(), task)).await {
            Ok(tried) => tally = tally.and(tried),
            Err(error) => tally.wrong(&format!("{} cannot be tried: {error}", task.name)),
        }
        queue.done(task);
    }
    tally
}

/// Tries a task with its oracle and with the near misses that are assigned to it.
async fn tried(stage: AgentStage, task: &'static TemplateTask) -> AttemptTally {
    let mut tally = AttemptTally::default();
    let mut begun = Value::Null;
    for (index, attempt) in attempts(task).expect("a test says so").into_iter().enumerate() {
        let is_dealt = index == 0 || (index - 1) % task.place.1 == task.place.0;
        if !is_dealt {
            continue;
        }
        if task.may_write() || index == 0 {
            // The previous task on these sites may have changed them.
            begun = stage.begin(task, true).await;
        }
        if index == 0 {
            let nothing = AttemptOutcome::default();
            tally.note(task, "nothing done", false, &nothing, &stage.check(task, &begun, &nothing).await);
        }
        let (name, is_oracle) = (attempt.name, attempt.is_oracle);
        // The script runs in a task of its own, so that its panic does not end the remaining attempts.
        match tokio::spawn(attempt.run(stage.clone())).await {
            Ok(done) => tally.note(task, name, is_oracle, &done, &stage.check(task, &begun, &done).await),
            Err(error) => tally.wrong(&format!("{}, {name}: the script breaks: {error}", task.name)),
        }
    }
    tally
}

//! Decisions, which convert facts into findings. Nothing here accesses the host.

pub mod capacity;
mod engine;
mod host;
mod images;
mod network;
mod storage;

use super::facts::{EngineState, Facts};
use super::finding::Finding;

pub(super) use engine::away;

#[cfg(test)]
mod prepared;

/// Returns all findings about these facts, by area and severity.
pub fn all(facts: &Facts) -> Vec<Finding> {
    let mut findings = engine::judge(&facts.engine, &facts.daemon);
    findings.extend(storage::judge(facts));
    findings.extend(capacity::judge(&needs(facts), &capacity::Resources::of(facts)));
    findings.extend(network::judge(facts));
    findings.extend(host::judge(facts));
    if let Some(environment) = &facts.environment {
        findings.extend(images::judge(environment, &facts.engine));
    }
    findings.sort_by_key(|finding| finding.area);
    findings
}

fn needs(facts: &Facts) -> super::facts::Needs {
    facts.environment.as_ref().map(|environment| environment.needs.clone()).unwrap_or_default()
}

/// Returns the engine if it answers.
fn answering(engine: &EngineState) -> Option<&super::facts::AnsweringEngine> {
    match engine {
        EngineState::Answers(answering) => Some(answering),
        EngineState::TooOld { .. } | EngineState::Away { .. } => None,
    }
}

/// Formats a size for people: `23.5 GiB`, `512 MiB`.
fn size(bytes: u64) -> String {
    const GIB: u64 = 1 << 30;
    if bytes >= GIB { format!("{:.1} GiB", bytes as f64 / GIB as f64) } else { format!("{} MiB", bytes >> 20) }
}

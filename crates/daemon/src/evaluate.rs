//! Evaluations: answering the questions of a task's evaluators by reading the sites.
//!
//! The daemon reads the sites and keeps the answers as evidence; judging is pure and can be repeated from the evidence.
//! The daemon holds no keys for judges: their questions stay open, and the caller answers them.

use std::collections::BTreeMap;

use super::answers::Witness;
use arenad_evaluation::{CaseError, EvaluationCase};
use arenad_verdict::Profile;
use arenad_verdict::{Benchmark, EpisodeEvidence};

/// The reason why an episode cannot be judged.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EvaluatingError {
    /// The task is invalid.
    #[error(transparent)]
    Case(#[from] CaseError),
    /// A site was reset between two readings, so the answers come from different generations.
    #[error("{0} was reset while the episode was evaluated")]
    Reset(String),
}

/// Reads the sites until no question is open that a site could answer, and adds the answers to the evidence.
pub(crate) async fn look(
    witness: &Witness<'_>,
    evidence: &mut EpisodeEvidence,
    profiles: &[Profile],
) -> Result<(), EvaluatingError> {
    if evidence.benchmark == Benchmark::WebArenaVerified {
        return Ok(());
    }
    let case = EvaluationCase::of(evidence)?;
    loop {
        let mut open = case.questions(&evidence.told, profiles)?;
        open.retain(|question| witness.knows(question));
        if open.is_empty() {
            break;
        }
        for question in open {
            let answer = witness.answer(&question).await;
            evidence.told.tell(question, answer);
        }
    }
    let mut generations = BTreeMap::new();
    for seen in witness.looked_at() {
        if generations.insert(seen.site.clone(), seen.generation).is_some_and(|other| other != seen.generation) {
            return Err(EvaluatingError::Reset(seen.site));
        }
        if !evidence.looked_at.contains(&seen) {
            evidence.looked_at.push(seen);
        }
    }
    Ok(())
}

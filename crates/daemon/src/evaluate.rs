//! Evaluations: the questions of a task's evaluators, put to the sites.
//!
//! The daemon looks and keeps what it saw; judging is pure, and whoever has the evidence can repeat it. It holds no keys of judges:
//! their questions stay open, and the caller answers them.

use std::collections::BTreeMap;

use super::answers::Witness;
use arenad_evaluation::{Case, CaseError};
use arenad_verdict::Profile;
use arenad_verdict::{Benchmark, Evidence};

/// Why an episode cannot be judged.
#[derive(Debug, thiserror::Error)]
pub enum EvaluatingError {
    /// The task is at fault.
    #[error(transparent)]
    Case(#[from] CaseError),
    /// A site was reset between two looks, so that what was seen is of different times.
    #[error("{0} was reset while the episode was evaluated")]
    Reset(String),
}

/// Looks until no question is open that a site could answer.
pub async fn look(witness: &Witness<'_>, evidence: &mut Evidence, profiles: &[Profile]) -> Result<(), EvaluatingError> {
    if evidence.benchmark == Benchmark::WebArenaVerified {
        return Ok(());
    }
    let case = Case::of(evidence)?;
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

//! Answers questions without a site: a judge's replies, and pictures from files.

use std::path::Path;

use arenad_evaluation::{CaseError, EvaluationCase, pictures};
use arenad_judge::{self as judge, Judge};
use arenad_verdict::Profile;
use arenad_verdict::question::{Answer, Question};
use arenad_verdict::{Benchmark, EpisodeEvidence};

/// The sources of answers that need no site.
#[derive(Clone, Copy)]
pub(super) struct Local<'a> {
    pub(super) judge: Option<&'a dyn Judge>,
    pub(super) pictures: Option<&'a Path>,
}

impl Local<'_> {
    /// Adds the answers that these sources have, and returns whether questions remain that only the sites can answer.
    pub(super) async fn settle(self, evidence: &mut EpisodeEvidence, profiles: &[Profile]) -> Result<bool, CaseError> {
        if evidence.benchmark == Benchmark::WebArenaVerified {
            return Ok(false);
        }
        let case = EvaluationCase::of(evidence)?;
        loop {
            let open = case.questions(&evidence.told, profiles)?;
            let mut has_moved = false;
            for question in &open {
                if let Some(answer) = self.answer(question, evidence).await {
                    evidence.told.tell(question.clone(), answer);
                    has_moved = true;
                }
            }
            if !has_moved {
                return Ok(open.iter().any(is_for_sites));
            }
        }
    }

    async fn answer(self, question: &Question, evidence: &EpisodeEvidence) -> Option<Answer> {
        match question {
            Question::Judge(_) | Question::Rule(_) => judge::answer(self.judge?, question, &evidence.told).await,
            Question::Look { place, selector, .. } => {
                // The pictures are fetched first, because the question about their content depends on them.
                let seen = Question::Pictures { place: place.clone(), selector: selector.clone() };
                if !evidence.told.knows(&seen) {
                    return None;
                }
                judge::answer(self.judge?, question, &evidence.told).await
            }
            Question::Reference { source } if !is_of_site(source, evidence) => {
                pictures::answer(self.pictures, question)
            }
            _ => None,
        }
    }
}

fn is_for_sites(question: &Question) -> bool {
    !matches!(question, Question::Judge(_) | Question::Rule(_) | Question::Look { .. })
}

/// Returns whether a picture's address belongs to one of the sites.
fn is_of_site(source: &str, evidence: &EpisodeEvidence) -> bool {
    evidence
        .urls
        .values()
        .flatten()
        .any(|url| source.strip_prefix(url.as_str()).is_some_and(|rest| rest.starts_with('/')))
}

//! Shortens a schedule that breaks a law to one that still breaks it.

use std::path::Path;

use crate::run::run;
use crate::schedule::ScheduleStep;
use crate::world::NAMES;

/// The maximum number of runs.
const RUNS_MAX: usize = 400;

/// Removes steps that are not needed (delta debugging). Returns the shortest schedule found and the law that it breaks.
pub fn shrink(
    seed: u64,
    steps: &[ScheduleStep],
    sentence: String,
    folder: &Path,
    template: &Path,
) -> (Vec<usize>, String) {
    let wanted = law(&sentence);
    let mut best: (Vec<usize>, String) = ((0..steps.len()).collect(), sentence);
    let mut runs = 0;
    let mut try_it = |candidate: &[usize], best: &mut (Vec<usize>, String)| -> bool {
        runs += 1;
        let chosen: Vec<ScheduleStep> = candidate.iter().filter_map(|index| steps.get(*index).cloned()).collect();
        match run(seed, &chosen, folder, template, false).violation {
            Some((step, sentence)) if law(&sentence) == wanted => {
                // Steps after the one that breaks the law are irrelevant.
                let length = (step + 1).min(candidate.len());
                *best = (candidate[..length].to_vec(), sentence);
                true
            }
            _ => false,
        }
    };
    let mut size = best.0.len() / 2;
    let mut left = RUNS_MAX;
    while size > 0 && left > 0 {
        let mut begin = 0;
        let mut is_shorter = false;
        while begin < best.0.len() && left > 0 {
            let mut candidate = best.0.clone();
            candidate.drain(begin..(begin + size).min(candidate.len()));
            left -= 1;
            if try_it(&candidate, &mut best) {
                is_shorter = true;
            } else {
                begin += size;
            }
        }
        if !is_shorter || size > 1 {
            size /= 2;
        }
    }
    best
}

/// Returns the first words of a sentence without sites and numbers, so that violations of the same law compare equal.
fn law(sentence: &str) -> Vec<String> {
    let words = sentence.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| word.len() > 1);
    words.filter(|word| !NAMES.contains(word)).take(8).map(str::to_owned).collect()
}

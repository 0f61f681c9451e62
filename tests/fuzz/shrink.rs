//! Shortens an input that breaks a property to a short one that breaks the same property.

use std::time::{Duration, Instant};

use crate::supervise::ProcessEnd;
use crate::target::FuzzTarget;

/// The time limit for shortening an input.
const LENGTH: Duration = Duration::from_secs(60);

/// Removes parts that are not needed (delta debugging). Returns the shortest input found, and how the process ended.
pub fn shrink(
    target: &FuzzTarget,
    found: Vec<u8>,
    how: ProcessEnd,
    look_at: &dyn Fn(&[u8]) -> Option<ProcessEnd>,
) -> (Vec<u8>, ProcessEnd) {
    let begun = Instant::now();
    let (mut best, mut how) = (found, how);
    let mut size = best.len().div_ceil(2);
    while size > 0 {
        let mut begin = 0;
        let mut is_shorter = false;
        while begin < best.len() {
            if begun.elapsed() > LENGTH {
                return (best, how);
            }
            let mut candidate = best.clone();
            candidate.drain(begin..(begin + size).min(candidate.len()));
            // Each candidate is tried unchanged, and with correct checksums.
            let mut mended = candidate.clone();
            (target.mend)(&mut mended);
            let mut candidates = vec![candidate];
            if mended != candidates[0] {
                candidates.push(mended);
            }
            let same = |input: &Vec<u8>| look_at(input).filter(|end| end.kind == how.kind);
            match candidates.into_iter().find_map(|input| same(&input).map(|end| (input, end))) {
                Some((shorter, end)) if shorter.len() < best.len() => {
                    (best, how, is_shorter) = (shorter, end, true);
                }
                _ => begin += size,
            }
        }
        if !is_shorter || size > 1 {
            size /= 2;
        }
    }
    (best, how)
}

//! Many reports in a few numbers.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Evaluated;
use crate::evaluators::verdict::{Profile, Verdict};

/// How often each verdict was given under one profile.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Tally {
    /// All.
    pub total: usize,
    /// The agent did it.
    pub passed: usize,
    /// It did not.
    pub failed: usize,
    /// The environment was at fault, or nobody looked in time.
    pub inconclusive: usize,
    /// Somebody has to judge who was not there.
    pub needs_judge: usize,
    /// The profile cannot do it.
    pub unsupported: usize,
    /// Passed of those that are decided; nothing if none is.
    pub success_rate: Option<f64>,
}

impl Tally {
    fn add(&mut self, verdict: Verdict) {
        self.total += 1;
        *match verdict {
            Verdict::Passed => &mut self.passed,
            Verdict::Failed => &mut self.failed,
            Verdict::Inconclusive => &mut self.inconclusive,
            Verdict::NeedsJudge => &mut self.needs_judge,
            Verdict::Unsupported => &mut self.unsupported,
        } += 1;
        let decided = self.passed + self.failed;
        #[expect(clippy::cast_precision_loss, reason = "nobody has 2^52 results")]
        let rate = self.passed as f64 / decided as f64;
        self.success_rate = (decided > 0).then_some(rate);
    }

    /// How many are undecided.
    #[must_use]
    pub fn open(&self) -> usize {
        self.total - self.passed - self.failed
    }
}

/// Tallies by profile.
pub type Tallies = BTreeMap<&'static str, Tally>;

/// Many reports in a few numbers.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Summary {
    /// How many results there are.
    pub results: usize,
    /// How many of them could not be read or judged.
    pub unreadable: usize,
    /// All that could.
    pub profiles: Tallies,
    /// The same by the sites that tasks need, sorted and joined by `-`.
    pub sites: BTreeMap<String, Tallies>,
}

impl Summary {
    /// Counts one result; nothing if it could not be read or judged.
    pub fn add(&mut self, result: Option<&Evaluated>) {
        self.results += 1;
        let Some(evaluated) = result else {
            self.unreadable += 1;
            return;
        };
        let mut sites = evaluated.sites.clone();
        sites.sort_unstable();
        let of_sites = self.sites.entry(sites.join("-")).or_default();
        for report in &evaluated.reports {
            let name = name(report.profile);
            self.profiles.entry(name).or_default().add(report.verdict);
            of_sites.entry(name).or_default().add(report.verdict);
        }
    }
}

fn name(profile: Profile) -> &'static str {
    match profile {
        Profile::Compat => "compat",
        Profile::Strict => "strict",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::evaluation::Benchmark;
    use crate::evaluators::verdict::{Check, Report};

    fn evaluated(sites: &[&str], verdicts: [Verdict; 2]) -> Evaluated {
        let report =
            |(profile, verdict)| Report::of(profile, vec![Check::open("e", "r", "p", Value::Null, verdict, "")]);
        Evaluated {
            benchmark: Benchmark::WebArena,
            task: "1".to_owned(),
            intent: String::new(),
            sites: sites.iter().map(|site| (*site).to_owned()).collect(),
            reports: [Profile::Compat, Profile::Strict].into_iter().zip(verdicts).map(report).collect(),
            warnings: Vec::new(),
        }
    }

    #[test]
    fn what_is_undecided_counts_for_neither_side() {
        let mut summary = Summary::default();
        summary.add(Some(&evaluated(&["shopping"], [Verdict::Passed, Verdict::Failed])));
        summary.add(Some(&evaluated(&["shopping"], [Verdict::Passed, Verdict::Inconclusive])));
        summary.add(Some(&evaluated(&["wikipedia", "map"], [Verdict::NeedsJudge, Verdict::Unsupported])));
        summary.add(None);
        assert_eq!((summary.results, summary.unreadable), (4, 1));
        let compat = &summary.profiles["compat"];
        assert_eq!((compat.total, compat.passed, compat.open(), compat.success_rate), (3, 2, 1, Some(1.0)));
        let strict = &summary.profiles["strict"];
        assert_eq!((strict.failed, strict.inconclusive, strict.unsupported, strict.success_rate), (1, 1, 1, Some(0.0)));
        assert_eq!(summary.sites["map-wikipedia"]["compat"].success_rate, None);
    }
}

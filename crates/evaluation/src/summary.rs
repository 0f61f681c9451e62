//! Counts of verdicts over many reports.

use std::collections::BTreeMap;

use serde::Serialize;

use arenad_verdict::EpisodeReports;
use arenad_verdict::{Profile, Verdict};

/// The number of times that each verdict was given under one profile.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct VerdictTally {
    /// All results, whatever their verdict; in the tally of a whole batch this includes unreadable ones.
    pub total: usize,
    /// Results in which the agent completed its task.
    pub passed: usize,
    /// Results in which the agent did not complete its task.
    pub failed: usize,
    /// Results without a verdict because the environment was at fault, or the sites were not read in time.
    pub inconclusive: usize,
    /// Results that need a judge, where none was available.
    pub needs_judge: usize,
    /// Results that the profile cannot judge.
    pub unsupported: usize,
    /// Results without a verdict because they could not be read or judged. Always zero in tallies by site.
    pub unreadable: usize,
    /// Passed results divided by all results. Undecided results count as not passed, so that no answer removes a task
    /// from the count. `None` without results.
    pub success_rate: Option<f64>,
}

impl VerdictTally {
    /// Counts one result; `None` stands for a result that could not be read.
    fn add(&mut self, verdict: Option<Verdict>) {
        self.total += 1;
        *match verdict {
            Some(Verdict::Passed) => &mut self.passed,
            Some(Verdict::Failed) => &mut self.failed,
            Some(Verdict::Inconclusive) => &mut self.inconclusive,
            Some(Verdict::NeedsJudge) => &mut self.needs_judge,
            Some(Verdict::Unsupported) => &mut self.unsupported,
            None => &mut self.unreadable,
        } += 1;
        #[expect(clippy::cast_precision_loss, reason = "there are fewer than 2^52 results")]
        let rate = self.passed as f64 / self.total as f64;
        self.success_rate = Some(rate);
    }
}

/// Tallies by the name of the profile.
pub(crate) type Tallies = BTreeMap<&'static str, VerdictTally>;

/// The tallies of a batch of results.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Number of results, including unreadable ones.
    pub results: usize,
    /// Number of results that could not be read or judged.
    pub unreadable: usize,
    /// Tallies of all results, by profile.
    pub profiles: Tallies,
    /// Tallies by the sites that tasks need, sorted and joined by `-`.
    pub sites: BTreeMap<String, Tallies>,
}

impl Summary {
    /// Returns an empty summary with a tally for each of the given profiles.
    #[must_use]
    pub fn of(profiles: &[Profile]) -> Self {
        let profiles = profiles.iter().map(|profile| (profile.name(), VerdictTally::default())).collect();
        Self { profiles, ..Self::default() }
    }

    /// Counts one result; `None` stands for a result that could not be read or judged.
    pub fn add(&mut self, result: Option<&EpisodeReports>) {
        self.results += 1;
        let Some(evaluated) = result else {
            self.unreadable += 1;
            self.profiles.values_mut().for_each(|tally| tally.add(None));
            return;
        };
        let mut sites = evaluated.sites.clone();
        sites.sort_unstable();
        let of_sites = self.sites.entry(sites.join("-")).or_default();
        for report in &evaluated.reports {
            let name = report.profile.name();
            self.profiles.entry(name).or_default().add(Some(report.verdict));
            of_sites.entry(name).or_default().add(Some(report.verdict));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use arenad_verdict::Benchmark;
    use arenad_verdict::{Check, Report};

    fn evaluated(sites: &[&str], verdicts: [Verdict; 2]) -> EpisodeReports {
        let report =
            |(profile, verdict)| Report::of(profile, vec![Check::open("e", "r", "p", Value::Null, verdict, "")]);
        EpisodeReports {
            benchmark: Benchmark::WebArena,
            task: "1".to_owned(),
            intent: String::new(),
            sites: sites.iter().map(|site| (*site).to_owned()).collect(),
            reports: [Profile::Compat, Profile::Strict].into_iter().zip(verdicts).map(report).collect(),
            warnings: Vec::new(),
        }
    }

    #[test]
    fn rates_are_over_all_results() {
        let mut summary = Summary::of(&[Profile::Compat, Profile::Strict]);
        summary.add(Some(&evaluated(&["shopping"], [Verdict::Passed, Verdict::Failed])));
        summary.add(Some(&evaluated(&["shopping"], [Verdict::Passed, Verdict::Inconclusive])));
        summary.add(Some(&evaluated(&["wikipedia", "map"], [Verdict::NeedsJudge, Verdict::Unsupported])));
        summary.add(None);
        assert_eq!((summary.results, summary.unreadable), (4, 1));
        let compat = &summary.profiles["compat"];
        assert_eq!((compat.total, compat.passed, compat.failed, compat.success_rate), (4, 2, 0, Some(0.5)));
        let strict = &summary.profiles["strict"];
        assert_eq!((strict.failed, strict.inconclusive, strict.unsupported, strict.unreadable), (1, 1, 1, 1));
        assert_eq!(strict.success_rate, Some(0.0));
        assert_eq!(summary.sites["map-wikipedia"]["compat"].success_rate, Some(0.0));
        assert_eq!(Summary::of(&[Profile::Strict]).profiles["strict"].success_rate, None);
    }

    /// With 95 undecidable answers and 5 right ones, the rate is 5 of 100.
    #[test]
    fn undecided_answers_do_not_raise_the_rate() {
        let mut summary = Summary::of(&[Profile::Strict]);
        for number in 0..100 {
            let verdict = if number < 5 { Verdict::Passed } else { Verdict::Unsupported };
            summary.add(Some(&evaluated(&["map"], [verdict, verdict])));
        }
        assert_eq!(summary.profiles["strict"].success_rate, Some(0.05));
    }
}

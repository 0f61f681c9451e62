//! Many reports in a few numbers.

use std::collections::BTreeMap;

use serde::Serialize;

use arenad_verdict::Evaluated;
use arenad_verdict::{Profile, Verdict};

/// How often each verdict was given under one profile.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Tally {
    /// All results, whatever their verdict; in the tally of a whole batch also those that could not be read.
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
    /// How many results could not be read or judged, so that there is no verdict. The tallies by site have none of these.
    pub unreadable: usize,
    /// Passed of all: what is undecided counts as not passed, so that no answer takes a task out of the count. Nothing if
    /// there are no results.
    pub success_rate: Option<f64>,
}

impl Tally {
    /// Counts one result; `None` is one that could not be read.
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
        #[expect(clippy::cast_precision_loss, reason = "nobody has 2^52 results")]
        let rate = self.passed as f64 / self.total as f64;
        self.success_rate = Some(rate);
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
    /// All results by profile.
    pub profiles: Tallies,
    /// The same by the sites that tasks need, sorted and joined by `-`.
    pub sites: BTreeMap<String, Tallies>,
}

impl Summary {
    /// A summary of no results yet, under some profiles.
    #[must_use]
    pub fn of(profiles: &[Profile]) -> Self {
        let profiles = profiles.iter().map(|profile| (name(*profile), Tally::default())).collect();
        Self { profiles, ..Self::default() }
    }

    /// Counts one result; nothing if it could not be read or judged.
    pub fn add(&mut self, result: Option<&Evaluated>) {
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
            let name = name(report.profile);
            self.profiles.entry(name).or_default().add(Some(report.verdict));
            of_sites.entry(name).or_default().add(Some(report.verdict));
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
    use arenad_verdict::Benchmark;
    use arenad_verdict::{Check, Report};

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
    fn rates_are_over_all_results() {
        let mut summary = Summary::of(&[Profile::Compat, Profile::Strict]);
        summary.add(Some(&evaluated(&["shopping"], [Verdict::Passed, Verdict::Failed])));
        summary.add(Some(&evaluated(&["shopping"], [Verdict::Passed, Verdict::Inconclusive])));
        summary.add(Some(&evaluated(&["wikipedia", "map"], [Verdict::NeedsJudge, Verdict::Unsupported])));
        summary.add(None);
        assert_eq!((summary.results, summary.unreadable), (4, 1));
        let compat = &summary.profiles["compat"];
        assert_eq!((compat.total, compat.passed, compat.open(), compat.success_rate), (4, 2, 2, Some(0.5)));
        let strict = &summary.profiles["strict"];
        assert_eq!((strict.failed, strict.inconclusive, strict.unsupported, strict.unreadable), (1, 1, 1, 1));
        assert_eq!(strict.success_rate, Some(0.0));
        assert_eq!(summary.sites["map-wikipedia"]["compat"].success_rate, Some(0.0));
        assert_eq!(Summary::of(&[Profile::Strict]).profiles["strict"].success_rate, None);
    }

    /// 95 answers that nobody can decide and 5 right ones are 5 of 100.
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

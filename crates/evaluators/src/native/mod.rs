//! Native checks, which compare the readings of an episode with the criterion of its task.
//!
//! ```text
//!   criterion ─► readings ─► (the caller reads) ─► sights ─┐
//!                                answer, url, captured ────┴─► judge ─► Report
//! ```
//! A part without a verdict (the site was down, or the check cannot be made) decides nothing: `all` fails if another
//! part fails, `any` passes if another part passes, and otherwise the whole has no verdict either. See [`logic`].

mod answers;
mod logic;
mod matching;
mod tree;
pub mod words;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value as Json;

use self::matching::Fit;
use super::strict::addresses::NormalUrl;
use arenad_model::locator::Value;
use arenad_model::task::{AddressCriterion, Criterion, CriterionKind, PathRule, Reading, Rule, Task};
use arenad_verdict::{Check, Profile, Report, Verdict, excerpt};

/// The facts about an episode that do not come from its sites.
#[derive(Debug, Clone, Copy)]
pub struct Episode<'a> {
    /// The final answer of the agent; empty if there is none.
    pub answer: &'a str,
    /// URL of the page on which the agent ended, if it is known.
    pub url: Option<&'a str>,
    /// The reason why the URL is unknown, if the agent's browser was asked for it.
    pub no_url: Option<&'a str>,
    /// The values that were captured when the episode began, by name.
    pub captured: &'a BTreeMap<String, Value>,
}

/// The result of one reading of a site.
#[derive(Debug, Clone, PartialEq)]
pub struct Sight {
    /// The reading that was requested.
    pub reading: Reading,
    /// The outcome of the reading.
    pub seen: ReadingOutcome,
    /// Time that the reading took.
    pub took: Duration,
}

/// The outcome of a reading.
#[derive(Debug, Clone, PartialEq)]
pub enum ReadingOutcome {
    /// The value that was read.
    Value(Value),
    /// No value, because the page's script failed: the element that it looks for is missing.
    Nothing(String),
    /// The site could not be read, because it is down, was reset, or took too long. This says nothing about the agent.
    Unavailable(String),
    /// The reading is of a kind that is not supported.
    Unsupported(String),
}

/// Returns the readings that a verdict needs, without duplicates.
#[must_use]
pub fn readings(task: &Task) -> Vec<&Reading> {
    let mut found: Vec<&Reading> = Vec::new();
    for leaf in task.criterion.leaves() {
        if let CriterionKind::Site(reading, _) = &leaf.kind
            && !found.contains(&reading.as_ref())
        {
            found.push(reading);
        }
    }
    found
}

/// Judges an episode by its readings and the criterion of its task.
#[must_use]
pub fn judge(criterion: &Criterion, episode: &Episode<'_>, sights: &[Sight]) -> Report {
    let judged = EpisodeJudge { episode, sights }.judge(criterion);
    // The parts of a top-level `all` are shown without a line for the combination.
    let is_plain_all = judged.name.is_none() && matches!(criterion.kind, CriterionKind::All(_));
    let checks = if is_plain_all { judged.parts } else { vec![judged] };
    Report::of(Profile::Strict, checks)
}

struct EpisodeJudge<'a> {
    episode: &'a Episode<'a>,
    sights: &'a [Sight],
}

impl EpisodeJudge<'_> {
    fn judge(&self, criterion: &Criterion) -> Check {
        let check = match &criterion.kind {
            CriterionKind::All(parts) => self.combined("all", parts, logic::all),
            CriterionKind::Any(parts) => self.combined("any", parts, logic::any),
            CriterionKind::Not(part) => {
                self.combined("not", std::slice::from_ref(part), |verdicts| logic::not(logic::all(verdicts)))
            }
            CriterionKind::Site(reading, rule) => self.site(criterion, reading, rule),
            CriterionKind::Answer(rule) => {
                let fit = answers::fit(rule, self.episode.answer, self.episode.captured);
                leaf("answer", criterion, &Json::from(self.episode.answer), fit)
            }
            CriterionKind::Unachievable => {
                let fit = Fit::of(answers::says_unachievable(self.episode.answer));
                leaf("answer", criterion, &Json::from(self.episode.answer), fit)
            }
            CriterionKind::Url(address) => match self.episode.url {
                Some(url) => leaf("url", criterion, &Json::from(url), is_at(address, url)),
                None => {
                    let reason = self.episode.no_url.map_or_else(
                        || "the URL where the agent ended is not known: give it, or its browser".to_owned(),
                        |reason| format!("the URL where the agent ended is not known: {reason}"),
                    );
                    open("url", criterion, Verdict::Inconclusive, &reason)
                }
            },
        };
        Check { name: criterion.name.clone(), ..check }
    }

    fn site(&self, criterion: &Criterion, reading: &Reading, rule: &Rule) -> Check {
        let Some(sight) = self.sights.iter().find(|sight| sight.reading == *reading) else {
            return open("site", criterion, Verdict::Inconclusive, "it was not read");
        };
        let fit = |found: &Json| matching::site(rule, found, self.episode.captured);
        let check = match &sight.seen {
            ReadingOutcome::Value(value) => {
                let found = tree::of(value);
                leaf("site", criterion, &found, fit(&found))
            }
            ReadingOutcome::Nothing(reason) => {
                let check = leaf("site", criterion, &Json::Null, fit(&Json::Null));
                Check { reason: Some(reason.clone()), ..check }
            }
            ReadingOutcome::Unavailable(reason) => open("site", criterion, Verdict::Inconclusive, reason),
            ReadingOutcome::Unsupported(reason) => open("site", criterion, Verdict::Unsupported, reason),
        };
        Check { duration_ms: Some(sight.took.as_secs_f64() * 1e3), ..check }
    }

    fn combined(&self, rule: &str, parts: &[Criterion], combine: fn(&[Verdict]) -> Verdict) -> Check {
        let parts: Vec<Check> = parts.iter().map(|part| self.judge(part)).collect();
        let verdicts: Vec<Verdict> = parts.iter().map(|part| part.verdict).collect();
        let passed = verdicts.iter().filter(|verdict| **verdict == Verdict::Passed).count();
        let check = Check::of("", rule, "", parts.len().into(), passed.into(), false);
        Check { verdict: combine(&verdicts), parts, ..check }
    }
}

/// Returns a check that was made.
fn leaf(subject: &'static str, criterion: &Criterion, found: &Json, fit: Fit) -> Check {
    let words::Leaf { place, rule, expected } = words::leaf(criterion);
    let shown = match found {
        Json::String(text) => excerpt(text),
        other => other.clone(),
    };
    match fit {
        Fit::Yes => Check::of(subject, &rule, &place, expected, shown, true),
        Fit::No(reason) => Check { reason, ..Check::of(subject, &rule, &place, expected, shown, false) },
        Fit::Never(reason) => {
            let check = Check::open(subject, &rule, &place, expected, Verdict::Unsupported, &reason);
            Check { found: Some(shown), ..check }
        }
    }
}

/// Returns a check that could not be made.
fn open(subject: &'static str, criterion: &Criterion, verdict: Verdict, reason: &str) -> Check {
    let words::Leaf { place, rule, expected } = words::leaf(criterion);
    Check::open(subject, &rule, &place, expected, verdict, reason)
}

/// Checks whether a URL is the one on which the agent must end.
fn is_at(address: &AddressCriterion, url: &str) -> Fit {
    let path = match &address.path {
        PathRule::Is(path) => path.as_str(),
        PathRule::Any | PathRule::Matches(_) => "/",
    };
    let Ok(mut reference) = url::Url::parse(&format!("{}{path}", address.origin)) else {
        return Fit::Never(format!("{}{path} is not a URL", address.origin));
    };
    if !address.query.is_empty() {
        reference.query_pairs_mut().extend_pairs(&address.query);
    }
    let found = NormalUrl::of(url);
    let is_there = found.is_at(&NormalUrl::of(reference.as_str()), matches!(address.path, PathRule::Is(_)));
    match &address.path {
        PathRule::Matches(pattern) if is_there => matching::matches(pattern, found.path(), false),
        _ => Fit::of(is_there),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arenad_model::ids::SiteName;
    use arenad_model::locator::{Arguments, parse};
    use arenad_model::task::{Bounds, Matcher, ReadingRecipe, TaskKind};

    fn reading(statement: &str) -> Reading {
        let text = format!("sql: {statement}");
        Reading {
            site: SiteName::parse("shop").expect("a name"),
            recipe: ReadingRecipe::Locator(parse(&text).expect("a locator")),
            text,
            arguments: Arguments::default(),
            captured: Vec::new(),
            page: None,
            account: None,
        }
    }

    fn site(statement: &str, matcher: Matcher) -> Criterion {
        let rule = Rule { matcher, ignore_case: false };
        Criterion { name: None, kind: CriterionKind::Site(Box::new(reading(statement)), rule) }
    }

    fn task(criterion: Criterion) -> Task {
        Task {
            name: "t".to_owned(),
            kind: TaskKind::Content,
            intent: String::new(),
            sites: Vec::new(),
            accounts: Vec::new(),
            start: String::new(),
            snapshots: Vec::new(),
            before: Vec::new(),
            criterion,
        }
    }

    fn sight(statement: &str, seen: ReadingOutcome) -> Sight {
        Sight { reading: reading(statement), seen, took: Duration::from_millis(2) }
    }

    fn verdict(criterion: Criterion, sights: &[Sight]) -> Report {
        let captured = BTreeMap::from([("orders".to_owned(), Value::Integer(3))]);
        judge(&criterion, &Episode { answer: "", url: None, no_url: None, captured: &captured }, sights)
    }

    #[test]
    fn one_more_than_before_is_a_difference() {
        let one_more = || site("a", Matcher::Difference("orders".to_owned(), Bounds::exactly(1.into())));
        for (found, expected) in [(4, Verdict::Passed), (3, Verdict::Failed), (5, Verdict::Failed)] {
            let report = verdict(one_more(), &[sight("a", ReadingOutcome::Value(Value::Integer(found)))]);
            assert_eq!(report.verdict, expected, "{found}");
            assert_eq!(report.checks[0].duration_ms, Some(2.0));
        }
        let report = verdict(one_more(), &[sight("a", ReadingOutcome::Value(Value::Integer(3)))]);
        assert_eq!(report.checks[0].reason.as_deref(), Some("it was 3, so the difference is 0, not 1"));
    }

    #[test]
    fn what_could_not_be_looked_at_is_open_and_a_failure_beside_it_decides() {
        let equals = |statement| site(statement, Matcher::Equals(Value::Integer(1)));
        let all = || Criterion { name: None, kind: CriterionKind::All(vec![equals("a"), equals("b")]) };
        let down = || sight("a", ReadingOutcome::Unavailable("the site is down".to_owned()));
        let report = verdict(all(), &[down(), sight("b", ReadingOutcome::Value(Value::Integer(1)))]);
        assert_eq!((report.verdict, report.score), (Verdict::Inconclusive, None));
        assert_eq!(report.checks[0].reason.as_deref(), Some("the site is down"));
        let report = verdict(all(), &[down(), sight("b", ReadingOutcome::Value(Value::Integer(2)))]);
        assert_eq!((report.verdict, report.score), (Verdict::Failed, Some(0.0)));
        let report = verdict(all(), &[]);
        assert_eq!(report.verdict, Verdict::Inconclusive);
    }

    #[test]
    fn the_same_reading_is_looked_at_once() {
        let twice = vec![site("a", Matcher::Equals(Value::Integer(1))), site("a", Matcher::Equals(Value::Integer(2)))];
        let task = task(Criterion { name: None, kind: CriterionKind::Any(twice) });
        assert_eq!(readings(&task).len(), 1);
    }

    #[test]
    fn a_script_that_fails_finds_nothing() {
        let nothing = || sight("a", ReadingOutcome::Nothing("x is null".to_owned()));
        assert_eq!(verdict(site("a", Matcher::Equals(Value::Null)), &[nothing()]).verdict, Verdict::Passed);
        let report = verdict(site("a", Matcher::Contains(vec![Value::Text("x".to_owned())])), &[nothing()]);
        assert_eq!((report.verdict, report.checks[0].reason.as_deref()), (Verdict::Failed, Some("x is null")));
    }

    #[test]
    fn addresses_are_compared_part_by_part() {
        let at = |path, query: &[(&str, &str)]| AddressCriterion {
            site: SiteName::parse("shop").expect("a name"),
            origin: "http://localhost:7770".to_owned(),
            path,
            query: query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        };
        let orders = at(PathRule::Is("/accounts/orders/".to_owned()), &[("page", "2")]);
        for url in ["http://localhost:7770/accounts/orders?page=2", "http://127.0.0.1:7770/accounts/orders/?a=1&page=2"]
        {
            assert_eq!(is_at(&orders, url), Fit::Yes, "{url}");
        }
        for url in [
            "http://localhost:7770/accounts/orders/",
            "http://localhost:7770/accounts/orders/?page=21",
            "http://localhost:7770/accounts/orders/?page=2&page=3",
            "http://localhost:7771/accounts/orders/?page=2",
            "http://evil/?u=http://localhost:7770/accounts/orders/?page=2",
            "",
        ] {
            assert_eq!(is_at(&orders, url), Fit::No(None), "{url}");
        }
        let pattern = at(PathRule::Matches("^/catalogue/lamp_\\d+/$".to_owned()), &[]);
        assert_eq!(is_at(&pattern, "http://localhost:7770/catalogue/lamp_12/"), Fit::Yes);
        assert_ne!(is_at(&pattern, "http://localhost:7770/catalogue/clamp_12/"), Fit::Yes);
        assert_eq!(is_at(&at(PathRule::Any, &[("q", "a b")]), "http://localhost:7770/search/?q=a+b"), Fit::Yes);
    }
}

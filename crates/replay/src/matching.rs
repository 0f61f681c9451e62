//! Which recorded entry answers a request.
//!
//! The first rule is that of Playwright's `routeFromHAR` (`harBackend`): the same method and URL, for POST also the same
//! body if both have one, where the boundary of a multipart body does not count; of several entries the one that has the
//! most header fields in common with the request, of these the first. Playwright then follows recorded redirects itself; a
//! replay answers with the redirect, and the client follows it.
//!
//! Without such an entry, the rules for what moves are tried in this order: parameters by name, then masked values, each
//! first with the same body. Then HEAD is answered from GET, and preflights from the method that they ask for.
//!
//! Source: `packages/playwright-core/src/server/harBackend.ts`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use url::Url;

use super::exchange::HeaderField;
use super::kept::KeptEntry;
use super::moving::MovingRules;

/// The rule by which an entry was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MatchRule {
    /// Method, URL and body are the same.
    Exact,
    /// The body differs in what moves.
    MovedBody,
    /// The query differs in parameters that move, or in their order.
    MovedParameters,
    /// The URL differs in timestamps, UUIDs or random numbers.
    MovedValues,
    /// A HEAD request that is answered from GET.
    Head,
    /// A preflight, whose answer was not recorded.
    Preflight,
}

impl MatchRule {
    /// All rules, in the order in which they are tried.
    pub const ALL: [Self; 6] =
        [Self::Exact, Self::MovedBody, Self::MovedParameters, Self::MovedValues, Self::Head, Self::Preflight];

    /// Returns the word for the rule.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::MovedBody => "body",
            Self::MovedParameters => "parameters",
            Self::MovedValues => "values",
            Self::Head => "head",
            Self::Preflight => "preflight",
        }
    }
}

impl fmt::Display for MatchRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A request to a replay.
#[derive(Debug, Clone)]
pub struct ReplayRequest<'a> {
    /// The method in capitals.
    pub method: &'a str,
    /// The URL, whose fragment does not count.
    pub url: Url,
    /// The header fields of the request.
    pub headers: &'a [HeaderField],
    /// The body; empty if there is none.
    pub body: &'a [u8],
}

/// The answer to a request.
#[derive(Debug, Clone, Copy)]
pub enum ReplayMatch<'a> {
    /// The entry that answers the request.
    Found {
        /// The recorded exchange that is closest.
        entry: &'a KeptEntry,
        /// The rule by which it was found.
        rule: MatchRule,
    },
    /// A preflight for a request that was recorded.
    Preflight,
    /// Nothing was recorded for the request.
    Miss,
}

/// The entries of a replay, by their keys.
#[derive(Debug)]
pub struct ReplayIndex {
    entries: Vec<KeptEntry>,
    urls: Vec<Url>,
    rules: MovingRules,
    exact: HashMap<String, Vec<usize>>,
    parameters: HashMap<String, Vec<usize>>,
    values: HashMap<String, Vec<usize>>,
}

fn key(method: &str, url: &str) -> String {
    format!("{method} {url}")
}

impl ReplayIndex {
    pub(crate) fn new(entries: Vec<KeptEntry>, rules: MovingRules) -> Self {
        let (mut kept, mut urls) = (Vec::new(), Vec::new());
        let (mut exact, mut parameters, mut values) =
            (HashMap::<_, Vec<usize>>::new(), HashMap::<_, Vec<usize>>::new(), HashMap::<_, Vec<usize>>::new());
        for entry in entries {
            // The builder has parsed the URL before.
            let Ok(url) = Url::parse(&entry.url) else { continue };
            let index = kept.len();
            exact.entry(key(&entry.method, url.as_str())).or_default().push(index);
            parameters.entry(key(&entry.method, &rules.without_parameters(&url))).or_default().push(index);
            values.entry(key(&entry.method, &rules.with_masks(&url))).or_default().push(index);
            kept.push(entry);
            urls.push(url);
        }
        Self { entries: kept, urls, rules, exact, parameters, values }
    }

    /// Returns the answer to a request.
    pub fn find(&self, request: &ReplayRequest<'_>) -> ReplayMatch<'_> {
        let mut url = request.url.clone();
        url.set_fragment(None);
        if let Some((entry, rule)) = self.entry(request.method, &url, request) {
            return ReplayMatch::Found { entry, rule };
        }
        if request.method == "HEAD"
            && let Some((entry, _)) = self.entry("GET", &url, request)
        {
            return ReplayMatch::Found { entry, rule: MatchRule::Head };
        }
        let asked = request.headers.iter().find(|field| field.is("access-control-request-method"));
        if request.method == "OPTIONS"
            && let Some(HeaderField(_, method)) = asked
            && self.has(&method.to_ascii_uppercase(), &url)
        {
            return ReplayMatch::Preflight;
        }
        ReplayMatch::Miss
    }

    fn has(&self, method: &str, url: &Url) -> bool {
        self.values.contains_key(&key(method, &self.rules.with_masks(url)))
    }

    fn entry(&self, method: &str, url: &Url, request: &ReplayRequest<'_>) -> Option<(&KeptEntry, MatchRule)> {
        let body =
            (method == "POST" && !request.body.is_empty()).then(|| self.rules.body_keys(request.body, request.headers));
        let same = |index: &usize| match (&body, &self.entries[*index].sent) {
            (Some(asked), Some(recorded)) => asked.exact == recorded.exact,
            _ => true,
        };
        let moved = |index: &usize| match (&body, &self.entries[*index].sent) {
            (Some(asked), Some(recorded)) => asked.moved == recorded.moved,
            _ => true,
        };
        let tiers = [
            (self.exact.get(&key(method, url.as_str())), MatchRule::Exact, MatchRule::MovedBody),
            (
                self.parameters.get(&key(method, &self.rules.without_parameters(url))),
                MatchRule::MovedParameters,
                MatchRule::MovedParameters,
            ),
            (
                self.values.get(&key(method, &self.rules.with_masks(url))),
                MatchRule::MovedValues,
                MatchRule::MovedValues,
            ),
        ];
        for (found, with_same, with_moved) in tiers {
            let found = found.map(Vec::as_slice).unwrap_or_default();
            let of_same: Vec<usize> = found.iter().copied().filter(same).collect();
            if let Some(best) = self.closest(&of_same, url, request) {
                return Some((best, with_same));
            }
            let of_moved: Vec<usize> = found.iter().copied().filter(moved).collect();
            if let Some(best) = self.closest(&of_moved, url, request) {
                return Some((best, with_moved));
            }
        }
        None
    }

    /// Returns the entry that is closest to the request; of equally close ones the first.
    fn closest(&self, found: &[usize], url: &Url, request: &ReplayRequest<'_>) -> Option<&KeptEntry> {
        if let [] | [_] = found {
            return found.first().map(|index| &self.entries[*index]);
        }
        let lines: BTreeSet<String> = request.headers.iter().map(line).collect();
        let closeness = |index: &usize| {
            let headers = self.entries[*index].request_headers.iter().filter(|field| lines.contains(&line(field)));
            (MovingRules::common_parameters(&self.urls[*index], url), headers.count())
        };
        let mut best: Option<((usize, usize), usize)> = None;
        for index in found {
            let close = closeness(index);
            if best.is_none_or(|(most, _)| close > most) {
                best = Some((close, *index));
            }
        }
        best.map(|(_, index)| &self.entries[index])
    }

    /// Returns the entries, in the order of the recordings.
    pub fn entries(&self) -> &[KeptEntry] {
        &self.entries
    }

    /// Returns the number of entries by status.
    pub fn statuses(&self) -> BTreeMap<u16, usize> {
        let mut counts = BTreeMap::new();
        for entry in &self.entries {
            *counts.entry(entry.status).or_default() += 1;
        }
        counts
    }
}

fn line(field: &HeaderField) -> String {
    format!("{}:{}", field.0.to_ascii_lowercase(), field.1)
}

//! All that is known of an episode.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::case::{Case, CaseError};
use super::placeholders::Urls;
use super::{Benchmark, Traffic};
use crate::evaluators::question::Told;
use crate::evaluators::verdict::{Profile, Report};

/// An instance that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LookedAt {
    /// The site.
    pub site: String,
    /// The instance.
    pub instance: String,
    /// Its generation.
    pub generation: u64,
}

/// All that is known of an episode, whatever the profile: enough to judge it again without its sites.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// The benchmark.
    pub benchmark: Benchmark,
    /// The task's number as it was asked for, such as `35`, or `shopping/35` of VisualWebArena.
    pub id: String,
    /// The task as the benchmark publishes it.
    pub task: Value,
    /// Where the sites were, by placeholder.
    #[serde(default)]
    pub urls: Urls,
    /// What the agent answered; of WebArena-Verified the content of `agent_response.json`.
    #[serde(default)]
    pub answer: String,
    /// The URL of the page where it ended.
    #[serde(default)]
    pub url: String,
    /// What evaluators asked and were told.
    #[serde(default)]
    pub told: Told,
    /// The traffic of the agent's browser.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<Traffic>,
    /// The instances that answers come from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub looked_at: Vec<LookedAt>,
}

/// An episode's reports.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Evaluated {
    /// The benchmark.
    pub benchmark: Benchmark,
    /// The task's number.
    pub task: String,
    /// What the agent was told.
    pub intent: String,
    /// The sites that the task needs.
    pub sites: Vec<String>,
    /// One for each profile that was asked for.
    pub reports: Vec<Report>,
    /// What whoever reads them should know besides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Evidence {
    /// Judges by it, and by nothing else.
    ///
    /// # Errors
    ///
    /// When the task is at fault.
    pub fn evaluate(&self, profiles: &[Profile]) -> Result<Evaluated, CaseError> {
        let case = Case::of(self)?;
        let reports = profiles.iter().map(|profile| case.report(&self.told, *profile));
        let mut warnings = case.warnings();
        warnings.extend(self.elsewhere());
        Ok(Evaluated {
            benchmark: self.benchmark,
            task: self.id.clone(),
            intent: case.intent().to_owned(),
            sites: case.sites().to_vec(),
            reports: reports.collect::<Result<_, _>>()?,
            warnings,
        })
    }

    /// What to say where the agent ended on a host that no site has: the result may be of another installation.
    fn elsewhere(&self) -> Option<String> {
        let host = |url: &str| {
            let url = url::Url::parse(url).ok()?;
            Some((url.host_str()?.to_owned(), url.port_or_known_default()))
        };
        let ended = host(&self.url)?;
        let is_known = self.urls.values().flatten().any(|url| host(url).as_ref() == Some(&ended));
        (!is_known && !self.urls.is_empty()).then(|| {
            format!("the agent ended at {}, where none of the sites is; --site NAME=URL says where they were", self.url)
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn evidence(url: &str) -> Evidence {
        Evidence {
            benchmark: Benchmark::WebArena,
            id: "1".to_owned(),
            task: json!({
                "task_id": 1, "sites": ["shopping"], "start_url": "__SHOPPING__", "intent": "?",
                "eval": { "eval_types": ["url_match"], "reference_url": "__SHOPPING__/a" },
            }),
            urls: Urls::from([("__SHOPPING__".to_owned(), vec!["http://h:7770".to_owned()])]),
            answer: String::new(),
            url: url.to_owned(),
            told: Told::default(),
            traffic: None,
            looked_at: Vec::new(),
        }
    }

    #[test]
    fn evidence_gives_the_same_reports_after_it_was_kept() {
        let kept = serde_json::to_string(&evidence("http://h:7770/a")).expect("JSON");
        let back: Evidence = serde_json::from_str(&kept).expect("evidence");
        let evaluated = back.evaluate(&[Profile::Compat, Profile::Strict]).expect("a task");
        assert_eq!(
            evaluated.reports,
            evidence("http://h:7770/a").evaluate(&[Profile::Compat, Profile::Strict]).expect("a task").reports
        );
        assert!(evaluated.reports.iter().all(|report| report.score == Some(1.0)) && evaluated.warnings.is_empty());
    }

    #[test]
    fn a_page_of_another_installation_is_warned_of() {
        let warnings = |url: &str| evidence(url).evaluate(&[Profile::Compat]).expect("a task").warnings;
        assert!(warnings("http://h:7771/a")[0].contains("--site"));
        assert!(warnings("").is_empty() && warnings("http://h:7770/").is_empty());
    }

    #[test]
    fn a_task_without_an_address_is_no_case() {
        let mut nowhere = evidence("");
        nowhere.urls.clear();
        let said = nowhere.evaluate(&[Profile::Compat]).expect_err("no address").to_string();
        assert!(said.contains("__SHOPPING__"), "{said}");
    }
}

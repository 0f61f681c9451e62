//! The request for an episode, from the arguments of `arenad episode start` and `arenad run`.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::cli::args::{EpisodeTermsArgs, TaskChoice};
use crate::cli::check::SelectedTask;
use crate::cli::client::ApiClient;
use crate::cli::failure::CommandFailure;
use crate::cli::find;
use arenad_api::Status;
use arenad_api::episodes::EpisodeStartRequest;

/// Returns the request, without its time to live.
pub async fn request(
    client: &ApiClient,
    sites: &[String],
    terms: &EpisodeTermsArgs,
) -> Result<EpisodeStartRequest, CommandFailure> {
    let choice = TaskChoice { file: terms.file.clone(), environment: terms.environment.clone() };
    let task = terms.task.as_deref().map(|task| SelectedTask::of(task, &choice)).transpose()?;
    let named = task.as_ref().and_then(|task| task.environment.clone()).or_else(|| terms.environment.clone());
    let (environment, sites) = match (sites, &task) {
        // The daemon knows which environment has the task.
        ([], Some(_)) => (named, Vec::new()),
        _ => {
            let (environment, sites) = chosen(&client.status().await?, named.as_deref(), sites)?;
            (Some(environment), sites)
        }
    };
    Ok(EpisodeStartRequest {
        snapshots: by_site(environment.as_deref(), &terms.snapshots)?,
        slots: by_site(environment.as_deref(), &terms.slots)?,
        environment,
        sites,
        task: task.as_ref().map(|task| task.task.clone()),
        file: task.and_then(|task| task.file),
        ttl_seconds: None,
        wait_seconds: terms.wait.map(seconds),
        detach: false,
        hold: false,
        owner: terms.owner.clone(),
        labels: terms.labels.iter().cloned().collect(),
        record: terms.record,
        replays: terms.replays.clone(),
        from_episode: None,
    })
}

/// Returns a duration in whole seconds, rounded up: a limit that a person gives is never shortened.
pub fn seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}

/// Returns the environment and the sites that are named; no sites mean all of the environment.
fn chosen(
    status: &Status,
    environment: Option<&str>,
    sites: &[String],
) -> Result<(String, Vec<String>), CommandFailure> {
    if sites.is_empty() {
        return Ok((find::environment(status, environment)?.name.clone(), Vec::new()));
    }
    let mut found = find::sites(status, environment, sites)?;
    match (found.pop(), found.as_slice()) {
        (Some(only), []) => Ok(only),
        (last, others) => {
            let names: Vec<&str> = others.iter().chain(&last).map(|(name, _)| name.as_str()).collect();
            Err(CommandFailure::usage(format!("the sites belong to {}", names.join(" and ")))
                .hint("name sites of one environment: an episode has no others"))
        }
    }
}

/// Returns the values by the names of sites, which may be given as `SITE` or `ENVIRONMENT/SITE`.
fn by_site<T: Clone>(environment: Option<&str>, given: &[(String, T)]) -> Result<BTreeMap<String, T>, CommandFailure> {
    let mut found = BTreeMap::new();
    for (name, value) in given {
        let (_, site) = find::split(environment, name)?;
        if found.insert(site.to_owned(), value.clone()).is_some() {
            return Err(CommandFailure::usage(format!("{site} is named twice")));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_are_named_in_both_ways_and_once() {
        let given = |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), 1)).collect::<Vec<_>>();
        let found = by_site(Some("mini"), &given(&["shopping", "mini/reddit"])).expect("valid");
        assert_eq!(found.into_keys().collect::<Vec<_>>(), ["reddit", "shopping"]);
        assert!(by_site(Some("mini"), &given(&["shopping", "mini/shopping"])).is_err());
        assert!(by_site(Some("mini"), &given(&["other/shopping"])).is_err());
    }

    #[test]
    fn parts_of_a_second_count_as_a_second() {
        assert_eq!(seconds(Duration::from_millis(1)), 1);
        assert_eq!(seconds(Duration::from_secs(90)), 90);
    }
}

//! Finds the addresses of the sites.

use serde_json::Value;

use crate::cli::args::Global;
use crate::cli::client::ApiClient;
use crate::cli::failure::CommandFailure;
use crate::cli::{definition, find};
use arenad_api::{EnvironmentStatus, Status};
use arenad_evaluation::{of_environment, placeholder, speaks_of};
use arenad_verdict::Urls;

/// Returns the sites' addresses: the given ones, else those of the environment that is up, else those of the definition
/// of `otherwise`. The origin of a result is never guessed from the surroundings, because a wrong address leads to a
/// wrong verdict.
pub async fn of(
    global: &Global,
    environment: Option<&str>,
    otherwise: Option<&str>,
    given: &[(String, String)],
) -> Result<Urls, CommandFailure> {
    let status = status(global).await?;
    let up = status.as_ref().and_then(|status| chosen(status, environment));
    together(up, otherwise, given)
}

/// Returns the same for one task, with the environment of the task if it is up: the named one, the only one, or the
/// only one that has the sites that the task refers to.
pub async fn of_task(
    global: &Global,
    environment: Option<&str>,
    task: &Value,
    given: &[(String, String)],
) -> Result<(Urls, Option<String>), CommandFailure> {
    let status = status(global).await?;
    let up = match &status {
        Some(status) => of_sites(status, environment, task, &self::given(given))?,
        None => None,
    };
    Ok((together(up, environment, given)?, up.map(|found| found.name.clone())))
}

fn together(
    up: Option<&EnvironmentStatus>,
    otherwise: Option<&str>,
    given: &[(String, String)],
) -> Result<Urls, CommandFailure> {
    let mut urls = match (up, otherwise) {
        (Some(environment), _) => addresses(environment),
        (None, Some(name)) => of_definition(name)?,
        (None, None) => Urls::new(),
    };
    urls.extend(self::given(given));
    Ok(urls)
}

/// Returns the environment, among those that are up, that has the task's sites; `None` if the task refers to no site.
fn of_sites<'a>(
    status: &'a Status,
    name: Option<&str>,
    task: &Value,
    given: &Urls,
) -> Result<Option<&'a EnvironmentStatus>, CommandFailure> {
    if let Some(found) = chosen(status, name) {
        return Ok(Some(found));
    }
    if name.is_some() {
        return Ok(None);
    }
    let all = status.environments.iter();
    let having: Vec<&EnvironmentStatus> = all.filter(|known| speaks_of(task, &addresses(known), given)).collect();
    match having.as_slice() {
        [] => Ok(None),
        [only] => Ok(Some(only)),
        several => {
            let names: Vec<&str> = several.iter().map(|known| known.name.as_str()).collect();
            Err(find::ambiguous(&format!("{} have the sites of this task", names.join(" and ")), &names))
        }
    }
}

/// Returns the given addresses, by placeholder.
pub fn given(pairs: &[(String, String)]) -> Urls {
    let mut urls = Urls::new();
    for (name, url) in pairs {
        urls.entry(name.clone()).or_default().push(url.clone());
    }
    urls
}

/// Returns the status; `None` if no daemon can be reached, because it is not yet known whether one is needed.
async fn status(global: &Global) -> Result<Option<Status>, CommandFailure> {
    let client = ApiClient::new(global)?;
    match client.is_running().await {
        Ok(true) => Ok(Some(client.status().await?)),
        Ok(false) | Err(_) => Ok(None),
    }
}

fn addresses(environment: &EnvironmentStatus) -> Urls {
    let sites = environment.sites.iter();
    sites.filter_map(|site| Some((placeholder(site.variable.as_ref()?), vec![site.url.clone()]))).collect()
}

/// Returns the named environment, or the only one that is up.
fn chosen<'a>(status: &'a Status, name: Option<&str>) -> Option<&'a EnvironmentStatus> {
    match (name, status.environments.as_slice()) {
        (Some(name), all) => all.iter().find(|environment| environment.name == name),
        (None, [only]) => Some(only),
        (None, _) => None,
    }
}

fn of_definition(environment: &str) -> Result<Urls, CommandFailure> {
    let located = definition::locate(Some(environment), None, None)?;
    Ok(of_environment(&definition::load(&located)?.loaded.environment))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sites_of_several_environments_are_not_guessed() {
        let environment = |name: &str, variable: &str| {
            json!({ "name": name, "description": "", "host": "h", "sites": [{
                "environment": name, "name": "s", "title": "", "url": format!("http://h:{}", name.len()), "variable": variable,
                "instance": "", "state": "ready", "since": "", "stage": null, "waiting_for": null, "reason": null,
                "hint": null, "generation": 1, "snapshot": null, "last_passed": null, "containers": [],
                "has_stores": false, "conditions": [], "last_reset": null, "standbys": { "wanted": 0, "members": [] },
            }] })
        };
        let status = json!({
            "daemon": {
                "version": "0", "pid": 1, "installation": "i", "state_dir": "/s", "background": true, "started_at": "",
                "engine": "unix:///e",
            },
            "conditions": [],
            "environments": [environment("a", "GITLAB"), environment("bb", "GITLAB"), environment("ccc", "SHOPPING")],
        });
        let status: Status = serde_json::from_value(status).expect("a status");
        let of = |name: Option<&str>, start: &str| {
            let found = of_sites(&status, name, &json!({ "start_url": start }), &Urls::new());
            found.map(|found| found.map(|known| known.name.as_str())).map_err(|failure| failure.error.to_string())
        };
        assert_eq!(of(None, "__SHOPPING__"), Ok(Some("ccc")));
        assert_eq!(of(None, "http://h:2/a"), Ok(Some("bb")));
        assert_eq!(of(None, "__GITLAB__"), Err("a and bb have the sites of this task".to_owned()));
        assert_eq!(of(Some("bb"), "__GITLAB__"), Ok(Some("bb")));
        assert_eq!(of(None, "__REDDIT__"), Ok(None));
    }
}

//! Where the sites are.

use crate::cli::args::Global;
use crate::cli::client::Client;
use crate::cli::definition;
use crate::cli::failure::Failure;
use crate::evaluation::{Urls, of_environment, placeholder};
use crate::wire::{Environment, Status};

/// The sites' addresses: those given, else those of the environment that is up, else those of the definition of `otherwise`.
/// Where a result was made is not guessed from what lies around: a wrong address is a wrong verdict.
pub async fn of(
    global: &Global,
    environment: Option<&str>,
    otherwise: Option<&str>,
    given: &[(String, String)],
) -> Result<Urls, Failure> {
    let mut urls = match (of_what_is_up(global, environment).await?, otherwise) {
        (Some(urls), _) => urls,
        (None, Some(name)) => of_definition(name)?,
        (None, None) => Urls::new(),
    };
    urls.extend(self::given(given));
    Ok(urls)
}

/// Addresses that were given, by placeholder.
pub fn given(pairs: &[(String, String)]) -> Urls {
    let mut urls = Urls::new();
    for (name, url) in pairs {
        urls.entry(name.clone()).or_default().push(url.clone());
    }
    urls
}

async fn of_what_is_up(global: &Global, environment: Option<&str>) -> Result<Option<Urls>, Failure> {
    let client = Client::new(global)?;
    if !client.is_running().await {
        return Ok(None);
    }
    let status = client.status().await?;
    let Some(environment) = chosen(&status, environment) else { return Ok(None) };
    let sites = environment.sites.iter();
    Ok(Some(sites.filter_map(|site| Some((placeholder(site.variable.as_ref()?), vec![site.url.clone()]))).collect()))
}

/// The environment that is meant among those that are up.
pub fn chosen<'a>(status: &'a Status, name: Option<&str>) -> Option<&'a Environment> {
    match (name, status.environments.as_slice()) {
        (Some(name), all) => all.iter().find(|environment| environment.name == name),
        (None, [only]) => Some(only),
        (None, _) => None,
    }
}

fn of_definition(environment: &str) -> Result<Urls, Failure> {
    let located = definition::locate(Some(environment), None, None)?;
    Ok(of_environment(&definition::load(&located)?.loaded.environment))
}

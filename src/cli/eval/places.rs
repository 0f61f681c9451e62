//! Where the sites are.

use super::args::EvalArgs;
use crate::cli::args::Global;
use crate::cli::client::Client;
use crate::cli::definition;
use crate::cli::failure::Failure;
use crate::evaluation::{Benchmark, Urls, of_environment, placeholder};
use crate::wire::{Environment, Status};

/// The sites' addresses: those given, then those of the environment that is up, else those of its definition.
///
/// WebArena-Verified takes them from the traffic where nobody says, as its own code does; an environment is asked only if it
/// is named.
pub(super) async fn of(global: &Global, args: &EvalArgs, benchmark: Option<Benchmark>) -> Result<Urls, Failure> {
    let mut urls = match (benchmark, &args.environment) {
        (Some(Benchmark::WebArenaVerified), None) => Urls::new(),
        _ => of_what_is_up(global, args).await?.map_or_else(|| of_definition(args), Ok)?,
    };
    let mut given = Urls::new();
    for (name, url) in &args.sites {
        given.entry(name.clone()).or_default().push(url.clone());
    }
    urls.extend(given);
    Ok(urls)
}

async fn of_what_is_up(global: &Global, args: &EvalArgs) -> Result<Option<Urls>, Failure> {
    let client = Client::new(global)?;
    if !client.is_running().await {
        return Ok(None);
    }
    let status = client.status().await?;
    let Some(environment) = chosen(&status, args.environment.as_deref()) else { return Ok(None) };
    let sites = environment.sites.iter();
    Ok(Some(sites.filter_map(|site| Some((placeholder(site.variable.as_ref()?), vec![site.url.clone()]))).collect()))
}

/// The environment that is meant among those that are up.
pub(super) fn chosen<'a>(status: &'a Status, name: Option<&str>) -> Option<&'a Environment> {
    match (name, status.environments.as_slice()) {
        (Some(name), all) => all.iter().find(|environment| environment.name == name),
        (None, [only]) => Some(only),
        (None, _) => None,
    }
}

fn of_definition(args: &EvalArgs) -> Result<Urls, Failure> {
    let read = || {
        let located = definition::locate(args.environment.as_deref(), None, None)?;
        Ok::<_, Failure>(of_environment(&definition::load(&located)?.loaded.environment))
    };
    match read() {
        Ok(urls) => Ok(urls),
        Err(failure) if args.environment.is_some() => Err(failure),
        // Nobody named one: tasks that speak of a site will say that nobody knows where it is.
        Err(_) => Ok(Urls::new()),
    }
}

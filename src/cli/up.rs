//! `arenad up`: brings an environment up.

use anyhow::Context;
use reqwest::Method;

use super::args::{Global, StorageChoice, UpArgs};
use super::client::ApiClient;
use super::definition::FoundDefinition;
use super::failure::CommandFailure;
use super::{definition, engine, find, output, progress, state_root};
use arenad_api::Accepted;

/// Brings sites up, and starts the daemon first if none runs.
pub async fn run(global: &Global, args: &UpArgs) -> Result<u8, CommandFailure> {
    let (located, sites) = choose(args)?;
    let found = definition::load(&located)?;
    let environment = &found.loaded.environment;
    for site in &sites {
        find::defined(environment, site, "")?;
    }
    if args.dry_run {
        return super::dry_run::run(environment, &sites, &args.engine, global.json).await;
    }
    let (accepted, is_ended) = bring_up(global, args, &found, sites).await?;
    if global.json {
        output::print_json(&accepted)?;
    }
    if !is_ended {
        return Ok(super::exit_code::OK);
    }
    progress::check(&accepted.operations)?;
    let has_stores = environment.sites.iter().any(|site| !site.stores.is_empty());
    if !global.json {
        let brought: Vec<&str> = accepted.operations.iter().map(|operation| operation.site.as_str()).collect();
        outln!("");
        let mut table = output::table(&["SITE", "URL", "ACCOUNT", "PASSWORD"]);
        for site in environment.sites.iter().filter(|site| brought.contains(&site.name.as_str())) {
            let url = site.url(&environment.host);
            match site.accounts.as_slice() {
                [] => drop(table.add_row([site.name.as_str(), &url, "-", "-"])),
                accounts => {
                    for (index, account) in accounts.iter().enumerate() {
                        let first = if index == 0 { (site.name.as_str(), url.as_str()) } else { ("", "") };
                        table.add_row([first.0, first.1, &account.username, account.password.expose()]);
                    }
                }
            }
        }
        output::print_table(&table);
        outln!(
            "\n`arenad status` shows their states, `arenad reset SITE` resets a site, `arenad down` takes all sites down."
        );
    }
    if has_stores && args.storage != StorageChoice::Plain && !global.json {
        // The notes come last, where they are read: hundreds of lines may have been printed since the daemon was
        // started.
        let client = ApiClient::new(global)?;
        client.status().await?.daemon.notes.iter().for_each(|note| errln!("\nnote: {note}"));
    }
    Ok(super::exit_code::OK)
}

/// Brings sites up, and waits for the end unless the options say otherwise. Returns the operations, and whether they have
/// ended.
pub async fn bring_up(
    global: &Global,
    args: &UpArgs,
    found: &FoundDefinition,
    sites: Vec<String>,
) -> Result<(Accepted, bool), CommandFailure> {
    let environment = &found.loaded.environment;
    let client = ApiClient::new(global)?;
    let has_stores = environment.sites.iter().any(|site| !site.stores.is_empty());
    let mut was_running = client.is_running().await?;
    if was_running && engine::renew_daemon(&client, global.json).await? {
        was_running = false;
    }
    if !was_running {
        engine::insist(&args.engine.engine).await?;
        if has_stores {
            state_root::provide(client.state_dir(), args.storage, global.json).await?;
        }
    }
    let is_own = client.ensure_daemon(&args.engine, Some(&args.daemon)).await?;
    let path = format!("/v1/environments/{}", environment.name);
    let sent = client.send(Method::PUT, &path, &definition::up_request(found, sites, args)).await;
    let accepted: Accepted = match sent {
        Ok(accepted) => accepted,
        Err(failure) => {
            // The refusal is the result to report; a daemon that was started for this request and has no other
            // environment is stopped.
            let _ = client.leave(!is_own).await;
            return Err(failure);
        }
    };
    for warning in &accepted.warnings {
        errln!("warning: {}", output::advice(warning));
    }
    if args.wait.detach {
        return Ok((accepted, false));
    }
    let operations = progress::wait(&client, accepted.operations, args.wait.wait_timeout, global.json).await?;
    Ok((Accepted { operations, warnings: accepted.warnings }, true))
}

/// Takes the first name as an environment, unless there is no such environment and the default one has a site of that
/// name.
fn choose(args: &UpArgs) -> Result<(arenad_definition::EnvironmentLocation, Vec<String>), CommandFailure> {
    let (environment, names) = split(args)?;
    if let Some(file) = &args.file {
        let located = definition::locate(None, Some(file), None)?;
        return match environment.filter(|name| *name != located.name.as_str()) {
            Some(name) => {
                Err(CommandFailure::usage(format!("{} is not a file of the environment `{name}`", file.display())))
            }
            None => Ok((located, names)),
        };
    }
    if let Some(name) = environment {
        return Ok((definition::locate(Some(&name), None, args.root.as_deref())?, names));
    }
    let root = definition::root(args.root.as_deref())?;
    let known = arenad_definition::list(&root);
    let Some(first) = args.names.first() else {
        return Ok((definition::locate(None, None, Some(&root))?, Vec::new()));
    };
    if known.iter().any(|name| name.as_str() == first) {
        return Ok((definition::locate(Some(first), None, Some(&root))?, args.names[1..].to_vec()));
    }
    let default = definition::locate(None, None, Some(&root));
    if let Ok(located) = default {
        let text = std::fs::read_to_string(located.root.join("environments").join(format!("{}.yaml", located.name)))
            .context("read the default environment")?;
        // A search in the text suffices to choose between two error messages; the parser decides everything else.
        if text.lines().any(|line| line.trim() == format!("{first}:")) {
            return Ok((located, args.names.clone()));
        }
    }
    Ok((definition::locate(Some(first), None, Some(&root))?, args.names[1..].to_vec()))
}

/// Returns the environment that --environment or names such as `mini/shopping` give, and the names without it.
fn split(args: &UpArgs) -> Result<(Option<String>, Vec<String>), CommandFailure> {
    let mut environment = args.environment.clone();
    let mut names = Vec::new();
    for name in &args.names {
        let (of, site) = match name.split_once('/') {
            Some((of, site)) => (Some(of), site),
            None => (None, name.as_str()),
        };
        match (of, &environment) {
            (Some(of), Some(known)) if of != known => {
                let failure = CommandFailure::usage(format!("`{name}` belongs to an environment other than {known}"));
                return Err(failure.hint("bring up one environment at a time"));
            }
            (Some(of), None) => environment = Some(of.to_owned()),
            _ => {}
        }
        names.push(site.to_owned());
    }
    Ok((environment, names))
}

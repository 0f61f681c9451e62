//! `arenad down`

use std::io::{BufRead, IsTerminal, Write};

use reqwest::Method;

use super::args::{DownArgs, Global};
use super::client::Client;
use super::failure::Failure;
use super::{exit_code, output};
use crate::storage::disk;
use crate::wire::{DownRequest, Status};

/// Takes sites down. A daemon that `arenad up` started ends with its last environment.
pub async fn run(global: &Global, args: &DownArgs) -> Result<u8, Failure> {
    let client = Client::new(global)?;
    let was_running = client.is_running().await;
    if !was_running && !client.state_dir().join("arenad.db").exists() {
        say(global, "nothing is up");
        if global.json {
            output::print_json(&serde_json::json!({ "environments": [], "purged": false }))?;
        }
        return Ok(exit_code::OK);
    }
    if args.purge && !args.yes && !confirmed(&client)? {
        return Err(Failure::usage("not confirmed").hint("--yes confirms"));
    }
    // Containers may be there although no daemon runs: one is started to remove them.
    client.ensure_daemon(&args.engine).await?;
    let status = client.status().await?;
    let chosen = choose(&status, args)?;
    let mut taken = Vec::new();
    for (environment, sites) in chosen {
        taken.push(environment.clone());
        say(global, &format!("taking {environment} down"));
        let request = DownRequest { sites, purge: args.purge };
        let path = format!("/v1/environments/{environment}/down");
        let work = client.run(Method::POST, &path, &request);
        tokio::select! {
            done = work => done?,
            _ = tokio::signal::ctrl_c() => {
                return Err(Failure::interrupted().hint("the work goes on in the background: `arenad status` shows it"));
            }
        }
    }
    let status = client.status().await?;
    if status.environments.is_empty() {
        if args.purge {
            client.run(Method::POST, "/v1/purge", &serde_json::json!({})).await?;
        }
        if status.daemon.background {
            client.stop_daemon().await?;
            if args.purge {
                remove_files(&client)?;
            }
        }
        say(global, "nothing is up any more");
    }
    if global.json {
        output::print_json(&serde_json::json!({ "environments": taken, "purged": args.purge }))?;
    }
    Ok(exit_code::OK)
}

fn say(global: &Global, text: &str) {
    if !global.json {
        eprintln!("{text}");
    }
}

/// The sites to take down, by environment.
fn choose(status: &Status, args: &DownArgs) -> Result<Vec<(String, Vec<String>)>, Failure> {
    let mut chosen = Vec::new();
    let mut missing = args.sites.clone();
    for environment in &status.environments {
        if args.environment.as_ref().is_some_and(|wanted| *wanted != environment.name) {
            continue;
        }
        let has = |site: &&String| environment.sites.iter().any(|known| known.name == **site);
        let sites: Vec<String> = args.sites.iter().filter(has).cloned().collect();
        missing.retain(|site| !has(&site));
        if args.sites.is_empty() || !sites.is_empty() {
            chosen.push((environment.name.clone(), sites));
        }
    }
    match (missing.as_slice(), &args.environment) {
        ([], Some(environment)) if chosen.is_empty() => {
            Err(Failure::usage(format!("environment `{environment}` is not up")))
        }
        ([], _) => Ok(chosen),
        (missing, _) => Err(Failure::usage(format!("not up: {}", missing.join(", ")))),
    }
}

fn confirmed(client: &Client) -> Result<bool, Failure> {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::usage("--purge wants --yes where nobody can be asked"));
    }
    eprint!(
        "This removes all containers, snapshots and built images of this installation, and {}. Go on? [y/N] ",
        client.state_dir().display()
    );
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Only what arenad made: a state directory that someone put other things into is kept.
fn remove_files(client: &Client) -> Result<(), Failure> {
    let folder = client.state_dir();
    for name in ["arenad.db", "arenad.db-wal", "arenad.db-shm", "arenad.log", "arenad.sock", "lock"] {
        match std::fs::remove_file(folder.join(name)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    for name in ["volumes", "locators"] {
        match std::fs::remove_dir_all(folder.join(name)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    disk::remove(folder)?;
    match std::fs::remove_dir_all(disk::stores(folder)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    let archives = folder.join("archives");
    if archives.exists() {
        eprintln!("what `arenad images` has fetched stays in {}", archives.display());
    }
    // Not empty means that something of someone else's is in there.
    let _ = std::fs::remove_dir(folder);
    Ok(())
}

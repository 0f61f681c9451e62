//! `arenad status` and `arenad ps`

use std::time::Duration;

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};

use super::args::{Global, StatusArgs};
use super::client::Client;
use super::exit_code;
use super::failure::Failure;
use super::output::{self, age, first_line};
use arenad_api::{Compared, Standbys, Status};

/// Says what is up, how it is, and what to do about it. Exits with 3 unless everything is ready.
pub async fn run(global: &Global, args: &StatusArgs) -> Result<u8, Failure> {
    let client = Client::new(global)?;
    if !args.watch {
        return once(&client, global, false).await;
    }
    let mut interrupts = signal(SignalKind::interrupt()).context("listen for Ctrl-C")?;
    loop {
        let code = once(&client, global, true).await?;
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
            _ = interrupts.recv() => return Ok(code),
        }
    }
}

async fn once(client: &Client, global: &Global, clear: bool) -> Result<u8, Failure> {
    if !client.is_running().await? {
        if global.json {
            output::print_json(&serde_json::json!({"daemon": null, "conditions": [], "environments": []}))?;
        } else {
            eprintln!("no daemon runs: nothing is up (`arenad up` brings sites up)");
        }
        return Ok(exit_code::NOT_READY);
    }
    let status = client.status().await?;
    let is_fine = status.conditions.iter().all(|condition| condition.status != "False")
        && status.environments.iter().flat_map(|environment| &environment.sites).all(|site| site.state == "ready");
    let code = if is_fine { exit_code::OK } else { exit_code::NOT_READY };
    if global.json {
        output::print_json(&status)?;
        return Ok(code);
    }
    if clear {
        print!("\x1b[2J\x1b[H");
    }
    print_human(&status);
    Ok(code)
}

fn print_human(status: &Status) {
    for condition in status.conditions.iter().filter(|condition| condition.status == "False") {
        println!("! {} for {}: {}", condition.reason, age(&condition.last_transition_time), condition.message);
    }
    for note in &status.daemon.notes {
        println!("note: {note}");
    }
    if status.environments.is_empty() {
        println!("nothing is up (`arenad up` brings sites up)");
        return;
    }
    let mut table = output::table(&["ENVIRONMENT", "SITE", "STATE", "SINCE", "URL", "LAST RESET", "STANDBY"]);
    for site in status.environments.iter().flat_map(|environment| &environment.sites) {
        let reset = match &site.last_reset {
            None => "-".to_owned(),
            Some(reset) => {
                let took = reset.duration_ms.map(output::milliseconds).unwrap_or_default();
                let at = reset.finished_at.as_deref().map(age).unwrap_or_default();
                match reset.outcome.as_deref() {
                    Some("done") => format!("{took}, {at} ago"),
                    outcome => format!("{}, {at} ago", outcome.unwrap_or("running")),
                }
            }
        };
        table.add_row([
            site.environment.as_str().into(),
            site.name.as_str().into(),
            output::state_cell(&site.state),
            age(&site.since).into(),
            site.url.as_str().into(),
            comfy_table::Cell::new(reset),
            comfy_table::Cell::new(standbys(&site.standbys)),
        ]);
    }
    output::print_table(&table);
    for site in status.environments.iter().flat_map(|environment| &environment.sites) {
        if let Some(reason) = &site.reason {
            println!("\n{} is {} (for {}): {reason}", site.name, site.state, age(&site.since));
            if let Some(hint) = &site.hint {
                println!("  hint: {hint}");
            }
        } else if site.state != "ready" {
            let stage = site.stage.as_deref().unwrap_or("-");
            let waiting = site.waiting_for.as_deref().map(|waiting| format!(": {}", first_line(waiting)));
            println!("\n{} is {}: {stage}{}", site.name, site.state, waiting.unwrap_or_default());
        } else if let Some(missed) = &site.waiting_for {
            println!("\n{} missed a probe: {}", site.name, first_line(missed));
        }
        if let Some(written) = &site.written {
            let since = age(&written.since);
            match (&written.difference, written.requests) {
                (Some(difference), _) => println!("\n{} is only read, but was written to: {difference}", site.name),
                (None, 1) => {
                    println!("\n{} is only read, but a request that may write reached it {since} ago", site.name)
                }
                (None, requests) => {
                    println!(
                        "\n{} is only read, but {requests} requests that may write reached it, the first {since} ago",
                        site.name
                    );
                }
            }
        }
        if let Some(reset) = site.last_reset.as_ref().filter(|reset| reset.outcome.as_deref() == Some("done")) {
            if let Some(reason) = &reset.reason {
                println!("\n{} was last reset by {}: {reason}", site.name, reset.strategy);
            }
            if let Some(compared) = reset.compared.as_ref().and_then(Compared::told) {
                println!("\n{}: the last reset {compared}", site.name);
            }
        }
        if let Some(lack) = &site.standbys.lack {
            println!("\n{} has fewer standbys than it wants: {lack}", site.name);
        }
    }
}

/// What stands by, in few words.
fn standbys(standbys: &Standbys) -> String {
    if standbys.wanted == 0 {
        return "-".to_owned();
    }
    let ready = standbys.members.iter().filter(|member| matches!(member.state.as_str(), "running" | "frozen")).count();
    format!("{ready} of {}", standbys.wanted)
}

/// Lists the containers of sites.
pub async fn ps(global: &Global) -> Result<u8, Failure> {
    let client = Client::new(global)?;
    let status = client.status().await?;
    let sites = status.environments.iter().flat_map(|environment| &environment.sites);
    if global.json {
        let rows: Vec<serde_json::Value> = sites
            .flat_map(|site| {
                site.containers.iter().map(|container| {
                    serde_json::json!({
                        "environment": site.environment, "site": site.name, "service": container.service,
                        "container": container.id, "generation": site.generation, "state": site.state,
                        "address": container.address,
                    })
                })
            })
            .collect();
        output::print_json(&rows)?;
        return Ok(exit_code::OK);
    }
    let mut table = output::table(&["ENVIRONMENT", "SITE", "SERVICE", "CONTAINER", "GENERATION", "STATE", "ADDRESS"]);
    for site in sites {
        for container in &site.containers {
            table.add_row([
                site.environment.as_str().into(),
                site.name.as_str().into(),
                container.service.as_str().into(),
                container.id.get(..12).unwrap_or(&container.id).into(),
                site.generation.into(),
                output::state_cell(&site.state),
                comfy_table::Cell::new(container.address.as_deref().unwrap_or("-")),
            ]);
        }
    }
    output::print_table(&table);
    Ok(exit_code::OK)
}

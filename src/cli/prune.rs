//! `arenad prune`: removes snapshots, containers and images that nothing needs.

use std::io::{IsTerminal, Write};

use reqwest::Method;

use super::args::{Global, PruneArgs};
use super::client::ApiClient;
use super::failure::CommandFailure;
use super::{exit_code, output};
use arenad_api::{PruneRequest, Pruned};

/// Prints the objects that nothing needs, and removes them after confirmation.
pub async fn run(global: &Global, args: &PruneArgs) -> Result<u8, CommandFailure> {
    let client = ApiClient::new(global)?;
    let was_running = client.is_running().await?;
    client.ensure_daemon(&args.engine, None).await?;
    let pruned = prune(&client, global, args).await;
    client.leave(was_running).await?;
    let done = pruned?;
    match global.json {
        true => output::print_json(&done)?,
        false => say(&done),
    }
    Ok(exit_code::OK)
}

async fn prune(client: &ApiClient, global: &Global, args: &PruneArgs) -> Result<Pruned, CommandFailure> {
    let mut request = PruneRequest {
        older_seconds: args.older.map(|older| older.as_secs()),
        keep_bytes: args.keep_bytes,
        is_trial: true,
        only: Vec::new(),
    };
    let found: Pruned = client.send(Method::POST, "/v1/prune", &request).await?;
    let is_confirmed = !found.items.is_empty() && {
        if !global.json {
            print(&found);
        }
        args.yes || (!global.json && asked()?)
    };
    if !is_confirmed {
        return Ok(found);
    }
    // Only the items that were shown are removed, not items that have become unneeded since.
    request.is_trial = false;
    request.only = found.items.into_iter().map(|item| item.name).collect();
    client.send(Method::POST, "/v1/prune", &request).await
}

fn print(found: &Pruned) {
    let mut table = output::table(&["KIND", "NAME", "OF", "SIZE", "WHY"]);
    for item in &found.items {
        let name = item.name.strip_prefix("sha256:").and_then(|id| id.get(..12)).unwrap_or(&item.name);
        table.add_row([item.kind.word(), name, &item.of, &output::bytes(item.bytes), &item.reason]);
    }
    output::print_fitted(&mut table, 4, output::width());
}

/// Asks for confirmation. If standard input is not a terminal, the answer is no.
fn asked() -> std::io::Result<bool> {
    if !std::io::stdin().is_terminal() {
        return Ok(false);
    }
    err!("Remove them? [y/N] ");
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn say(done: &Pruned) {
    let count = done.items.len();
    match (count, done.is_trial) {
        (0, _) => outln!("nothing to remove: everything is named, in use, or the newest of its kind"),
        (_, true) => outln!("\nnothing was removed; --yes removes {}", if count == 1 { "it" } else { "them" }),
        (1, false) => outln!("\nremoved 1 item"),
        (_, false) => outln!("\nremoved {count} items"),
    }
}

//! `arenad snapshot`: manages snapshots.

use reqwest::Method;

use super::args::{DiffArgs, Global, RmArgs, SnapshotCommand, SnapshotLsArgs, TakeArgs};
use super::client::ApiClient;
use super::failure::CommandFailure;
use super::{exit_code, find, output, progress, transfer};
use arenad_api::{Accepted, SnapshotDifferences, SnapshotKind, Snapshots, StoredSnapshot, TakeRequest};

/// Lists, takes, compares, exports, imports or removes snapshots.
pub async fn run(global: &Global, command: &SnapshotCommand) -> Result<u8, CommandFailure> {
    let client = ApiClient::new(global)?;
    match command {
        SnapshotCommand::Ls(args) => list(&client, global, args).await,
        SnapshotCommand::Take(args) => take(&client, global, args).await,
        SnapshotCommand::Diff(args) => diff(&client, global, args).await,
        SnapshotCommand::Export(args) => transfer::export(global, args).await,
        SnapshotCommand::Import(args) => transfer::import(global, args).await,
        SnapshotCommand::Rm(args) => remove(&client, global, args).await,
    }
}

async fn list(client: &ApiClient, global: &Global, args: &SnapshotLsArgs) -> Result<u8, CommandFailure> {
    let mut found: Snapshots = client.json(Method::GET, "/v1/snapshots").await?;
    let environment = args.environment.as_deref();
    found
        .snapshots
        .retain(|snapshot| find::is_named((&snapshot.environment, &snapshot.site), environment, &args.sites));
    if found.snapshots.is_empty() && (environment.is_some() || !args.sites.is_empty()) {
        // A named site without snapshots must at least be up; otherwise the name is wrong.
        find::sites(&client.status().await?, environment, &args.sites)?;
    }
    if global.json {
        output::print_json(&found)?;
        return Ok(exit_code::OK);
    }
    let mut table = output::table(&["ID", "SITE", "KIND", "NAME", "SIZE", "AGE", "USED BY"]);
    for snapshot in &found.snapshots {
        table.add_row([
            snapshot.id.as_str(),
            &format!("{}/{}", snapshot.environment, snapshot.site),
            snapshot.kind.word(),
            snapshot.name.as_deref().unwrap_or("-"),
            &output::bytes(snapshot.size_bytes),
            &output::age(&snapshot.created_at),
            &used_by(snapshot),
        ]);
    }
    output::print_fitted(&mut table, 6, output::width());
    Ok(exit_code::OK)
}

/// Returns the instances that use a snapshot, or the reason why it cannot be used.
fn used_by(snapshot: &StoredSnapshot) -> String {
    let other = snapshot.other_engine.as_ref().map(|endpoint| format!("(its images are on the engine at {endpoint})"));
    let missing = snapshot.missing_since.as_ref().map(|_| "(its images are missing)".to_owned());
    snapshot.used_by.iter().cloned().chain(other.or(missing)).collect::<Vec<_>>().join(", ")
}

async fn take(client: &ApiClient, global: &Global, args: &TakeArgs) -> Result<u8, CommandFailure> {
    let status = client.status().await?;
    let site = find::site(&status, args.environment.as_deref(), &args.site)?;
    let path = format!("/v1/environments/{}/sites/{}/snapshots", site.environment, site.name);
    let accepted: Accepted = client.send(Method::POST, &path, &TakeRequest { name: args.name.clone() }).await?;
    let ended = match args.wait.detach {
        true => accepted.operations,
        false => progress::wait(client, accepted.operations, args.wait.wait_timeout, global.json).await?,
    };
    if global.json {
        output::print_json(&Accepted { operations: ended.clone(), warnings: Vec::new() })?;
    }
    if !args.wait.detach {
        progress::check(&ended)?;
        if !global.json {
            for snapshot in ended.iter().filter_map(|operation| operation.snapshot.as_ref()) {
                outln!("{}", snapshot.id);
                if snapshot.kind == SnapshotKind::Baseline {
                    let name = snapshot.name.as_deref().unwrap_or(&args.name);
                    errln!(
                        "note: nothing had been written, so `{name}` is another name for the baseline of {}",
                        snapshot.site
                    );
                }
            }
        }
    }
    Ok(exit_code::OK)
}

async fn diff(client: &ApiClient, global: &Global, args: &DiffArgs) -> Result<u8, CommandFailure> {
    let path = format!("/v1/snapshots/{}/differences?from={}", args.to, args.from);
    let found: SnapshotDifferences = client.json(Method::GET, &path).await?;
    if global.json {
        output::print_json(&found)?;
    } else if found.differences.is_empty() {
        outln!("{} and {} are equal", found.from, found.snapshot);
    } else {
        for difference in &found.differences {
            outln!("{}", difference.text);
        }
        if found.omitted > 0 {
            outln!("and {} more", found.omitted);
        }
    }
    Ok(if found.differences.is_empty() { exit_code::OK } else { exit_code::FAILED })
}

async fn remove(client: &ApiClient, global: &Global, args: &RmArgs) -> Result<u8, CommandFailure> {
    for id in &args.snapshots {
        client.run(Method::DELETE, &format!("/v1/snapshots/{id}"), &serde_json::json!({})).await?;
        if !global.json {
            outln!("{id}");
        }
    }
    if global.json {
        output::print_json(&serde_json::json!({ "removed": args.snapshots }))?;
    }
    Ok(exit_code::OK)
}

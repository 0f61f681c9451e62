//! `arenad df`: shows disk usage.

use comfy_table::Table;
use reqwest::Method;

use super::args::{DfArgs, Global};
use super::client::ApiClient;
use super::failure::CommandFailure;
use super::{exit_code, output};
use arenad_api::{Df, DfFile};

/// Prints the disk usage of snapshots, generations, images and archives.
pub async fn run(global: &Global, args: &DfArgs) -> Result<u8, CommandFailure> {
    let client = ApiClient::new(global)?;
    let was_running = client.is_running().await?;
    client.ensure_daemon(&args.engine, None).await?;
    let asked: Result<Df, CommandFailure> = client.json(Method::GET, "/v1/df").await;
    client.leave(was_running).await?;
    let df = asked?;
    match global.json {
        true => output::print_json(&df)?,
        false => print(&df),
    }
    Ok(exit_code::OK)
}

fn print(df: &Df) {
    let size = output::bytes;
    match &df.state_root {
        Some(root) => outln!(
            "state root {}: {} of {} free ({}, {}); the trash takes {}\n",
            root.path,
            size(root.free_bytes),
            size(root.total_bytes),
            root.file_system,
            if root.clones { "copies share blocks" } else { "full copies; `arenad storage init` avoids them" },
            size(root.trash_bytes)
        ),
        None => outln!("there is no state root: sites keep their state in their containers\n"),
    }
    let mut table = output::table(&["SNAPSHOT", "SITE", "NAME", "IMAGES", "STATE", "ALONE", "VOLUMES", "USED BY"]);
    for snapshot in &df.snapshots {
        table.add_row([
            snapshot.id.as_str(),
            &format!("{}/{}", snapshot.environment, snapshot.site),
            snapshot.name.as_deref().unwrap_or("-"),
            &size(snapshot.image_bytes),
            &size(snapshot.state.allocated_bytes),
            &size(snapshot.state.exclusive_bytes),
            &size(snapshot.volume_bytes),
            &snapshot.used_by.join(", "),
        ]);
    }
    print_rows(&mut table, 7);
    let mut table = output::table(&["SITE", "GENERATION", "SERVES IN", "STATE", "ALONE"]);
    for generation in &df.generations {
        table.add_row([
            generation.site.as_str(),
            &generation.generation.to_string(),
            &generation.slot.map_or("-".to_owned(), |slot| format!("slot {slot}")),
            &size(generation.state.allocated_bytes),
            &size(generation.state.exclusive_bytes),
        ]);
    }
    print_rows(&mut table, 0);
    let mut table = output::table(&["IMAGE", "SIZE"]);
    for image in &df.images {
        table.add_row([image.name.as_str(), &size(image.size_bytes)]);
    }
    print_rows(&mut table, 0);
    let total = |files: &[DfFile]| size(files.iter().map(|file| file.size_bytes).sum());
    let (archives, volumes, records) = (total(&df.archives), total(&df.volumes), total(&df.records));
    outln!("image archives take {archives}, volume archives {volumes}, records of episodes {records}");
    outln!("ALONE is the space that removing the item frees; shared image layers are counted for each image");
}

/// Prints a table and an empty line after it; prints nothing if the table has no rows.
fn print_rows(table: &mut Table, flexible: usize) {
    if !table.is_empty() {
        output::print_fitted(table, flexible, output::width());
        outln!("");
    }
}

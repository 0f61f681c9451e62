//! `arenad locate`: reads one value from a site.

use std::io::{IsTerminal, Write};
use std::path::Path;

use anyhow::Context;
use comfy_table::Cell;
use reqwest::Method;
use serde_json::Value;
use serde_json::value::RawValue;

use super::args::{Global, LocateArgs};
use super::client::ApiClient;
use super::failure::CommandFailure;
use super::output::{self, milliseconds};
use super::{exit_code, find};
use arenad_api::{LocateRequest, LocateResponse, ValueKind};

/// Reads a value and prints it: rows as a table, every other value as text.
pub async fn run(global: &Global, args: &LocateArgs) -> Result<u8, CommandFailure> {
    let client = ApiClient::new(global)?;
    let status = client.status().await?;
    let site = find::site(&status, args.environment.as_deref(), &args.site)?;
    let request = LocateRequest {
        locator: args.locator.clone(),
        arguments: args.arguments.iter().cloned().collect(),
        page: args.page.clone(),
        cdp: args.cdp.clone(),
        har: args.har.as_deref().map(har).transpose()?,
    };
    let path = format!("/v1/environments/{}/sites/{}/locate", site.environment, site.name);
    let located: LocateResponse = client.send(Method::POST, &path, &request).await?;
    if global.json {
        output::print_json(&located)?;
        return Ok(exit_code::OK);
    }
    if located.kind == ValueKind::Rows {
        print_rows(&located.value);
    } else {
        writeln!(std::io::stdout().lock(), "{}", shown(&located.value))?;
    }
    if std::io::stderr().is_terminal() {
        let evidence = &located.evidence;
        let took = milliseconds(evidence.duration_ms);
        errln!("{} from {}, generation {}, in {took}", located.kind, evidence.instance, evidence.generation);
    }
    Ok(exit_code::OK)
}

fn har(path: &Path) -> Result<Box<RawValue>, CommandFailure> {
    let text = std::fs::read_to_string(path).with_context(|| format!("read the traffic in {}", path.display()))?;
    RawValue::from_string(text)
        .map_err(|error| CommandFailure::usage(format!("{} is not a HAR file: {error}", path.display())))
}

fn print_rows(value: &Value) {
    let names = value["columns"].as_array().cloned().unwrap_or_default();
    let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
    let mut table = output::table(&names);
    for row in value["rows"].as_array().into_iter().flatten() {
        let cells = row.as_array().into_iter().flatten();
        table.add_row(cells.map(|cell| Cell::new(shown(&cell["value"]))).collect::<Vec<_>>());
    }
    output::print_table(&table);
}

/// Returns a text without quotes, and every other value as JSON.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

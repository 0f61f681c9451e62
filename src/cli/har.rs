//! `arenad har`: exports the traffic that the gateway has recorded.

use std::io::Write;

use anyhow::Context;
use reqwest::Method;
use serde_json::Value;

use super::args::{Global, HarArgs};
use super::client::ApiClient;
use super::failure::CommandFailure;
use super::{exit_code, find};

/// Prints the recorded traffic, or writes it to a file.
pub async fn run(global: &Global, args: &HarArgs) -> Result<u8, CommandFailure> {
    let client = ApiClient::new(global)?;
    let status = client.status().await?;
    let chosen = match args.sites.is_empty() {
        true => vec![(find::environment(&status, args.environment.as_deref())?.name.clone(), Vec::new())],
        false => find::sites(&status, args.environment.as_deref(), &args.sites)?,
    };
    let [(environment, sites)] = chosen.as_slice() else {
        let names: Vec<&str> = chosen.iter().map(|(name, _)| name.as_str()).collect();
        return Err(find::ambiguous(&format!("the sites belong to {}", names.join(" and ")), &names));
    };
    let har = fetch(&client, environment, sites).await?;
    let known = har["log"]["_arenad"]["sites"].as_array().cloned().unwrap_or_default();
    let (silent, recorded): (Vec<&Value>, Vec<&Value>) = known.iter().partition(|site| site["records"] == "none");
    if recorded.is_empty() {
        return Err(CommandFailure::usage("the gateway does not record the traffic of these sites")
            .hint("set `public: { record: all }` for a site in the environment file to record its traffic"));
    }
    for site in recorded {
        if let Some(lacks) = site["lacks"].as_str() {
            errln!("warning: {}: {lacks}", text(site));
        }
    }
    if !silent.is_empty() && !args.sites.is_empty() {
        let names: Vec<&str> = silent.into_iter().map(text).collect();
        errln!("warning: not recorded: {}", names.join(", "));
    }
    let Some(path) = &args.out else {
        writeln!(std::io::stdout().lock(), "{har}")?;
        return Ok(exit_code::OK);
    };
    std::fs::write(path, har.to_string()).with_context(|| format!("write the HAR to {}", path.display()))?;
    if !global.json {
        let count = har["log"]["entries"].as_array().map_or(0, Vec::len);
        outln!("{count} requests in {}", path.display());
    }
    Ok(exit_code::OK)
}

fn text(site: &Value) -> &str {
    site["site"].as_str().unwrap_or_default()
}

/// Returns the HAR of an environment's sites, or of all its sites if none is named.
pub async fn fetch(client: &ApiClient, environment: &str, sites: &[String]) -> Result<Value, CommandFailure> {
    client.json(Method::GET, &format!("/v1/environments/{environment}/har?sites={}", sites.join(","))).await
}

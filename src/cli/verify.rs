//! `arenad verify`: proves that sites equal their snapshots.

use reqwest::Method;

use super::args::{Global, VerifyArgs};
use super::client::ApiClient;
use super::failure::CommandFailure;
use super::{exit_code, find, output};
use arenad_api::Verification;

/// Compares sites with their snapshots, and prints the differences.
pub async fn run(global: &Global, args: &VerifyArgs) -> Result<u8, CommandFailure> {
    let client = ApiClient::new(global)?;
    let status = client.status().await?;
    let mut found = Vec::new();
    for (environment, names) in find::slots(&status, args.environment.as_deref(), &args.sites)? {
        for name in find::to_compare(&status, &environment, names) {
            let path = format!("/v1/environments/{environment}/sites/{name}/verify");
            let verified: Verification = client.send(Method::POST, &path, &serde_json::json!({})).await?;
            if !global.json {
                show(&verified);
                let mut sites = status.environments.iter().flat_map(|known| &known.sites);
                if sites.any(|site| site.instance == verified.instance && site.has_been_entered) {
                    errln!(
                        "note: commands were run in its containers; their changes outside of its stores are not compared"
                    );
                }
            }
            found.push(verified);
        }
    }
    if global.json {
        output::print_json(&found)?;
    } else if found.is_empty() {
        outln!("no site that is up declares stores, so there is nothing to compare");
    }
    Ok(if found.iter().all(|verified| verified.equal) { exit_code::OK } else { exit_code::FAILED })
}

fn show(verified: &Verification) {
    let took: f64 = verified.stores.iter().map(|store| store.duration_ms).fold(0.0, f64::max);
    let took = output::milliseconds(took);
    let name = output::slot_name(&verified.site, &verified.instance);
    if verified.equal {
        outln!("{name} equals its snapshot {} (compared in {took})", verified.snapshot);
        return;
    }
    outln!("{name} differs from its snapshot {} (compared in {took}):", verified.snapshot);
    for difference in &verified.differences {
        outln!("  {}", difference.text);
    }
    if verified.omitted > 0 {
        outln!("  and {} more", verified.omitted);
    }
}

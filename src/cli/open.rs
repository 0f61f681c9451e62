//! `arenad open`: opens a site in the user's browser.

use std::process::Stdio;

use super::args::{Global, OpenArgs};
use super::client::ApiClient;
use super::failure::CommandFailure;
use super::{exit_code, find, output};

/// The programs that open a URL in the user's browser, in the order in which they are tried.
const OPENERS: [&str; 4] = ["xdg-open", "open", "sensible-browser", "x-www-browser"];

/// Opens a site in the browser; prints its URL if there is no browser.
pub async fn run(global: &Global, args: &OpenArgs) -> Result<u8, CommandFailure> {
    let client = ApiClient::new(global)?;
    let status = client.status().await?;
    let site = find::site(&status, args.environment.as_deref(), &args.site)?;
    if global.json {
        output::print_json(&serde_json::json!({ "site": site.name, "url": site.url }))?;
        return Ok(exit_code::OK);
    }
    outln!("{}", site.url);
    let has_display = ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER"].iter().any(|name| std::env::var_os(name).is_some())
        || cfg!(target_os = "macos");
    if args.print || !has_display {
        return Ok(exit_code::OK);
    }
    for opener in OPENERS {
        let started = std::process::Command::new(opener)
            .arg(&site.url)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if started.is_ok_and(|status| status.success()) {
            return Ok(exit_code::OK);
        }
    }
    Err(CommandFailure::new(exit_code::FAILED, anyhow::anyhow!("no program that opens a browser was found")))
}

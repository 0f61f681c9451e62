//! `arenad env`: the variables that the benchmarks' own code, BrowserGym and AgentLab read.

use std::time::Duration;

use super::args::{EnvArgs, EnvFormat, EnvReader, Global};
use super::client::ApiClient;
use super::failure::CommandFailure;
use super::{definition, exit_code, output};
use arenad_api::Status;
use arenad_model::harness_variables::{of_benchmark, of_browsergym};
use arenad_model::proxy_address::slot_url;
use arenad_model::site::{Environment, Site};

/// The end of the name of the variable for resets.
const FULL_RESET: &str = "_FULL_RESET";

/// The time for which the daemon is waited for, which knows whether a reset server listens.
const PATIENCE: Duration = Duration::from_secs(2);

/// Prints the variables in the chosen format.
pub async fn run(global: &Global, args: &EnvArgs) -> Result<u8, CommandFailure> {
    let given = &args.definition;
    let located = definition::locate(given.name(), given.file.as_deref(), given.root.as_deref())?;
    let found = definition::load(&located)?;
    let variables = variables(&found.loaded.environment, args.reader, args.slot)?;
    let format = if global.json { EnvFormat::Json } else { args.format };
    // Notes go to standard error: on standard output, `eval` without quotes would join the lines, and a comment would
    // swallow the rest.
    let name = found.loaded.environment.name.as_str();
    if variables.iter().any(|(name, _)| name.ends_with(FULL_RESET))
        && let Some(status) = status(global).await
        && let Some(note) = note(&status, name, found.loaded.environment.reset_port)
    {
        errln!("note: {note}");
    }
    let unnamed: Vec<&str> = found
        .loaded
        .environment
        .sites
        .iter()
        .filter(|site| site.public.variable.is_none())
        .map(|site| site.name.as_str())
        .collect();
    if unnamed.len() == found.loaded.environment.sites.len() {
        errln!(
            "note: no site of {} declares a variable for its address, so there is nothing to print",
            found.loaded.environment.name
        );
        errln!(
            "hint: declare one for {} in the environment file, such as `public: {{ variable: SHOPPING }}`",
            unnamed.join(", ")
        );
    }
    match format {
        EnvFormat::Json => {
            let object: serde_json::Map<String, serde_json::Value> =
                variables.into_iter().map(|(name, value)| (name, value.into())).collect();
            output::print_json(&object)?;
        }
        EnvFormat::Shell => {
            for (name, value) in variables {
                outln!("export {name}='{}'", value.replace('\'', r"'\''"));
            }
        }
        EnvFormat::Dotenv => {
            for (name, value) in variables {
                outln!("{name}={value}");
            }
        }
    }
    Ok(exit_code::OK)
}

/// Returns the status of the daemon, if one answers soon. The variables do not depend on it.
async fn status(global: &Global) -> Option<Status> {
    let client = ApiClient::new(global).ok()?;
    tokio::time::timeout(PATIENCE, client.status()).await.ok()?.ok()
}

/// Returns why the variable for resets does not lead to this environment's sites.
fn note(status: &Status, name: &str, port: u16) -> Option<String> {
    let Some(server) = &status.daemon.compat else {
        return Some("the daemon offers no reset server for harnesses (`arenad status` says why)".to_owned());
    };
    if !server.ends_with(&format!(":{port}")) {
        return Some(format!(
            "the reset server listens at {server}, and the variables name port {port}; set `reset_port` of the \
             environment, or start the daemon with --compat"
        ));
    }
    let up: Vec<&str> = status.environments.iter().map(|environment| environment.name.as_str()).collect();
    match up.as_slice() {
        [] => None,
        [only] if *only == name => None,
        [only] => Some(format!("only {only} is up, so a reset resets {only}, not {name}")),
        _ => Some(format!(
            "several environments are up; append /environments/{name} to the variable for resets, or they are refused"
        )),
    }
}

/// Returns the variables, with the URLs at the own ports of a slot if one is given.
fn variables(
    environment: &Environment,
    reader: EnvReader,
    slot: Option<u32>,
) -> Result<Vec<(String, String)>, CommandFailure> {
    if let Some(slot) = slot {
        let has_port = |site: &Site| slot <= site.slots.max && slot_url(site, &environment.host, slot).is_some();
        let lacks = |site: &&Site| !site.is_shared() && !has_port(site);
        let lacking: Vec<&Site> = environment.sites.iter().filter(lacks).collect();
        if !lacking.is_empty() {
            return Err(no_port(environment, &lacking, slot));
        }
    }
    let url = |site: &Site| match slot.filter(|_| !site.is_shared()) {
        Some(slot) => slot_url(site, &environment.host, slot),
        None => Some(site.url(&environment.host)),
    };
    let plain = || of_benchmark(environment, &url);
    let of_browsergym = || {
        of_browsergym(environment, &url).into_iter().map(|(name, value)| match slot {
            Some(slot) if name.ends_with(FULL_RESET) => (name, format!("{value}/slots/{slot}")),
            _ => (name, value),
        })
    };
    Ok(match reader {
        EnvReader::Webarena => plain(),
        EnvReader::Browsergym => of_browsergym().collect(),
        EnvReader::All => plain().into_iter().chain(of_browsergym()).collect(),
    })
}

fn no_port(environment: &Environment, lacking: &[&Site], slot: u32) -> CommandFailure {
    let names: Vec<&str> = lacking.iter().map(|site| site.name.as_str()).collect();
    let verb = if names.len() == 1 { "has" } else { "have" };
    let message = format!("slot {slot} of {} {verb} no own port in {}", names.join(", "), environment.name);
    let hint = match lacking.iter().find(|site| site.ports.is_some()) {
        None => "declare `ports: { base: 17770, stride: 10 }` for the site in the environment file",
        Some(site) if slot > site.slots.max => "raise `slots.max` of the site in the environment file",
        Some(_) => "the site cannot be mapped to another address: use the episode proxy",
    };
    CommandFailure::usage(message).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn status(compat: Option<&str>, up: &[&str]) -> Status {
        let environment = |name: &&str| json!({ "name": name, "description": "", "host": "localhost", "sites": [] });
        let daemon = json!({
            "version": "1", "pid": 1, "installation": "i", "state_dir": "/", "background": false,
            "started_at": "2026-01-01T00:00:00Z", "engine": "unix:///e", "compat": compat,
        });
        let environments: Vec<_> = up.iter().map(environment).collect();
        let status = json!({ "daemon": daemon, "conditions": [], "environments": environments });
        serde_json::from_value(status).expect("a status")
    }

    #[test]
    fn variables_that_lead_elsewhere_are_noted() {
        let server = Some("http://127.0.0.1:7565");
        for (status, expected) in [
            (status(server, &["mini"]), None),
            (status(server, &[]), None),
            (status(None, &["mini"]), Some("no reset server")),
            (status(Some("http://127.0.0.1:17565"), &["mini"]), Some("and the variables name port 7565")),
            (status(server, &["webarena"]), Some("a reset resets webarena, not mini")),
            (status(server, &["mini", "webarena"]), Some("append /environments/mini")),
        ] {
            let note = note(&status, "mini", 7565);
            assert_eq!(note.is_some(), expected.is_some(), "{note:?}");
            assert!(note.unwrap_or_default().contains(expected.unwrap_or_default()));
        }
    }
}

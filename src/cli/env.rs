//! `arenad env`: the variables that WebArena's and BrowserGym's code reads, in their exact names and forms.
//!
//! Source: `browser_env/env_config.py` of WebArena; `browsergym/webarena/instance.py` of BrowserGym. URLs have no
//! trailing slash and always a port. All names must exist even for sites that are not there: `todo` is the word by which
//! BrowserGym skips one. No other `WA_` variable may exist, because AgentLab takes every one for an argument.

use super::args::{EnvArgs, EnvFormat, EnvReader, Global};
use super::failure::Failure;
use super::{definition, exit_code, output};
use crate::domain::site::Environment;

/// WebArena's sites, in the order in which its documents list them.
const NAMES: [&str; 7] = ["SHOPPING", "SHOPPING_ADMIN", "REDDIT", "GITLAB", "WIKIPEDIA", "MAP", "HOMEPAGE"];

/// What stands for a site that is not there.
const ABSENT: &str = "todo";

/// Prints the variables.
pub async fn run(global: &Global, args: &EnvArgs) -> Result<u8, Failure> {
    let given = &args.definition;
    let located = definition::locate(given.environment.as_deref(), given.file.as_deref(), given.root.as_deref())?;
    let found = definition::load(&located)?;
    let variables = variables(&found.loaded.environment, args.reader);
    let format = if global.json { EnvFormat::Json } else { args.format };
    match format {
        EnvFormat::Json => {
            let object: serde_json::Map<String, serde_json::Value> =
                variables.into_iter().map(|(name, value)| (name, value.into())).collect();
            output::print_json(&object)?;
        }
        EnvFormat::Shell => {
            for (name, value) in variables {
                println!("export {name}='{}'", value.replace('\'', r"'\''"));
            }
        }
        EnvFormat::Dotenv => {
            for (name, value) in variables {
                println!("{name}={value}");
            }
        }
    }
    Ok(exit_code::OK)
}

fn variables(environment: &Environment, reader: EnvReader) -> Vec<(String, String)> {
    let url = |name: &str| {
        let site = environment.sites.iter().find(|site| site.public.variable.as_deref() == Some(name));
        site.map_or_else(|| ABSENT.to_owned(), |site| site.url(&environment.host))
    };
    let plain = NAMES.iter().map(|name| ((*name).to_owned(), url(name)));
    let prefixed = NAMES.iter().map(|name| (format!("WA_{name}"), url(name)));
    match reader {
        EnvReader::Webarena => plain.collect(),
        EnvReader::Browsergym => prefixed.collect(),
        EnvReader::All => plain.chain(prefixed).collect(),
    }
}

//! `arenad env`: the variables that the benchmarks' own code, BrowserGym and AgentLab read.

use super::args::{EnvArgs, EnvFormat, EnvReader, Global};
use super::failure::CommandFailure;
use super::{definition, exit_code, output};
use arenad_model::harness_variables::{of_benchmark, of_browsergym};
use arenad_model::site::{Environment, Site};

/// Prints the variables in the chosen format.
pub async fn run(global: &Global, args: &EnvArgs) -> Result<u8, CommandFailure> {
    let given = &args.definition;
    let located = definition::locate(given.name(), given.file.as_deref(), given.root.as_deref())?;
    let found = definition::load(&located)?;
    let variables = variables(&found.loaded.environment, args.reader);
    let format = if global.json { EnvFormat::Json } else { args.format };
    // The note goes to standard error: on standard output, `eval` without quotes would join the lines, and a comment
    // would swallow the rest.
    if let Some((name, value)) = variables.iter().find(|(name, _)| name.ends_with("_FULL_RESET")) {
        errln!("note: no reset server listens at {value} yet; BrowserGym continues without resets if {name} is unset");
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

fn variables(environment: &Environment, reader: EnvReader) -> Vec<(String, String)> {
    let url = |site: &Site| Some(site.url(&environment.host));
    let plain = || of_benchmark(environment, &url);
    match reader {
        EnvReader::Webarena => plain(),
        EnvReader::Browsergym => of_browsergym(environment, &url),
        EnvReader::All => plain().into_iter().chain(of_browsergym(environment, &url)).collect(),
    }
}

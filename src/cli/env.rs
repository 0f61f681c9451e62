//! `arenad env`: the variables that the benchmarks' own code, BrowserGym and AgentLab read, in their exact names and
//! forms.
//!
//! Source: `browser_env/env_config.py` of WebArena and VisualWebArena; `browsergym/webarena/instance.py` and
//! `browsergym/visualwebarena/instance.py` of BrowserGym; `WebArenaInstanceVars` of AgentLab. URLs have no trailing
//! slash and always have a port. All names must exist even for absent sites: BrowserGym skips a site whose value is
//! `todo`. No other `WA_` variable may exist, because AgentLab passes each of them as an argument, and it requires
//! `WA_FULL_RESET`.

use super::args::{EnvArgs, EnvFormat, EnvReader, Global};
use super::failure::CommandFailure;
use super::{definition, exit_code, output};
use arenad_model::site::{BenchmarkFamily, Environment};

/// The value for a site that the environment does not have.
const ABSENT: &str = "todo";

/// The variable names that a benchmark uses for its sites.
struct BenchmarkVariables {
    /// Sites and other variables that both readers use, in the order of the benchmark's documentation.
    common: &'static [&'static str],
    /// The prefix that BrowserGym adds to each name.
    prefix: &'static str,
}

const WEBARENA: BenchmarkVariables = BenchmarkVariables {
    common: &["SHOPPING", "SHOPPING_ADMIN", "REDDIT", "GITLAB", "WIKIPEDIA", "MAP", "HOMEPAGE"],
    prefix: "WA_",
};

const VISUALWEBARENA: BenchmarkVariables = BenchmarkVariables {
    common: &["SHOPPING", "REDDIT", "WIKIPEDIA", "HOMEPAGE", "CLASSIFIEDS", "CLASSIFIEDS_RESET_TOKEN"],
    prefix: "VWA_",
};

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
    let plain = || of_benchmark(environment);
    match reader {
        EnvReader::Webarena => plain(),
        EnvReader::Browsergym => of_browsergym(environment),
        EnvReader::All => plain().into_iter().chain(of_browsergym(environment)).collect(),
    }
}

fn of_benchmark(environment: &Environment) -> Vec<(String, String)> {
    let names = names(environment.benchmark);
    let mut found: Vec<(String, String)> =
        names.common.iter().map(|name| ((*name).to_owned(), value(environment, name))).collect();
    if environment.benchmark == BenchmarkFamily::VisualWebArena {
        // VisualWebArena's code reads the first before any other variable, and requires the second without using it.
        found.insert(0, ("DATASET".to_owned(), "visualwebarena".to_owned()));
        found.push(("REDDIT_RESET_URL".to_owned(), format!("{}/reset", reset_server(environment))));
    }
    // Sites that the benchmark does not know keep their own names.
    let is_other = |name: &&String| !names.common.contains(&name.as_str());
    let own = environment.sites.iter().filter_map(|site| Some((site, site.public.variable.as_ref()?)));
    let own = own.filter(|(_, name)| is_other(name)).map(|(site, name)| (name.clone(), site.url(&environment.host)));
    found.extend(own);
    let others = environment.sites.iter().flat_map(|site| &site.exports);
    found.extend(others.filter(|(name, _)| !names.common.contains(&name.as_str())).cloned());
    found
}

fn of_browsergym(environment: &Environment) -> Vec<(String, String)> {
    let BenchmarkVariables { common, prefix } = names(environment.benchmark);
    let sites = common.iter().map(|name| (format!("{prefix}{name}"), value(environment, name)));
    sites.chain([(format!("{prefix}FULL_RESET"), reset_server(environment))]).collect()
}

fn names(benchmark: BenchmarkFamily) -> BenchmarkVariables {
    match benchmark {
        BenchmarkFamily::WebArena => WEBARENA,
        BenchmarkFamily::VisualWebArena => VISUALWEBARENA,
    }
}

/// Returns the URL of the site of that name, or the value that a site exports under it.
fn value(environment: &Environment, name: &str) -> String {
    let site = environment.sites.iter().find(|site| site.public.variable.as_deref() == Some(name));
    let exports = environment.sites.iter().flat_map(|site| &site.exports);
    let exported = || exports.clone().find(|(exported, _)| exported == name).map(|(_, value)| value.clone());
    site.map(|site| site.url(&environment.host)).or_else(exported).unwrap_or_else(|| ABSENT.to_owned())
}

/// Returns the base URL of `/reset` and `/status`.
fn reset_server(environment: &Environment) -> String {
    format!("http://{}:{}", environment.host, environment.reset_port)
}

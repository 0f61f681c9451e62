//! The variables that the benchmarks' own code, BrowserGym and AgentLab read, in their exact names and forms.
//!
//! Source: `browser_env/env_config.py` of WebArena and VisualWebArena; `browsergym/webarena/instance.py` and
//! `browsergym/visualwebarena/instance.py` of BrowserGym; `WebArenaInstanceVars` of AgentLab. URLs have no trailing
//! slash and always have a port. All names must exist even for absent sites: BrowserGym skips a site whose value is
//! `todo`. No other `WA_` variable may exist, because AgentLab passes each of them as an argument, and it requires
//! `WA_FULL_RESET`.

use crate::site::{BenchmarkFamily, Environment, Site};

/// The value for a site that is absent.
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

/// Returns the variables that the benchmark's own code reads. `url` returns the URL of a site, or `None` if the site is
/// absent for the reader.
pub fn of_benchmark(environment: &Environment, url: &dyn Fn(&Site) -> Option<String>) -> Vec<(String, String)> {
    let names = names(environment.benchmark);
    let mut found: Vec<(String, String)> =
        names.common.iter().map(|name| ((*name).to_owned(), value(environment, name, url))).collect();
    if environment.benchmark == BenchmarkFamily::VisualWebArena {
        // VisualWebArena's code reads the first before any other variable, and requires the second without using it.
        found.insert(0, ("DATASET".to_owned(), "visualwebarena".to_owned()));
        found.push(("REDDIT_RESET_URL".to_owned(), format!("{}/reset", reset_server(environment))));
    }
    // Sites that the benchmark does not know keep their own names.
    let is_other = |name: &&String| !names.common.contains(&name.as_str());
    let own = environment.sites.iter().filter_map(|site| Some((site, site.public.variable.as_ref()?)));
    let own = own.filter(|(_, name)| is_other(name)).filter_map(|(site, name)| Some((name.clone(), url(site)?)));
    found.extend(own);
    let others = environment.sites.iter().filter(|site| url(site).is_some()).flat_map(|site| &site.exports);
    found.extend(others.filter(|(name, _)| !names.common.contains(&name.as_str())).cloned());
    found
}

/// Returns the variables that BrowserGym and AgentLab read. `url` is as for [`of_benchmark`].
pub fn of_browsergym(environment: &Environment, url: &dyn Fn(&Site) -> Option<String>) -> Vec<(String, String)> {
    let BenchmarkVariables { common, prefix } = names(environment.benchmark);
    let sites = common.iter().map(|name| (format!("{prefix}{name}"), value(environment, name, url)));
    sites.chain([(format!("{prefix}FULL_RESET"), reset_server(environment))]).collect()
}

fn names(benchmark: BenchmarkFamily) -> BenchmarkVariables {
    match benchmark {
        BenchmarkFamily::WebArena => WEBARENA,
        BenchmarkFamily::VisualWebArena => VISUALWEBARENA,
    }
}

/// Returns the URL of the site of that name, or the value that a site exports under it.
fn value(environment: &Environment, name: &str, url: &dyn Fn(&Site) -> Option<String>) -> String {
    let present = || environment.sites.iter().filter_map(|site| Some((site, url(site)?)));
    let own = present().find(|(site, _)| site.public.variable.as_deref() == Some(name)).map(|(_, url)| url);
    let exports = || present().flat_map(|(site, _)| &site.exports);
    let exported = || exports().find(|(exported, _)| exported == name).map(|(_, value)| value.clone());
    own.or_else(exported).unwrap_or_else(|| ABSENT.to_owned())
}

/// Returns the base URL of `/reset` and `/status`.
fn reset_server(environment: &Environment) -> String {
    format!("http://{}:{}", environment.host, environment.reset_port)
}

//! Turns the two files of an environment into domain types, or reports all problems in them.
//!
//! ```text
//! environments/x.yaml ─┐  parse      interpolate   check against        validate
//! compose/x.yaml ──────┼─► marked ─► marked ─────► the schemas: raw ──► arenad_model::site::Environment
//! compose/.env ────────┘  trees      trees         types                or Diagnostics
//! ```
//! Each step continues after a problem, and later steps skip the parts that an earlier step refused, so all problems
//! are reported together. Nothing is ignored silently: an unsupported part is refused with its position. The files are
//! not trusted: their size, depth and expansion are limited, and no path leaves the folder that holds them.
//!
//! The callers are the CLI (`validate`, `config`, `up`) and the daemon, which stores the texts that it received. The
//! crate neither prints nor talks to Docker.
//!
//! The crate depends on `model`, and on `queries` for jq and JSONPath. Start reading at [`load`], then `raw/` and
//! `validate/`.

mod check;
mod choices;
mod describe;
mod diagnostic;
mod dotenv;
mod interpolate;
mod kinds;
mod locate;
mod parse;
mod problems;
mod raw;
mod resolve;
mod schema;
mod scope;
mod source;
pub mod tasks;
mod tree;
mod validate;
mod values;
mod variables;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use serde_json::Value as Json;

pub use diagnostic::{Diagnostic, Diagnostics, Style};
pub use locate::{DefinitionError, DefinitionSources, EnvironmentLocation, find_root, list, locate, locate_file, read};
pub use source::{SOURCE_MAX_BYTES, SourceFile};
pub use variables::{VariableOrigin, VariableUse};

use arenad_model::ids::EnvironmentName;
use arenad_model::site::{BenchmarkFamily, Environment};
use problems::Problems;
use raw::compose::RawCompose;
use raw::environment::{RawBenchmark, RawEnvironment};
use raw::values::Port;
use scope::{Document, Scope};
use tree::DocumentNode;
pub use values::size;
use variables::DefinitionVariables;

/// Default host name of public URLs. It works for browsers on this machine.
const HOST: &str = "localhost";

/// Default address of public ports. Other machines cannot reach sites that an agent controls.
const LISTEN: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Default port for reset requests: the port that users of BrowserGym and AgentLab know.
const RESET_PORT: u16 = 7565;

/// A valid definition of an environment.
#[derive(Debug, Clone)]
pub struct LoadedEnvironment {
    /// The environment that the files define.
    pub environment: Environment,
    /// Both files after interpolation and with defaults filled in, for people. Passwords appear as the file writes
    /// them: a password that comes from a variable appears as the variable.
    ///
    /// Shape: `{"environment": {...}, "compose": {...}}`, in the forms of the two files.
    pub resolved: Json,
    /// The variables that were used, sorted by name.
    pub variables: Vec<VariableUse>,
}

/// Turns the texts of the files into an environment.
///
/// `variables` are the caller's; they override those of `.env`. Build contexts, mounted files and `env_file`s are
/// looked up on disk below `sources.root`.
///
/// Errors: all problems of the definition, sorted by place.
pub fn load(
    sources: &DefinitionSources,
    variables: &BTreeMap<String, String>,
) -> Result<LoadedEnvironment, Diagnostics> {
    let problems = Problems::default();
    let variables = DefinitionVariables::new(variables, BTreeMap::new());
    if let Some(dotenv) = &sources.dotenv {
        dotenv::read_into(&variables, dotenv, &problems);
    }
    let environment = parse::parse(&sources.environment, &problems);
    if let Some(root) = &environment {
        choices::choose(root, &sources.environment, &variables, &problems);
    }
    let environment = environment.map(|root| document(root, &sources.environment, &variables, &problems));
    let compose = parse::parse(&sources.compose, &problems);
    let compose = compose.map(|root| document(root, &sources.compose, &variables, &problems));
    let environment = environment.map(|document| {
        let json = check::check(&schema::ENVIRONMENT, &document.root, document.source, &problems);
        (document, json)
    });
    let compose = compose.map(|document| {
        let json = check::check(&schema::COMPOSE, &document.root, document.source, &problems);
        (document, json)
    });
    let mut loaded = None;
    if let (Some((environment, environment_json)), Some((compose, compose_json))) = (&environment, &compose) {
        let raw_environment = serde_json::from_value::<RawEnvironment>(environment_json.clone());
        let raw_compose = serde_json::from_value::<RawCompose>(compose_json.clone());
        let scopes = (Scope::new(environment, &problems), Scope::new(compose, &problems));
        match (raw_environment, raw_compose) {
            (Ok(raw_environment), Ok(raw_compose)) => {
                loaded = build(sources, scopes, &raw_environment, &raw_compose, &variables);
            }
            (raw_environment, raw_compose) => {
                unread(scopes.0, raw_environment.err());
                unread(scopes.1, raw_compose.err());
            }
        }
        if loaded.is_none() && problems.count() == 0 {
            scopes.0.error("unreadable", "the definition cannot be read, and no check says why").report();
        }
    }
    let (environment, resolved) = match (problems.into_result(), loaded) {
        (Ok(()), Some(loaded)) => loaded,
        (Err(diagnostics), _) => return Err(diagnostics),
        // A document is missing only if at least one problem was reported for it.
        (Ok(()), None) => unreachable!("a definition that is not loaded has a problem"),
    };
    Ok(LoadedEnvironment { environment, resolved, variables: variables.uses() })
}

fn document<'a>(
    mut root: DocumentNode,
    source: &'a SourceFile,
    variables: &DefinitionVariables<'_>,
    problems: &Problems,
) -> Document<'a> {
    interpolate::interpolate_document(&mut root, source, variables, problems);
    Document { source, root }
}

/// The checker refuses every value that these types refuse. If the two ever differ, the file is still refused.
fn unread(scope: Scope<'_>, error: Option<serde_json::Error>) {
    if let Some(error) = error.filter(|_| scope.problems().count() == 0) {
        scope.error("unreadable", format!("the file cannot be read: {error}")).report();
    }
}

fn build(
    sources: &DefinitionSources,
    (environment, compose): (Scope<'_>, Scope<'_>),
    raw: &RawEnvironment,
    raw_compose: &RawCompose,
    variables: &DefinitionVariables<'_>,
) -> Option<(Environment, Json)> {
    let name = sources.environment.path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let environment_name = EnvironmentName::parse(name).map_err(|error| {
        let draft = environment.key("name").error("name", format!("invalid environment name `{name}`"));
        draft.expected(error.to_string()).report();
    });
    let Ok(root) = sources.root.canonicalize() else {
        let message = format!("the folder {} does not exist", sources.root.display());
        environment.error("missing-path", message).report();
        return None;
    };
    let compose_folder = root.join(sources.compose.path.parent().unwrap_or(Path::new("")));
    let listen = raw.listen.as_ref().map_or(Some(LISTEN), |text| text.parse().ok());
    if listen.is_none() {
        let draft = environment.key("listen").error("value", "`listen` is not an IP address");
        draft.expected("an IP address such as `127.0.0.1`, or `0.0.0.0` for all").report();
    }
    let data_folder =
        validate::data_folder(environment.key("data_folder"), &root, &compose_folder, raw.data_folder.as_deref());
    let data = validate::data(environment, &root, &compose_folder, data_folder.as_deref(), raw.data.as_ref());
    let context = validate::ValidationContext {
        root: &root,
        data_folder: data_folder.as_deref(),
        profiles: raw.profiles.as_deref().unwrap_or_default(),
        compose_folder: &compose_folder,
        name,
        listen: listen.unwrap_or(LISTEN),
        reset_port: raw.reset_port.as_ref().and_then(Port::number).unwrap_or(RESET_PORT),
        environment,
        compose,
        data: &data,
        variables,
    };
    let (sites, images) = validate::environment(context, raw, raw_compose);
    let egress = validate::egress(environment.key("egress"), raw.egress.as_deref());
    if environment.problems().count() > 0 {
        return None;
    }
    let mut built = Environment {
        name: environment_name.ok()?,
        description: raw.description.clone().unwrap_or_default(),
        root: root.clone(),
        host: raw.host.clone().unwrap_or_else(|| HOST.to_owned()),
        listen: context.listen,
        benchmark: match raw.benchmark.unwrap_or(RawBenchmark::Webarena) {
            RawBenchmark::Webarena => BenchmarkFamily::WebArena,
            RawBenchmark::Visualwebarena => BenchmarkFamily::VisualWebArena,
        },
        reset_port: context.reset_port,
        egress,
        sites,
        images,
        data: data.clone(),
    };
    for site in &mut built.sites {
        site.public.host.clone_from(&built.host);
        site.baseline_inputs = resolve::baseline_inputs(site, &built.root);
    }
    let resolved = resolve::resolved(&built, &sources.compose.path, environment);
    Some((built, resolved))
}

/// Returns the JSON Schema of `environments/<name>.yaml`, for editors.
pub fn environment_schema() -> Json {
    schema::ENVIRONMENT.clone()
}

/// Returns the JSON Schema of `environments/<name>/tasks/*.yaml`, for editors.
pub fn tasks_schema() -> Json {
    schema::TASKS.clone()
}

/// Returns the JSON Schema of `compose/<name>.yaml`, for editors.
pub fn compose_schema() -> Json {
    schema::COMPOSE.clone()
}

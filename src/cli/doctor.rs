//! `arenad doctor`: examines this host and the environment's requirements.

use std::collections::{BTreeMap, BTreeSet};

use super::args::{DoctorArgs, Global};
use super::client::{self, ApiClient};
use super::failure::CommandFailure;
use super::output::{self, is_colored};
use super::{definition, exit_code, reach, serve};
use arenad_api as wire;
use arenad_doctor::facts::DaemonState;
use arenad_doctor::gather::{self, DaemonPorts};
use arenad_doctor::{Finding, Level, judge};
use arenad_engine::docker::DockerEngine;

/// Prints the findings about this host. Exits with 1 if one of them is a problem.
pub async fn run(global: &Global, args: &DoctorArgs) -> Result<u8, CommandFailure> {
    let found = match (args.definition.name(), &args.definition.file) {
        (None, None) => None,
        (name, file) => {
            let located = definition::locate(name, file.as_deref(), args.definition.root.as_deref())?;
            Some(definition::load(&located)?.loaded.environment)
        }
    };
    let name = found.as_ref().map(|environment| environment.name.to_string());
    let state_dir = client::state_dir(global)?;
    let ExaminedDaemon { state: daemon, running, ports: daemon_ports } = daemon(global, name.as_deref()).await?;
    let engine = DockerEngine::new(&args.engine.engine);
    let facts = gather::facts(gather::ExaminationSubject {
        engine: &engine,
        daemon,
        state_dir: &state_dir,
        block: args.subnets,
        environment: found.as_ref(),
        running,
        daemon_ports,
    })
    .await;
    let findings = judge::all(&facts);
    let worst = findings.iter().map(|finding| finding.level).max().unwrap_or(Level::Ok);
    if global.json {
        let findings = findings.iter().map(Into::into).collect();
        output::print_json(&wire::Doctor { environment: name, level: worst.into(), findings })?;
    } else {
        print(&findings, name.as_deref());
    }
    Ok(if worst == Level::Problem { exit_code::FAILED } else { exit_code::OK })
}

/// The daemon as the doctor sees it.
struct ExaminedDaemon {
    state: DaemonState,
    /// The sites of the environment that are up.
    running: BTreeSet<String>,
    ports: DaemonPorts,
}

impl ExaminedDaemon {
    /// A daemon that could not be asked.
    fn unknown(state: DaemonState) -> Self {
        Self { state, running: BTreeSet::new(), ports: DaemonPorts::default() }
    }
}

async fn daemon(global: &Global, environment: Option<&str>) -> Result<ExaminedDaemon, CommandFailure> {
    let client = ApiClient::new(global)?;
    match client.is_running().await {
        Ok(true) => {}
        Ok(false) => {
            let others = serve::expected_ports();
            let ports = DaemonPorts { others, is_up: false };
            return Ok(ExaminedDaemon { ports, ..ExaminedDaemon::unknown(DaemonState::None) });
        }
        Err(failure) => {
            let daemon = match reach::holder(client.state_dir()).filter(|_| client.is_local()) {
                Some(pid) => DaemonState::Silent { pid: pid.parse().ok() },
                None => DaemonState::Hidden { why: failure.error.to_string() },
            };
            return Ok(ExaminedDaemon::unknown(daemon));
        }
    }
    let status = client.status().await?;
    let ports = ports(&status, environment);
    let known = status.environments.iter().filter(|known| Some(known.name.as_str()) == environment);
    let up = known
        .flat_map(|known| &known.sites)
        .filter(|site| !matches!(site.state, wire::InstanceState::Down | wire::InstanceState::Failed));
    let running = up.map(|site| site.name.clone()).collect();
    let wire::DaemonStatus { pid, engine, proxy, compat, .. } = status.daemon;
    Ok(ExaminedDaemon { state: DaemonState::Answers { pid, engine, proxy, compat }, running, ports })
}

/// Returns the ports that a running daemon uses for something else than the environment.
fn ports(status: &wire::Status, environment: Option<&str>) -> DaemonPorts {
    let wire::DaemonStatus { proxy, compat, .. } = &status.daemon;
    let servers = [(proxy, serve::PROXY.purpose), (compat, serve::COMPAT.purpose)];
    let servers =
        servers.into_iter().filter_map(|(url, purpose)| Some((port_of(url.as_deref()?)?, purpose.to_owned())));
    let mut others: BTreeMap<u16, String> = servers.collect();
    for other in status.environments.iter().filter(|known| Some(known.name.as_str()) != environment) {
        for site in &other.sites {
            let whose = format!("{} of {}", site.name, other.name);
            let slots = site.slots.iter().filter_map(|slot| slot.port);
            others.extend(port_of(&site.url).into_iter().chain(slots).map(|port| (port, whose.clone())));
        }
    }
    DaemonPorts { others, is_up: status.environments.iter().any(|known| Some(known.name.as_str()) == environment) }
}

/// Returns the port of an `http` URL.
fn port_of(url: &str) -> Option<u16> {
    let authority = url.strip_prefix("http://")?.split('/').next()?;
    let (_, port) = authority.rsplit_once(':').unwrap_or((authority, "80"));
    port.parse().ok()
}

/// Prints the findings by area: the level and the observation, and below them the consequence and the cure.
fn print(findings: &[Finding], environment: Option<&str>) {
    let mut area = None;
    for finding in findings {
        if area != Some(finding.area) {
            outln!("{}{}", if area.is_some() { "\n" } else { "" }, finding.area.name());
            area = Some(finding.area);
        }
        outln!("  {}  {}", label(finding.level), finding.seen);
        if let Some(consequence) = &finding.consequence {
            outln!("           so {consequence}");
        }
        if let Some(cure) = &finding.cure {
            outln!("           cure: {cure}");
        }
    }
    let count = |level| findings.iter().filter(|finding| finding.level == level).count();
    let counted = |level: Level, plural: &str| match count(level) {
        1 => format!("1 {}", level.name()),
        several => format!("{several} {plural}"),
    };
    outln!(
        "\n{}, {}, {}, {} ok",
        counted(Level::Problem, "problems"),
        counted(Level::Warning, "warnings"),
        counted(Level::Note, "notes"),
        count(Level::Ok)
    );
    if environment.is_none() {
        outln!(
            "`arenad doctor {}` also checks the requirements of the environment: ports, memory, images",
            definition::DEFAULT
        );
    }
}

/// Returns the level, padded to a column and in its colour.
fn label(level: Level) -> String {
    let name = format!("{:7}", level.name());
    let color = match level {
        Level::Ok => 32,
        Level::Note => 36,
        Level::Warning => 33,
        Level::Problem => 31,
    };
    if is_colored() { format!("\x1b[{color}m{name}\x1b[0m") } else { name }
}

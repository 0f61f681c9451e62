//! Judges the engine: whether it answers, its version, the limits that its kernel enforces; and the daemon that uses
//! it.

use super::answering;
use crate::facts::{Absence, AnsweringEngine, DaemonState, EngineState};
use crate::finding::{Area, Finding, Level};

const START: &str = "start Docker: `systemctl start docker`, or `scripts/engine.sh` where there is no systemd; DOCKER_HOST names another";

fn finding(id: &'static str, level: Level, seen: impl Into<String>) -> Finding {
    Finding::new(Area::Engine, id, level, seen)
}

pub(crate) fn judge(engine: &EngineState, daemon: &DaemonState) -> Vec<Finding> {
    let mut findings = vec![reached(engine)];
    if let Some(answering) = answering(engine) {
        findings.push(api(answering));
        findings.push(place(answering));
        findings.extend(limits(answering));
    } else if let EngineState::TooOld { api, .. } = engine {
        findings.push(
            finding("engine-api", Level::Problem, format!("the engine speaks API {api}"))
                .so("arenad needs at least 1.41 (Docker 20.10) and does not work with this one")
                .cure("install a newer engine: `apt-get install docker.io` on Debian 12 or newer"),
        );
    }
    findings.push(daemon_found(daemon, engine));
    findings.extend(proxy(daemon));
    findings.extend(reset_server(daemon));
    findings
}

/// Judges the episode proxy of a daemon that runs.
fn proxy(daemon: &DaemonState) -> Option<Finding> {
    let DaemonState::Answers { proxy, .. } = daemon else { return None };
    Some(match proxy {
        Some(server) => finding("episode-proxy", Level::Ok, format!("the episode proxy listens at {server}")),
        None => finding("episode-proxy", Level::Note, "the daemon offers no episode proxy")
            .so("clients of episodes reach slot 1 of a site alone")
            .cure("`arenad status` says why; ARENAD_PROXY chooses another address for the next start of the daemon"),
    })
}

/// Judges the reset server of a daemon that runs.
fn reset_server(daemon: &DaemonState) -> Option<Finding> {
    let DaemonState::Answers { compat, .. } = daemon else { return None };
    Some(match compat {
        Some(server) => {
            finding("reset-server", Level::Ok, format!("the reset server of harnesses listens at {server}"))
        }
        None => finding("reset-server", Level::Note, "the daemon offers no reset server for harnesses")
            .so("BrowserGym and AgentLab cannot reset sites")
            .cure("`arenad status` says why; ARENAD_COMPAT chooses another address for the next start of the daemon"),
    })
}

fn reached(engine: &EngineState) -> Finding {
    match engine {
        EngineState::Answers(answering) => {
            let seen = format!("Docker {} answers at {}", answering.details.version.version, answering.endpoint);
            finding("engine", Level::Ok, seen)
        }
        EngineState::TooOld { endpoint, .. } => {
            finding("engine", Level::Ok, format!("an engine answers at {endpoint}"))
        }
        EngineState::Away { endpoint, why } => {
            away(endpoint, why).so("nothing can be started; what only the engine knows was not looked at")
        }
    }
}

/// Returns the finding for an engine that does not answer.
pub(crate) fn away(endpoint: &str, why: &Absence) -> Finding {
    let (seen, cure) = match why {
        Absence::NoSocket => (format!("there is no engine at {endpoint}"), START.to_owned()),
        Absence::NobodyListens => (format!("no process listens at {endpoint}"), START.to_owned()),
        Absence::Denied { group } => {
            let group = group.as_deref().unwrap_or("docker");
            let cure = format!(
                "`sudo usermod -aG {group} $USER`, then log in again, or `newgrp {group}` in this shell; or run arenad as root"
            );
            (format!("this user may not open {endpoint}"), cure)
        }
        Absence::Other(said) => (format!("the engine at {endpoint} does not answer: {said}"), START.to_owned()),
    };
    finding("engine", Level::Problem, seen).cure(cure)
}

fn api(engine: &AnsweringEngine) -> Finding {
    finding("engine-api", Level::Ok, format!("it speaks API {}", engine.details.version.api))
}

/// Judges the engine's location: arenad reaches containers by their addresses, so their networks must be on this host.
fn place(engine: &AnsweringEngine) -> Finding {
    let elsewhere = if engine.details.is_rootless {
        Some("the engine is rootless: its networks are in a namespace of their own")
    } else if engine.details.operating_system.starts_with("Docker Desktop") {
        Some("the engine is Docker Desktop's: it runs in a virtual machine")
    } else {
        let is_local = ["unix://", "npipe://"].iter().any(|scheme| engine.endpoint.starts_with(scheme))
            || ["://127.", "://localhost", "://[::1]"].iter().any(|host| engine.endpoint.contains(host));
        (!is_local).then_some("the engine is on another host")
    };
    match elsewhere {
        None => finding("engine-place", Level::Ok, "it runs on this host"),
        Some(seen) => finding("engine-place", Level::Problem, seen)
            .so("arenad reaches containers by their addresses, and cannot reach these")
            .cure(
                "run arenad where the engine is, or use the system's engine: `DOCKER_HOST=unix:///var/run/docker.sock`",
            ),
    }
}

fn limits(engine: &AnsweringEngine) -> Vec<Finding> {
    let enforces = engine.details.enforces;
    let all = [
        ("memory", enforces.memory, "boot with `cgroup_enable=memory`"),
        ("CPU time", enforces.cpus, "use a kernel with CONFIG_CFS_BANDWIDTH"),
        ("the number of processes", enforces.pids, "use a kernel with CONFIG_CGROUP_PIDS"),
    ];
    let missing = all.iter().filter(|(_, enforced, _)| !enforced);
    let findings: Vec<Finding> = missing
        .map(|(what, _, cure)| {
            finding("limits", Level::Warning, format!("the kernel does not limit {what} of containers"))
                .about(what)
                .so("the limits of the Compose file are not enforced, and one site can starve all others")
                .cure(*cure)
        })
        .collect();
    if findings.is_empty() {
        return vec![finding("limits", Level::Ok, "memory, CPU time and processes of containers can be limited")];
    }
    findings
}

fn daemon_found(daemon: &DaemonState, engine: &EngineState) -> Finding {
    let endpoint = match engine {
        EngineState::Answers(answering) => &answering.endpoint,
        EngineState::TooOld { endpoint, .. } | EngineState::Away { endpoint, .. } => endpoint,
    };
    match daemon {
        DaemonState::None => finding("daemon", Level::Ok, "arenad's daemon does not run; `arenad up` starts it"),
        DaemonState::Answers { pid, engine, .. } if engine == endpoint => {
            finding("daemon", Level::Ok, format!("arenad's daemon runs (pid {pid})"))
        }
        DaemonState::Answers { pid, engine, .. } => {
            finding("daemon", Level::Note, format!("arenad's daemon (pid {pid}) uses the engine at {engine}"))
                .so("what is said here is about another one")
                .cure(format!("`arenad doctor --engine {engine}`"))
        }
        DaemonState::Hidden { why } => {
            finding("daemon", Level::Note, why.clone()).so("whether a daemon runs could not be looked at")
        }
        DaemonState::Silent { pid } => {
            let pid = pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
            finding("daemon", Level::Warning, format!("a daemon{pid} holds the state directory and does not answer"))
                .so("no command reaches it; a new one cannot start beside it")
                .cure("wait if it has just been started; otherwise end that process, and `arenad up` starts anew")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::prepared::{self, found};
    use super::*;

    fn away(why: Absence) -> EngineState {
        EngineState::Away { endpoint: "unix:///run/docker.sock".to_owned(), why }
    }

    #[test]
    fn an_absent_engine_is_told_from_a_forbidden_one() {
        let findings = judge(&away(Absence::NoSocket), &DaemonState::None);
        assert!(found(&findings, "engine").cure.as_ref().is_some_and(|cure| cure.contains("systemctl start docker")));
        let denied = judge(&away(Absence::Denied { group: Some("containers".to_owned()) }), &DaemonState::None);
        let cure = found(&denied, "engine").cure.clone().unwrap_or_default();
        assert!(cure.contains("usermod -aG containers"), "{cure}");
    }

    #[test]
    fn an_old_api_is_a_problem_of_its_own() {
        let engine = EngineState::TooOld { endpoint: "unix:///run/docker.sock".to_owned(), api: "1.24".to_owned() };
        let findings = judge(&engine, &DaemonState::None);
        assert_eq!(found(&findings, "engine").level, Level::Ok);
        assert_eq!(found(&findings, "engine-api").level, Level::Problem);
    }

    #[test]
    fn engines_whose_networks_are_elsewhere_are_problems() {
        let with = |change: &dyn Fn(&mut AnsweringEngine)| {
            let mut engine = prepared::engine();
            change(&mut engine);
            place(&engine).level
        };
        assert_eq!(with(&|_| {}), Level::Ok);
        assert_eq!(with(&|engine| engine.details.is_rootless = true), Level::Problem);
        assert_eq!(with(&|engine| engine.details.operating_system = "Docker Desktop".to_owned()), Level::Problem);
        assert_eq!(with(&|engine| engine.endpoint = "tcp://10.0.0.7:2375".to_owned()), Level::Problem);
        assert_eq!(with(&|engine| engine.endpoint = "tcp://127.0.0.1:2375".to_owned()), Level::Ok);
    }

    #[test]
    fn every_limit_that_is_not_enforced_is_named() {
        let mut engine = prepared::engine();
        engine.details.enforces.memory = false;
        engine.details.enforces.pids = false;
        let subjects: Vec<String> = limits(&engine).into_iter().filter_map(|finding| finding.subject).collect();
        assert_eq!(subjects, ["memory", "the number of processes"]);
    }

    #[test]
    fn a_daemon_on_another_engine_is_noted_and_a_silent_one_warned_of() {
        let engine = EngineState::Answers(Box::new(prepared::engine()));
        let other = DaemonState::Answers { pid: 7, engine: "unix:///other.sock".to_owned(), proxy: None, compat: None };
        assert_eq!(daemon_found(&other, &engine).level, Level::Note);
        assert_eq!(daemon_found(&DaemonState::Silent { pid: Some(7) }, &engine).level, Level::Warning);
        assert_eq!(proxy(&other).map(|found| found.level), Some(Level::Note));
        assert!(proxy(&DaemonState::None).is_none());
        assert_eq!(reset_server(&other).map(|found| found.level), Some(Level::Note));
        assert!(reset_server(&DaemonState::None).is_none());
    }
}

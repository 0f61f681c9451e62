//! The facts of a host without problems, which tests modify.

use std::collections::BTreeMap;

use crate::facts::{
    Access, AnsweringEngine, BrowserState, ClockFacts, DaemonState, EngineState, EnvironmentRequirements, Facts,
    FileSystemRoom, FolderFacts, MachineFacts, Needs, NetworkFacts, System,
};
use crate::finding::{Finding, Level};
use arenad_engine::{EnforcedLimits, EngineDetails, EngineVersion};
use arenad_model::subnet::Subnet;

const GIB: u64 = 1 << 30;

pub(crate) fn subnet(text: &str) -> Subnet {
    text.parse().expect("a valid range")
}

/// Returns the first finding of that id.
pub(crate) fn found<'a>(findings: &'a [Finding], id: &str) -> &'a Finding {
    findings.iter().find(|finding| finding.id == id).unwrap_or_else(|| panic!("no {id} in {findings:#?}"))
}

fn folder(path: &str, device: u64) -> FolderFacts {
    FolderFacts {
        path: path.into(),
        exists: true,
        access: Access::Writable,
        kind: "xfs".to_owned(),
        room: FileSystemRoom { free_bytes: 50 * GIB, total_bytes: 100 * GIB, free_files: Some(1_000_000), device },
        reflinks: Some(true),
        gives_away: Some(true),
        limits_stores: true,
    }
}

pub(crate) fn engine() -> AnsweringEngine {
    AnsweringEngine {
        endpoint: "unix:///var/run/docker.sock".to_owned(),
        details: EngineDetails {
            id: "PREPARED".to_owned(),
            version: EngineVersion {
                version: "20.10.24".to_owned(),
                api: "1.41".to_owned(),
                storage_driver: "overlay2".to_owned(),
                root: "/var/lib/docker".into(),
            },
            operating_system: "Debian GNU/Linux 12 (bookworm)".to_owned(),
            is_rootless: false,
            time: None,
            enforces: EnforcedLimits { memory: true, cpus: true, pids: true },
            address_pools: Vec::new(),
            forwards: true,
            firewall: None,
        },
        data_root: folder("/var/lib/docker", 1),
        copy_speed: None,
        subnets: Vec::new(),
    }
}

pub(crate) fn environment() -> EnvironmentRequirements {
    EnvironmentRequirements {
        name: "mini".to_owned(),
        ports: Vec::new(),
        slot_ports: Vec::new(),
        needs: Needs::default(),
        root: "/srv/arenad".into(),
        root_room: None,
        bases: BTreeMap::new(),
        can_make_base: true,
        never_rewound: Vec::new(),
    }
}

pub(crate) fn facts() -> Facts {
    Facts {
        engine: EngineState::Answers(Box::new(engine())),
        daemon: DaemonState::None,
        state_dir: folder("/var/lib/arenad", 2),
        stores: folder("/var/lib/arenad/stores", 2),
        machine: MachineFacts { memory_bytes: 16 * GIB, available_bytes: 12 * GIB, processors: 4 },
        system: System {
            open_files: (Some(65_536), Some(65_536)),
            inotify_instances: Some(1024),
            inotify_watches: Some(524_288),
            cgroup_version: Some(2),
            has_freezer: true,
            has_ipvs: true,
        },
        network: NetworkFacts { block: Subnet::DEFAULT_BLOCK, routes: Vec::new(), filters: Some(true) },
        clock: ClockFacts {
            now: "2026-06-01T12:00:00Z".parse().expect("a time"),
            newest_file: None,
            is_synchronised: Some(true),
        },
        browser: BrowserState::Works { path: "/usr/bin/chromium".into(), version: "Chromium 156".to_owned() },
        environment: Some(environment()),
    }
}

#[test]
fn a_host_on_which_all_is_fine_gets_no_advice() {
    let findings = super::all(&facts());
    assert!(findings.iter().all(|finding| finding.level == Level::Ok && finding.cure.is_none()), "{findings:#?}");
    assert!(findings.is_sorted_by_key(|finding| finding.area), "grouped");
}

#[test]
fn whatever_is_wrong_has_a_consequence_and_a_cure() {
    let mut facts = facts();
    facts.network.filters = Some(false);
    facts.system.has_ipvs = false;
    facts.system.has_freezer = false;
    facts.browser = BrowserState::Missing;
    facts.state_dir.access = Access::ReadOnly;
    facts.clock.is_synchronised = Some(false);
    facts.machine.processors = 1;
    facts.environment.as_mut().expect("there").never_rewound =
        vec![("shop".to_owned(), "/srv/extra of web is a writable volume outside of the stores".to_owned())];
    facts.engine = EngineState::TooOld { endpoint: "unix:///x".to_owned(), api: "1.24".to_owned() };
    let spoiled = super::all(&facts);
    let wrong: Vec<&Finding> = spoiled.iter().filter(|finding| finding.level > Level::Ok).collect();
    assert!(wrong.len() >= 6, "{wrong:#?}");
    assert!(wrong.iter().all(|finding| finding.consequence.is_some() && finding.cure.is_some()), "{wrong:#?}");
}

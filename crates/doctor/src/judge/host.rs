//! Judges the system around the engine: cgroups, kernel limits, the clock, the browser.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp, civil};

use super::answering;
use crate::facts::{BrowserState, ClockFacts, Facts, System};
use crate::finding::{Area, Finding, Level};

/// A low limit of open files: a connection of the gateway takes two handles, so a few hundred clients exhaust a lower
/// one.
const FEW_OPEN_FILES: u64 = 4096;

/// A low limit of inotify instances: accounts of different containers that have the same number share them. The
/// kernel's default is 128.
const FEW_INOTIFY_INSTANCES: u64 = 128;
const FEW_INOTIFY_WATCHES: u64 = 8192;

/// The tolerated difference between two clocks, and of a file's time from the present.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(5);

/// The time before which no correct clock can be, because arenad did not exist.
const EARLIEST: civil::DateTime = civil::datetime(2026, 1, 1, 0, 0, 0, 0);

fn finding(id: &'static str, level: Level, seen: impl Into<String>) -> Finding {
    Finding::new(Area::Host, id, level, seen)
}

pub(crate) fn judge(facts: &Facts) -> Vec<Finding> {
    let mut findings = vec![cgroups(&facts.system)];
    findings.push(open_files(&facts.system));
    findings.extend(inotify(&facts.system));
    findings.push(clock(&facts.clock, answering(&facts.engine).and_then(|engine| engine.details.time)));
    findings.push(browser(&facts.browser));
    findings.push(ipvs(&facts.system));
    findings
}

fn cgroups(system: &System) -> Finding {
    let Some(version) = system.cgroup_version else {
        return finding("cgroups", Level::Warning, "no cgroups are mounted at /sys/fs/cgroup")
            .so("limits of containers are not enforced, and containers cannot be frozen")
            .cure("`mount -t cgroup2 none /sys/fs/cgroup`, then restart Docker");
    };
    if system.has_freezer {
        return finding("cgroups", Level::Ok, format!("cgroups version {version}, with a freezer"));
    }
    finding("cgroups", Level::Warning, format!("cgroups version {version} without a freezer"))
        .so("containers cannot be frozen (`docker pause` fails)")
        .cure(
            "`mkdir -p /sys/fs/cgroup/freezer && mount -t cgroup -o freezer freezer /sys/fs/cgroup/freezer`, then \
               restart Docker",
        )
}

fn open_files(system: &System) -> Finding {
    let (soft, hard) = system.open_files;
    let Some(soft) = soft else {
        return finding("open-files", Level::Ok, "a process may have any number of files open");
    };
    let seen = format!("a process may have {soft} files open");
    if soft >= FEW_OPEN_FILES {
        return finding("open-files", Level::Ok, seen);
    }
    let reach = hard.map_or(65_536, |hard| hard.min(65_536));
    finding("open-files", Level::Warning, seen)
        .so(format!("a daemon started from here carries at most some {} connections at a time", soft / 2))
        .cure(format!("`ulimit -n {reach}` before `arenad up`, or LimitNOFILE= in its systemd unit"))
}

fn inotify(system: &System) -> Option<Finding> {
    let (instances, watches) = (system.inotify_instances?, system.inotify_watches?);
    let seen = format!("a user may have {instances} inotify instances and {watches} watches");
    if instances >= FEW_INOTIFY_INSTANCES && watches >= FEW_INOTIFY_WATCHES {
        return Some(finding("inotify", Level::Ok, seen));
    }
    Some(
        finding("inotify", Level::Warning, seen)
            .so("applications of many sites run as the same user number, and fail with `too many open files` when it \
                 runs out")
            .cure("`sysctl -w fs.inotify.max_user_instances=1024 fs.inotify.max_user_watches=524288`"),
    )
}

fn clock(clock: &ClockFacts, engine: Option<Timestamp>) -> Finding {
    let set = "set it: `timedatectl set-ntp true`, or `date -s` where there is no systemd";
    let seconds = |span: SignedDuration| span.unsigned_abs().as_secs();
    if clock.now < EARLIEST.to_zoned(jiff::tz::TimeZone::UTC).map_or(Timestamp::UNIX_EPOCH, |zoned| zoned.timestamp()) {
        return finding("clock", Level::Problem, format!("the clock shows {:.0}", clock.now))
            .so("package archives and registries are refused as not yet valid, and schedules mean nothing")
            .cure(set);
    }
    if let Some((path, written)) = &clock.newest_file {
        let ahead = written.duration_since(clock.now);
        if ahead > SignedDuration::from_secs(CLOCK_TOLERANCE.as_secs() as i64) {
            let seen = format!("{} was written {} s in the future", path.display(), seconds(ahead));
            return finding("clock", Level::Warning, format!("the clock has been set back: {seen}"))
                .so("the times of events and resets are out of order until it has caught up")
                .cure(set);
        }
    }
    if let Some(apart) = engine.map(|time| time.duration_since(clock.now))
        && apart.unsigned_abs() > CLOCK_TOLERANCE
    {
        let way = if apart.is_negative() { "behind" } else { "ahead" };
        return finding("clock", Level::Warning, format!("the engine's clock is {} s {way}", seconds(apart)))
            .so("logs and events of containers do not fit arenad's")
            .cure("synchronise both: `timedatectl set-ntp true`");
    }
    match clock.is_synchronised {
        Some(false) => {
            finding("clock", Level::Note, format!("the clock shows {:.0}; nothing keeps it right", clock.now))
                .so("it drifts by seconds a week")
                .cure("`timedatectl set-ntp true`")
        }
        Some(true) => finding("clock", Level::Ok, format!("the clock shows {:.0} and is synchronised", clock.now)),
        None => finding(
            "clock",
            Level::Ok,
            format!("the clock shows {:.0}; whether it is synchronised is not told", clock.now),
        ),
    }
}

fn browser(browser: &BrowserState) -> Finding {
    let so =
        "what needs a headless browser (locators in JavaScript, logging in through forms) does not work; all else does";
    match browser {
        BrowserState::Works { path, version } => {
            finding("browser", Level::Ok, format!("{version} starts headless ({})", path.display()))
        }
        BrowserState::Missing => finding("browser", Level::Warning, "there is no Chromium on PATH")
            .so(so)
            .cure("`apt-get install chromium-headless-shell`, or chromium"),
        BrowserState::Fails { path, reason } => {
            finding("browser", Level::Warning, format!("{} does not start headless: {reason}", path.display()))
                .so(so)
                .cure(format!(
                    "see what `{} --headless --dump-dom about:blank` says; `apt-get install --reinstall` its package",
                    path.display()
                ))
        }
    }
}

fn ipvs(system: &System) -> Finding {
    if system.has_ipvs {
        return finding("ipvs", Level::Ok, "the kernel has IPVS");
    }
    finding("ipvs", Level::Note, "the kernel has no IPVS")
        .so("Swarm's virtual addresses and its ingress mesh would not work here; on one machine arenad needs neither")
        .cure("`modprobe ip_vs`, where the kernel's packages have it")
}

#[cfg(test)]
mod tests {
    use super::super::prepared;
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    #[test]
    fn a_clock_that_jumped_is_found() {
        let now = at("2026-06-01T12:00:00Z");
        let fine = ClockFacts { now, newest_file: Some(("/state/arenad.db".into(), now)), is_synchronised: Some(true) };
        assert_eq!(clock(&fine, Some(now)).level, Level::Ok);
        let back = ClockFacts { now: at("2026-06-01T11:00:00Z"), ..fine.clone() };
        let finding = clock(&back, None);
        assert_eq!(finding.level, Level::Warning);
        assert_eq!(finding.seen, "the clock has been set back: /state/arenad.db was written 3600 s in the future");
        let finding = clock(&fine, Some(at("2026-06-01T11:59:00Z")));
        assert_eq!((finding.level, finding.seen.as_str()), (Level::Warning, "the engine's clock is 60 s behind"));
        let epoch = ClockFacts { now: at("1970-01-01T00:03:00Z"), ..fine.clone() };
        assert_eq!(clock(&epoch, None).level, Level::Problem);
        assert_eq!(clock(&ClockFacts { is_synchronised: Some(false), ..fine }, None).level, Level::Note);
    }

    #[test]
    fn a_missing_freezer_and_few_handles_are_warned_of() {
        let system = prepared::facts().system;
        assert_eq!(cgroups(&system).level, Level::Ok);
        assert_eq!(cgroups(&System { has_freezer: false, ..system.clone() }).level, Level::Warning);
        assert_eq!(cgroups(&System { cgroup_version: None, ..system.clone() }).level, Level::Warning);
        let few = open_files(&System { open_files: (Some(1024), Some(524_288)), ..system.clone() });
        assert!(few.level == Level::Warning && few.cure.is_some_and(|cure| cure.contains("ulimit -n 65536")));
        let few = inotify(&System { inotify_instances: Some(16), ..system.clone() }).expect("a finding");
        assert_eq!(few.level, Level::Warning);
        assert_eq!(ipvs(&System { has_ipvs: false, ..system }).level, Level::Note, "nothing is wrong without it");
    }

    #[test]
    fn a_browser_that_is_not_there_or_does_not_start_names_its_package() {
        for found in [
            BrowserState::Missing,
            BrowserState::Fails { path: "/usr/bin/chromium".into(), reason: "it exited with code 1".to_owned() },
        ] {
            let finding = browser(&found);
            assert_eq!(finding.level, Level::Warning);
            assert!(finding.cure.is_some_and(|cure| cure.contains("apt-get install")));
        }
    }
}

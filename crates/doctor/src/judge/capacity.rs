//! Compares space, memory and processors with the requirements of sites. `arenad up` runs this check before it starts
//! anything.

use std::path::PathBuf;

use super::size;
use crate::facts::{EngineState, Facts, FileSystemRoom, ImageOrigin, MachineFacts, Needs, SiteNeeds};
use crate::finding::{Area, Finding, Level};

/// The free space in bytes below which databases begin to fail in unexpected ways.
pub const LEAST_FREE_BYTES: u64 = 512 << 20;

/// The number of free inodes below which the same happens.
pub const LEAST_FREE_FILES: u64 = 10_000;

/// The available memory in bytes below which the host itself becomes slow.
const LEAST_MEMORY_BYTES: u64 = 256 << 20;

/// The memory in bytes that further slots leave free, unless the daemon is started with another `--memory-reserve`.
const SLOT_RESERVE_BYTES: u64 = 512 << 20;

/// The assumed size of an image that remains to be built: the real size is unknown beforehand, and applications with
/// their packages are of this order of magnitude.
const BUILD_BYTES: u64 = 1 << 30;

/// The resources that are available on the host.
#[derive(Debug, Clone)]
pub struct Resources {
    /// The memory and the processors.
    pub machine: MachineFacts,
    /// The file systems that arenad and the engine write to.
    pub disks: Vec<HostFileSystem>,
}

/// A file system that is written to.
#[derive(Debug, Clone)]
pub struct HostFileSystem {
    /// A folder on the file system.
    pub path: PathBuf,
    /// The space of the file system.
    pub room: FileSystemRoom,
    /// The kind of data that is written there.
    pub holds: Holds,
}

/// The kind of data that a folder holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// The images of the engine.
    Images,
    /// The data that sites mount.
    Data,
    /// The daemon's own files.
    State,
}

impl Resources {
    pub(super) fn of(facts: &Facts) -> Self {
        let engine = match &facts.engine {
            EngineState::Answers(engine) => {
                let root = &engine.data_root;
                Some(HostFileSystem { path: root.path.clone(), room: root.room, holds: Holds::Images })
            }
            EngineState::TooOld { .. } | EngineState::Away { .. } => None,
        };
        let data = facts.environment.as_ref().and_then(|environment| {
            Some(HostFileSystem { path: environment.root.clone(), room: environment.root_room?, holds: Holds::Data })
        });
        let state =
            HostFileSystem { path: facts.state_dir.path.clone(), room: facts.state_dir.room, holds: Holds::State };
        Self { machine: facts.machine, disks: engine.into_iter().chain(data).chain([state]).collect() }
    }
}

fn finding(id: &'static str, level: Level, seen: String) -> Finding {
    Finding::new(Area::Capacity, id, level, seen)
}

/// Returns the findings that follow from the requirements and the resources.
pub fn judge(needs: &Needs, resources: &Resources) -> Vec<Finding> {
    let mut findings = disks(needs, &resources.disks);
    findings.push(memory(needs, &resources.machine));
    findings.extend(slots(needs, &resources.machine));
    findings.extend(processors(needs, &resources.machine));
    findings
}

fn disks(needs: &Needs, disks: &[HostFileSystem]) -> Vec<Finding> {
    // The folder of data matters only while data remains to be fetched, because nothing else is written there.
    let disks: Vec<&HostFileSystem> =
        disks.iter().filter(|disk| disk.holds != Holds::Data || !needs.missing_data.is_empty()).collect();
    let mut findings: Vec<Finding> = Vec::new();
    let mut seen: Vec<u64> = Vec::new();
    for disk in &disks {
        // Two folders on one file system share its space, which is reported once.
        if seen.contains(&disk.room.device) {
            continue;
        }
        seen.push(disk.room.device);
        let same: Vec<&&HostFileSystem> = disks.iter().filter(|other| other.room.device == disk.room.device).collect();
        let places: Vec<String> = same.iter().map(|disk| disk.path.display().to_string()).collect();
        let holds: Vec<Holds> = same.iter().map(|disk| disk.holds).collect();
        findings.push(space(needs, &disk.room, &holds, &places.join(" and ")).about(disk.path.display()));
    }
    findings
}

fn space(needs: &Needs, room: &FileSystemRoom, holds: &[Holds], places: &str) -> Finding {
    let seen = format!("{} of {} are free below {places}", size(room.free_bytes), size(room.total_bytes));
    let cure = if holds.contains(&Holds::Images) {
        "free some: `docker system df` shows what Docker holds, `docker image prune` removes images without a name"
    } else if holds.contains(&Holds::Data) {
        "free some, or mount a larger file system there"
    } else {
        "free some, or name another folder with --state-dir or ARENAD_STATE_DIR"
    };
    if room.free_bytes < LEAST_FREE_BYTES {
        return finding("disk", Level::Problem, seen)
            .so(format!("below {} databases begin to fail in strange ways", size(LEAST_FREE_BYTES)))
            .cure(cure);
    }
    if let Some(files) = room.free_files.filter(|files| *files < LEAST_FREE_FILES) {
        return finding("disk", Level::Problem, format!("only {files} more files can be made below {places}"))
            .so("no space is left on it for new files, however many bytes are free")
            .cure("remove folders with many small files, or use a file system with more inodes");
    }
    let declared = declared(needs, holds);
    if room.free_bytes < declared + LEAST_FREE_BYTES {
        return finding(
            "disk",
            Level::Problem,
            format!("{seen}, and what is still to be fetched takes {}", size(declared)),
        )
        .so("fetching it would fill the disk")
        .cure(format!("{cure}; or name fewer sites"));
    }
    let builds = needs.missing_images.iter().filter(|image| image.from == ImageOrigin::Build).count() as u64;
    if holds.contains(&Holds::Images) && room.free_bytes < declared + builds * BUILD_BYTES + LEAST_FREE_BYTES {
        return finding("disk", Level::Warning, format!("{seen}, and {builds} images are still to be built"))
            .so(format!("an image takes some {}: the space may not suffice", size(BUILD_BYTES)))
            .cure(cure);
    }
    finding("disk", Level::Ok, seen)
}

/// Returns the peak of the declared sizes that remain to be written to a file system: while an archive is loaded, the
/// engine holds its content twice.
fn declared(needs: &Needs, holds: &[Holds]) -> u64 {
    let sizes = needs.missing_images.iter().filter_map(|image| Some((image.from, image.size_bytes?)));
    let images: u64 = sizes.clone().map(|(_, bytes)| bytes).sum();
    let loaded = sizes.filter(|(from, _)| *from == ImageOrigin::Archive).map(|(_, bytes)| bytes).max();
    let data = needs.missing_data.iter().filter_map(|data| data.size_bytes).sum();
    let of = |what: Holds, sum: u64| if holds.contains(&what) { sum } else { 0 };
    of(Holds::Images, images + loaded.unwrap_or(0)) + of(Holds::Data, data)
}

fn memory(needs: &Needs, machine: &MachineFacts) -> Finding {
    let reserved = reserved(needs);
    let limit: u64 = needs.sites.iter().map(|site| site.limit_bytes).sum();
    let have = format!("{} of {} memory are available", size(machine.available_bytes), size(machine.memory_bytes));
    if reserved > machine.available_bytes {
        let seen = format!("{have}, and {} is needed at least: {}", size(reserved), largest(&needs.sites));
        return finding("memory", Level::Problem, seen)
            .so("the sites would not come up, or the kernel would kill processes (out of memory)")
            .cure(
                "name fewer sites (`arenad up ENVIRONMENT SITE…`), stop what else takes memory, or lower \
                   `mem_reservation` where the site runs with less",
            );
    }
    if machine.available_bytes < LEAST_MEMORY_BYTES {
        return finding("memory", Level::Warning, have)
            .so("the host itself crawls")
            .cure("stop what takes memory: `ps aux --sort=-rss | head`");
    }
    if limit > machine.memory_bytes {
        let seen = format!("{have}, and the sites' `mem_limit` add up to {}", size(limit));
        return finding("memory", Level::Warning, seen)
            .so("if all of them use what they may, the kernel kills processes (out of memory)")
            .cure("name fewer sites, or lower `mem_limit` in the Compose file");
    }
    finding("memory", Level::Ok, have)
}

/// Returns the memory that slot 1 of each site reserves.
fn reserved(needs: &Needs) -> u64 {
    needs.sites.iter().map(|site| site.reserved_bytes).sum()
}

impl SiteNeeds {
    /// Returns the memory that the slots use which always exist, without slot 1.
    fn least_further_bytes(&self) -> u64 {
        u64::from(self.least_slots.saturating_sub(1)).saturating_mul(self.slot_bytes)
    }

    /// Returns the number of slots for which memory suffices if only this site gets further ones.
    fn fitting(&self, free_bytes: u64) -> u32 {
        let further = u32::try_from(free_bytes.checked_div(self.slot_bytes).unwrap_or(u64::MAX)).unwrap_or(u32::MAX);
        further.saturating_add(1).min(self.most_slots)
    }
}

/// Returns how many slots fit, of each site that may have several. The slots that `min` demands must fit together.
fn slots(needs: &Needs, machine: &MachineFacts) -> Vec<Finding> {
    let free = machine.available_bytes.saturating_sub(reserved(needs)).saturating_sub(SLOT_RESERVE_BYTES);
    let least: u64 = needs.sites.iter().map(SiteNeeds::least_further_bytes).sum();
    let mut findings = Vec::new();
    if least > free {
        let demanding = needs.sites.iter().filter(|site| site.least_slots > 1);
        let sites: Vec<String> = demanding
            .map(|site| format!("{} {} × {}", site.site, site.least_slots - 1, size(site.slot_bytes)))
            .collect();
        let seen = format!(
            "{} are left for further slots, and `slots.min` needs {}: {}",
            size(free),
            size(least),
            sites.join(", ")
        );
        findings.push(
            finding("slots", Level::Problem, seen)
                .so("arenad does not make slots for which memory is short, so episodes would wait for them")
                .cure("lower `slots.min` or `slots.memory` in the environment file, or name fewer sites"),
        );
    }
    // Beyond the slots that always exist, each site is told what it gets if no other one grows.
    let spare = free.saturating_sub(least);
    for site in needs.sites.iter().filter(|site| site.most_slots > 1) {
        let fitting = site.fitting(if least > free { free } else { spare + site.least_further_bytes() });
        let most = site.most_slots;
        let each = size(site.slot_bytes);
        let seen = format!("memory suffices for {fitting} of at most {most} slots of {}, at {each} each", site.site);
        let level = if fitting < most { Level::Note } else { Level::Ok };
        findings.push(finding("slots", level, seen).about(&site.site));
    }
    findings
}

/// Returns the sites with the largest requirements, so that people can choose which to leave out.
fn largest(sites: &[SiteNeeds]) -> String {
    let mut sites: Vec<&SiteNeeds> = sites.iter().filter(|site| site.reserved_bytes > 0).collect();
    sites.sort_by(|one, two| two.reserved_bytes.cmp(&one.reserved_bytes).then_with(|| one.site.cmp(&two.site)));
    let shown: Vec<String> =
        sites.iter().take(4).map(|site| format!("{} {}", site.site, size(site.reserved_bytes))).collect();
    shown.join(", ")
}

fn processors(needs: &Needs, machine: &MachineFacts) -> Vec<Finding> {
    let count = machine.processors;
    let seen = if count == 1 { "1 processor".to_owned() } else { format!("{count} processors") };
    let wanting = needs.sites.iter().filter(|site| site.most_milli_cpus > count as u64 * 1000);
    let mut findings: Vec<Finding> = wanting
        .map(|site| {
            let wanted = site.most_milli_cpus as f64 / 1000.0;
            finding(
                "processors",
                Level::Problem,
                format!("{seen}, and a service of {} says `cpus: {wanted}`", site.site),
            )
            .about(&site.site)
            .so("the engine refuses to create a container that may use more processors than there are")
            .cure("lower `cpus` in the Compose file")
        })
        .collect();
    if findings.is_empty() {
        findings.push(match count {
            1 => finding("processors", Level::Warning, seen)
                .so("sites come up one after the other, and slowly")
                .cure("give the machine a second processor"),
            _ => finding("processors", Level::Ok, seen),
        });
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{MissingData, MissingImage};

    const GIB: u64 = 1 << 30;

    fn room(free_bytes: u64, device: u64) -> FileSystemRoom {
        FileSystemRoom { free_bytes, total_bytes: 100 * GIB, free_files: Some(1_000_000), device }
    }

    fn disk(path: &str, room: FileSystemRoom, holds: Holds) -> HostFileSystem {
        HostFileSystem { path: path.into(), room, holds }
    }

    fn resources(available_bytes: u64) -> Resources {
        let machine = MachineFacts { memory_bytes: 8 * GIB, available_bytes, processors: 2 };
        let disks =
            vec![disk("/engine", room(50 * GIB, 1), Holds::Images), disk("/state", room(50 * GIB, 1), Holds::State)];
        Resources { machine, disks }
    }

    fn site(name: &str, reserved: u64, limit: u64) -> SiteNeeds {
        SiteNeeds {
            site: name.to_owned(),
            reserved_bytes: reserved,
            limit_bytes: limit,
            most_milli_cpus: 500,
            least_slots: 1,
            most_slots: 1,
            slot_bytes: reserved,
        }
    }

    /// A site with slots of one GiB.
    fn slotted(name: &str, least: u32, most: u32) -> SiteNeeds {
        SiteNeeds { least_slots: least, most_slots: most, slot_bytes: GIB, ..site(name, GIB, 0) }
    }

    fn told(sites: Vec<SiteNeeds>, available_bytes: u64) -> Vec<(Level, String)> {
        let needs = Needs { sites, ..Needs::default() };
        let findings = judge(&needs, &resources(available_bytes)).into_iter();
        findings.filter(|finding| finding.id == "slots").map(|finding| (finding.level, finding.seen)).collect()
    }

    #[test]
    fn the_slots_that_always_exist_must_fit_and_it_is_told_how_many_do() {
        let sites = || vec![slotted("shop", 3, 8), slotted("forum", 1, 2), site("wiki", 0, 0)];
        let seen = |number, most, site| {
            format!("memory suffices for {number} of at most {most} slots of {site}, at 1.0 GiB each")
        };
        // Two GiB for slots 1, half of one in reserve: shop needs two more.
        let enough = told(sites(), 4 * GIB + GIB / 2);
        assert_eq!(enough, [(Level::Note, seen(3, 8, "shop")), (Level::Note, seen(1, 2, "forum"))]);
        let plenty = told(sites(), 10 * GIB);
        assert_eq!(plenty, [(Level::Ok, seen(8, 8, "shop")), (Level::Ok, seen(2, 2, "forum"))]);
        let short = told(sites(), 4 * GIB);
        let problem = "1.5 GiB are left for further slots, and `slots.min` needs 2.0 GiB: shop 2 × 1.0 GiB".to_owned();
        assert_eq!(
            short,
            [(Level::Problem, problem), (Level::Note, seen(2, 8, "shop")), (Level::Ok, seen(2, 2, "forum")),]
        );
        assert_eq!(told(vec![site("wiki", GIB, GIB)], GIB / 4), [], "one slot is judged by `memory`");
    }

    #[test]
    fn slots_that_use_no_memory_all_fit() {
        let free = SiteNeeds { most_slots: 5, slot_bytes: 0, ..site("shop", 0, 0) };
        let seen = "memory suffices for 5 of at most 5 slots of shop, at 0 MiB each".to_owned();
        assert_eq!(told(vec![free], GIB), [(Level::Ok, seen)]);
    }

    fn found<'a>(findings: &'a [Finding], id: &str) -> &'a Finding {
        findings.iter().find(|finding| finding.id == id).expect("a finding")
    }

    #[test]
    fn one_file_system_is_told_once_with_all_its_folders() {
        let findings = judge(&Needs::default(), &resources(4 * GIB));
        let disks: Vec<&Finding> = findings.iter().filter(|finding| finding.id == "disk").collect();
        assert_eq!(disks.len(), 1);
        assert_eq!(disks[0].seen, "50.0 GiB of 100.0 GiB are free below /engine and /state");
        assert!(findings.iter().all(|finding| finding.level == Level::Ok), "{findings:#?}");
    }

    #[test]
    fn a_full_disk_and_one_without_inodes_are_problems() {
        let full = disk("/state", room(LEAST_FREE_BYTES - 1, 2), Holds::State);
        let finding = &disks(&Needs::default(), &[full])[0];
        assert_eq!((finding.level, finding.subject.as_deref()), (Level::Problem, Some("/state")));
        assert!(finding.cure.as_ref().is_some_and(|cure| cure.contains("ARENAD_STATE_DIR")));
        let crowded = disk("/state", FileSystemRoom { free_files: Some(17), ..room(50 * GIB, 2) }, Holds::State);
        let finding = &disks(&Needs::default(), &[crowded])[0];
        assert_eq!((finding.level, finding.seen.contains("only 17 more files")), (Level::Problem, true));
        let btrfs = disk("/state", FileSystemRoom { free_files: None, ..room(50 * GIB, 2) }, Holds::State);
        assert_eq!(disks(&Needs::default(), &[btrfs])[0].level, Level::Ok, "btrfs has no such limit");
    }

    #[test]
    fn images_still_to_be_built_want_space_where_images_are() {
        let image =
            |n: u32| MissingImage { reference: format!("image:{n}"), from: ImageOrigin::Build, size_bytes: None };
        let needs = Needs { missing_images: (0..5).map(image).collect(), ..Default::default() };
        let tight = [disk("/engine", room(4 * GIB, 1), Holds::Images), disk("/state", room(4 * GIB, 2), Holds::State)];
        let levels: Vec<Level> = disks(&needs, &tight).iter().map(|finding| finding.level).collect();
        assert_eq!(levels, [Level::Warning, Level::Ok]);
    }

    #[test]
    fn what_is_declared_must_fit_where_it_goes() {
        let gitlab =
            MissingImage { reference: "gitlab".to_owned(), from: ImageOrigin::Archive, size_bytes: Some(60 * GIB) };
        let maps = MissingData { name: "maps".to_owned(), size_bytes: Some(30 * GIB) };
        let needs = Needs { missing_images: vec![gitlab], missing_data: vec![maps], ..Default::default() };
        let levels = |free: [u64; 3]| -> Vec<Level> {
            let kinds = [("/engine", Holds::Images), ("/data", Holds::Data), ("/state", Holds::State)];
            let apart = kinds.iter().zip(free).enumerate();
            let apart: Vec<HostFileSystem> =
                apart.map(|(n, ((path, holds), free))| disk(path, room(free, n as u64), *holds)).collect();
            disks(&needs, &apart).iter().map(|finding| finding.level).collect()
        };
        // While an archive is loaded, the engine holds its content twice.
        assert_eq!(levels([121 * GIB, 31 * GIB, GIB]), [Level::Ok; 3]);
        assert_eq!(levels([120 * GIB, 30 * GIB, GIB]), [Level::Problem, Level::Problem, Level::Ok]);
        let same = [disk("/engine", room(70 * GIB, 1), Holds::Images), disk("/data", room(70 * GIB, 1), Holds::Data)];
        let finding = &disks(&needs, &same)[0];
        assert_eq!(finding.level, Level::Problem, "both go to the same file system");
        assert!(finding.seen.ends_with("below /engine and /data, and what is still to be fetched takes 150.0 GiB"));
    }

    #[test]
    fn what_is_reserved_must_be_available() {
        let needs =
            Needs { sites: vec![site("wiki", GIB / 8, GIB), site("gitlab", 5 * GIB, 6 * GIB)], ..Default::default() };
        let findings = judge(&needs, &resources(4 * GIB));
        let memory = found(&findings, "memory");
        assert_eq!(memory.level, Level::Problem);
        let seen =
            "4.0 GiB of 8.0 GiB memory are available, and 5.1 GiB is needed at least: gitlab 5.0 GiB, wiki 128 MiB";
        assert_eq!(memory.seen, seen);
        assert!(memory.cure.as_ref().is_some_and(|cure| cure.contains("arenad up ENVIRONMENT SITE")));
        assert_eq!(found(&judge(&needs, &resources(6 * GIB)), "memory").level, Level::Ok);
    }

    #[test]
    fn limits_above_what_there_is_are_only_warned_of() {
        let needs = Needs { sites: vec![site("shop", 0, 5 * GIB), site("admin", 0, 5 * GIB)], ..Default::default() };
        let findings = judge(&needs, &resources(4 * GIB));
        assert_eq!(found(&findings, "memory").level, Level::Warning);
        assert!(found(&findings, "memory").seen.ends_with("add up to 10.0 GiB"));
    }

    #[test]
    fn more_cpus_than_there_are_are_refused_by_the_engine() {
        let needs =
            Needs { sites: vec![SiteNeeds { most_milli_cpus: 4500, ..site("map", 0, 0) }], ..Default::default() };
        let findings = judge(&needs, &resources(4 * GIB));
        let finding = found(&findings, "processors");
        assert_eq!((finding.level, finding.subject.as_deref()), (Level::Problem, Some("map")));
        assert_eq!(finding.seen, "2 processors, and a service of map says `cpus: 4.5`");
    }
}

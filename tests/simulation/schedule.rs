//! A schedule is the list of steps of one run and follows from a seed. Each step is self-contained, so that any part of
//! the list is a schedule too.

use std::fmt;

use arenad_fake_engine::EngineMethod;

use crate::episodes::has_episodes;
use crate::episodes::steps::{EpisodeStep, contention, slot_of, step as episode_step, whole_life};
use crate::random::Random;

/// The number of sites.
pub const SITES: usize = 3;

/// The place to which a client writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WriteDestination {
    /// The store that the definition declares.
    Data,
    /// The container's own layer.
    Layer,
    /// The memory of a process.
    Memory,
}

impl WriteDestination {
    /// The segment for this kind in the site's paths.
    pub fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Layer => "layer",
            Self::Memory => "memory",
        }
    }
}

/// A fault in a call to the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mishap {
    Fail,
    Refuse,
    Lose,
    Delay(u64),
    LateReply(u64),
    Never,
    Die(u64),
    Oom(u64),
}

/// The container that a fault concerns: one of a serving generation or one of a standby.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Victim {
    /// The index of the slot, which is that of its site for the first slot.
    pub slot: usize,
    pub is_standby: bool,
}

/// A step of a schedule. Durations are in milliseconds unless stated otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScheduleStep {
    /// `arenad up` of one site or of all; after the given time, if any, the client disconnects.
    Up(Option<usize>, Option<u64>),
    Reset(usize),
    ResetAll,
    ResetIfDirty(usize),
    /// A reset to the n-th named snapshot.
    ResetTo(usize, usize),
    Take(usize),
    /// `arenad check begin --reset` of a task of the site.
    Begin(usize),
    /// A locator of the daemon reads the page without the gateway.
    Visit(usize),
    Down,
    /// Removes the n-th of all snapshots, baselines included.
    Remove(usize),
    /// Removes the newest baseline of the site.
    RemoveBaseline(usize),
    Write(usize, WriteDestination),
    Read(usize),
    /// Lets this many milliseconds pass.
    Wait(u64),
    /// A crash at the n-th I/O point from now.
    Crash(u64),
    /// A fault in a call of this kind, after the given number of other calls.
    Mishap(Option<EngineMethod>, u64, Mishap),
    EngineDown(u64, bool),
    Kill(Victim),
    Oom(Victim),
    Pause(Victim, u64),
    /// The effect of `docker rm --force`.
    Discard(Victim),
    LoseEvents(u64),
    BreakEvents,
    /// Moves the time of day by this many seconds.
    ClockMoves(i64),
    /// Fills the disks of the daemon's database, its state root and the engine (bits 1, 2 and 4) for this many
    /// milliseconds.
    DiskFull(u8, u64),
    /// Puts another engine behind the same address for this many milliseconds.
    OtherEngine(u64),
    BreakBuild(usize),
    RepairBuild(usize),
    /// A step of the client of an episode.
    Episode(EpisodeStep),
    /// Repairs everything, lets the system come to rest and checks the laws of rest.
    Rest,
}

impl fmt::Display for ScheduleStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// The calls that may fail.
const CALLS: &[EngineMethod] = &[
    EngineMethod::Create,
    EngineMethod::Start,
    EngineMethod::Remove,
    EngineMethod::CreateNetwork,
    EngineMethod::RemoveNetwork,
    EngineMethod::Inspect,
    EngineMethod::Containers,
    EngineMethod::Exec,
    EngineMethod::Freeze,
    EngineMethod::Thaw,
    EngineMethod::Stop,
    EngineMethod::Commit,
    EngineMethod::Image,
    EngineMethod::Build,
    EngineMethod::Weigh,
];

fn victim(random: &mut Random, has_episodes: bool) -> Victim {
    let (site, is_standby) = (site(random), random.percent(30));
    Victim { slot: if has_episodes { slot_of(random, site) } else { site }, is_standby }
}

fn site(random: &mut Random) -> usize {
    // The first site uses all features.
    if random.percent(50) { 0 } else { usize::try_from(random.below(SITES as u64)).unwrap_or_default() }
}

fn mishap(random: &mut Random) -> Mishap {
    let millis = [50, 700, 4_000, 20_000];
    match random.below(9) {
        0 | 1 => Mishap::Fail,
        2 => Mishap::Refuse,
        3 => Mishap::Lose,
        4 => Mishap::Delay(*random.pick(&millis)),
        5 => Mishap::LateReply(*random.pick(&millis)),
        6 => Mishap::Never,
        7 => Mishap::Die(*random.pick(&millis)),
        _ => Mishap::Oom(*random.pick(&millis)),
    }
}

fn pause(random: &mut Random) -> u64 {
    match random.below(10) {
        0..=3 => random.within(1..50),
        4..=6 => random.within(50..1_000),
        7 | 8 => random.within(1_000..10_000),
        _ => random.within(10_000..150_000),
    }
}

fn step(random: &mut Random, has_episodes: bool) -> ScheduleStep {
    let index = usize::try_from(random.below(8)).unwrap_or_default();
    match random.below(1000) {
        0..190 => ScheduleStep::Write(
            site(random),
            *random.pick(&[
                WriteDestination::Data,
                WriteDestination::Data,
                WriteDestination::Layer,
                WriteDestination::Memory,
            ]),
        ),
        190..280 => ScheduleStep::Read(site(random)),
        280..300 => ScheduleStep::Visit(site(random)),
        300..470 => ScheduleStep::Wait(pause(random)),
        470..580 => ScheduleStep::Reset(site(random)),
        580..590 => ScheduleStep::Begin(site(random)),
        590..605 => ScheduleStep::ResetAll,
        605..635 => ScheduleStep::ResetIfDirty(site(random)),
        635..665 => ScheduleStep::ResetTo(site(random), index),
        665..695 => ScheduleStep::Take(site(random)),
        695..735 => {
            let which = random.percent(40).then(|| site(random));
            ScheduleStep::Up(which, random.percent(15).then(|| random.within(1..400)))
        }
        735..757 => ScheduleStep::Down,
        757..777 => ScheduleStep::Remove(index),
        777..815 => ScheduleStep::Crash(random.within(1..120)),
        815..875 => {
            let call = random.percent(85).then(|| *random.pick(CALLS));
            ScheduleStep::Mishap(call, random.below(6), mishap(random))
        }
        875..885 => ScheduleStep::EngineDown(random.within(100..40_000), random.percent(30)),
        885..905 => ScheduleStep::Kill(victim(random, has_episodes)),
        905..912 => ScheduleStep::Oom(victim(random, has_episodes)),
        912..930 => ScheduleStep::Pause(victim(random, has_episodes), random.within(200..120_000)),
        930..936 => ScheduleStep::Discard(victim(random, has_episodes)),
        936..944 => ScheduleStep::LoseEvents(random.within(100..60_000)),
        944..947 => ScheduleStep::BreakEvents,
        947..957 => ScheduleStep::ClockMoves(*random.pick(&[-86_400, -3_600, -61, -5, 5, 61, 3_600, 86_400])),
        957..969 => {
            ScheduleStep::DiskFull(1 + u8::try_from(random.below(7)).unwrap_or_default(), random.within(50..30_000))
        }
        969..973 => ScheduleStep::OtherEngine(random.within(500..150_000)),
        973..981 => ScheduleStep::BreakBuild(site(random)),
        981..990 => ScheduleStep::RepairBuild(site(random)),
        990..995 => ScheduleStep::Wait(pause(random)),
        // Rare, because a rest takes as long as thirty other steps, and each schedule ends with one.
        _ => ScheduleStep::Rest,
    }
}

/// A request about a site, or about everything.
fn request(random: &mut Random, site: usize) -> ScheduleStep {
    match random.below(12) {
        0..=4 => ScheduleStep::Reset(site),
        5 => ScheduleStep::ResetIfDirty(site),
        6 => ScheduleStep::ResetTo(site, 0),
        7 => {
            if random.percent(70) {
                ScheduleStep::Take(site)
            } else {
                ScheduleStep::Begin(site)
            }
        }
        8 => ScheduleStep::Up(random.percent(50).then_some(site), random.percent(20).then(|| random.within(1..400))),
        _ => ScheduleStep::Down,
    }
}

/// Requests in quick succession, so that most are made while others run. A call may be slow, and the daemon may crash
/// among them.
fn rush(random: &mut Random, all: &mut Vec<ScheduleStep>) {
    let site = site(random);
    if random.percent(60) {
        let calls = [
            EngineMethod::Thaw,
            EngineMethod::Create,
            EngineMethod::Start,
            EngineMethod::Inspect,
            EngineMethod::Remove,
        ];
        let delay = *random.pick(&[200, 1_500, 6_000]);
        all.push(ScheduleStep::Mishap(Some(*random.pick(&calls)), 0, Mishap::Delay(delay)));
    }
    for _ in 0..random.within(2..5) {
        all.push(request(random, site));
        all.push(match random.below(10) {
            0..=5 => ScheduleStep::Wait(random.within(1..60)),
            6 | 7 => ScheduleStep::Wait(random.within(60..1_500)),
            8 => ScheduleStep::Write(site, WriteDestination::Memory),
            _ => ScheduleStep::Crash(random.within(1..40)),
        });
    }
}

/// An episode in which the site is paused for a while and then resumed. The pause may be noticed.
fn paused_episode(random: &mut Random, all: &mut Vec<ScheduleStep>) {
    let site = site(random);
    all.push(ScheduleStep::Write(
        site,
        *random.pick(&[
            WriteDestination::Memory,
            WriteDestination::Memory,
            WriteDestination::Layer,
            WriteDestination::Data,
        ]),
    ));
    all.push(ScheduleStep::Wait(random.within(20..2_000)));
    all.push(ScheduleStep::Pause(Victim { slot: site, is_standby: false }, random.within(200..25_000)));
    all.push(ScheduleStep::Wait(random.within(5_000..70_000)));
    all.push(if random.percent(50) { ScheduleStep::ResetIfDirty(site) } else { ScheduleStep::Reset(site) });
    all.push(ScheduleStep::Wait(random.within(50..5_000)));
    all.push(ScheduleStep::Reset(site));
}

/// Sites that are down are brought up during a fault, and once more after it.
fn hindered_up(random: &mut Random, all: &mut Vec<ScheduleStep>) {
    all.push(ScheduleStep::Down);
    all.push(ScheduleStep::Wait(random.within(2_000..10_000)));
    all.push(match random.below(3) {
        0 | 1 => {
            ScheduleStep::DiskFull(1 + 2 * u8::try_from(random.below(4)).unwrap_or_default(), random.within(50..3_000))
        }
        _ => ScheduleStep::EngineDown(random.within(100..10_000), false),
    });
    all.push(ScheduleStep::Up(None, random.percent(20).then(|| random.within(1..50))));
    all.push(ScheduleStep::Wait(random.within(100..10_000)));
    all.push(ScheduleStep::Up(None, None));
}

/// A `down` that fails, and a reset of a site that it left running.
fn hindered_down(random: &mut Random, all: &mut Vec<ScheduleStep>) {
    let site = site(random);
    all.push(match random.below(2) {
        0 => ScheduleStep::EngineDown(random.within(1_000..40_000), false),
        _ => ScheduleStep::Mishap(Some(EngineMethod::Remove), random.below(3), Mishap::Refuse),
    });
    all.push(ScheduleStep::Down);
    all.push(ScheduleStep::Wait(random.within(5_000..60_000)));
    all.push(ScheduleStep::Reset(site));
}

/// A request to remove the baseline while a named snapshot serves.
fn baseline_goes(random: &mut Random, all: &mut Vec<ScheduleStep>) {
    let site = site(random);
    all.extend([
        ScheduleStep::Write(site, WriteDestination::Data),
        ScheduleStep::Wait(50),
        ScheduleStep::Take(site),
        ScheduleStep::Wait(random.within(2_000..9_000)),
    ]);
    all.extend([ScheduleStep::ResetTo(site, 0), ScheduleStep::Wait(random.within(2_000..9_000))]);
    // The law needs a moment without other requests.
    all.extend([ScheduleStep::Wait(1_000), ScheduleStep::RemoveBaseline(site), ScheduleStep::Wait(1_000)]);
    all.push(ScheduleStep::Reset(site));
}

/// Generates the steps that follow from a seed. Everything is brought up first and comes to rest at the end.
pub fn generate(seed: u64, steps: usize) -> Vec<ScheduleStep> {
    let mut random = Random::new(seed);
    let has_episodes = has_episodes(seed);
    let mut all = vec![ScheduleStep::Up(None, None), ScheduleStep::Wait(20_000)];
    while all.len() + 1 < steps {
        match random.below(1000) {
            0..12 => rush(&mut random, &mut all),
            12..15 => paused_episode(&mut random, &mut all),
            15..17 => hindered_up(&mut random, &mut all),
            17..19 => hindered_down(&mut random, &mut all),
            19..21 => baseline_goes(&mut random, &mut all),
            21..45 if has_episodes => contention(&mut random, &mut all),
            45..85 if has_episodes => whole_life(&mut random, &mut all),
            85..325 if has_episodes => all.push(episode_step(&mut random)),
            _ => all.push(step(&mut random, has_episodes)),
        }
    }
    all.truncate(steps.saturating_sub(1));
    all.push(ScheduleStep::Rest);
    all
}

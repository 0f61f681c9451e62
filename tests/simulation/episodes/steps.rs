//! The steps of schedules that concern episodes.

use arenad_fake_engine::EngineMethod;

use crate::random::Random;
use crate::schedule::{Mishap, ScheduleStep, Victim, WriteDestination};

/// A request for an episode. Times are in seconds unless stated otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpisodeAsk {
    /// The sites, as bits.
    pub sites: u8,
    /// The number of the slot of the first site, if the request names one.
    pub slot: Option<u32>,
    /// The named snapshot from which the first site starts, if there is one.
    pub snapshot: Option<usize>,
    pub ttl: u64,
    pub wait: u64,
    /// The idempotency key. All requests with the same key are equal.
    pub key: Option<u64>,
    pub owner: u64,
    /// The time in milliseconds after which the client disconnects.
    pub patience: Option<u64>,
    pub is_detached: bool,
}

/// A step of a client. The number chooses among the live episodes, from the newest one on, or among the ended ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EpisodeStep {
    Ask(EpisodeAsk),
    /// A heartbeat, which may state an extension in seconds.
    Heartbeat(usize, Option<u64>),
    Freeze(usize),
    Unfreeze(usize),
    Hold(usize),
    /// The end of the connection that holds an episode.
    LoseHold(usize),
    Release(usize),
    /// A write to the n-th site of an episode, through the episode proxy.
    Write(usize, usize, WriteDestination),
    Read(usize, usize),
    /// A write with the credentials of an episode that has ended.
    Late(usize, WriteDestination),
}

const DESTINATIONS: [WriteDestination; 4] =
    [WriteDestination::Data, WriteDestination::Data, WriteDestination::Layer, WriteDestination::Memory];

fn index(random: &mut Random) -> usize {
    // Most steps concern the newest episodes.
    let bound = if random.percent(60) { 2 } else { 8 };
    usize::try_from(random.below(bound)).unwrap_or_default()
}

fn ask(random: &mut Random) -> EpisodeAsk {
    if random.percent(15) {
        let key = random.below(5);
        let sites = [1, 2, 3, 1, 2];
        let chosen = usize::try_from(key).unwrap_or_default();
        let (patience, owner) = (random.percent(20).then(|| random.within(1..2_000)), key % 2);
        let (ttl, wait, is_detached) = (5 + 10 * key, 20, random.percent(30));
        let (slot, snapshot, key) = (None, None, Some(key));
        return EpisodeAsk { sites: sites[chosen], slot, snapshot, ttl, wait, key, owner, patience, is_detached };
    }
    let sites = *random.pick(&[1, 1, 1, 2, 2, 3, 3, 4, 5, 7]);
    EpisodeAsk {
        sites,
        slot: (sites & 1 == 1 && random.percent(20)).then(|| *random.pick(&[1, 1, 1, 2, 2, 3, 4])),
        snapshot: random.percent(15).then(|| usize::try_from(random.below(4)).unwrap_or_default()),
        ttl: *random.pick(&[1, 3, 10, 40, 300]),
        wait: *random.pick(&[0, 5, 30, 120]),
        key: None,
        owner: random.below(2),
        patience: random.percent(12).then(|| random.within(1..3_000)),
        is_detached: random.percent(30),
    }
}

/// Returns a step of a client.
pub fn step(random: &mut Random) -> ScheduleStep {
    let (n, site) = (index(random), usize::try_from(random.below(3)).unwrap_or_default());
    ScheduleStep::Episode(match random.below(100) {
        0..26 => EpisodeStep::Ask(ask(random)),
        26..46 => EpisodeStep::Write(n, site, *random.pick(&DESTINATIONS)),
        46..58 => EpisodeStep::Read(n, site),
        58..63 => EpisodeStep::Heartbeat(n, random.percent(40).then(|| *random.pick(&[1, 5, 60]))),
        63..67 => EpisodeStep::Freeze(n),
        67..71 => EpisodeStep::Unfreeze(n),
        71..77 => EpisodeStep::Hold(n),
        77..80 => EpisodeStep::LoseHold(n),
        80..90 => EpisodeStep::Release(n),
        _ => EpisodeStep::Late(n, *random.pick(&DESTINATIONS)),
    })
}

/// More requests in quick succession than there are slots, and ends of the first ones.
pub fn contention(random: &mut Random, all: &mut Vec<ScheduleStep>) {
    if random.percent(40) {
        let call = *random.pick(&[EngineMethod::Thaw, EngineMethod::Create, EngineMethod::Start, EngineMethod::Remove]);
        all.push(ScheduleStep::Mishap(Some(call), 0, Mishap::Delay(*random.pick(&[200, 1_500, 6_000]))));
    }
    for _ in 0..random.within(3..7) {
        let sites = *random.pick(&[1, 1, 2, 3, 3]);
        let asked = EpisodeAsk { sites, snapshot: None, key: None, patience: None, is_detached: true, ..ask(random) };
        let slot = asked.slot.filter(|_| sites & 1 == 1);
        let wait = *random.pick(&[30, 120]);
        all.push(ScheduleStep::Episode(EpisodeStep::Ask(EpisodeAsk { slot, wait, ..asked })));
        if random.percent(60) {
            all.push(ScheduleStep::Wait(random.within(1..400)));
        }
    }
    for _ in 0..random.within(2..5) {
        all.push(match random.below(10) {
            0..=4 => ScheduleStep::Episode(EpisodeStep::Release(index(random) + 1)),
            5..=7 => ScheduleStep::Wait(random.within(50..6_000)),
            8 => ScheduleStep::Episode(EpisodeStep::Write(index(random), 0, *random.pick(&DESTINATIONS))),
            _ => ScheduleStep::Crash(random.within(1..60)),
        });
    }
}

/// One episode from its request to requests that come too late.
pub fn whole_life(random: &mut Random, all: &mut Vec<ScheduleStep>) {
    let episode = |step| ScheduleStep::Episode(step);
    let (way, asked) = (random.below(8), ask(random));
    // An episode whose container dies lives long enough to become void for that.
    let ttl = if way == 6 { 3_000 } else { asked.ttl };
    let asked = EpisodeAsk { key: None, patience: None, wait: 60, ttl, ..asked };
    all.push(episode(EpisodeStep::Ask(asked)));
    all.push(ScheduleStep::Wait(random.within(50..8_000)));
    let site = usize::try_from(random.below(3)).unwrap_or_default();
    let write = |random: &mut Random| episode(EpisodeStep::Write(0, site, *random.pick(&DESTINATIONS)));
    all.push(write(random));
    if random.percent(30) {
        all.extend([episode(EpisodeStep::Freeze(0)), ScheduleStep::Wait(random.within(1..200)), write(random)]);
        all.extend([ScheduleStep::Wait(random.within(1..200)), episode(EpisodeStep::Unfreeze(0))]);
    }
    all.extend([ScheduleStep::Wait(random.within(1..900)), episode(EpisodeStep::Read(0, site))]);
    match way {
        0..=2 => all.push(episode(EpisodeStep::Release(0))),
        3 => all.push(ScheduleStep::Wait(1_000 * asked.ttl + random.within(1..1_500))),
        4 | 5 => all.extend([
            episode(EpisodeStep::Hold(0)),
            ScheduleStep::Wait(random.within(20..15_000)),
            episode(EpisodeStep::LoseHold(0)),
        ]),
        6 => all.extend([
            ScheduleStep::Kill(Victim { slot: slot_of(random, 0), is_standby: false }),
            ScheduleStep::Wait(random.within(100..200_000)),
            episode(EpisodeStep::Release(0)),
        ]),
        _ => all.push(ScheduleStep::Crash(random.within(1..60))),
    }
    all.extend([write(random), ScheduleStep::Wait(random.within(1..700))]);
    all.push(episode(EpisodeStep::Late(0, *random.pick(&DESTINATIONS))));
    all.push(ScheduleStep::Wait(random.within(1_500..11_000)));
    all.push(episode(EpisodeStep::Late(0, *random.pick(&DESTINATIONS))));
}

/// Returns one of the slots of a site.
pub fn slot_of(random: &mut Random, site: usize) -> usize {
    if site == 0 { *random.pick(&[0, 0, 3, 3, 4]) } else { site }
}

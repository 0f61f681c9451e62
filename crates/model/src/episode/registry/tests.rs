use super::*;
use crate::episode::ending::{ExpiryCause, ReleaseCause};
use crate::episode::fence::FenceDecision;
use crate::episode::ids::EpisodeLabels;
use crate::episode::life::{EpisodeTerms, HoldId, StoredLife};
use crate::episode::queue::{Grant, OwnerQuotas, QueueLimits};
use crate::episode::request::{SiteWant, StartPoint};
use crate::ids::{EnvironmentName, SiteName};
use crate::snapshot::SnapshotId;

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn id(number: u8) -> EpisodeId {
    EpisodeId::from_random([number; 10])
}

fn token(number: u8) -> TokenHash {
    TokenHash::new([number; 32])
}

fn site(name: &str) -> SiteId {
    SiteId { environment: EnvironmentName::parse("mini").expect("valid"), site: SiteName::parse(name).expect("valid") }
}

fn slot(text: &str) -> InstanceId {
    format!("mini/{text}").parse().expect("valid")
}

fn request(sites: &[&str]) -> EpisodeRequest {
    let want = |name: &&str| SiteWant { site: site(name), slot: None, start: StartPoint::Baseline };
    EpisodeRequest {
        owner: Owner::parse("ann").expect("valid"),
        key: None,
        sites: sites.iter().map(want).collect(),
        terms: EpisodeTerms::new(seconds(60), seconds(30)).expect("valid"),
        labels: EpisodeLabels::default(),
        record: Default::default(),
        beginning: None,
        replays: Vec::new(),
    }
}

fn limits() -> EpisodeLimits {
    EpisodeLimits {
        queue: QueueLimits { waiting: 10, waiting_of_owner: 10 },
        quotas: OwnerQuotas { default: 10, by_owner: BTreeMap::new() },
        open: 10,
        ttl: seconds(100),
        preparation: seconds(20),
        remembered: 3,
        remember_for: seconds(600),
    }
}

/// Creates a registry with one free slot of `forge`, one of `shop`, and the shared site `wiki`.
fn registry() -> EpisodeRegistry {
    let mut registry = EpisodeRegistry::new(limits());
    registry.offer_site(site("wiki"), SiteCapacity::Shared);
    for name in ["forge", "shop"] {
        registry.offer_site(site(name), SiteCapacity::Slots { max: 4, by_name_only: 0 });
        let order = registry.add_slot(slot(&format!("{name}/1"))).expect("new");
        registry.note_recycled(&order.slot, order.turn, Duration::ZERO).expect("made");
    }
    registry
}

fn ask(registry: &mut EpisodeRegistry, number: u8, sites: &[&str]) {
    let asked = registry.ask(id(number), request(sites), token(number), Duration::ZERO);
    assert_eq!(asked, Ok(AskedEpisode { id: id(number), is_known: false }));
}

/// Asks for an episode on both sites and brings it to be active.
fn active(registry: &mut EpisodeRegistry, number: u8) {
    ask(registry, number, &["forge", "shop"]);
    let granted = registry.settle(Duration::ZERO).granted;
    for slot in &granted[0].slots {
        registry.note_prepared(slot, &id(number)).expect("reserved");
    }
    registry.commit(&id(number), Duration::ZERO).expect("prepared");
}

fn states(registry: &EpisodeRegistry) -> Vec<&'static str> {
    registry.board().iter().map(|(_, state)| state.name()).collect()
}

#[test]
fn an_episode_lives_from_request_to_release() {
    let mut registry = registry();
    active(&mut registry, 1);
    assert_eq!(states(&registry), ["leased", "leased"]);
    assert_eq!(registry.admit_client(&id(1), &token(1), Duration::ZERO), FenceDecision::Admitted);
    ask(&mut registry, 2, &["shop", "wiki"]);
    assert_eq!(registry.settle(Duration::ZERO), SettledEpisodes::default());
    let ended = registry.end(&id(1), EndCause::Release, seconds(5)).expect("active").expect("ended");
    assert_eq!(ended.recycle.len(), 2);
    assert_eq!(states(&registry), ["recycling", "recycling"]);
    let released = EpisodeEnding::Released(ReleaseCause::Client);
    assert_eq!(registry.admit_client(&id(1), &token(1), seconds(5)), FenceDecision::Ended(released.clone()));
    let again = registry.end(&id(1), EndCause::Release, seconds(6));
    assert_eq!(again, Err(EpisodeRefusal::Ended(released)));
    assert_eq!(registry.settle(seconds(6)).granted, [], "a slot that is being recycled is not granted");
    for order in &ended.recycle {
        registry.note_recycled(&order.slot, order.turn, seconds(7)).expect("the latest attempt");
    }
    let granted = registry.settle(seconds(7)).granted;
    assert_eq!(granted, [Grant { episode: id(2), slots: vec![slot("shop/1")] }]);
}

#[test]
fn a_failed_preparation_gives_everything_back() {
    let mut registry = registry();
    ask(&mut registry, 1, &["forge", "shop"]);
    assert_eq!(registry.settle(Duration::ZERO).granted.len(), 1);
    registry.note_changing(&slot("shop/1"), &id(1)).expect("reserved");
    let reason = VoidReason::ProofFailed { slot: slot("shop/1"), detail: "table `cart`".to_owned() };
    let failure = registry.fail_slot(&slot("shop/1"), reason.clone(), seconds(1));
    let SlotFailure::Void(ended) = failure else { panic!("{failure:?}") };
    assert_eq!((&ended.id, &ended.ending), (&id(1), &EpisodeEnding::Void(reason)));
    assert_eq!(states(&registry), ["free", "recycling"]);
    assert!(registry.commit(&id(1), seconds(1)).is_err());
    assert_eq!(registry.note_prepared(&slot("forge/1"), &id(1)), Err(other_lease("forge/1", 1)));
}

fn other_lease(text: &str, number: u8) -> crate::episode::lease::SlotRefusal {
    crate::episode::lease::SlotRefusal::OtherLease { slot: slot(text), lease: id(number) }
}

#[test]
fn a_failure_of_a_slot_without_an_episode_recycles_it() {
    let mut registry = registry();
    let died = || VoidReason::ContainerDied { slot: slot("shop/1"), detail: "exited with code 1".to_owned() };
    assert!(matches!(registry.fail_slot(&slot("shop/1"), died(), Duration::ZERO), SlotFailure::Recycle(_)));
    assert_eq!(registry.fail_slot(&slot("shop/9"), died(), Duration::ZERO), SlotFailure::Nothing);
    assert_eq!(states(&registry), ["free", "recycling"]);
}

#[test]
fn deadlines_are_settled() {
    let mut registry = registry();
    active(&mut registry, 1);
    ask(&mut registry, 2, &["shop"]);
    assert_eq!(registry.next_due(), Some(seconds(30)));
    let ended = registry.settle(seconds(31)).ended;
    assert_eq!((&ended[0].id, &ended[0].ending), (&id(2), &EpisodeEnding::Expired(ExpiryCause::Wait)));
    registry.change(&id(1), EpisodeChange::Heartbeat(None), seconds(40)).expect("active");
    assert_eq!(registry.settle(seconds(100)).ended, []);
    let ended = registry.settle(seconds(101)).ended;
    assert_eq!(ended[0].ending, EpisodeEnding::Expired(ExpiryCause::Ttl));
    assert_eq!((ended[0].recycle.len(), registry.next_due()), (2, None));
}

#[test]
fn a_hold_that_closes_frees_the_slots_at_once() {
    let mut registry = registry();
    active(&mut registry, 1);
    registry.change(&id(1), EpisodeChange::Hold(HoldId(4)), seconds(1)).expect("active");
    assert_eq!(registry.next_due(), None);
    let other = registry.end(&id(1), EndCause::HoldClosed(HoldId(5)), seconds(2));
    assert_eq!(other, Err(EpisodeRefusal::NotHeld));
    let ended = registry.end(&id(1), EndCause::HoldClosed(HoldId(4)), seconds(2)).expect("held").expect("ended");
    assert_eq!((ended.recycle.len(), states(&registry)), (2, vec!["recycling", "recycling"]));
}

#[test]
fn the_same_owner_and_key_get_the_same_episode() {
    let mut registry = registry();
    let key = |text| Some(IdempotencyKey::parse(text).expect("valid"));
    let with_key = EpisodeRequest { key: key("k"), ..request(&["shop"]) };
    let mut ask = |number, request: &EpisodeRequest, now| registry.ask(id(number), request.clone(), token(number), now);
    assert_eq!(ask(1, &with_key, Duration::ZERO), Ok(AskedEpisode { id: id(1), is_known: false }));
    assert_eq!(ask(2, &with_key, Duration::ZERO), Ok(AskedEpisode { id: id(1), is_known: true }));
    let other = EpisodeRequest { key: key("k"), ..request(&["forge"]) };
    assert_eq!(ask(3, &other, Duration::ZERO), Err(AskRefusal::KeyReused(id(1))));
    let of_ben = EpisodeRequest { owner: Owner::parse("ben").expect("valid"), ..with_key.clone() };
    assert_eq!(ask(4, &of_ben, Duration::ZERO), Ok(AskedEpisode { id: id(4), is_known: false }));
    assert_eq!(ask(4, &request(&["shop"]), Duration::ZERO), Err(AskRefusal::IdTaken(id(4))));
    for number in [1, 2] {
        let decision = registry.admit_client(&id(1), &token(number), Duration::ZERO);
        assert_eq!(decision, FenceDecision::NotReady, "both tokens open the episode");
    }
    registry.end(&id(1), EndCause::Release, Duration::ZERO).expect("waiting");
    let again = registry.ask(id(5), with_key.clone(), token(5), seconds(600));
    assert_eq!(again, Ok(AskedEpisode { id: id(1), is_known: true }), "also after the end");
    registry.settle(seconds(601));
    let again = registry.ask(id(5), with_key, token(5), seconds(601));
    assert_eq!(again, Ok(AskedEpisode { id: id(5), is_known: false }), "until it is forgotten");
    assert_eq!(registry.admit_client(&id(1), &token(1), seconds(601)), FenceDecision::Unknown);
}

#[test]
fn no_request_and_no_heartbeat_asks_for_more_time_than_is_allowed() {
    let mut registry = registry();
    let terms = |ttl| EpisodeTerms::new(seconds(ttl), seconds(30)).expect("valid");
    let mut ask = |number, ttl| {
        let request = EpisodeRequest { terms: terms(ttl), ..request(&["shop"]) };
        registry.ask(id(number), request, token(number), Duration::ZERO)
    };
    assert_eq!(ask(1, 101), Err(AskRefusal::TtlTooLong { most: seconds(100) }));
    assert!(ask(1, 100).is_ok());
    registry.settle(Duration::ZERO);
    let mut extend = |by| registry.change(&id(1), EpisodeChange::Heartbeat(Some(seconds(by))), Duration::ZERO);
    assert_eq!(extend(101), Err(EpisodeRefusal::TtlTooLong { most: seconds(100) }));
    assert_eq!(extend(100), Ok(()));
}

#[test]
fn only_so_many_ended_episodes_are_remembered() {
    let mut registry = registry();
    for number in 1..=5 {
        ask(&mut registry, number, &["shop"]);
        registry.end(&id(number), EndCause::Release, Duration::ZERO).expect("waiting");
    }
    assert_eq!(registry.ended().map(|(id, _)| id.clone()).collect::<Vec<_>>(), [id(3), id(4), id(5)]);
}

#[test]
fn episodes_on_shared_sites_are_bounded_as_well() {
    let mut registry = registry();
    registry.limits.open = 1;
    ask(&mut registry, 1, &["wiki"]);
    ask(&mut registry, 2, &["wiki"]);
    assert_eq!(registry.settle(Duration::ZERO).granted, [Grant { episode: id(1), slots: Vec::new() }]);
    registry.commit(&id(1), Duration::ZERO).expect("nothing to prepare");
    registry.end(&id(1), EndCause::Release, Duration::ZERO).expect("active");
    assert_eq!(registry.settle(Duration::ZERO).granted.len(), 1);
}

#[test]
fn a_fork_needs_nothing_of_its_parent_any_more() {
    let mut registry = registry();
    active(&mut registry, 1);
    let mut fork = request(&["shop"]);
    fork.key = Some(IdempotencyKey::parse("fork").expect("valid"));
    let start = |copy: &str| StartPoint::Fork { parent: id(1), copy: SnapshotId::from(copy.to_owned()) };
    fork.sites[0].start = start("first");
    let asked = registry.ask(id(2), fork.clone(), token(2), Duration::ZERO).expect("a request like others");
    assert_eq!(registry.settle(Duration::ZERO).granted, [], "it waits like others");
    let ended = registry.end(&id(1), EndCause::Release, Duration::ZERO).expect("active").expect("ended");
    for order in &ended.recycle {
        registry.note_recycled(&order.slot, order.turn, Duration::ZERO).expect("the latest attempt");
    }
    assert_eq!(registry.settle(Duration::ZERO).granted.len(), 1, "the end of the parent does not end it");
    fork.sites[0].start = start("second");
    let again = registry.ask(id(3), fork, token(3), Duration::ZERO).expect("a repetition");
    assert_eq!((again.id, again.is_known), (asked.id, true));
    assert_eq!(registry.get(&id(2)).map(|episode| &episode.request.sites[0].start), Some(&start("first")));
}

#[test]
fn an_environment_that_is_taken_down_ends_its_episodes() {
    let mut registry = registry();
    active(&mut registry, 1);
    ask(&mut registry, 2, &["shop"]);
    let scope = WithdrawalScope::Environment(EnvironmentName::parse("mini").expect("valid"));
    let ended = registry.withdraw(&scope, seconds(1));
    assert_eq!(ended.len(), 2);
    assert!(ended.iter().all(|ended| ended.ending == EpisodeEnding::Void(VoidReason::EnvironmentDown)));
    assert_eq!((registry.board().iter().count(), registry.queue.len()), (0, 0));
    let late = registry.ask(id(3), request(&["shop"]), token(3), seconds(1));
    assert_eq!(late, Err(AskRefusal::UnknownSite(site("shop"))));
}

#[test]
fn a_site_that_is_taken_down_ends_its_episodes_and_no_other() {
    let mut registry = registry();
    active(&mut registry, 1);
    ask(&mut registry, 2, &["shop", "forge"]);
    ask(&mut registry, 3, &["forge"]);
    let slots = registry.board().iter().count();
    let ended = registry.withdraw(&WithdrawalScope::Site(site("shop")), seconds(1));
    let ended: Vec<&EpisodeId> = ended.iter().map(|ended| &ended.id).collect();
    assert_eq!(ended, [&id(1), &id(2)], "one that has the site, and one that waits for it");
    let left: Vec<&InstanceId> = registry.board().iter().map(|(slot, _)| slot).collect();
    assert!(left.len() < slots && left.iter().all(|slot| slot.site_id() == site("forge")), "{left:?}");
    let late = registry.ask(id(4), request(&["shop"]), token(4), seconds(1));
    assert_eq!(late, Err(AskRefusal::UnknownSite(site("shop"))));
    assert!(registry.ask(id(5), request(&["forge"]), token(5), seconds(1)).is_ok());
}

#[test]
fn demand_leaves_out_requests_beyond_the_quota() {
    let mut registry = registry();
    registry.limits.quotas.default = 2;
    active(&mut registry, 1);
    for number in 2..=4 {
        ask(&mut registry, number, &["shop"]);
    }
    assert_eq!(registry.demand(&site("shop")).any, 1);
    assert_eq!(registry.places().iter().map(|place| place.is_over_quota).collect::<Vec<_>>(), [false, true, true]);
}

#[test]
fn a_new_daemon_keeps_active_episodes_and_the_order_of_the_queue() {
    let mut before = registry();
    active(&mut before, 1);
    ask(&mut before, 3, &["forge"]);
    ask(&mut before, 2, &["forge"]);
    let order: Vec<EpisodeId> = before.queue.iter().map(|waiting| waiting.episode.clone()).collect();
    let mut after = EpisodeRegistry::new(limits());
    after.capacities.clone_from(&before.capacities);
    for id in [vec![id(1)], order].concat() {
        let mut episode = before.get(&id).expect("live").clone();
        let stored: StoredLife = episode.life.stored(seconds(1)).expect("live");
        episode.life = EpisodeLife::restored(stored, Duration::ZERO);
        assert_eq!(after.restore(id, episode), Ok(None));
    }
    assert_eq!(states(&after), ["leased", "leased"]);
    let waiting: Vec<EpisodeId> = after.queue.iter().map(|waiting| waiting.episode.clone()).collect();
    assert_eq!(waiting, [id(3), id(2)]);
    let twice = before.get(&id(1)).expect("live").clone();
    assert!(after.restore(id(9), twice).is_err(), "its slots belong to another episode");
}

use proptest::prelude::*;

use super::*;
use crate::ids::{EnvironmentName, SiteName};

fn id(number: u8) -> EpisodeId {
    EpisodeId::from_random([number; 10])
}

fn owner(name: &str) -> Owner {
    Owner::parse(name).expect("valid")
}

fn site(name: &str) -> SiteId {
    SiteId { environment: EnvironmentName::parse("mini").expect("valid"), site: SiteName::parse(name).expect("valid") }
}

/// Parses a request such as `ann: shop forge#2`.
fn request(number: u8, text: &str) -> WaitingRequest {
    let (name, sites) = text.split_once(": ").expect("an owner");
    let want = |text: &str| match text.split_once('#') {
        Some((name, slot)) => SlotWant { site: site(name), slot: Some(slot.parse().expect("a number")) },
        None => SlotWant { site: site(text), slot: None },
    };
    WaitingRequest { episode: id(number), owner: owner(name), slots: sites.split_whitespace().map(want).collect() }
}

fn free_of(slots: &[(&str, &[u32])]) -> BTreeMap<SiteId, FreeSlots> {
    let free = |(name, any): &(&str, &[u32])| (site(name), FreeSlots { any: any.to_vec(), by_name: Vec::new() });
    slots.iter().map(free).collect()
}

fn quotas(default: usize) -> OwnerQuotas {
    OwnerQuotas { default, by_owner: BTreeMap::new() }
}

/// Returns the grants in a short form, such as `2: shop/1`. The requests are numbered from 1.
fn granted_with(free: &BTreeMap<SiteId, FreeSlots>, quota: usize, most: usize, requests: &[&str]) -> Vec<String> {
    let numbered: Vec<WaitingRequest> = (1..).zip(requests).map(|(number, text)| request(number, text)).collect();
    let (open, quotas) = (BTreeMap::new(), quotas(quota));
    let grants = plan_grants(&numbered, GrantOffer { free, open: &open, quotas: &quotas, most });
    let show = |grant: Grant| {
        let number = numbered.iter().position(|request| request.episode == grant.episode).expect("known") + 1;
        let slots: Vec<String> = grant.slots.iter().map(|slot| format!("{}/{}", slot.site, slot.number)).collect();
        format!("{number}: {}", slots.join(" ")).trim_end().to_owned()
    };
    grants.into_iter().map(show).collect()
}

fn granted(free: &BTreeMap<SiteId, FreeSlots>, requests: &[&str]) -> Vec<String> {
    granted_with(free, 100, 100, requests)
}

#[test]
fn the_order_of_arrival_holds_at_every_site_and_other_requests_pass() {
    let free = free_of(&[("shop", &[1]), ("forum", &[1])]);
    assert_eq!(granted(&free, &["a: shop forge", "a: shop", "a: forum"]), ["3: forum/1"]);
    let free = free_of(&[("shop", &[1, 2]), ("forum", &[1])]);
    assert_eq!(granted(&free, &["a: shop forge", "a: shop", "a: shop"]), ["2: shop/1"]);
}

#[test]
fn a_waiting_request_is_ahead_at_all_of_its_sites() {
    let free = free_of(&[("shop", &[1]), ("forge", &[1])]);
    assert_eq!(granted(&free, &["a: shop wiki", "a: shop forge", "a: forge"]), Vec::<String>::new());
    let free = free_of(&[("shop", &[1]), ("forge", &[1, 2])]);
    assert_eq!(granted(&free, &["a: shop wiki", "a: shop forge", "a: forge"]), ["3: forge/1"]);
}

#[test]
fn grants_of_one_pass_share_the_free_slots() {
    let free = free_of(&[("shop", &[1, 2]), ("forge", &[1])]);
    assert_eq!(granted(&free, &["a: shop", "a: shop forge", "a: shop"]), ["1: shop/1", "2: shop/2 forge/1"]);
    assert_eq!(granted_with(&free, 100, 1, &["a: shop", "a: shop"]), ["1: shop/1"]);
}

#[test]
fn a_request_without_slots_is_granted_at_once() {
    assert_eq!(granted(&BTreeMap::new(), &["a: shop", "a: "]), ["2:"]);
}

#[test]
fn a_named_slot_is_claimed_alone() {
    let free = free_of(&[("shop", &[2, 3])]);
    assert_eq!(granted(&free, &["a: shop#1", "a: shop", "a: shop"]), ["2: shop/2", "3: shop/3"], "slot 1 is not free");
    assert_eq!(granted(&free, &["a: shop#2 forge", "a: shop", "a: shop"]), ["2: shop/3"], "slot 2 is claimed");
    assert_eq!(granted(&free, &["a: shop#2 forge", "a: shop#2"]), Vec::<String>::new());
    assert_eq!(
        granted(&free, &["a: shop forge", "a: shop#2", "a: shop#3"]),
        ["2: shop/2"],
        "one is left for the first"
    );
}

#[test]
fn slots_by_name_only_are_given_to_requests_that_name_them() {
    let free = BTreeMap::from([(site("shop"), FreeSlots { any: Vec::new(), by_name: vec![1] })]);
    assert_eq!(granted(&free, &["a: shop", "a: shop#1", "a: shop#1"]), ["2: shop/1"]);
}

#[test]
fn a_request_beyond_the_quota_neither_blocks_nor_loses_its_place() {
    let free = free_of(&[("shop", &[1, 2, 3])]);
    let requests = ["a: shop", "a: shop", "b: shop", "b: shop"];
    assert_eq!(granted_with(&free, 1, 100, &requests), ["1: shop/1", "3: shop/2"]);
    assert_eq!(granted_with(&free_of(&[("shop", &[1])]), 1, 100, &["a: forge", "a: shop", "b: shop"]), ["3: shop/1"]);
    let (open, quotas) = (BTreeMap::from([(owner("a"), 1)]), quotas(1));
    let waiting = [request(1, "a: shop"), request(2, "b: shop")];
    let grants = plan_grants(&waiting, GrantOffer { free: &free, open: &open, quotas: &quotas, most: 9 });
    assert_eq!(grants.iter().map(|grant| &grant.episode).collect::<Vec<_>>(), [&id(2)]);
}

fn queue() -> EpisodeQueue {
    EpisodeQueue::new(QueueLimits { waiting: 3, waiting_of_owner: 2 })
}

#[test]
fn the_queue_is_bounded_and_says_when_to_try_again() {
    let mut queue = queue();
    for (number, text) in [(1, "a: shop"), (2, "a: shop")] {
        queue.push(request(number, text), None).expect("room");
    }
    let of_owner = AskRefusal::OwnerQueueFull { owner: owner("a"), waiting: 2, retry_after: Duration::from_secs(5) };
    assert_eq!(queue.push(request(3, "a: shop"), None), Err(of_owner));
    queue.push(request(3, "b: shop"), None).expect("room");
    assert!(queue.is_full_for(&owner("c")));
    for (estimate, seconds) in [(0, 1), (7_001, 8), (9_000_000, 60)] {
        let refused = queue.push(request(4, "c: shop"), Some(Duration::from_millis(estimate)));
        let retry_after = Duration::from_secs(seconds);
        assert_eq!(refused, Err(AskRefusal::QueueFull { waiting: 3, retry_after }));
    }
    assert!(queue.remove(&id(2)) && !queue.remove(&id(2)));
    assert_eq!((queue.len(), queue.is_full_for(&owner("a"))), (2, false));
}

#[test]
fn each_place_has_an_estimate() {
    let mut queue = EpisodeQueue::new(QueueLimits { waiting: 9, waiting_of_owner: 9 });
    for (number, text) in (1..).zip(["a: shop", "a: shop forge", "b: shop", "b: wiki", "b: shop#2", "a: shop"]) {
        queue.push(request(number, text), None).expect("room");
    }
    let holds =
        BTreeMap::from([(site("shop"), (Duration::from_secs(20), 2)), (site("forge"), (Duration::from_secs(60), 1))]);
    let (free, open, quotas) = (free_of(&[("shop", &[1])]), BTreeMap::from([(owner("a"), 1)]), quotas(3));
    let offer = GrantOffer { free: &free, open: &open, quotas: &quotas, most: 9 };
    let places: Vec<(usize, usize, bool, Option<u64>)> = queue
        .places(offer, &holds)
        .into_iter()
        .map(|place| (place.position, place.ahead, place.is_over_quota, place.estimate.map(|wait| wait.as_secs())))
        .collect();
    let expected = [
        (1, 0, false, Some(0)),
        (2, 1, false, Some(60)),
        (3, 2, false, Some(20)),
        (4, 0, false, None),
        (5, 0, false, Some(20)),
        (6, 3, true, Some(30)),
    ];
    assert_eq!(places, expected);
}

#[test]
fn the_typical_hold_is_the_median() {
    let typical = |seconds: &[u64]| typical_hold(seconds.iter().map(|count| Duration::from_secs(*count)));
    assert_eq!(typical(&[900, 1, 2]), Some(Duration::from_secs(2)));
    assert_eq!(typical(&[]), None);
}

fn requests() -> impl Strategy<Value = Vec<WaitingRequest>> {
    let slot = prop_oneof![3 => Just(None), 1 => (1..4u32).prop_map(Some)];
    let sites = prop::collection::btree_map(0..3usize, slot, 0..3);
    prop::collection::vec((0..3usize, sites), 0..12).prop_map(|requests| {
        let numbered = (1..).zip(requests);
        let make = |(number, (of, sites)): (u8, (usize, BTreeMap<usize, Option<u32>>))| WaitingRequest {
            episode: id(number),
            owner: owner(["ann", "ben", "eva"][of]),
            slots: sites
                .into_iter()
                .map(|(name, slot)| SlotWant { site: site(["shop", "forge", "forum"][name]), slot })
                .collect(),
        };
        numbered.map(make).collect()
    })
}

fn free() -> impl Strategy<Value = BTreeMap<SiteId, FreeSlots>> {
    let numbers = prop::collection::btree_set(1..4u32, 0..4);
    prop::collection::vec((numbers, any::<bool>()), 3).prop_map(|all| {
        let split = |(numbers, is_public): (std::collections::BTreeSet<u32>, bool)| {
            let (by_name, any) = numbers.into_iter().partition(|number| *number == 1 && is_public);
            FreeSlots { any, by_name }
        };
        ["shop", "forge", "forum"].map(site).into_iter().zip(all.into_iter().map(split)).collect()
    })
}

/// Whether a request could be granted by the rule, said naively: `earlier` are the requests before it that still wait
/// and are within their quotas, and `left` are the slots that nothing has taken.
fn may_have(request: &WaitingRequest, earlier: &[&WaitingRequest], left: &BTreeMap<SiteId, FreeSlots>) -> bool {
    request.slots.iter().all(|want| {
        let at_site = || earlier.iter().flat_map(|other| &other.slots).filter(|other| other.site == want.site);
        let is_claimed = |number: &u32| at_site().any(|other| other.slot == Some(*number));
        let ahead = at_site().filter(|other| other.slot.is_none()).count();
        let spare = left[&want.site].any.iter().filter(|number| !is_claimed(number)).count();
        match want.slot {
            None => spare > ahead,
            Some(number) if is_claimed(&number) => false,
            Some(number) => {
                left[&want.site].by_name.contains(&number) || (spare > ahead && left[&want.site].any.contains(&number))
            }
        }
    })
}

proptest! {
    /// A request is granted exactly if the rule, applied naively to one request after the other, grants it.
    #[test]
    fn grants_follow_the_rule(requests in requests(), free in free(), quota in 1..4usize, open in 0..3usize) {
        let (open, quotas) = (BTreeMap::from([(owner("ann"), open)]), quotas(quota));
        let grants = plan_grants(&requests, GrantOffer { free: &free, open: &open, quotas: &quotas, most: 100 });
        let mut left = free.clone();
        let mut earlier: Vec<&WaitingRequest> = Vec::new();
        let mut counted: Vec<&Owner> = open.iter().flat_map(|(owner, count)| std::iter::repeat_n(owner, *count)).collect();
        for request in &requests {
            let grant = grants.iter().find(|grant| grant.episode == request.episode);
            if counted.iter().filter(|owner| **owner == &request.owner).count() >= quota {
                prop_assert!(grant.is_none(), "beyond the quota");
                continue;
            }
            counted.push(&request.owner);
            prop_assert_eq!(grant.is_some(), may_have(request, &earlier, &left), "{:?} behind {:?}", request, earlier);
            let Some(grant) = grant else {
                earlier.push(request);
                continue;
            };
            prop_assert_eq!(grant.slots.len(), request.slots.len());
            for (slot, want) in grant.slots.iter().zip(&request.slots) {
                prop_assert_eq!(&slot.site_id(), &want.site);
                prop_assert!(want.slot.is_none_or(|number| number == slot.number));
                let slots = left.get_mut(&want.site).expect("a site");
                let before = slots.any.len() + slots.by_name.len();
                slots.any.retain(|number| *number != slot.number);
                if want.slot.is_some() {
                    slots.by_name.retain(|number| *number != slot.number);
                }
                prop_assert_eq!(slots.any.len() + slots.by_name.len() + 1, before, "a slot that was free");
            }
        }
    }
}

use proptest::prelude::*;

use super::*;

const GIB: u64 = 1 << 30;
const LIMITS: SlotLimits =
    SlotLimits { min: 1, max: 4, memory: GIB, by_name_only: 0, idle_timeout: Duration::from_secs(300) };
const PLENTY: SlotBudget = SlotBudget { memory_free: 64 * GIB, memory_reserve: GIB, failures: None };
const NOW: Duration = Duration::from_secs(10_000);

fn slot(number: u32, activity: SlotActivity) -> ObservedSlot {
    ObservedSlot { number, activity }
}

fn idle(number: u32, seconds: u64) -> ObservedSlot {
    slot(number, SlotActivity::Free { since: NOW - Duration::from_secs(seconds) })
}

fn requests(count: u32) -> SlotDemand {
    SlotDemand { any: count, named: BTreeSet::new() }
}

fn actions(demand: &SlotDemand, slots: &[ObservedSlot]) -> Vec<SlotAction> {
    plan_slots(LIMITS, demand, slots, PLENTY, NOW).actions
}

#[test]
fn a_site_has_its_least_number_of_slots() {
    assert_eq!(actions(&requests(0), &[]), [SlotAction::Add(1)]);
    assert_eq!(actions(&requests(0), &[slot(1, SlotActivity::Making)]), []);
    assert_eq!(actions(&requests(0), &[idle(1, 9000)]), []);
}

#[test]
fn slots_are_added_one_by_one_while_requests_wait() {
    let busy = slot(1, SlotActivity::Busy);
    assert_eq!(actions(&requests(2), &[busy]), [SlotAction::Add(2)]);
    assert_eq!(actions(&requests(2), &[busy, slot(2, SlotActivity::Making)]), []);
    assert_eq!(actions(&requests(2), &[busy, slot(2, SlotActivity::Recycling)]), [SlotAction::Add(3)]);
    let all = [1, 2, 3, 4].map(|number| slot(number, SlotActivity::Busy));
    assert_eq!(actions(&requests(9), &all), [], "four is the most");
}

#[test]
fn a_slot_that_soon_comes_free_is_not_doubled() {
    let slots = [slot(1, SlotActivity::Busy), slot(2, SlotActivity::Recycling), idle(3, 0)];
    assert_eq!(actions(&requests(2), &slots), []);
}

#[test]
fn a_named_slot_is_made_for_its_request() {
    let named = SlotDemand { any: 1, named: BTreeSet::from([3, 9]) };
    let slots = [slot(1, SlotActivity::Busy), slot(2, SlotActivity::Recycling)];
    assert_eq!(actions(&named, &slots), [SlotAction::Add(3)]);
    let both = [slot(1, SlotActivity::Busy), idle(3, 0)];
    assert_eq!(actions(&named, &both), [SlotAction::Add(2)], "slot 3 is claimed");
}

#[test]
fn slots_by_name_only_do_not_serve_requests_for_any_slot() {
    let limits = SlotLimits { by_name_only: 1, ..LIMITS };
    assert_eq!(plan_slots(limits, &requests(1), &[idle(1, 0)], PLENTY, NOW).actions, [SlotAction::Add(2)]);
}

#[test]
fn idle_slots_above_the_least_number_are_retired_after_a_while() {
    let slots = [idle(1, 9000), idle(2, 299), idle(3, 300), idle(4, 301)];
    assert_eq!(actions(&requests(0), &slots), [SlotAction::Retire(4), SlotAction::Retire(3)]);
    assert_eq!(actions(&requests(4), &slots), []);
    let fewer = SlotLimits { max: 1, ..LIMITS };
    let plan = plan_slots(fewer, &requests(0), &[idle(1, 0), idle(2, 0), slot(3, SlotActivity::Busy)], PLENTY, NOW);
    assert_eq!(plan.actions, [SlotAction::Retire(2)], "beyond the most, at once, and never while it is busy");
}

#[test]
fn memory_limits_the_number_and_the_plan_says_so() {
    let poor = SlotBudget { memory_free: 2 * GIB - 1, ..PLENTY };
    let plan = plan_slots(LIMITS, &requests(1), &[slot(1, SlotActivity::Busy)], poor, NOW);
    let shortage = StandbyShortage::Memory { needed: 2 * GIB, free: 2 * GIB - 1 };
    assert_eq!(plan, SlotPlan { actions: Vec::new(), lack: Some(shortage) });
    let pressed = SlotBudget { memory_free: GIB - 1, ..PLENTY };
    let slots = [idle(1, 0), idle(2, 0), idle(3, 0)];
    assert_eq!(plan_slots(LIMITS, &requests(0), &slots, pressed, NOW).actions, [SlotAction::Retire(3)]);
}

#[test]
fn failures_delay_the_next_attempt() {
    let failed = SlotBudget { failures: Some((1, Duration::from_secs(4))), ..PLENTY };
    let plan = plan_slots(LIMITS, &requests(0), &[], failed, NOW);
    assert_eq!(plan.lack, Some(StandbyShortage::Pause(Duration::from_secs(1))));
    assert_eq!(plan.actions, []);
}

fn observed() -> impl Strategy<Value = Vec<ObservedSlot>> {
    let activity = prop_oneof![
        Just(SlotActivity::Making),
        Just(SlotActivity::Recycling),
        (0..1000u64).prop_map(|seconds| SlotActivity::Free { since: NOW - Duration::from_secs(seconds) }),
        Just(SlotActivity::Busy),
    ];
    prop::collection::btree_map(1..8u32, activity, 0..7)
        .prop_map(|slots| slots.into_iter().map(|(number, activity)| slot(number, activity)).collect())
}

fn demand() -> impl Strategy<Value = SlotDemand> {
    (0..6u32, prop::collection::btree_set(1..8u32, 0..3)).prop_map(|(any, named)| SlotDemand { any, named })
}

fn limits() -> impl Strategy<Value = SlotLimits> {
    (0..4u32, 0..5u32, 0..3u32).prop_map(|(min, more, by_name_only)| SlotLimits {
        min,
        max: min + more,
        by_name_only,
        ..LIMITS
    })
}

proptest! {
    /// A plan never adds a slot that exists or is beyond the most, retires only free slots, and keeps the least number.
    #[test]
    fn plans_are_consistent(limits in limits(), demand in demand(), slots in observed(), memory_free in 0..4 * GIB) {
        let plan = plan_slots(limits, &demand, &slots, SlotBudget { memory_free, ..PLENTY }, NOW);
        let mut retired = BTreeSet::new();
        for action in &plan.actions {
            match *action {
                SlotAction::Add(number) => {
                    prop_assert!((1..=limits.max).contains(&number) && slots.iter().all(|slot| slot.number != number));
                    prop_assert!(memory_free >= 2 * GIB);
                }
                SlotAction::Retire(number) => {
                    prop_assert!(number > limits.min && retired.insert(number));
                    let slot = slots.iter().find(|slot| slot.number == number).expect("a slot");
                    let is_free = matches!(slot.activity, SlotActivity::Free { .. });
                    prop_assert!(is_free);
                }
            }
        }
        prop_assert!(plan.actions.iter().filter(|action| matches!(action, SlotAction::Add(_))).count() <= 1);
    }

    /// With enough memory, the plans come to an end, at which every request that can be served has a slot.
    #[test]
    fn plans_come_to_an_end(limits in limits(), demand in demand(), start in observed()) {
        let mut slots = start;
        for _ in 0..20 {
            for slot in &mut slots {
                if matches!(slot.activity, SlotActivity::Making | SlotActivity::Recycling) {
                    slot.activity = SlotActivity::Free { since: NOW };
                }
            }
            for action in plan_slots(limits, &demand, &slots, PLENTY, NOW).actions {
                match action {
                    SlotAction::Add(number) => slots.push(slot(number, SlotActivity::Making)),
                    SlotAction::Retire(number) => slots.retain(|slot| slot.number != number),
                }
            }
        }
        prop_assert_eq!(plan_slots(limits, &demand, &slots, PLENTY, NOW), SlotPlan::default());
        for number in 1..=limits.min {
            prop_assert!(slots.iter().any(|slot| slot.number == number));
        }
        let named: BTreeSet<u32> = demand.named.iter().copied().filter(|number| *number <= limits.max).collect();
        for number in &named {
            prop_assert!(slots.iter().any(|slot| slot.number == *number));
        }
        let is_spare = |slot: &&ObservedSlot| {
            let can_be_any = slot.number > limits.by_name_only && !named.contains(&slot.number);
            can_be_any && slot.activity != SlotActivity::Busy
        };
        let spare = slots.iter().filter(is_spare).count();
        let usable = |number: &u32| *number > limits.by_name_only;
        let is_full = (1..=limits.max).filter(usable).all(|number| slots.iter().any(|slot| slot.number == number));
        prop_assert!(spare >= demand.any as usize || is_full, "{:?}", slots);
    }
}

//! Random sequences of requests, reports, time, failures and restarts, compared with a naive model after every step.

use proptest::prelude::*;
use proptest::sample::Index;

use pair::Pair;

mod model;
mod pair;
mod setup;

const SITES: [(&str, u32, u32); 3] = [("shop", 2, 0), ("forge", 1, 0), ("forum", 3, 1)];
const OWNERS: [&str; 3] = ["ann", "ben", "eva"];
const QUOTA: usize = 2;
const MOST_OPEN: usize = 5;
const WAITING: usize = 6;
const WAITING_OF_OWNER: usize = 4;
const PREPARATION: u64 = 10;
const EVALUATION: u64 = 25;
const REMEMBERED: usize = 4;

/// A step of the property test. An index chooses among the episodes or slots that the step can be about.
#[derive(Debug, Clone)]
enum Step {
    Ask { owner: usize, wants: Vec<(usize, Option<u32>)>, is_shared: bool, wait: u64, ttl: u64, key: Option<u8> },
    Change(Index),
    Prove(Index),
    Commit(Index),
    SlotFails(Index),
    Recycle(Index),
    Heartbeat(Index),
    Hold(Index, u64),
    CloseHold(Index, u64),
    Release(Index),
    Fail(Index),
    Freeze(Index, bool),
    Evaluate(Index, bool),
    Pass(u64),
    Late(Index),
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let index = any::<Index>;
    let slot = prop_oneof![2 => Just(None), 1 => Just(Some(1u32))];
    let wants = prop::collection::btree_map(0..3usize, slot, 0..4);
    let owner = prop_oneof![3 => Just(0usize), 1 => 1..3usize];
    let key = prop::option::weighted(0.2, 0..3u8);
    let ask =
        (owner, wants, any::<bool>(), 0..60u64, 1..60u64, key).prop_map(|(owner, wants, is_shared, wait, ttl, key)| {
            Step::Ask { owner, wants: wants.into_iter().collect(), is_shared, wait, ttl, key }
        });
    prop_oneof![
        14 => ask,
        3 => index().prop_map(Step::Change),
        10 => index().prop_map(Step::Prove),
        6 => index().prop_map(Step::Commit),
        1 => index().prop_map(Step::SlotFails),
        8 => index().prop_map(Step::Recycle),
        2 => index().prop_map(Step::Heartbeat),
        2 => (index(), 0..3u64).prop_map(|(at, connection)| Step::Hold(at, connection)),
        1 => (index(), 0..3u64).prop_map(|(at, connection)| Step::CloseHold(at, connection)),
        3 => index().prop_map(Step::Release),
        1 => index().prop_map(Step::Fail),
        2 => (index(), any::<bool>()).prop_map(|(at, is_begin)| Step::Freeze(at, is_begin)),
        2 => (index(), any::<bool>()).prop_map(|(at, is_begin)| Step::Evaluate(at, is_begin)),
        4 => (0..8u64).prop_map(Step::Pass),
        4 => index().prop_map(Step::Late),
        1 => Just(Step::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    /// After every step the registry equals the model, so no slot is in two episodes, a request is granted exactly when
    /// it is its turn, an episode gets all of its slots or none, and reports for ended episodes have no effect. In the
    /// end every request that still waits gets its slots within a bounded number of episodes, and every slot is free.
    #[test]
    fn the_registry_keeps_the_promises_of_the_model(steps in prop::collection::vec(step(), 1..150)) {
        let mut pair = Pair::new();
        for step in steps {
            pair.apply(step);
        }
        pair.finish();
    }
}

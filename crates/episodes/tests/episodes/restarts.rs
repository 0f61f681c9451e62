//! Restarts of the daemon, and crashes at each call to the store.

use std::cell::RefCell;
use std::time::Duration;

use arenad_model::episode::EpisodeState::{self, Active, Ended, Frozen, Queued};
use arenad_model::episode::ending::{EpisodeEnding, ReleaseCause, VoidReason};
use arenad_model::episode::fence::FenceDecision;
use arenad_model::episode::ids::{EpisodeId, IdempotencyKey};
use arenad_model::episode::request::EpisodeRequest;

use crate::fake::{Content, Course};
use crate::rig::{Rig, active, request, seconds, slot, state};

fn keyed(sites: &[&str]) -> EpisodeRequest {
    EpisodeRequest { key: Some(IdempotencyKey::parse("run-7").expect("valid")), ..request(sites) }
}

#[test]
fn every_state_is_continued_as_promised() {
    let rig = Rig::new(1);
    let told = rig.live(async |rig| {
        let handle = rig.start_with_slots().await;
        let served = active(&handle, &["shop"]).await;
        let frozen = active(&handle, &["shop"]).await;
        handle.freeze(&frozen.id).await.expect("active");
        let over = active(&handle, &["forum"]).await;
        handle.release(&over.id).await.expect("active");
        tokio::time::sleep(seconds(1)).await;
        let judged = active(&handle, &["forum"]).await;
        std::mem::forget(handle.begin_evaluation(&judged.id, seconds(9)).await.expect("active"));
        rig.fake.script(|_, _| Course::done(1000));
        let prepared = handle.ask(request(&["forge"])).await.expect("admitted");
        let first = handle.ask(keyed(&["forge"])).await.expect("admitted");
        let second = handle.ask(request(&["forge"])).await.expect("admitted");
        tokio::time::sleep(Duration::from_millis(100)).await;
        [served, frozen, over, judged, prepared, first, second]
    });
    let [served, frozen, over, judged, prepared, first, second] = told.expect("it does not crash");
    rig.fake.script(|_, _| Course::done(10));
    rig.calls();
    rig.live(async |rig| {
        let handle = rig.start().await;
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(state(&handle, &served.id), Active);
        assert_eq!(handle.admit_client(&served.id, &served.token.hash()), FenceDecision::Admitted);
        assert_eq!((state(&handle, &frozen.id), state(&handle, &judged.id)), (Frozen, Active));
        let calls = rig.calls();
        let is_frozen = |id: &EpisodeId| calls.contains(&format!("freeze {id}"));
        assert!(is_frozen(&frozen.id) && !is_frozen(&served.id) && !is_frozen(&judged.id), "{calls:?}");
        assert_eq!(state(&handle, &over.id), Ended(EpisodeEnding::Released(ReleaseCause::Client)));
        assert_eq!(state(&handle, &prepared.id), Ended(EpisodeEnding::Void(VoidReason::DaemonRestarted)));
        assert_eq!((state(&handle, &first.id), state(&handle, &second.id)), (Queued, Queued));
        let again = handle.ask(keyed(&["forge"])).await.expect("admitted");
        assert_eq!((&again.id, again.is_known), (&first.id, true));
        // The slot of the preparation is recycled without being added again.
        assert_eq!(handle.wait(&first.id).await.expect("known").state, Active);
        assert_eq!(state(&handle, &second.id), Queued);
        handle.release(&first.id).await.expect("active");
        assert_eq!(handle.wait(&second.id).await.expect("known").state, Active);
        let route = rig.fake.state().slots[&slot("shop/2")].route.clone();
        assert_eq!(route, Some(served.id.clone()), "it has the slot that it had");
        assert_eq!(handle.lease_of(&slot("shop/2")), Some(served.id.clone()));
    });
    rig.assert_kept();
}

#[test]
fn a_held_episode_must_be_held_again() {
    let rig = Rig::new(1);
    let told = rig.live(async |rig| {
        let handle = rig.start_with_slots().await;
        let (kept, lost) = (active(&handle, &["shop"]).await, active(&handle, &["shop"]).await);
        for receipt in [&kept, &lost] {
            std::mem::forget(handle.hold(&receipt.id).await.expect("active"));
        }
        tokio::time::sleep(seconds(600)).await;
        (kept, lost)
    });
    let (kept, lost) = told.expect("it does not crash");
    rig.live(async |rig| {
        let handle = rig.start_with_slots().await;
        tokio::time::sleep(seconds(14)).await;
        assert_eq!((state(&handle, &kept.id), state(&handle, &lost.id)), (Active, Active));
        let _guard = handle.hold(&kept.id).await.expect("active");
        tokio::time::sleep(seconds(2)).await;
        let closed = Ended(EpisodeEnding::Released(ReleaseCause::HoldClosed));
        assert_eq!((state(&handle, &kept.id), state(&handle, &lost.id)), (Active, closed));
        active(&handle, &["shop"]).await;
    });
    rig.assert_kept();
}

#[test]
fn a_clock_that_jumps_back_does_not_prolong_an_episode_and_one_that_jumps_ahead_ends_it() {
    for (jump, is_live) in [(-3600, true), (3600, false)] {
        let rig = Rig::new(1);
        let receipt = rig.live(async |rig| active(&rig.start_with_slots().await, &["shop"]).await);
        let receipt = receipt.expect("it does not crash");
        rig.time.ahead.store(jump, std::sync::atomic::Ordering::Relaxed);
        rig.live(async |rig| {
            let handle = rig.start_with_slots().await;
            assert_eq!(state(&handle, &receipt.id) == Active, is_live);
            tokio::time::sleep(seconds(61)).await;
            assert!(matches!(state(&handle, &receipt.id), Ended(EpisodeEnding::Expired(_))));
        });
        rig.assert_kept();
    }
}

#[test]
fn events_continue_after_a_restart() {
    let rig = Rig::new(1);
    let seen = rig.live(async |rig| {
        let handle = rig.start_with_slots().await;
        active(&handle, &["shop"]).await;
        let mut cursor = handle.follow(0);
        cursor.next(9).await.expect("events").len()
    });
    assert_eq!(seen, Some(3));
    rig.live(async |rig| {
        let handle = rig.start_with_slots().await;
        let mut cursor = handle.follow(3);
        handle.ask(request(&["shop"])).await.expect("admitted");
        assert_eq!(cursor.next(9).await.expect("events")[0].seq, 4);
        drop(handle);
        while cursor.next(9).await.is_ok() {}
    });
}

/// The answers that the client of an episode has received.
#[derive(Debug, Clone, Default)]
struct Told {
    id: Option<EpisodeId>,
    is_active: bool,
    is_over: bool,
}

#[test]
fn a_crash_at_any_call_to_the_store_breaks_no_promise() {
    let mut points = 0;
    loop {
        let rig = Rig::new(points);
        rig.fake.script(|_, _| Course::done(5));
        let told = RefCell::new(Told::default());
        let ended = rig.live(async |rig| {
            let handle = rig.start_with_slots().await;
            rig.chaos.crash_in(points);
            let receipt = handle.ask(keyed(&["forge", "shop"])).await.expect("admitted");
            told.borrow_mut().id = Some(receipt.id.clone());
            told.borrow_mut().is_active = handle.wait(&receipt.id).await.expect("known").state == Active;
            handle.heartbeat(&receipt.id, None).await.expect("active");
            handle.release(&receipt.id).await.expect("active");
            told.borrow_mut().is_over = true;
            tokio::time::sleep(seconds(1)).await;
        });
        let told = told.into_inner();
        rig.live(async |rig| {
            let handle = rig.start_with_slots().await;
            let before: Option<EpisodeState> = told.id.as_ref().map(|id| state(&handle, id));
            let is_kept = match &before {
                None => true,
                Some(Ended(ending)) => told.is_over == matches!(ending, EpisodeEnding::Released(_)) || !told.is_over,
                Some(Active) => !told.is_over,
                Some(_) => !told.is_active,
            };
            assert!(is_kept, "point {points}: {before:?} after {told:?}");
            let receipt = handle.ask(keyed(&["forge", "shop"])).await.expect("admitted");
            assert!(told.id.is_none_or(|id| id == receipt.id), "point {points}");
            let view = handle.wait(&receipt.id).await.expect("known");
            if view.state == Active {
                handle.release(&receipt.id).await.expect("active");
            }
            tokio::time::sleep(seconds(2)).await;
            let free = rig.fake.state().slots.values().all(|slot| slot.content == Content::Baseline);
            assert!(free, "point {points}");
        });
        rig.assert_kept();
        if ended.is_some() {
            break;
        }
        points += 1;
    }
    assert!(points > 20, "only {points} points");
}

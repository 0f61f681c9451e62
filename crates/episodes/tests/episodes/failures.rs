//! Failures of slots and of the store, in a daemon that goes on.

use std::time::Duration;

use arenad_episodes::{EpisodeError, EpisodeFilter};
use arenad_model::episode::EpisodeState::{Active, Ended};
use arenad_model::episode::ending::{EpisodeEnding, VoidReason};
use arenad_model::episode::fence::FenceDecision;
use arenad_model::episode::request::EpisodeRequest;
use arenad_model::episode::{EpisodeState, EpisodeStatus};

use crate::fake::{Call, Content, Course, Fate};
use crate::rig::{Rig, active, ended, request, seconds, slot, state};

fn test(life: impl AsyncFnOnce(&Rig)) {
    let rig = Rig::new(1);
    rig.live(life).expect("it does not crash");
    rig.assert_kept();
}

fn void(state: &EpisodeState) -> &VoidReason {
    match state {
        Ended(EpisodeEnding::Void(reason)) => reason,
        other => panic!("{other:?} is not void"),
    }
}

/// Returns a script that gives the first call of a kind this fate.
fn first(kind: Call, fate: Fate) -> impl FnMut(Call, &arenad_model::instance::InstanceId) -> Course + Send {
    let mut is_first = true;
    move |call, _| {
        let is_meant = call == kind && std::mem::take(&mut is_first);
        if is_meant { Course::done(20).with(fate) } else { Course::done(20) }
    }
}

async fn all_free(rig: &Rig) {
    tokio::time::sleep(seconds(2)).await;
    let state = rig.fake.state();
    assert!(state.slots.values().all(|slot| slot.content == Content::Baseline), "{:?}", state.slots);
}

#[test]
fn a_preparation_that_fails_or_panics_or_never_ends_makes_the_episode_void() {
    for (fate, code) in
        [(Fate::Fail, "reset_failed"), (Fate::Panic, "instance_failed"), (Fate::Never, "preparation_timed_out")]
    {
        test(async |rig| {
            let handle = rig.start_with_slots().await;
            rig.fake.script(first(Call::Prepare, fate));
            let receipt = handle.ask(request(&["forge", "shop"])).await.expect("admitted");
            let view = handle.wait(&receipt.id).await.expect("known");
            assert_eq!(void(&view.state).code(), code);
            all_free(rig).await;
            active(&handle, &["forge", "shop"]).await;
        });
    }
}

#[test]
fn a_preparation_that_ends_together_with_its_episode_has_no_effect() {
    for milliseconds in [49, 50, 51] {
        test(async |rig| {
            let handle = rig.start_with_slots().await;
            rig.fake.script(|call, _| Course::done(if call == Call::Prepare { 50 } else { 0 }));
            let receipt = handle.ask(request(&["forge"])).await.expect("admitted");
            tokio::time::sleep(Duration::from_millis(milliseconds)).await;
            handle.release(&receipt.id).await.expect("live");
            assert_eq!(state(&handle, &receipt.id).status(), EpisodeStatus::Released);
            all_free(rig).await;
        });
    }
}

#[test]
fn a_slot_that_a_preparation_did_not_change_is_free_at_once() {
    test(async |rig| {
        let handle = rig.start_with_slots().await;
        rig.fake.script(|_, _| Course { changes: false, ..Course::done(50) });
        rig.calls();
        let first = handle.ask(request(&["forge"])).await.expect("admitted");
        let second = handle.ask(request(&["forge"])).await.expect("admitted");
        tokio::time::sleep(Duration::from_millis(20)).await;
        handle.release(&first.id).await.expect("live");
        assert_eq!(handle.wait(&second.id).await.expect("known").state, Active);
        let calls = ["prepare mini/forge/1", "cut mini/forge/1", "prepare mini/forge/1", "switch mini/forge/1"];
        assert_eq!(rig.calls(), calls);
    });
}

#[test]
fn recycling_is_repeated_until_it_succeeds() {
    for fate in [Fate::Fail, Fate::Panic, Fate::Never] {
        test(async |rig| {
            let handle = rig.start_with_slots().await;
            let receipt = active(&handle, &["forge"]).await;
            rig.fake.script(first(Call::Recycle, fate));
            handle.release(&receipt.id).await.expect("active");
            let next = handle.ask(request(&["forge"])).await.expect("admitted");
            let view = handle.wait(&next.id).await.expect("known");
            assert_eq!(view.state, Active, "after {fate:?}");
        });
    }
}

#[test]
fn the_failure_of_a_slot_makes_its_episode_void() {
    test(async |rig| {
        let handle = rig.start_with_slots().await;
        let died = || VoidReason::ContainerDied { slot: slot("forge/1"), detail: "exited with code 1".to_owned() };
        let receipt = active(&handle, &["forge", "shop"]).await;
        handle.slot_failed(slot("forge/1"), died()).await.expect("recorded");
        assert_eq!(void(&state(&handle, &receipt.id)), &died());
        all_free(rig).await;
        rig.calls();
        handle.slot_failed(slot("forge/1"), died()).await.expect("nothing to record");
        tokio::time::sleep(seconds(1)).await;
        assert_eq!(rig.calls(), ["recycle mini/forge/1"], "a free slot is made again");
        let again = active(&handle, &["forge"]).await;
        handle.slot_failed(slot("shop/1"), died()).await.expect("nothing to record");
        assert_eq!(state(&handle, &again.id), Active);
    });
}

#[test]
fn an_episode_whose_browser_fails_is_void_and_its_slots_come_free() {
    test(async |rig| {
        let handle = rig.start_with_slots().await;
        let failed = || VoidReason::BrowserFailed { detail: "its process has ended".to_owned() };
        let receipt = active(&handle, &["forge"]).await;
        handle.fail(&receipt.id, failed()).await.expect("recorded");
        assert_eq!(void(&state(&handle, &receipt.id)), &failed());
        all_free(rig).await;
        let released = active(&handle, &["forge"]).await;
        handle.release(&released.id).await.expect("active");
        handle.fail(&released.id, failed()).await.expect_err("it has ended already");
        assert_eq!(state(&handle, &released.id).status(), EpisodeStatus::Released, "the first end counts");
    });
}

#[test]
fn a_switch_that_fails_or_panics_makes_the_episode_void() {
    for fate in [Fate::Fail, Fate::Panic] {
        test(async |rig| {
            let handle = rig.start_with_slots().await;
            rig.fake.script(first(Call::Switch, fate));
            let receipt = handle.ask(request(&["forge", "shop"])).await.expect("admitted");
            let view = handle.wait(&receipt.id).await.expect("known");
            void(&view.state);
            all_free(rig).await;
            active(&handle, &["forge", "shop"]).await;
        });
    }
}

#[test]
fn a_request_that_was_not_recorded_leaves_no_episode() {
    test(async |rig| {
        let handle = rig.start_with_slots().await;
        rig.chaos.set_full(true);
        for _ in 0..3 {
            let refused = handle.ask(request(&["forge"])).await;
            assert!(matches!(refused, Err(EpisodeError::Store(_))), "{refused:?}");
        }
        rig.chaos.set_full(false);
        tokio::time::sleep(seconds(2)).await;
        assert_eq!(handle.list(&EpisodeFilter { is_live: true, ..EpisodeFilter::default() }).len(), 0);
        active(&handle, &["forge"]).await;
    });
}

#[test]
fn a_repeated_request_gets_the_episode_that_was_recorded_late() {
    test(async |rig| {
        let handle = rig.start_with_slots().await;
        let key = arenad_model::episode::ids::IdempotencyKey::parse("run-7").expect("valid");
        let keyed = EpisodeRequest { key: Some(key), ..request(&["shop"]) };
        rig.chaos.set_full(true);
        assert!(matches!(handle.ask(keyed.clone()).await, Err(EpisodeError::Store(_))));
        rig.chaos.set_full(false);
        tokio::time::sleep(seconds(2)).await;
        let receipt = handle.ask(keyed).await.expect("admitted");
        assert!(receipt.is_known);
        assert_eq!(handle.wait(&receipt.id).await.expect("known").state, Active);
    });
}

#[test]
fn a_grant_that_was_not_recorded_is_void() {
    test(async |rig| {
        let handle = rig.start_with_slots().await;
        rig.fake.script(|_, _| Course::done(50));
        let receipt = handle.ask(request(&["forge"])).await.expect("admitted");
        tokio::time::sleep(Duration::from_millis(10)).await;
        rig.chaos.set_full(true);
        tokio::time::sleep(seconds(3)).await;
        assert_eq!(state(&handle, &receipt.id), EpisodeState::Preparing, "an end without a row is not published");
        rig.chaos.set_full(false);
        let view = ended(&handle, &receipt.id).await;
        assert_eq!(void(&view.state).code(), "store_failed");
        all_free(rig).await;
    });
}

#[test]
fn an_end_takes_effect_when_it_is_recorded() {
    test(async |rig| {
        let handle = rig.start_with_slots().await;
        let receipt = active(&handle, &["forge"]).await;
        let client = || handle.admit_client(&receipt.id, &receipt.token.hash());
        rig.calls();
        rig.chaos.set_full(true);
        let released = handle.release(&receipt.id).await;
        assert!(matches!(released, Err(EpisodeError::Store(_))), "{released:?}");
        tokio::time::sleep(seconds(10)).await;
        assert_eq!((rig.calls(), state(&handle, &receipt.id)), (Vec::new(), Active));
        // The time to live ends meanwhile, but that is not recorded either.
        tokio::time::sleep(seconds(60)).await;
        assert_eq!(client(), FenceDecision::NotReady);
        rig.chaos.set_full(false);
        let view = ended(&handle, &receipt.id).await;
        assert_eq!(view.state.status(), EpisodeStatus::Released);
        assert!(matches!(client(), FenceDecision::Ended(_)));
        all_free(rig).await;
    });
}

#[test]
fn a_hold_is_answered_when_it_is_recorded() {
    test(async |rig| {
        let handle = rig.start_with_slots().await;
        let receipt = active(&handle, &["forge"]).await;
        rig.chaos.set_full(true);
        let mut holding = Box::pin(handle.hold(&receipt.id));
        assert!(tokio::time::timeout(seconds(5), holding.as_mut()).await.is_err());
        rig.chaos.set_full(false);
        let guard = holding.await.expect("recorded");
        assert!(handle.get(&receipt.id).expect("known").is_held);
        drop(guard);
        assert_eq!(ended(&handle, &receipt.id).await.state.status(), EpisodeStatus::Released);
    });
}

//! Episodes to which nothing bad happens.

use std::collections::BTreeMap;
use std::time::Duration;

use arenad_episodes::{EpisodeError, EpisodeFilter, EpisodeToken};
use arenad_model::episode::EpisodeState::{Active, Ended, Frozen, Queued};
use arenad_model::episode::EpisodeStatus;
use arenad_model::episode::ending::{EpisodeEnding, ExpiryCause, ReleaseCause, VoidReason};
use arenad_model::episode::fence::FenceDecision;
use arenad_model::episode::ids::{EpisodeId, EpisodeLabels, IdempotencyKey, Owner};
use arenad_model::episode::life::EpisodeTerms;
use arenad_model::episode::request::{AskRefusal, EpisodeRequest, StartPoint};
use arenad_model::episode::{EpisodeRefusal, EpisodeState};
use arenad_model::ids::EnvironmentName;

use crate::fake::{Call, Content, Course};
use crate::rig::{Rig, active, all_slots, ended, request, seconds, slot, state};

fn test(life: impl AsyncFnOnce(&Rig)) {
    let rig = Rig::new(1);
    rig.live(life).expect("it does not crash");
    rig.assert_kept();
}

fn released() -> EpisodeState {
    Ended(EpisodeEnding::Released(ReleaseCause::Client))
}

#[test]
fn an_episode_is_prepared_recorded_switched_and_recycled() {
    test(async |rig| {
        let handle = rig.start_with_slots().await;
        rig.calls();
        let mut events = handle.follow(0);
        let receipt = active(&handle, &["forge", "wiki", "shop"]).await;
        let mut calls = rig.calls();
        calls.sort();
        assert_eq!(
            calls,
            ["prepare mini/forge/1", "prepare mini/shop/2", "switch mini/forge/1", "switch mini/shop/2"],
            "slot 1 is the last choice if there are others"
        );
        let token = EpisodeToken::presented(receipt.token.reveal()).hash();
        assert_eq!(handle.admit_client(&receipt.id, &token), FenceDecision::Admitted);
        assert_eq!(handle.lease_of(&slot("forge/1")), Some(receipt.id.clone()));
        handle.release(&receipt.id).await.expect("active");
        assert_eq!(rig.calls()[..2], ["cut mini/forge/1", "cut mini/shop/2"]);
        let over = EpisodeEnding::Released(ReleaseCause::Client);
        assert_eq!(handle.admit_client(&receipt.id, &token), FenceDecision::Ended(over.clone()));
        assert_eq!(handle.lease_of(&slot("forge/1")), None);
        let again = handle.release(&receipt.id).await;
        assert!(matches!(again, Err(EpisodeError::Refused(EpisodeRefusal::Ended(_)))), "{again:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert!(rig.fake.state().slots.values().all(|slot| slot.content == Content::Baseline));
        let followed = events.next(10).await.expect("events");
        let states: Vec<&str> = followed.iter().map(|event| event.status.name()).collect();
        assert_eq!(states, ["queued", "preparing", "active", "released"]);
        assert_eq!(followed[3].ending, Some(over));
    });
}

#[test]
fn an_episode_on_shared_sites_is_active_at_once() {
    test(async |rig| {
        let handle = rig.start_with_slots().await;
        let receipt = active(&handle, &["wiki"]).await;
        assert_eq!(handle.get(&receipt.id).expect("known").slots, []);
        handle.release(&receipt.id).await.expect("active");
    });
}

#[test]
fn requests_are_granted_in_order_of_arrival() {
    test(async |rig| {
        let handle = rig.start_with_slots().await;
        let mut receipts = Vec::new();
        for _ in 0..6 {
            receipts.push(handle.ask(request(&["forge"])).await.expect("admitted"));
        }
        assert_eq!(handle.queue().await.expect("running").len(), 5);
        let other = active(&handle, &["forum"]).await;
        for (number, receipt) in receipts.iter().enumerate() {
            handle.wait(&receipt.id).await.expect("known");
            assert_eq!(state(&handle, &receipt.id), Active, "{number}");
            assert!(receipts[number + 1..].iter().all(|later| state(&handle, &later.id) == Queued));
            handle.release(&receipt.id).await.expect("active");
        }
        assert_eq!(state(&handle, &other.id), Active);
    });
}

#[test]
fn an_episode_ends_with_the_connection_that_holds_it() {
    test(async |rig| {
        let handle = rig.start_with_slots().await;
        let receipt = active(&handle, &["forge"]).await;
        let guard = handle.hold(&receipt.id).await.expect("active");
        let other = handle.hold(&receipt.id).await;
        assert!(matches!(other, Err(EpisodeError::Refused(EpisodeRefusal::AlreadyHeld))), "{other:?}");
        tokio::time::sleep(seconds(600)).await;
        assert_eq!(state(&handle, &receipt.id), Active, "a hold suspends the time to live");
        drop(guard);
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert_eq!(state(&handle, &receipt.id), Ended(EpisodeEnding::Released(ReleaseCause::HoldClosed)));
        active(&handle, &["forge"]).await;
    });
}

#[test]
fn an_episode_lives_as_long_as_its_heartbeats() {
    test(async |rig| {
        let handle = rig.start_with_slots().await;
        let receipt = active(&handle, &["shop"]).await;
        for _ in 0..5 {
            tokio::time::sleep(seconds(50)).await;
            handle.heartbeat(&receipt.id, None).await.expect("active");
        }
        let begun = tokio::time::Instant::now();
        let view = ended(&handle, &receipt.id).await;
        assert_eq!(view.state, Ended(EpisodeEnding::Expired(ExpiryCause::Ttl)));
        assert_eq!(begun.elapsed().as_secs(), 60);
        assert!(view.ended_at.expect("ended") > view.granted_at.expect("granted"));
    });
}

#[test]
fn a_request_waits_as_long_as_its_client_wants_to() {
    test(async |rig| {
        let handle = rig.start_with_slots().await;
        active(&handle, &["forge"]).await;
        let receipt = handle.ask(request(&["forge"])).await.expect("admitted");
        let view = handle.wait(&receipt.id).await.expect("known");
        assert_eq!(view.state, Ended(EpisodeEnding::Expired(ExpiryCause::Wait)));
    });
}

#[test]
fn an_evaluated_episode_is_frozen_for_its_client_only() {
    test(async |rig| {
        let handle = rig.start_with_slots().await;
        let EpisodeReceipt { id, token, .. } = active(&handle, &["shop"]).await;
        let client = || handle.admit_client(&id, &token.hash());
        rig.calls();
        handle.freeze(&id).await.expect("active");
        assert_eq!(rig.calls(), [format!("freeze {id}")], "requests under way end before the caller is told");
        let first = handle.begin_evaluation(&id, seconds(5)).await.expect("active");
        let second = handle.begin_evaluation(&id, seconds(5)).await.expect("active");
        handle.unfreeze(&id).await.expect("frozen");
        assert_eq!((client(), handle.admit_visitor(&id)), (FenceDecision::Frozen, FenceDecision::Admitted));
        first.end().await.expect("frozen");
        assert_eq!((client(), state(&handle, &id)), (FenceDecision::Frozen, Frozen));
        assert_eq!(rig.calls(), [""; 0], "it is frozen once, and still is");
        drop(second);
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(client(), FenceDecision::Admitted);
        assert_eq!(rig.calls(), [format!("unfreeze {id}")]);
        let late = handle.begin_evaluation(&id, seconds(5)).await.expect("active");
        assert_eq!(rig.calls(), [format!("freeze {id}")]);
        handle.release(&id).await.expect("frozen");
        assert!(matches!(late.end().await, Err(EpisodeError::Refused(EpisodeRefusal::Ended(_)))));
    });
}

use arenad_episodes::EpisodeReceipt;

#[test]
fn a_repeated_request_gets_the_same_episode_and_both_tokens_open_it() {
    test(async |rig| {
        let handle = rig.start_with_slots().await;
        let key = IdempotencyKey::parse("run-7").expect("valid");
        let keyed = EpisodeRequest { key: Some(key), ..request(&["shop"]) };
        let first = handle.ask(keyed.clone()).await.expect("admitted");
        handle.wait(&first.id).await.expect("known");
        let second = handle.ask(keyed.clone()).await.expect("admitted");
        assert_eq!((&first.id, first.is_known, second.is_known), (&second.id, false, true));
        for token in [&first.token, &second.token] {
            assert_eq!(handle.admit_client(&first.id, &token.hash()), FenceDecision::Admitted);
        }
        let other = handle.ask(EpisodeRequest { key: keyed.key, ..request(&["forge"]) }).await;
        assert!(matches!(other, Err(EpisodeError::Ask(AskRefusal::KeyReused(_)))), "{other:?}");
    });
}

#[test]
fn an_episode_whose_client_never_learned_its_id_is_released() {
    test(async |rig| {
        let handle = rig.start_with_slots().await;
        for milliseconds in 0..3 {
            // The request is given up after it was sent.
            let limit = Duration::from_millis(milliseconds);
            let mut asking = Box::pin(handle.ask(request(&["forge"])));
            let _ = tokio::time::timeout(limit, async {
                std::future::poll_fn(|cx| {
                    let _ = asking.as_mut().poll(cx);
                    std::task::Poll::Ready(())
                })
                .await;
                tokio::task::yield_now().await;
            })
            .await;
            drop(asking);
            tokio::time::sleep(Duration::from_millis(10)).await;
            assert_eq!(handle.list(&EpisodeFilter { is_live: true, ..EpisodeFilter::default() }).len(), 0);
        }
    });
}

#[test]
fn episodes_are_listed_by_owner_and_labels_in_order_of_their_requests() {
    test(async |rig| {
        let handle = rig.start_with_slots().await;
        let labelled = |owner: &str, run: &str| {
            let labels = EpisodeLabels::parse(BTreeMap::from([("run".to_owned(), run.to_owned())])).expect("valid");
            EpisodeRequest { owner: Owner::parse(owner).expect("valid"), labels, ..request(&["wiki"]) }
        };
        let mut ids = Vec::new();
        for (owner, run) in [("ann", "1"), ("ben", "1"), ("ann", "2"), ("ann", "1")] {
            ids.push(handle.ask(labelled(owner, run)).await.expect("admitted").id);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        handle.release(&ids[3]).await.expect("active");
        let list = |owner: Option<&str>, run: Option<&str>, is_live| {
            let owner = owner.map(|owner| Owner::parse(owner).expect("valid"));
            let labels = run.map(|run| labelled("ann", run).labels).unwrap_or_default();
            let found = handle.list(&EpisodeFilter { owner, labels, is_live });
            found.into_iter().map(|view| view.id).collect::<Vec<EpisodeId>>()
        };
        assert_eq!(list(None, None, false), ids);
        assert_eq!(list(Some("ann"), Some("1"), false), [ids[0].clone(), ids[3].clone()]);
        assert_eq!(list(None, Some("1"), true), ids[..2]);
    });
}

#[test]
fn a_full_inbox_is_a_refusal_with_a_time_to_try_again() {
    test(async |rig| {
        let handle = rig.start_with_slots().await;
        let mut asking = tokio::task::JoinSet::new();
        for _ in 0..1100 {
            let handle = handle.clone();
            asking.spawn(async move { handle.ask(request(&["forge"])).await });
        }
        let answers = asking.join_all().await;
        let busy = answers.iter().filter(|answer| matches!(answer, Err(EpisodeError::Busy { .. }))).count();
        let full = answers.iter().filter(|answer| matches!(answer, Err(EpisodeError::Ask(_)))).count();
        assert!(busy >= 50, "{busy} of {} were refused by the inbox", answers.len());
        assert_eq!(answers.len() - busy - full, 31, "one that is granted, and as many as may wait");
        assert_eq!(handle.list(&EpisodeFilter::default()).len(), 31);
    });
}

#[test]
fn an_environment_that_is_withdrawn_leaves_no_work_behind() {
    test(async |rig| {
        let handle = rig.start_with_slots().await;
        let first = active(&handle, &["shop"]).await;
        rig.fake.script(|_, _| Course::done(1000));
        let second = handle.ask(request(&["forge"])).await.expect("admitted");
        let third = handle.ask(request(&["forge"])).await.expect("admitted");
        tokio::time::sleep(Duration::from_millis(10)).await;
        rig.calls();
        handle.withdraw_environment(EnvironmentName::parse("mini").expect("valid")).await.expect("recorded");
        let mut calls = rig.calls();
        calls.sort();
        assert_eq!(calls, ["cut mini/forge/1", "cut mini/shop/2"], "its slots are not recycled");
        for receipt in [first, second, third] {
            let state = state(&handle, &receipt.id);
            assert_eq!(state, Ended(EpisodeEnding::Void(VoidReason::EnvironmentDown)));
        }
        tokio::time::sleep(seconds(100)).await;
        assert_eq!(rig.calls(), [""; 0]);
        let refused = handle.ask(request(&["shop"])).await;
        assert!(matches!(refused, Err(EpisodeError::Ask(AskRefusal::UnknownSite(_)))), "{refused:?}");
        // A repetition has nothing to do.
        handle.withdraw_environment(EnvironmentName::parse("mini").expect("valid")).await.expect("nothing to record");
    });
}

#[test]
fn a_slot_is_retired_only_while_it_is_free() {
    test(async |rig| {
        let handle = rig.start_with_slots().await;
        let receipt = active(&handle, &["forge"]).await;
        assert!(matches!(handle.retire_slot(slot("forge/1")).await, Err(EpisodeError::Slot(_))));
        assert!(matches!(handle.add_slot(slot("forge/1")).await, Err(EpisodeError::Slot(_))));
        handle.release(&receipt.id).await.expect("active");
        tokio::time::sleep(Duration::from_millis(10)).await;
        handle.retire_slot(slot("forge/1")).await.expect("free");
        let waiting = handle.ask(request(&["forge"])).await.expect("admitted");
        assert_eq!(handle.demand(crate::rig::site("forge")).await.expect("running").any, 1);
        handle.add_slot(slot("forge/1")).await.expect("new");
        assert_eq!(handle.wait(&waiting.id).await.expect("known").state, Active);
        assert_eq!(all_slots().len(), 6);
    });
}

#[test]
fn a_fork_goes_on_when_its_parent_ends() {
    test(async |rig| {
        let handle = rig.start_with_slots().await;
        let parent = active(&handle, &["shop"]).await;
        let mut fork = request(&["shop"]);
        let start = StartPoint::Fork { parent: parent.id.clone(), copy: "0123456789abcdef".to_owned().into() };
        fork.sites[0].start = start.clone();
        rig.fake.script(|call, _| Course::done(if call == Call::Prepare { 1000 } else { 0 }));
        let child = handle.ask(fork).await.expect("admitted");
        tokio::time::sleep(Duration::from_millis(500)).await;
        handle.release(&parent.id).await.expect("active");
        assert_eq!(state(&handle, &parent.id), released());
        let view = handle.wait(&child.id).await.expect("known");
        assert_eq!((view.state, &view.request.sites[0].start), (Active, &start));
    });
}

#[test]
fn terms_are_part_of_the_request() {
    test(async |rig| {
        let handle = rig.start_with_slots().await;
        let terms = EpisodeTerms::new(seconds(2), seconds(0)).expect("valid");
        let receipt = handle.ask(EpisodeRequest { terms, ..request(&["shop"]) }).await.expect("admitted");
        handle.wait(&receipt.id).await.expect("known");
        let view = ended(&handle, &receipt.id).await;
        assert_eq!(view.state.status(), EpisodeStatus::Expired);
    });
}

use super::*;
use crate::episode::ending::ExpiryCause;

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// Creates a life at second 0, with a wait of 30 s and a time to live of 60 s.
fn queued() -> EpisodeLife {
    EpisodeLife::queued(EpisodeTerms::new(seconds(60), seconds(30)).expect("valid"), Duration::ZERO)
}

/// Creates a life that is active since second 10, so it ends after second 70.
fn active() -> EpisodeLife {
    let mut life = queued();
    life.grant(seconds(20), seconds(5)).expect("in time");
    life.activate(seconds(10)).expect("in time");
    life
}

#[test]
fn terms_have_limits() {
    let terms = |ttl, wait| EpisodeTerms::new(seconds(ttl), seconds(wait)).is_ok();
    assert!(terms(1, 0) && terms(30 * 86_400, 86_400));
    assert!(!terms(0, 0) && !terms(30 * 86_400 + 1, 0) && !terms(1, 86_401));
}

#[test]
fn each_part_of_a_life_has_its_own_deadline() {
    let mut waiting = queued();
    assert_eq!((waiting.is_expired(seconds(30)), waiting.is_expired(seconds(31))), (false, true));
    assert_eq!(waiting.expire(seconds(31)), Some(EpisodeEnding::Expired(ExpiryCause::Wait)));
    let mut preparing = queued();
    preparing.grant(seconds(20), seconds(5)).expect("in time");
    assert_eq!(preparing.expire(seconds(25)), None);
    assert_eq!(preparing.expire(seconds(26)), Some(EpisodeEnding::Void(VoidReason::PreparationTimedOut)));
    let mut active = active();
    assert_eq!(active.expire(seconds(70)), None);
    assert_eq!(active.expire(seconds(71)), Some(EpisodeEnding::Expired(ExpiryCause::Ttl)));
    assert_eq!(active.ended_at(), Some(seconds(71)));
    assert_eq!(active.expire(seconds(99)), None, "an end happens once");
}

#[test]
fn a_request_without_wait_can_be_granted_at_once_only() {
    let terms = EpisodeTerms::new(seconds(60), Duration::ZERO).expect("valid");
    let mut life = EpisodeLife::queued(terms, seconds(5));
    assert_eq!(life.clone().grant(seconds(20), seconds(5)), Ok(()));
    assert_eq!(life.grant(seconds(20), seconds(6)), Err(EpisodeRefusal::Overdue));
}

#[test]
fn a_heartbeat_extends_and_never_shortens() {
    let mut life = active();
    life.heartbeat(None, seconds(40)).expect("active");
    assert_eq!(life.left(seconds(40)), seconds(60));
    life.heartbeat(Some(seconds(1)), seconds(41)).expect("active");
    assert_eq!(life.left(seconds(41)), seconds(59));
    life.heartbeat(Some(seconds(10_000_000)), seconds(41)).expect("active");
    assert_eq!(life.left(seconds(41)), LONGEST_TTL);
    let mut waiting = queued();
    waiting.heartbeat(None, seconds(20)).expect("not over");
    assert!(waiting.is_expired(seconds(31)), "the wait is not extended");
}

#[test]
fn nothing_revives_an_episode_after_its_deadline() {
    let late = seconds(71);
    let overdue = Err(EpisodeRefusal::Overdue);
    let mut life = active();
    assert_eq!(life.heartbeat(None, late), overdue);
    assert_eq!(life.hold(HoldId(1), late), overdue);
    assert_eq!(life.freeze(late), overdue);
    assert_eq!(life.begin_evaluation(seconds(60), late), overdue);
    assert_eq!(life.release(late), overdue);
    assert_eq!(life.ending(late), Some(EpisodeEnding::Expired(ExpiryCause::Ttl)), "before it is recorded");
    assert_eq!(life.ending(seconds(70)), None);
}

#[test]
fn the_end_of_the_hold_ends_the_episode_in_every_state() {
    for state in [queued(), active()] {
        let mut life = state;
        life.hold(HoldId(7), seconds(11)).expect("free");
        life.hold(HoldId(7), seconds(11)).expect("the same connection");
        assert_eq!(life.hold(HoldId(8), seconds(12)), Err(EpisodeRefusal::AlreadyHeld));
        assert_eq!(life.close_hold(HoldId(8), seconds(13)), Err(EpisodeRefusal::NotHeld));
        assert_eq!(life.close_hold(HoldId(7), seconds(14)), Ok(()));
        assert_eq!(life.state().ending(), Some(&EpisodeEnding::Released(ReleaseCause::HoldClosed)));
    }
}

#[test]
fn a_hold_suspends_the_time_to_live_and_not_the_wait() {
    let mut life = active();
    life.hold(HoldId(7), seconds(11)).expect("free");
    assert!(!life.is_expired(seconds(1_000_000)));
    let mut waiting = queued();
    waiting.hold(HoldId(7), seconds(1)).expect("free");
    assert!(waiting.is_expired(seconds(31)));
}

#[test]
fn an_episode_is_frozen_while_any_cause_of_a_freeze_lasts() {
    let mut life = active();
    life.begin_evaluation(seconds(5), seconds(11)).expect("active");
    life.begin_evaluation(seconds(5), seconds(11)).expect("frozen");
    assert_eq!(life.unfreeze(seconds(12)), Err(EpisodeRefusal::NotFrozen), "the client did not freeze it");
    life.end_evaluation(seconds(12)).expect("running");
    assert_eq!(life.state(), &EpisodeState::Frozen);
    life.freeze(seconds(12)).expect("frozen");
    life.end_evaluation(seconds(13)).expect("running");
    assert_eq!(life.end_evaluation(seconds(13)), Err(EpisodeRefusal::NotFrozen));
    assert_eq!(life.state(), &EpisodeState::Frozen);
    life.begin_evaluation(seconds(5), seconds(14)).expect("frozen");
    life.unfreeze(seconds(15)).expect("frozen by the client");
    assert_eq!(life.state(), &EpisodeState::Frozen);
    life.end_evaluation(seconds(16)).expect("running");
    assert_eq!(life.state(), &EpisodeState::Active);
}

#[test]
fn an_evaluation_has_the_time_that_it_needs_and_a_freeze_has_none() {
    let mut evaluated = active();
    evaluated.begin_evaluation(seconds(120), seconds(69)).expect("active");
    assert_eq!((evaluated.is_expired(seconds(189)), evaluated.is_expired(seconds(190))), (false, true));
    let mut frozen = active();
    frozen.freeze(seconds(69)).expect("active");
    assert!(frozen.is_expired(seconds(71)));
}

#[test]
fn a_new_daemon_continues_lives() {
    let restart = |life: &EpisodeLife, at| {
        let stored = life.stored(seconds(at)).expect("not over");
        EpisodeLife::restored(stored, seconds(1000))
    };
    let waiting = restart(&queued(), 10);
    assert_eq!((waiting.state(), waiting.left(seconds(1000))), (&EpisodeState::Queued, seconds(20)));
    let mut preparing = queued();
    preparing.grant(seconds(20), seconds(5)).expect("in time");
    let void = EpisodeEnding::Void(VoidReason::DaemonRestarted);
    assert_eq!(restart(&preparing, 6).state().ending(), Some(&void));
    assert_eq!(restart(&active(), 40).left(seconds(1000)), seconds(30));
    let mut frozen = active();
    frozen.begin_evaluation(seconds(5), seconds(11)).expect("active");
    assert_eq!(restart(&frozen, 12).state(), &EpisodeState::Active, "the evaluation ended with the daemon");
    frozen.freeze(seconds(11)).expect("frozen");
    let mut restored = restart(&frozen, 12);
    assert_eq!(restored.state(), &EpisodeState::Frozen);
    assert_eq!(restored.unfreeze(seconds(1001)), Ok(()));
}

#[test]
fn a_held_episode_must_be_held_again_after_a_restart() {
    let mut held = active();
    held.hold(HoldId(7), seconds(11)).expect("free");
    let stored = held.stored(seconds(500)).expect("not over");
    assert_eq!(stored.left, Duration::ZERO, "a hold lasts longer than the time to live");
    let mut lost = EpisodeLife::restored(stored.clone(), Duration::ZERO);
    assert_eq!(lost.expire(HOLD_AGAIN_WITHIN), None);
    let closed = EpisodeEnding::Released(ReleaseCause::HoldClosed);
    assert_eq!(lost.expire(HOLD_AGAIN_WITHIN + seconds(1)), Some(closed));
    let mut again = EpisodeLife::restored(stored, Duration::ZERO);
    again.hold(HoldId(1), seconds(9)).expect("free");
    assert!(!again.is_expired(seconds(1000)));
}

#[test]
fn a_jump_of_the_wall_clock_gives_no_more_time_than_the_terms() {
    let mut stored = queued().stored(Duration::ZERO).expect("not over");
    stored.left = seconds(10_000_000);
    assert_eq!(EpisodeLife::restored(stored.clone(), Duration::ZERO).left(Duration::ZERO), seconds(30));
    stored.state = EpisodeState::Active;
    assert_eq!(EpisodeLife::restored(stored, Duration::ZERO).left(Duration::ZERO), LONGEST_TTL);
}

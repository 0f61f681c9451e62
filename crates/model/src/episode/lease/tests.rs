use super::*;

fn slot(text: &str) -> InstanceId {
    text.parse().expect("valid")
}

fn lease(number: u8) -> EpisodeId {
    EpisodeId::from_random([number; 10])
}

const NOW: Duration = Duration::from_secs(5);

/// Creates a board with two free slots, and returns them.
fn board() -> (SlotBoard, [InstanceId; 2]) {
    let mut board = SlotBoard::default();
    let slots = [slot("mini/forge/1"), slot("mini/shop/2")];
    for slot in &slots {
        let order = board.add(slot.clone()).expect("new");
        board.note_recycled(slot, order.turn, NOW).expect("the latest attempt");
    }
    (board, slots)
}

fn names(board: &SlotBoard) -> Vec<&'static str> {
    board.iter().map(|(_, state)| state.name()).collect()
}

#[test]
fn a_lease_is_reserved_prepared_and_committed() {
    let (mut board, slots) = board();
    board.reserve(&lease(1), &slots).expect("free");
    assert_eq!(board.lease_of(&slots[0]), None, "no client reaches a slot that is being prepared");
    board.note_changing(&slots[0], &lease(1)).expect("reserved");
    board.note_prepared(&slots[0], &lease(1)).expect("reserved");
    assert_eq!(board.commit(&lease(1), &slots), Err(SlotRefusal::NotPrepared(slots[1].clone())));
    assert_eq!(names(&board), ["reserved", "reserved"], "no slot is committed alone");
    board.note_prepared(&slots[1], &lease(1)).expect("reserved");
    board.commit(&lease(1), &slots).expect("prepared");
    assert_eq!(board.lease_of(&slots[0]), Some(&lease(1)));
    assert_eq!(board.commit(&lease(1), &slots), Err(SlotRefusal::InUse(slots[0].clone())));
    assert_eq!(board.note_changing(&slots[0], &lease(1)), Err(SlotRefusal::InUse(slots[0].clone())));
}

#[test]
fn slots_are_reserved_all_or_none() {
    let (mut board, [forge, shop]) = board();
    board.reserve(&lease(1), std::slice::from_ref(&shop)).expect("free");
    let taken = SlotRefusal::NotFree { slot: shop.clone(), state: "reserved" };
    assert_eq!(board.reserve(&lease(2), &[forge.clone(), shop]), Err(taken));
    assert_eq!(board.state(&forge), Some(&SlotState::Free { since: NOW }));
    let unknown = slot("mini/wiki/1");
    assert_eq!(board.reserve(&lease(2), &[forge.clone(), unknown.clone()]), Err(SlotRefusal::UnknownSlot(unknown)));
    assert_eq!(board.state(&forge), Some(&SlotState::Free { since: NOW }));
}

#[test]
fn a_change_for_another_lease_is_refused() {
    let (mut board, slots) = board();
    board.reserve(&lease(2), &slots).expect("free");
    let refused = || Err(SlotRefusal::OtherLease { slot: slots[0].clone(), lease: lease(1) });
    assert_eq!(board.note_changing(&slots[0], &lease(1)), refused());
    assert_eq!(board.note_prepared(&slots[0], &lease(1)), refused());
    assert_eq!(board.commit(&lease(1), &slots), refused());
    assert_eq!(board.give_back(&lease(1)), []);
    assert_eq!(names(&board), ["reserved", "reserved"]);
    for slot in &slots {
        board.note_prepared(slot, &lease(2)).expect("reserved");
    }
    assert_eq!(board.commit(&lease(1), &slots), refused());
    board.commit(&lease(2), &slots).expect("prepared");
    assert_eq!(board.give_back(&lease(1)), []);
    assert_eq!(names(&board), ["leased", "leased"]);
}

#[test]
fn slots_that_were_not_changed_are_free_again_at_once() {
    let (mut board, slots) = board();
    board.reserve(&lease(1), &slots).expect("free");
    board.note_changing(&slots[1], &lease(1)).expect("reserved");
    let orders = board.give_back(&lease(1));
    assert_eq!(names(&board), ["free", "recycling"]);
    assert_eq!(board.state(&slots[0]), Some(&SlotState::Free { since: NOW }), "idle since before");
    assert_eq!(orders.iter().map(|order| &order.slot).collect::<Vec<_>>(), [&slots[1]]);
    assert_eq!(orders[0].after, Some(lease(1)));
    assert_eq!(board.give_back(&lease(1)), [], "a second time has no effect");
}

#[test]
fn a_slot_that_changes_again_must_be_proven_again() {
    let (mut board, slots) = board();
    board.reserve(&lease(1), &slots[..1]).expect("free");
    board.note_prepared(&slots[0], &lease(1)).expect("reserved");
    board.note_changing(&slots[0], &lease(1)).expect("reserved");
    assert_eq!(board.commit(&lease(1), &slots[..1]), Err(SlotRefusal::NotPrepared(slots[0].clone())));
}

#[test]
fn only_the_latest_attempt_makes_a_slot_free() {
    let (mut board, [forge, _]) = board();
    let first = board.recycle_again(&forge).expect("free");
    let second = board.recycle_again(&forge).expect("recycling");
    assert_eq!(board.note_recycled(&forge, first.turn, NOW), Err(SlotRefusal::OtherTurn(forge.clone())));
    assert_eq!(board.note_recycled(&forge, second.turn, NOW), Ok(()));
    assert_eq!(board.note_recycled(&forge, second.turn, NOW), Err(SlotRefusal::OtherTurn(forge.clone())));
    board.reserve(&lease(1), std::slice::from_ref(&forge)).expect("free");
    assert_eq!(board.note_recycled(&forge, second.turn, NOW), Err(SlotRefusal::OtherTurn(forge.clone())));
    assert_eq!(board.recycle_again(&forge), Err(SlotRefusal::NotFree { slot: forge, state: "reserved" }));
}

#[test]
fn only_slots_without_a_lease_are_removed() {
    let (mut board, [forge, shop]) = board();
    board.reserve(&lease(1), std::slice::from_ref(&shop)).expect("free");
    let taken = Err(SlotRefusal::NotFree { slot: shop.clone(), state: "reserved" });
    assert_eq!((board.retire(&shop), board.take_down(&shop)), (taken.clone(), taken));
    board.note_changing(&shop, &lease(1)).expect("reserved");
    let _ = board.give_back(&lease(1));
    assert_eq!(board.retire(&shop), Err(SlotRefusal::NotFree { slot: shop.clone(), state: "recycling" }));
    assert_eq!((board.take_down(&shop), board.retire(&forge)), (Ok(()), Ok(())));
    assert_eq!(board.retire(&forge), Err(SlotRefusal::UnknownSlot(forge)));
    assert_eq!(board.iter().count(), 0);
}

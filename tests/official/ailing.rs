//! Images that need more than the usual steps, and images that cannot be repaired.

use super::arena::OfficialArena;
use super::golden::assert_golden;

fn one_site(site: &str) -> OfficialArena {
    let arena = OfficialArena::other_ports("webarena");
    arena.set("ARENAD_SITES", site);
    arena
}

#[test]
fn a_shop_whose_search_finds_nothing_is_indexed_anew() {
    let arena = one_site("shopping");
    arena.ails("image:", "shopping", "unindexed");
    arena.world.edit("environment", "within: 2m", "within: 1s");
    arena.up().code(0);
    assert_golden("shopping-indexed.txt", &arena.neutral(&arena.record("shopping")));
    arena.world.run(&["down", "--purge", "--yes"]).code(0);
}

#[test]
fn a_shop_whose_search_never_finds_anything_is_never_ready() {
    let arena = one_site("shopping");
    arena.ails("image:", "shopping", "never_indexed");
    arena.world.edit("environment", "within: 2m", "within: 1s");
    arena.world.edit("environment", "timeout: 15m", "timeout: 12s");
    let ran = arena.up().code(1);
    ran.says("not ready").says("search finds products: the page does not contain \"product-item-link\"");
    let (status, _) = arena.get("SHOPPING", "/");
    assert_eq!(status, 503, "the gateway admits no client");
    arena.world.run(&["down", "--purge", "--yes"]).code(0);
}

#[test]
fn a_gitlab_that_was_committed_while_it_ran_is_cured() {
    let arena = one_site("gitlab");
    arena.ails("image:", "gitlab", "stale");
    arena.world.edit("environment", "within: 3m", "within: 1s");
    arena.up().code(0);
    assert_golden("gitlab-cured.txt", &arena.neutral(&arena.record("gitlab")));
    arena.world.run(&["down", "--purge", "--yes"]).code(0);
}

#[test]
fn data_that_is_not_there_is_named_before_anything_is_fetched() {
    let arena = one_site("wikipedia");
    std::fs::remove_dir_all(arena.data().join("wikipedia")).unwrap();
    let ran = arena.up().code(1);
    ran.says("data/wikipedia").says("hint: `arenad images pull");
    arena.world.run(&["down", "--purge", "--yes"]).code(0);
}

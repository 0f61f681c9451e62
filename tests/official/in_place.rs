//! The stores of the official sites: they are restored in running containers and compared, and the containers are
//! recreated if that is not enough.

use super::arena::OfficialArena;
use super::golden::assert_golden;

/// The strategy of the latest reset of a site.
fn way(arena: &OfficialArena, site: &str) -> String {
    arena.world.run(&["reset", site]).code(0);
    let status = arena.world.api("/v1/status").expect("the daemon answers");
    let sites = status["environments"][0]["sites"].as_array().expect("sites");
    let site = sites.iter().find(|known| known["name"] == site).expect("the site");
    site["last_reset"]["strategy"].as_str().unwrap_or_default().to_owned()
}

/// Asserts that a site equals its baseline, or the differences from it.
#[track_caller]
fn verify(arena: &OfficialArena, site: &str, differs: Option<&str>) {
    let ran = arena.world.run(&["verify", site]);
    match differs {
        Some(what) => drop(ran.code(1).prints(what)),
        None => drop(ran.code(0)),
    }
}

#[test]
fn what_an_agent_did_is_found_and_undone() {
    let arena = OfficialArena::other_ports("webarena");
    arena.set("ARENAD_SITES", "shopping,shopping_admin,reddit,gitlab");
    arena.set("ARENAD_GITLAB_STATE", "stores");
    arena.up().code(0);

    verify(&arena, "shopping", None);
    arena.post("SHOPPING", "/visit");
    verify(&arena, "shopping", None);
    arena.post("SHOPPING", "/order");
    verify(&arena, "shopping", Some("sales_order"));
    assert_eq!(way(&arena, "shopping"), "rewind");
    verify(&arena, "shopping", None);
    assert_golden("shopping-rewound.txt", &arena.neutral(&arena.record("shopping")));

    arena.post("SHOPPING_ADMIN", "/picture");
    verify(&arena, "shopping_admin", Some("catalog/product/picture"));
    assert_eq!(way(&arena, "shopping_admin"), "rewind");
    verify(&arena, "shopping_admin", None);

    arena.post("REDDIT", "/submit");
    verify(&arena, "reddit", Some("submissions"));
    assert_eq!(way(&arena, "reddit"), "rewind");
    verify(&arena, "reddit", None);
    assert_golden("reddit-rewound.txt", &arena.neutral(&arena.record("reddit")));

    arena.post("GITLAB", "/push");
    assert_eq!(arena.get("GITLAB", "/commit").0, 200);
    assert_eq!(way(&arena, "gitlab"), "rewind");
    assert_eq!(arena.get("GITLAB", "/commit").0, 404);
    assert_golden("gitlab-rewound.txt", &arena.neutral(&arena.record("gitlab")));

    // State outside the stores makes the reset recreate the containers.
    for (site, public) in [("shopping", "SHOPPING"), ("reddit", "REDDIT")] {
        arena.post(public, "/upload");
        assert_eq!(way(&arena, site), "recreate", "{site}");
        verify(&arena, site, None);
    }
    assert_eq!(arena.get("REDDIT", "/picture").0, 404);
    arena.world.run(&["events", "--json"]).code(0).prints("pub/media/custom_options/picture was uploaded");
    arena.world.run(&["down", "--purge", "--yes"]).code(0);
    arena.world.assert_down();
}

#[test]
fn whoever_wants_no_copies_gets_new_containers() {
    let arena = OfficialArena::other_ports("webarena");
    arena.set("ARENAD_SITES", "reddit");
    arena.set("ARENAD_STATE", "containers");
    arena.up().code(0);
    arena.post("REDDIT", "/submit");
    assert_eq!(way(&arena, "reddit"), "recreate");
    arena.world.run(&["down", "--purge", "--yes"]).code(0);
}

#[test]
fn advertisements_come_back_as_a_clone() {
    let arena = OfficialArena::other_ports("visualwebarena");
    arena.set("ARENAD_SITES", "classifieds");
    arena.up().code(0);
    verify(&arena, "classifieds", None);
    assert_eq!(way(&arena, "classifieds"), "recreate");
    verify(&arena, "classifieds", None);
    arena.world.run(&["down", "--purge", "--yes"]).code(0);
}

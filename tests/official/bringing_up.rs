//! The whole cycle of each environment: from its images to its pages, through a reset, and down.

use super::arena::{HOST, OfficialArena};
use super::golden::assert_golden;

/// The sites' states, as `arenad status` has them.
fn states(arena: &OfficialArena) -> Vec<(String, String, u64)> {
    let status = arena.world.api("/v1/status").expect("the daemon answers");
    let sites = status["environments"][0]["sites"].as_array().expect("sites");
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    sites.iter().map(|site| (text(&site["name"]), text(&site["state"]), site["generation"].as_u64().unwrap())).collect()
}

#[track_caller]
fn assert_all_ready(arena: &OfficialArena) {
    let states = states(arena);
    assert!(states.iter().all(|(_, state, _)| state == "ready"), "{states:?}");
}

#[track_caller]
fn assert_page(arena: &OfficialArena, site: &str, path: &str, text: &str) {
    let (status, answer) = arena.get(site, path);
    assert!(status == 200 && answer.contains(text), "{site}{path}: no {text:?} in\n{answer}");
}

fn down(arena: &OfficialArena) {
    arena.world.run(&["down", "--purge", "--yes"]).code(0);
    arena.world.assert_down();
}

#[test]
fn webarena_under_the_ports_that_everybody_knows() {
    let arena = OfficialArena::known_ports("webarena");
    arena.up().code(0);
    assert_all_ready(&arena);
    let services = [
        "shopping",
        "shopping_admin",
        "reddit",
        "gitlab",
        "wikipedia",
        "map",
        "map_web",
        "db",
        "map_tile",
        "map_search",
        "map_car",
        "map_bike",
        "map_foot",
    ];
    assert_golden("webarena.txt", &arena.neutral(&arena.records(&services)));

    assert_page(&arena, "SHOPPING", "/catalogsearch/result/?q=tea", "product-item-link");
    assert_page(&arena, "SHOPPING_ADMIN", "/admin", "login[username]");
    assert_page(&arena, "REDDIT", "/login", "_password");
    assert_page(&arena, "GITLAB", "/users/sign_in", "Username or email");
    assert_page(&arena, "MAP", "/tile/12/1205/1539.png", "IHDR");
    assert_page(&arena, "HOMEPAGE", "/", &format!("http://{HOST}:7780/admin"));
    assert_page(&arena, "HOMEPAGE", "/password.html", "byteblaze");
    let (_, home) = arena.get("HOMEPAGE", "/");
    assert!(!home.contains("Classifieds") && !home.contains('@'), "{home}");
    let (status, root) = arena.get("GITLAB", "/");
    assert!(status == 302 && root.contains(&format!("http://{HOST}:8023/users/sign_in")), "{root}");

    // The browser uses the map's own proxy for everything, whatever the public host name is.
    let website = arena.data().join("openstreetmap-website");
    let read = |file: &str| std::fs::read_to_string(website.join(file)).unwrap();
    assert_eq!(read("config/settings.yml"), "nominatim_url: \"http://map/nominatim/\"\nfossgis_osrm_url: \"/osrm\"\n");
    assert_eq!(read("app/assets/javascripts/osm.js.erb"), "OSM = {\n  NOMINATIM_URL: \"/nominatim/\",\n};\n");
    let routes = "\"car\": \"/routed-car\",\n\"bike\": \"/routed-bike\",\n\"foot\": \"/routed-foot\"\n";
    assert_eq!(read("app/assets/javascripts/index/directions/fossgis_osrm.js"), routes);
    assert_eq!(read("vendor/assets/leaflet/leaflet.osm.js"), "url: '/tile/{z}/{x}/{y}.png',\n");

    // A reset recreates the sites that clients write to, with the same configuration; read-only sites stay.
    let before = states(&arena);
    arena.world.run(&["reset", "--all"]).code(0);
    assert_all_ready(&arena);
    for ((site, _, before), (_, _, after)) in before.iter().zip(states(&arena)) {
        let is_kept = site == "map" || site == "wikipedia";
        assert_eq!(after, if is_kept { *before } else { before + 1 }, "{site}");
    }
    assert_page(&arena, "SHOPPING", "/", "One Stop Market");
    assert_page(&arena, "GITLAB", "/users/sign_in", "Username or email");
    down(&arena);
}

#[test]
fn webarena_under_other_ports_and_without_a_map() {
    let arena = OfficialArena::other_ports("webarena");
    arena.set("ARENAD_SITES", "shopping, shopping_admin,reddit,gitlab");
    arena.set("ARENAD_GITLAB_SIZE", "small");
    arena.up().code(0);
    assert_eq!(states(&arena).len(), 4);
    assert_all_ready(&arena);
    let services = ["shopping", "shopping_admin", "reddit", "gitlab"];
    assert_golden("webarena-other-ports.txt", &arena.neutral(&arena.records(&services)));
    assert_page(&arena, "SHOPPING", "/", "One Stop Market");
    // GitLab's web server listens on the port of its external URL inside the container, too.
    let (status, root) = arena.get("GITLAB", "/");
    assert!(status == 302 && root.contains(&format!("http://{HOST}:{}/users/", arena.port("GITLAB"))), "{root}");
    down(&arena);
}

#[test]
fn webarena_verified_under_other_ports() {
    let arena = OfficialArena::other_ports("webarena-verified");
    arena.up().code(0);
    assert_all_ready(&arena);
    let services = ["shopping", "shopping_admin", "reddit", "gitlab", "wikipedia", "map"];
    assert_golden("webarena-verified-other-ports.txt", &arena.neutral(&arena.records(&services)));
    assert_page(&arena, "SHOPPING_ADMIN", "/admin", "login[username]");
    assert_page(&arena, "WIKIPEDIA", "/wikipedia_en_all_maxi_2022-05/A/User:The_other_Kiwix_guy/Landing", "Wikipedia");
    down(&arena);
}

#[test]
fn visualwebarena_under_the_ports_that_everybody_knows() {
    let arena = OfficialArena::known_ports("visualwebarena");
    arena.up().code(0);
    assert_all_ready(&arena);
    let services = ["classifieds", "db", "shopping", "reddit", "wikipedia"];
    assert_golden("visualwebarena.txt", &arena.neutral(&arena.records(&services)));
    assert_page(&arena, "CLASSIFIEDS", "/index.php?page=search&sPattern=bike", "page=item");
    assert_page(&arena, "HOMEPAGE", "/", &format!("http://{HOST}:9980"));
    let (status, _) = arena.get("HOMEPAGE", "/static/input_images/task.png");
    assert_eq!(status, 200, "the tasks' pictures are served");
    down(&arena);
}

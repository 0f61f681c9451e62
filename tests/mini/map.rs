//! The map in a browser: a search for a place, its page, and a route. None of these actions writes any state.

use std::process::Command;

use super::second_build::assert_same_dump;
use crate::arena::Arena;
use crate::arena::shared::SharedArena;
use crate::browser::{BrowserTab, HeadlessBrowser};

/// The number of lines that a dump of the databases exceeds.
const DUMP_LINES: usize = 20_000;

#[tokio::test]
async fn a_traveller_finds_a_museum_and_the_way_there() {
    let arena = SharedArena::with(&["map"]);
    let before = dump(&arena);
    let browser = HeadlessBrowser::start().await;
    let page = browser.page(&arena.url("map")).await;
    search(&page).await;
    let by_car = travel(&page, "fossgis_osrm_car", 1).await;
    let on_foot = travel(&page, "fossgis_osrm_foot", 2).await;
    assert_ne!(by_car, on_foot, "walking takes its time");
    let post = "(() => { const post = new XMLHttpRequest(); post.open('POST', '/search', false); post.send('a=b'); return post.status; })()";
    let refused: u16 = page.eval(post).await;
    assert_eq!(refused, 405, "the map is read only");
    // Pending tiles would be rendered during the reset.
    drop(page);
    drop(browser);

    assert_eq!(dump(&arena), before, "no state was written");
    assert_eq!(arena.reset("map"), "keep", "what was only read is left as it is");
    let graffiti =
        "psql -h /tmp -U map -d gis -c \"UPDATE points SET name = 'graffiti' WHERE name LIKE '%Shipbuilding%'\"";
    let written = arena.exec_in("map", "map-db", &["sh", "-c", graffiti]);
    assert!(written.starts_with("UPDATE ") && written.trim() != "UPDATE 0", "{written}");
    // A deep round of probes that comes first finds the difference and resets the site without being asked.
    let way = arena.reset("map");
    assert!(["rewind", "keep"].contains(&way.as_str()), "{way}");
    assert_eq!(dump(&arena), before, "the baseline is back");
}

async fn search(page: &BrowserTab) {
    // The map is drawn last: once it is visible, the page reacts to its form.
    let drawn = "[...document.querySelectorAll('.leaflet-tile')].some((tile) => tile.complete && tile.naturalWidth)";
    page.wait_until("drawn tiles", drawn).await;
    page.fill("#query", "museums in Port Elsing").await;
    page.click(".search_form button").await;
    page.wait_for_text("Port Elsing Museum of Shipbuilding").await;
    page.click(".search_results_entry a").await;
    page.wait_for_text("tourism").await;
    let text: String = page.eval("document.querySelector('[id=\"sidebar_content\"]').outerText").await;
    assert!(text.contains("Port Elsing Museum of") && text.contains("opening_hours"), "the museum's page: {text}");
}

/// Requests the route between two museums; returns the page's text about distance and time.
async fn travel(page: &BrowserTab, engine: &str, index: u32) -> String {
    let origin: String = page.eval("location.origin").await;
    page.open(&format!("{origin}/directions")).await;
    page.choose("select.routing_engines", engine).await;
    page.fill("[name=route_from]", "Harrowgate Mills Museum of Weaving").await;
    page.fill("[name=route_to]", "Port Elsing Museum of Shipbuilding").await;
    page.click(".directions_form button").await;
    page.wait_for_text("Reach destination").await;
    // The values that WebArena's own evaluators read.
    let chosen: u32 = page.eval("document.querySelector('div#content select.routing_engines').selectedIndex").await;
    let from: String = page.eval("document.querySelector('[name=\"route_from\"]').value").await;
    assert_eq!(chosen, index);
    assert!(
        from.contains("Museum of Weaving, 21, Harbour Road, Harrowgate Mills"),
        "the place has its full name: {from}"
    );
    assert!(page.url().await.contains("route=47."), "the address keeps the route");
    page.eval("document.querySelector('#routing_summary').textContent").await
}

/// The image contains one build of the databases; the test makes a second build with the stage that made it, and
/// compares them.
#[test]
fn two_builds_from_nothing_give_the_same_map() {
    let arena = SharedArena::with(&["map"]);
    let config = arena.json(&["config", "mini", "--json"]);
    let base =
        config["compose"]["services"]["map"]["build"]["args"]["BASE_IMAGE"].as_str().expect("a base image").to_owned();
    let context = concat!(env!("CARGO_MANIFEST_DIR"), "/compose/mini/map");
    let stage = run(&[
        "build",
        "-q",
        "--target",
        "data",
        "--build-arg",
        &format!("BASE_IMAGE={base}"),
        "--build-arg",
        "MAP_PBF=",
        context,
    ]);
    let script = "set -e; /build/import/extract.sh '' /tmp/county.osm.pbf >&2; cmp /tmp/county.osm.pbf /srv/map/extract.osm.pbf >&2; \
                  /build/import/build-db.sh /tmp/county.osm.pbf >&2; PATH=/usr/lib/postgresql/15/bin:$PATH /srv/map-db/dump";
    let second = run(&["run", "--rm", "--network", "none", stage.trim(), "sh", "-c", script]);
    assert_same_dump(&dump(&arena), &second, DUMP_LINES);
}

fn dump(arena: &Arena) -> String {
    let dump = arena.exec_in("map", "map-db", &["/srv/map-db/dump"]);
    assert!(dump.lines().count() > DUMP_LINES, "a real dump");
    dump
}

fn run(arguments: &[&str]) -> String {
    let output = Command::new("docker").args(arguments).output().expect("docker runs");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

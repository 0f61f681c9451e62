//! Forks of an episode on two sites: the time until all children are granted, the room that each takes, and the time to
//! list what the parent has changed.

use std::time::Instant;

use crate::arena::Arena;
use crate::client::{EpisodeApi, EpisodeVisitor};
use crate::figures::quantile;
use crate::parallel::disk_used;

/// The sites of the parent.
const TWO: [&str; 2] = ["shopping", "reddit"];
/// The number of children.
pub const CHILDREN: usize = 8;
/// The number of requests of the parent before it is forked.
const REQUESTS: usize = 20;
/// The limit of the time for all children in milliseconds, and of the list of changes.
const LIMITS: (f64, f64) = (5000.0, 1000.0);
/// The limit of the room of a child, as a share of that of its sites' stores.
const ROOM_LIMIT: f64 = 0.02;

/// Forks an episode some times, and prints the table. Each site needs a slot for the parent and for each child.
pub async fn measure(arena: &Arena, api: &EpisodeApi, rounds: usize) {
    let stores: f64 = TWO.into_iter().map(|site| baseline_size(arena, site)).sum();
    let (mut times, mut rooms, mut lists) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        api.await_rest(&TWO).await;
        let parent = api.start(&TWO, 600).await;
        EpisodeVisitor::of(&parent).visit(REQUESTS).await;
        lists.push(api.changes(&parent.id).await);
        let (disk, begun) = (disk_used(arena), Instant::now());
        let children = api.fork(&parent.id, CHILDREN).await;
        times.push(begun.elapsed().as_secs_f64() * 1e3);
        rooms.push((disk_used(arena) - disk) / CHILDREN as f64 / stores);
        for id in children.iter().chain([&parent.id]) {
            api.end(id).await;
        }
    }
    println!("\n{CHILDREN} children of an episode on two sites, {rounds} rounds; their stores have {stores:.0} MB\n");
    println!("{:44} {:>8} {:>8} {:>8}", "", "median", "worst", "limit");
    let worst = |values: &[f64]| (quantile(values, 0.5), quantile(values, 1.0));
    let ((p50, longest), (list, slowest), (room, most)) = (worst(&times), worst(&lists), worst(&rooms));
    println!("{:44} {p50:>5.0} ms {longest:>5.0} ms {:>5.0} ms", "until all are granted", LIMITS.0);
    println!("{:44} {list:>5.0} ms {slowest:>5.0} ms {:>5.0} ms", "list of what the parent has changed", LIMITS.1);
    let percent = |share: f64| share * 100.0;
    println!(
        "{:44} {:>6.2} % {:>6.2} % {:>6.2} %",
        "disk of a child, of its stores",
        percent(room),
        percent(most),
        percent(ROOM_LIMIT)
    );
}

/// The size of the stores of a site's baseline, in megabytes.
fn baseline_size(arena: &Arena, site: &str) -> f64 {
    let rows = arena.json(&["snapshot", "ls", "--json"]);
    let of_site =
        rows["snapshots"].as_array().into_iter().flatten().find(|row| row["site"] == site).cloned().unwrap_or_default();
    let id = of_site["id"].as_str().expect("a baseline");
    let trees = arena.state_dir().join("stores/snapshots").join(id);
    let output = std::process::Command::new("du").args(["-s", "-B1"]).arg(&trees).output().expect("du runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_whitespace().next().and_then(|bytes| bytes.parse::<f64>().ok()).expect("a size") / 1e6
}

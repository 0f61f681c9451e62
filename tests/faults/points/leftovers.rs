//! Finds objects of a site that it does not need: in the engine, in the state root, and among the mounts.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::support::World;
use crate::support::world::list;

/// Names every object that belongs neither to the serving containers, nor to a standby, nor to a snapshot, and every
/// object that one of these lacks.
pub fn left_over(world: &World) -> Vec<String> {
    let Some(site) = world.site() else { return vec!["no daemon answers".to_owned()] };
    let snapshots = world.api("/v1/snapshots").unwrap_or_default();
    let snapshots = snapshots["snapshots"].as_array().cloned().unwrap_or_default();
    let mut odd = containers_and_networks(world, &site);
    odd.extend(world.engine.volumes(&world.label()).into_iter().map(|name| format!("volume {name}")));
    let stores = world.state_dir().join("stores");
    let folder = |path: &str| names(&stores.join(path));
    let named: BTreeSet<String> = snapshots.iter().filter_map(|snapshot| text(&snapshot["id"])).collect();
    odd.extend(differing("state of snapshots", &folder("snapshots"), &named));
    let images = snapshots.iter().flat_map(|snapshot| snapshot["images"].as_object().cloned().unwrap_or_default());
    let images: BTreeSet<String> = images.filter_map(|(_, id)| text(&id)).collect();
    odd.extend(differing("images", &world.engine.images(&world.label()).into_iter().collect(), &images));
    // One tree for the serving containers, and one for each standby.
    let instance = format!("instances/{}.toy.1", world.name);
    let trees = folder(&instance).len();
    let wanted = 1 + members(&site).len();
    if trees != wanted {
        odd.push(format!("{trees} trees in {instance} instead of {wanted}"));
    }
    odd.extend(world.archives().into_iter().map(|name| format!("archive {name}")));
    odd
}

fn containers_and_networks(world: &World, site: &Value) -> Vec<String> {
    let generations: BTreeSet<String> = members(site).iter().map(|member| member["generation"].to_string()).collect();
    let serving: BTreeSet<String> = list(&site["containers"], "id").into_iter().collect();
    let label = format!("label={}", world.label());
    let format = "{{.ID}} {{.Label \"dev.arenad.generation\"}}";
    let found = world.engine.docker(&["ps", "--all", "--no-trunc", "--filter", &label, "--format", format]);
    let mut odd = Vec::new();
    let mut wanted = 0;
    for (id, generation) in found.lines().filter_map(|line| line.split_once(' ')) {
        if serving.contains(id) || generations.contains(generation) {
            wanted += 1;
        } else {
            odd.push(format!("container {id} of generation {generation}"));
        }
    }
    if wanted != serving.len() + generations.len() {
        odd.push(format!("{wanted} containers instead of {}", serving.len() + generations.len()));
    }
    let networks = world.engine.networks(&world.label());
    if networks.len() != wanted {
        odd.push(format!("networks {networks:?} of {wanted} containers"));
    }
    odd
}

/// Returns the entries in the state root of a site that is down, except snapshots.
pub fn left_in_state_root(world: &World) -> Vec<String> {
    let stores = world.state_dir().join("stores");
    let folders = ["instances", "partial"].into_iter();
    folders
        .flat_map(|folder| names(&stores.join(folder)).into_iter().map(move |name| format!("{folder}/{name}")))
        .collect()
}

/// Returns the mounts below a folder that a mount table lists, without the folder itself.
pub fn mounts_below(table: &str, folder: &Path) -> Vec<String> {
    let points = table.lines().filter_map(|line| line.split(' ').nth(4));
    let below = points.filter(|point| Path::new(point).strip_prefix(folder).is_ok_and(|rest| rest != Path::new("")));
    below.map(str::to_owned).collect()
}

fn members(site: &Value) -> Vec<Value> {
    site["standbys"]["members"].as_array().cloned().unwrap_or_default()
}

fn differing(what: &str, found: &BTreeSet<String>, wanted: &BTreeSet<String>) -> Vec<String> {
    let more = found.difference(wanted).map(|name| format!("{what}: {name} is left over"));
    more.chain(wanted.difference(found).map(|name| format!("{what}: {name} is missing"))).collect()
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// Returns the names in a folder; none if it does not exist.
fn names(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

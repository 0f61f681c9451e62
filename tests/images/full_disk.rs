//! An engine whose disk is too small: loading is refused in advance, and the error is clear if the disk fills during
//! the load.

use super::project::ImageProject;
use crate::support::OwnEngine;

/// More than half of the engine's 1.2 GB; loading temporarily needs twice this size.
const CONTENT: u64 = 700 << 20;

#[test]
fn too_little_room_is_said_before_and_a_full_disk_is_no_success() {
    let engine = OwnEngine::start();
    let project = ImageProject::on(&engine, "full", "");
    project.save("shop.tar", 21, CONTENT);
    let from = project.path("shop.tar");
    let from = from.to_str().unwrap();
    let refused = project.images("load", &["--from", from]).code(1);
    let refused = refused.says(&format!("load {}: 2.0 GB are needed below", project.image)).says("are free");
    refused.says("`--ignore-space` tries it all the same");
    project.assert_absent();
    let tried = project.images("load", &["--from", from, "--ignore-space"]).code(1);
    tried.says("no space left on device");
    project.assert_absent();
    // No part of the image stays behind, and a smaller image is loaded.
    let small = project.save("small.tar", 22, 50 << 20);
    let place = project.world.state_dir().join("archives/shop.tar.json");
    std::fs::remove_file(place).unwrap();
    let small_path = project.path("small.tar");
    project.images("load", &["--from", small_path.to_str().unwrap()]).code(0);
    project.assert_present(&small);
}

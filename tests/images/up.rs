//! `arenad up` of a site whose image or data has not been fetched reports the command to run and pulls no image of that
//! name.

use std::fs;

use super::project::ImageProject;

#[test]
fn up_says_what_has_to_be_fetched_first() {
    let project = ImageProject::new("up", "");
    let (name, image) = (&project.world.name, &project.image);
    let refused = project.world.run(&["up", name]).code(1);
    let refused = refused.says(&format!("find image {image}: it is loaded from the archive shop.tar, not pulled"));
    refused.says(&format!("`arenad images pull {name} toy` fetches it"));
    project.save("shop.tar", 51, 1000);
    project.images("load", &["--from", project.path("shop.tar").to_str().unwrap()]).code(0);
    let text = fs::read_to_string(project.world.file("compose")).unwrap();
    fs::write(project.world.file("compose"), format!("{text}    volumes: [ \"./wiki:/data:ro\" ]\n")).unwrap();
    project.declare("", "data:\n  articles: { file: articles.zim, target: ./wiki }\n");
    let refused =
        project.world.run(&["up", name]).code(1).says("find the data ").says("/compose/wiki, which toy mounts");
    refused.says("arenad images load");
    assert_eq!(project.item("articles")["sites"][0], "toy");
    project.world.run(&["down"]).code(0);
}

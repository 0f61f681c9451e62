//! The OpenAPI document against the router of a running daemon.

use std::collections::BTreeSet;

use reqwest::{Client, Method};
use serde_json::Value;

use crate::support::World;

/// Returns the methods that the router has for a path, from its answer to a method that no path has.
async fn routed(client: &Client, path: &str) -> BTreeSet<String> {
    let answer = client.request(Method::PATCH, format!("http://arenad{path}")).send().await.unwrap();
    assert_eq!(answer.status(), 405, "{path} is not routed");
    let allowed = answer.headers()["allow"].to_str().unwrap();
    // A path with GET has HEAD as well.
    allowed.split(',').map(|word| word.trim().to_ascii_lowercase()).filter(|word| word != "head").collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_document_has_the_paths_and_methods_of_the_router() {
    let world = World::single("openapi");
    world.up();
    let document = world.api("/v1/openapi.json").unwrap();
    assert_eq!(document["openapi"], "3.1.0");
    let printed: Value = serde_json::from_str(&world.run(&["schema", "openapi"]).code(0).out).unwrap();
    assert_eq!(document, printed, "the daemon and the command line have one document");

    let client = Client::builder().no_proxy().unix_socket(world.state_dir().join("arenad.sock")).build().unwrap();
    for (path, methods) in document["paths"].as_object().unwrap() {
        let documented: BTreeSet<String> = methods.as_object().unwrap().keys().cloned().collect();
        assert_eq!(routed(&client, path).await, documented, "{path}");
    }
    world.run(&["down"]).code(0);
    world.assert_down();
}

//! The whole content of a page: its nodes with their bounds, and an archive.

use super::{SITE, Stage};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_is_archived_with_its_nodes_and_the_wanted_element() {
    let stage = Stage::new().await;
    let browser = stage.open("fields").await;
    let snapshot = browser.snapshot(Some("form > input")).await.expect("a snapshot");
    assert_eq!((snapshot.url, snapshot.title.as_str()), (format!("{SITE}fields"), "Fields"));
    let archive = snapshot.mhtml.expect("an archive");
    assert!(archive.contains(&format!("Snapshot-Content-Location: {SITE}fields")), "{archive}");
    let nodes = &snapshot.dom["documents"][0]["nodes"];
    let known = nodes["backendNodeId"].as_array().expect("nodes");
    let at = known.iter().position(|id| id.as_i64() == snapshot.element).expect("the element is one of the nodes");
    let name = nodes["nodeName"][at].as_u64().and_then(|name| usize::try_from(name).ok()).expect("a name");
    assert_eq!(snapshot.dom["strings"][name], "INPUT");
    assert!(snapshot.dom["documents"][0]["layout"]["bounds"].as_array().is_some_and(|bounds| !bounds.is_empty()));
    // Browsers with a window ask for the icon.
    let resources: Vec<&str> = snapshot.resources.iter().map(|resource| resource.url.as_str()).collect();
    assert!(resources.iter().all(|url| url.ends_with("/favicon.ico")), "the page loads nothing else: {resources:?}");
    for missing in [None, Some("#none"), Some("[[")] {
        assert_eq!(browser.snapshot(missing).await.expect("a snapshot").element, None, "{missing:?}");
    }
    stage.close().await;
}

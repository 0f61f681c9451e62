//! The whole content of a page, for dumps of recorded tasks: its nodes, and an archive of its resources.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::{Value as Json, json};

use crate::error::BrowserFault;
use crate::observe;
use crate::tab::Tab;
use arenad_api::browser::{PageResource, PageSnapshot};

/// The most bytes of resources with which a page is archived. The browser answers with all of them in one message, in
/// base64 for the greater part (`arenad_chromium::MESSAGE_MAX`).
const RESOURCES_MAX: f64 = 16.0 * 1024.0 * 1024.0;

/// Returns the address, the title, and the number of bytes of the resources, as far as the page may know it.
const DESCRIBED: &str = "[location.href, document.title, performance.getEntriesByType('resource')
    .reduce((sum, resource) => sum + (resource.decodedBodySize || 0), 0)]";

/// Takes a snapshot of a page.
///
/// Errors: also `TooLarge`, as for observations.
pub(crate) async fn snapshot(tab: &Tab) -> Result<PageSnapshot, BrowserFault> {
    observe::fingerprint(tab).await?;
    let described = tab.evaluate(DESCRIBED).await?;
    let described_as = |at: usize| described[at].as_str().unwrap_or_default().to_owned();
    let wanted = json!({ "computedStyles": [], "includeDOMRects": true, "includePaintOrder": false });
    let dom = tab.call("DOMSnapshot.captureSnapshot", wanted).await?;
    let mhtml = match described[2].as_f64().is_some_and(|bytes| bytes <= RESOURCES_MAX) {
        true => {
            let archived = tab.call("Page.captureSnapshot", json!({ "format": "mhtml" })).await?;
            archived["data"].as_str().map(str::to_owned)
        }
        false => None,
    };
    Ok(PageSnapshot {
        url: described_as(0),
        title: described_as(1),
        mhtml,
        dom,
        element: None,
        resources: resources(tab).await?,
    })
}

/// The part of the answer to `Page.getResourceTree` that is read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameTree {
    frame: Frame,
    #[serde(default)]
    child_frames: Vec<FrameTree>,
    #[serde(default)]
    resources: Vec<FrameResource>,
}

#[derive(Deserialize)]
struct Frame {
    id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameResource {
    url: String,
    #[serde(rename = "type")]
    kind: String,
    /// Absent while the browser does not know it.
    #[serde(default)]
    content_size: f64,
}

/// Returns the files that the frames of a page have loaded, each once.
async fn resources(tab: &Tab) -> Result<Vec<PageResource>, BrowserFault> {
    const KINDS: [&str; 4] = ["Font", "Image", "Script", "Stylesheet"];
    let mut answer = tab.call("Page.getResourceTree", json!({})).await?;
    let mut open: Vec<FrameTree> = vec![observe::read(answer["frameTree"].take())?];
    let (mut found, mut known, mut bytes) = (Vec::new(), HashSet::new(), 0.0);
    while let Some(FrameTree { frame, child_frames, resources }) = open.pop() {
        open.extend(child_frames);
        for FrameResource { url, kind, content_size } in resources {
            let is_file = url.starts_with("http") && KINDS.contains(&kind.as_str());
            // A file is one message, and a message that is too long ends the connection.
            if !is_file || bytes + content_size > RESOURCES_MAX || !known.insert(url.clone()) {
                continue;
            }
            if let Some((content, is_base64)) = content(tab, &frame.id, &url).await? {
                #[expect(clippy::cast_precision_loss, reason = "a message has fewer than 2^52 bytes")]
                let size = content.len() as f64;
                bytes += size;
                found.push(PageResource { url, content, is_base64 });
            }
        }
    }
    // Browsers with a window ask for the icon of the page, and this one does not.
    let icons: Vec<String> = observe::read(tab.evaluate(ICONS).await?)?;
    for url in icons.into_iter().filter(|url| url.starts_with("http") && !known.contains(url)) {
        if let Some((content, is_base64)) = fetched(tab, &tab.target, &url).await? {
            found.push(PageResource { url, content, is_base64 });
        }
    }
    Ok(found)
}

/// Returns the addresses of the icons of a page.
const ICONS: &str = "(() => {
    const named = [...document.querySelectorAll('link[rel~=icon]')].map(link => link.href);
    return named.length || !location.host ? named : [new URL('/favicon.ico', location.href).href];
})()";

fn text(content: Json, is_base64: bool) -> Option<(String, bool)> {
    match content {
        Json::String(content) => Some((content, is_base64)),
        _ => None,
    }
}

/// Reads a file from the browser's cache: a function of the page's isolated world.
const FETCH: &str = "async url => {
    const answer = await fetch(url, { cache: 'force-cache' });
    if (!answer.ok) return null;
    const bytes = new Uint8Array(await answer.arrayBuffer());
    if (bytes.length > 16 * 1024 * 1024) return null;
    let text = '';
    for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
    return btoa(text);
}";

/// Returns the content of a file that a frame has loaded, and whether it is base64. `None` if it is not there any more.
async fn content(tab: &Tab, frame: &str, url: &str) -> Result<Option<(String, bool)>, BrowserFault> {
    match tab.call("Page.getResourceContent", json!({ "frameId": frame, "url": url })).await {
        Ok(mut content) => return Ok(text(content["content"].take(), content["base64Encoded"] == true)),
        // The browser drops the content of fonts when it has read them.
        Err(BrowserFault::Refused(_)) => {}
        Err(fault) => return Err(fault),
    }
    fetched(tab, frame, url).await
}

/// Returns the content of a file in base64, which a frame fetches. `None` if that fails.
async fn fetched(tab: &Tab, frame: &str, url: &str) -> Result<Option<(String, bool)>, BrowserFault> {
    let evaluated = async {
        let wanted = json!({
            "expression": format!("({FETCH})({})", json!(url)), "contextId": tab.world_of(frame).await?,
            "returnByValue": true, "awaitPromise": true,
        });
        tab.call("Runtime.evaluate", wanted).await
    };
    match evaluated.await {
        Ok(mut answer) => Ok(text(answer["result"]["value"].take(), true)),
        // The frame is gone.
        Err(BrowserFault::Refused(_)) => Ok(None),
        Err(fault) => Err(fault),
    }
}

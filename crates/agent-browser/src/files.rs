//! Files that an agent can upload: those that its browser was opened with, and no others.
//!
//! The browser is given the bytes, and never a path, so no action reads a file of the host.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::error::{ActionError, StepError};
use crate::input;
use crate::tab::Tab;

/// The most files of a browser.
const FILES_MAX: usize = 32;

/// The most bytes of all files of a browser. They are in the daemon's memory while the browser is open.
const BYTES_MAX: usize = 8 << 20;

/// The most bytes of a name.
const NAME_MAX: usize = 255;

/// Time within which a page opens a file chooser after the click. Pages that load the code of an upload first take longer
/// than the click itself.
const CHOOSER_LIMIT: Duration = Duration::from_secs(2);

/// The files that an agent can upload, by name.
#[derive(Clone, Default)]
pub struct UploadFiles(Arc<BTreeMap<String, Vec<u8>>>);

/// The files cannot be given to a browser.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadFiles {
    /// The name is not one that a file can have.
    #[error(
        "invalid name of a file {0:?}: names have 1 to {NAME_MAX} bytes, and neither slashes nor control characters"
    )]
    Name(String),
    /// There are more files than a browser has.
    #[error("a browser has at most {FILES_MAX} files, and these are {0}")]
    Number(usize),
    /// The files are larger than those of a browser.
    #[error("the files of a browser have at most {BYTES_MAX} bytes, and these have {0}")]
    Size(usize),
}

impl UploadFiles {
    /// Checks the names and sizes of files.
    pub fn new(files: BTreeMap<String, Vec<u8>>) -> Result<Self, BadFiles> {
        if files.len() > FILES_MAX {
            return Err(BadFiles::Number(files.len()));
        }
        let size = files.values().map(Vec::len).sum();
        if size > BYTES_MAX {
            return Err(BadFiles::Size(size));
        }
        let is_bad = |name: &String| {
            let is_outside = |c: char| matches!(c, '/' | '\\') || c.is_control();
            name.is_empty() || name.len() > NAME_MAX || name == "." || name == ".." || name.contains(is_outside)
        };
        match files.keys().find(|name| is_bad(name)) {
            Some(name) => Err(BadFiles::Name(name.clone())),
            None => Ok(Self(Arc::new(files))),
        }
    }

    /// Returns the content of a file.
    ///
    /// Errors: the words of Playwright for a path without a file.
    pub(crate) fn get(&self, name: &str) -> Result<&[u8], ActionError> {
        self.0.get(name).map(Vec::as_slice).ok_or_else(|| ActionError::NoFile(name.to_owned()))
    }
}

/// Puts a file into the field whose chooser the page opens when it is clicked on at a point.
///
/// Source: `execute_upload` of VisualWebArena and `upload_file` of BrowserGym, which wait for the chooser as well. So the
/// element may be a field, its label, or a button whose field is hidden.
pub(crate) async fn upload(tab: &Tab, point: (f64, f64), name: &str, content: &[u8]) -> Result<(), StepError> {
    let intercepted = |enabled: bool| tab.call("Page.setInterceptFileChooserDialog", json!({ "enabled": enabled }));
    let before = tab.choosers();
    intercepted(true).await?;
    let chosen = choose(tab, point, before, name, content).await;
    intercepted(false).await?;
    chosen
}

async fn choose(tab: &Tab, point: (f64, f64), before: u64, name: &str, content: &[u8]) -> Result<(), StepError> {
    input::click(tab, point).await?;
    let Some(chooser) = tab.chooser_after(before, CHOOSER_LIMIT).await? else {
        let waited = CHOOSER_LIMIT.as_millis();
        let words = format!("Timeout {waited}ms exceeded while waiting for event \"filechooser\"");
        return Err(ActionError::Failed(words).into());
    };
    let world = tab.world_of(&chooser.frame).await?;
    let wanted = json!({ "backendNodeId": chooser.node, "executionContextId": world });
    let field = tab.call("DOM.resolveNode", wanted).await?;
    let (kind, data) = (media_type(name), STANDARD.encode(content));
    let wanted = json!({
        "functionDeclaration": SET_FILE, "objectId": field["object"]["objectId"],
        "arguments": [{ "value": name }, { "value": kind }, { "value": data }], "returnByValue": true, "userGesture": true,
    });
    let answer = tab.call("Runtime.callFunctionOn", wanted).await?;
    match answer["result"]["value"].as_u64() {
        Some(1) => Ok(()),
        _ => Err(ActionError::Failed("Error: the field does not take the file".to_owned()).into()),
    }
}

/// Puts a file into its field, as Playwright does with the content of a file, and returns the number of files in it.
const SET_FILE: &str = "function (name, type, data) {
    const bytes = Uint8Array.from(atob(data), character => character.charCodeAt(0));
    const chosen = new DataTransfer();
    chosen.items.add(new File([bytes], name, { type }));
    this.files = chosen.files;
    const number = this.files.length;
    this.dispatchEvent(new Event('input', { bubbles: true, composed: true }));
    this.dispatchEvent(new Event('change', { bubbles: true }));
    return number;
}";

/// Returns the media type that a browser gives to a file of this name; empty if its ending is not a common one.
fn media_type(name: &str) -> &'static str {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
    match ending.as_str() {
        "bmp" => "image/bmp",
        "csv" => "text/csv",
        "doc" => "application/msword",
        "docx" => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "gif" => "image/gif",
        "gz" => "application/gzip",
        "htm" | "html" => "text/html",
        "jpeg" | "jpg" => "image/jpeg",
        "json" => "application/json",
        "md" => "text/markdown",
        "mp3" => "audio/mpeg",
        "mp4" => "video/mp4",
        "pdf" => "application/pdf",
        "png" => "image/png",
        "svg" => "image/svg+xml",
        "txt" => "text/plain",
        "webp" => "image/webp",
        "xls" => "application/vnd.ms-excel",
        "xlsx" => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "xml" => "text/xml",
        "zip" => "application/zip",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(names: &[&str]) -> Result<UploadFiles, BadFiles> {
        UploadFiles::new(names.iter().map(|name| ((*name).to_owned(), vec![1])).collect())
    }

    #[test]
    fn files_have_names_without_folders_and_bounded_sizes() {
        let known = files(&["photo.jpg", "Größe [1].txt", ".hidden"]).expect("files");
        assert_eq!(known.get("photo.jpg"), Ok(&[1][..]));
        let missing = known.get("/etc/passwd").map_err(|error| error.to_string());
        assert_eq!(missing, Err("ENOENT: no such file or directory, stat '/etc/passwd'".to_owned()));
        for name in ["", ".", "..", "a/b", "a\\b", "a\nb", &"x".repeat(256)] {
            assert_eq!(files(&[name]).err(), Some(BadFiles::Name(name.to_owned())), "{name}");
        }
        let many: Vec<String> = (0..33).map(|number| number.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(files(&many).err(), Some(BadFiles::Number(33)));
        let large = BTreeMap::from([("a".to_owned(), vec![0; BYTES_MAX]), ("b".to_owned(), vec![0])]);
        assert_eq!(UploadFiles::new(large).err(), Some(BadFiles::Size(BYTES_MAX + 1)));
    }

    #[test]
    fn media_types_follow_the_ending_of_the_name() {
        assert_eq!(media_type("photo.JPG"), "image/jpeg");
        assert_eq!(media_type("archive.tar.gz"), "application/gzip");
        assert_eq!((media_type("noending"), media_type("a.unknown")), ("", ""));
    }
}

//! `render_<id>.html`, which the `run.py` of WebArena and VisualWebArena writes while an agent works.
//!
//! Source: `browser_env/helper_functions.py`, class `RenderHelper`, and `action2str` of `browser_env/actions.py`. Text
//! is not escaped in these files, so this module splits them at the markers that the code writes, and does not parse
//! them as HTML.

use std::path::Path;

use super::{Left, ResultError, form, text, unfinished};

/// Text that precedes the address of each page.
const PAGE: &str = "<h3 class='url'><a href=";

/// Texts around each action in its parsed form.
const ACTION: [&str; 3] = ["<div class='parsed_action'", "<pre>", "</pre></div></div>"];

/// Returns the number of the task in a file name.
pub(super) fn id(name: &str) -> Option<&str> {
    let id = name.strip_prefix("render_")?.strip_suffix(".html")?;
    super::is_number(id).then_some(id)
}

pub(super) fn read(path: &Path) -> Result<Left, ResultError> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let id = id(&name).ok_or_else(|| form(path, "a file render_NUMBER.html", "its name has no number"))?;
    let html = text(path)?;
    let Some(at) = html.rfind(PAGE) else {
        return Err(unfinished(path, "the run ended before the agent saw a page"));
    };
    let url = html[at + PAGE.len()..].split('>').next().unwrap_or_default().to_owned();
    let action = action(&html[at..]).ok_or_else(|| {
        form(path, "a rendering of a run", "its last page has no parsed action; other action sets are not understood")
    })?;
    let answer =
        stopped(action).ok_or_else(|| unfinished(path, "the last action is not `stop`, so the run was cut off"))?;
    Ok(Left { id: id.to_owned(), answer: answer.to_owned(), url, ..Left::default() })
}

/// Returns the last action of a page.
fn action(page: &str) -> Option<&str> {
    let [begin, open, close] = ACTION;
    let after = &page[page.rfind(begin)?..];
    let text = &after[after.find(open)? + open.len()..];
    Some(&text[..text.rfind(close)?])
}

/// Returns the answer in `stop [ANSWER]`.
fn stopped(action: &str) -> Option<&str> {
    action.strip_prefix("stop [")?.strip_suffix(']')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a file in the form in which the benchmark's own class writes it.
    fn rendered(pages: &[(&str, &str)]) -> String {
        let page = |(url, action): &(&str, &str)| {
            format!(
                "<h2>New Page</h2>\n<h3 class='url'><a href={url}>URL: {url}</a></h3>\n<div class='state_obv'><pre>[1] RootWebArea</pre><div>\n\
                 <div class='prev_action' style='background-color:pink'>None</div>\n<div class='predict_action'>\
                 <div class='raw_parsed_prediction' style='background-color:grey'><pre>In summary, ```{action}```</pre></div>\
                 <div class='action_object' style='background-color:grey'><pre>{{}}</pre></div>\
                 <div class='parsed_action' style='background-color:yellow'><pre>{action}</pre></div></div>\n"
            )
        };
        let body: String = pages.iter().map(page).collect();
        format!("\n<!DOCTYPE html>\n<html>\n    <body>\n     <pre>task_id: 310\n</pre>\n{body}\n    </body>\n</html>\n")
    }

    fn read_text(html: &str) -> Result<Left, ResultError> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("render_310.html");
        std::fs::write(&path, html).expect("a file");
        read(&path)
    }

    #[test]
    fn the_last_action_is_the_answer() {
        let html = rendered(&[
            ("http://localhost:7770/", "click [12] where [12] is link 'stop [no]'"),
            ("http://localhost:7770/a?b=c&d=[1]", "stop [<b>Blue</b> [mug]\n& more]"),
        ]);
        let left = read_text(&html).expect("a result");
        assert_eq!((left.id.as_str(), left.url.as_str()), ("310", "http://localhost:7770/a?b=c&d=[1]"));
        assert_eq!(left.answer, "<b>Blue</b> [mug]\n& more");
        let nothing = read_text(&rendered(&[("http://h/", "stop []")])).expect("a result");
        assert_eq!(nothing.answer, "");
    }

    #[test]
    fn a_run_that_was_cut_off_is_no_answer() {
        let said = |html: &str| read_text(html).expect_err("unfinished").to_string();
        assert!(said(&rendered(&[("http://h/", "click [1]")])).contains("not `stop`"));
        assert!(said(&rendered(&[])).contains("before the agent saw a page"));
        assert!(said("<h3 class='url'><a href=http://h/>URL</a></h3>page.click()").contains("no parsed action"));
    }
}

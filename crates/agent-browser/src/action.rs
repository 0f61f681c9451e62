//! The actions of WebArena in their notation, such as `type [164] [restaurants near CMU] [1]`.
//!
//! Source: `create_id_based_action` in `browser_env/actions.py`, with its regular expressions and its words. `select` is
//! an addition, because WebArena selects options by code of Playwright, and not by ids. `upload` is named in VisualWebArena,
//! whose code never accepts it: its expression is that of `type`.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::python::is_space;

/// An action of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Clicks on the centre of an element.
    Click(String),
    /// Moves the mouse to the centre of an element.
    Hover(String),
    /// Clicks on an element and types a text, which ends with a line feed if Enter is pressed.
    Type {
        /// The id of the element.
        element: String,
        /// The text, with a line feed at its end if Enter is pressed after it.
        text: String,
    },
    /// Presses a combination of keys, such as `Control+a`.
    Press(String),
    /// Scrolls by the height of the viewport.
    Scroll(ScrollDirection),
    /// Opens an address in the current tab.
    Goto(String),
    /// Opens a tab, which becomes the current one.
    NewTab,
    /// Goes back in the history of the tab.
    GoBack,
    /// Goes forward in the history of the tab.
    GoForward,
    /// Makes a tab the current one.
    TabFocus(usize),
    /// Closes the current tab. The last one of the others becomes the current one.
    CloseTab,
    /// Selects an option of a list by its text or its value.
    Select {
        /// The id of the list, or of one of its options.
        element: String,
        /// The text or the value.
        option: String,
    },
    /// Puts a file into a field.
    Upload {
        /// The id of the field, or of an element that opens its file chooser.
        element: String,
        /// The name of a file that the browser was opened with.
        file: String,
    },
    /// Ends the task with an answer, which may be empty.
    Stop(String),
}

/// The direction in which a page is scrolled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScrollDirection {
    /// Towards the beginning of the page.
    Up,
    /// Towards the end of the page.
    Down,
}

/// The text is not an action.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ActionParseError(String);

/// Compiles an expression once.
macro_rules! pattern {
    ($pattern:literal) => {{
        static PATTERN: LazyLock<Regex> = LazyLock::new(|| Regex::new($pattern).expect("a valid expression"));
        &*PATTERN
    }};
}

impl Action {
    /// Returns the id of the action's element in the observation; `None` for an action without one.
    pub fn element(&self) -> Option<&str> {
        match self {
            Self::Click(element)
            | Self::Hover(element)
            | Self::Type { element, .. }
            | Self::Select { element, .. }
            | Self::Upload { element, .. } => Some(element),
            _ => None,
        }
    }

    /// Parses an action. Text after the action is ignored, as the source ignores it.
    ///
    /// Errors: the words of the source, such as `Invalid click action click [x]`.
    pub fn parse(text: &str) -> Result<Self, ActionParseError> {
        let text = text.trim_matches(is_space);
        let name = match text.split_once('[') {
            Some((name, _)) => name.trim_matches(is_space),
            None => text.split(is_space).next().unwrap_or_default(),
        };
        let invalid = |shown: &str| ActionParseError(format!("Invalid {name} action {shown}"));
        let found = |pattern: &Regex| parts(pattern, text).ok_or_else(|| invalid(text));
        Ok(match name {
            "click" => Self::Click(one(found(pattern!(r"click ?\[(\d+)\]"))?)),
            "hover" => Self::Hover(one(found(pattern!(r"hover ?\[(\d+)\]"))?)),
            "type" => {
                let is_flagged = text.ends_with("[0]") || text.ends_with("[1]");
                let whole = if is_flagged { text.to_owned() } else { format!("{text} [1]") };
                let parts = parts(pattern!(r"type ?\[(\d+)\] ?\[(.+)\] ?\[(\d+)\]"), &whole);
                let [element, mut text, enter] = fields(parts.ok_or_else(|| invalid(&whole))?);
                if enter == "1" {
                    text.push('\n');
                }
                Self::Type { element, text }
            }
            "press" => Self::Press(one(found(pattern!(r"press ?\[(.+)\]"))?)),
            "scroll" => match one(found(pattern!(r"scroll ?\[?(up|down)\]?"))?).as_str() {
                "up" => Self::Scroll(ScrollDirection::Up),
                _ => Self::Scroll(ScrollDirection::Down),
            },
            "goto" => Self::Goto(one(found(pattern!(r"goto ?\[(.+)\]"))?)),
            "new_tab" => Self::NewTab,
            "go_back" => Self::GoBack,
            "go_forward" => Self::GoForward,
            "tab_focus" => {
                let number = one(found(pattern!(r"tab_focus ?\[(\d+)\]"))?);
                Self::TabFocus(number.parse().map_err(|_| invalid(text))?)
            }
            "close_tab" => Self::CloseTab,
            "select" => {
                let [element, option] = fields(found(pattern!(r"select ?\[(\d+)\] ?\[(.+)\]"))?);
                Self::Select { element, option }
            }
            "upload" => {
                let [element, file] = fields(found(pattern!(r"upload ?\[(\d+)\] ?\[(.+)\]"))?);
                Self::Upload { element, file }
            }
            // Some tasks do not require an answer.
            "stop" => Self::Stop(parts(pattern!(r"stop ?\[(.+)\]"), text).map(one).unwrap_or_default()),
            _ => return Err(ActionParseError(format!("Invalid action {text}"))),
        })
    }
}

fn parts<'a>(pattern: &Regex, text: &'a str) -> Option<Captures<'a>> {
    pattern.captures(text)
}

fn one(found: Captures<'_>) -> String {
    let [field] = fields(found);
    field
}

fn fields<const N: usize>(found: Captures<'_>) -> [String; N] {
    std::array::from_fn(|index| found.get(index + 1).map_or("", |part| part.as_str()).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(element: &str, text: &str) -> Action {
        Action::Type { element: element.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn every_action_is_read() {
        for (text, expected) in [
            ("click [12]", Action::Click("12".to_owned())),
            ("click[12]", Action::Click("12".to_owned())),
            ("  click [12] where [12] is link 'x'", Action::Click("12".to_owned())),
            ("hover [7]", Action::Hover("7".to_owned())),
            ("type [164] [restaurants near CMU] [1]", typed("164", "restaurants near CMU\n")),
            ("type [164] [restaurants] [0]", typed("164", "restaurants")),
            ("type [164] [restaurants]", typed("164", "restaurants\n")),
            ("type [1] [a [b] c] [0]", typed("1", "a [b] c")),
            ("press [Control+a]", Action::Press("Control+a".to_owned())),
            ("scroll [down]", Action::Scroll(ScrollDirection::Down)),
            ("scroll up", Action::Scroll(ScrollDirection::Up)),
            ("goto [http://shop.arena.test/?a[]=1]", Action::Goto("http://shop.arena.test/?a[]=1".to_owned())),
            ("new_tab", Action::NewTab),
            ("go_back", Action::GoBack),
            ("go_forward please", Action::GoForward),
            ("tab_focus [1]", Action::TabFocus(1)),
            ("close_tab", Action::CloseTab),
            (
                "select [3] [Price: low to high]",
                Action::Select { element: "3".to_owned(), option: "Price: low to high".to_owned() },
            ),
            ("upload [4] [my photo.jpg]", Action::Upload { element: "4".to_owned(), file: "my photo.jpg".to_owned() }),
            ("stop [$12.50]", Action::Stop("$12.50".to_owned())),
            ("stop", Action::Stop(String::new())),
            ("stop []", Action::Stop(String::new())),
        ] {
            assert_eq!(Action::parse(text), Ok(expected), "{text}");
        }
    }

    // The words are those that WebArena's `create_id_based_action` raises for the same texts.
    #[test]
    fn other_texts_are_refused_in_webarenas_words() {
        for (text, words) in [
            ("click [x]", "Invalid click action click [x]"),
            ("click 12", "Invalid click action click 12"),
            ("hover", "Invalid hover action hover"),
            ("type [12]", "Invalid type action type [12] [1]"),
            ("type [12] [] [0]", "Invalid type action type [12] [] [0]"),
            ("press", "Invalid press action press"),
            ("scroll [left]", "Invalid scroll action scroll [left]"),
            ("goto http://x", "Invalid goto action goto http://x"),
            ("tab_focus [-1]", "Invalid tab_focus action tab_focus [-1]"),
            ("tab_focus [99999999999999999999999]", "Invalid tab_focus action tab_focus [99999999999999999999999]"),
            ("select [1]", "Invalid select action select [1]"),
            ("upload [photo.jpg]", "Invalid upload action upload [photo.jpg]"),
            ("dance [1]", "Invalid action dance [1]"),
            ("", "Invalid action "),
        ] {
            assert_eq!(Action::parse(text).map_err(|error| error.to_string()), Err(words.to_owned()), "{text}");
        }
    }
}

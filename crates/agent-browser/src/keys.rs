//! Keys of a keyboard as Playwright names them, and the events that they cause. Source: Playwright's US layout.

use std::collections::HashMap;
use std::sync::LazyLock;

/// A key event's fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// The value of `KeyboardEvent.key`.
    pub key: &'static str,
    /// The value of `KeyboardEvent.code`.
    pub code: &'static str,
    /// The value of `KeyboardEvent.keyCode`.
    pub key_code: u32,
    /// The text that the key produces; empty if it produces none.
    pub text: &'static str,
    /// The value of `KeyboardEvent.location`.
    pub location: u32,
}

/// The bits of modifiers, as events carry them.
pub mod modifiers {
    /// The bit of the key Alt.
    pub const ALT: u32 = 1;
    /// The bit of the key Control.
    pub const CONTROL: u32 = 2;
    /// The bit of the key Meta.
    pub const META: u32 = 4;
    /// The bit of the key Shift.
    pub const SHIFT: u32 = 8;
}

/// The name of a key is unknown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Unknown key: \"{0}\"")]
pub struct UnknownKey(pub String);

/// The key codes, with the code, what the key produces, and what it produces with Shift.
const CHARACTERS: [(u32, &str, &str, &str); 48] = [
    (65, "KeyA", "a", "A"),
    (66, "KeyB", "b", "B"),
    (67, "KeyC", "c", "C"),
    (68, "KeyD", "d", "D"),
    (69, "KeyE", "e", "E"),
    (70, "KeyF", "f", "F"),
    (71, "KeyG", "g", "G"),
    (72, "KeyH", "h", "H"),
    (73, "KeyI", "i", "I"),
    (74, "KeyJ", "j", "J"),
    (75, "KeyK", "k", "K"),
    (76, "KeyL", "l", "L"),
    (77, "KeyM", "m", "M"),
    (78, "KeyN", "n", "N"),
    (79, "KeyO", "o", "O"),
    (80, "KeyP", "p", "P"),
    (81, "KeyQ", "q", "Q"),
    (82, "KeyR", "r", "R"),
    (83, "KeyS", "s", "S"),
    (84, "KeyT", "t", "T"),
    (85, "KeyU", "u", "U"),
    (86, "KeyV", "v", "V"),
    (87, "KeyW", "w", "W"),
    (88, "KeyX", "x", "X"),
    (89, "KeyY", "y", "Y"),
    (90, "KeyZ", "z", "Z"),
    (48, "Digit0", "0", ")"),
    (49, "Digit1", "1", "!"),
    (50, "Digit2", "2", "@"),
    (51, "Digit3", "3", "#"),
    (52, "Digit4", "4", "$"),
    (53, "Digit5", "5", "%"),
    (54, "Digit6", "6", "^"),
    (55, "Digit7", "7", "&"),
    (56, "Digit8", "8", "*"),
    (57, "Digit9", "9", "("),
    (192, "Backquote", "`", "~"),
    (189, "Minus", "-", "_"),
    (187, "Equal", "=", "+"),
    (219, "BracketLeft", "[", "{"),
    (221, "BracketRight", "]", "}"),
    (220, "Backslash", "\\", "|"),
    (186, "Semicolon", ";", ":"),
    (222, "Quote", "'", "\""),
    (188, "Comma", ",", "<"),
    (190, "Period", ".", ">"),
    (191, "Slash", "/", "?"),
    (32, "Space", " ", " "),
];

/// Keys that produce no character, with their codes. Those with a side are named with and without it.
const NAMED: [(u32, &str, &str, u32); 38] = [
    (27, "Escape", "Escape", 0),
    (8, "Backspace", "Backspace", 0),
    (9, "Tab", "Tab", 0),
    (20, "CapsLock", "CapsLock", 0),
    (45, "Insert", "Insert", 0),
    (46, "Delete", "Delete", 0),
    (36, "Home", "Home", 0),
    (35, "End", "End", 0),
    (33, "PageUp", "PageUp", 0),
    (34, "PageDown", "PageDown", 0),
    (38, "ArrowUp", "ArrowUp", 0),
    (40, "ArrowDown", "ArrowDown", 0),
    (37, "ArrowLeft", "ArrowLeft", 0),
    (39, "ArrowRight", "ArrowRight", 0),
    (112, "F1", "F1", 0),
    (113, "F2", "F2", 0),
    (114, "F3", "F3", 0),
    (115, "F4", "F4", 0),
    (116, "F5", "F5", 0),
    (117, "F6", "F6", 0),
    (118, "F7", "F7", 0),
    (119, "F8", "F8", 0),
    (120, "F9", "F9", 0),
    (121, "F10", "F10", 0),
    (122, "F11", "F11", 0),
    (123, "F12", "F12", 0),
    (93, "ContextMenu", "ContextMenu", 0),
    (44, "PrintScreen", "PrintScreen", 0),
    (145, "ScrollLock", "ScrollLock", 0),
    (19, "Pause", "Pause", 0),
    (16, "ShiftLeft", "Shift", 1),
    (16, "ShiftRight", "Shift", 2),
    (17, "ControlLeft", "Control", 1),
    (17, "ControlRight", "Control", 2),
    (18, "AltLeft", "Alt", 1),
    (18, "AltRight", "Alt", 2),
    (91, "MetaLeft", "Meta", 1),
    (92, "MetaRight", "Meta", 2),
];

const ENTER: Key = Key { key: "Enter", code: "Enter", key_code: 13, text: "\r", location: 0 };

/// Every key by each of its names: what it produces, and its code.
static KEYS: LazyLock<HashMap<&'static str, Key>> = LazyLock::new(|| {
    let mut keys = HashMap::from([("Enter", ENTER), ("\n", ENTER), ("\r", ENTER)]);
    for (key_code, code, plain, shifted) in CHARACTERS {
        let key = |text| Key { key: text, code, key_code, text, location: 0 };
        keys.insert(shifted, key(shifted));
        keys.insert(plain, key(plain));
        keys.insert(code, key(plain));
    }
    for (key_code, code, name, location) in NAMED {
        let key = Key { key: name, code, key_code, text: "", location };
        keys.insert(code, key);
        // The left one of two keys comes first, and has the name without a side.
        keys.entry(name).or_insert(key);
    }
    keys
});

/// Returns the key that a name means: what it produces, such as `A`, or its code, such as `KeyA`.
pub fn key(name: &str) -> Option<Key> {
    KEYS.get(name).copied()
}

/// Returns the key that produces a character.
pub fn key_of(character: char) -> Option<Key> {
    key(character.encode_utf8(&mut [0; 4]))
}

/// Returns what a key means while modifiers are held.
pub fn held(key: Key, held: u32) -> Key {
    let is_shifted = held & modifiers::SHIFT != 0;
    let shifted = CHARACTERS.iter().find(|(.., code, plain, _)| *code == key.code && *plain == key.key);
    let key = match shifted {
        Some((_, _, _, shifted)) if is_shifted => Key { key: shifted, text: shifted, ..key },
        _ => key,
    };
    // With any other modifier, no text is sent.
    if held & !modifiers::SHIFT != 0 { Key { text: "", ..key } } else { key }
}

/// Returns the bit of a modifier.
pub fn modifier(key: Key) -> Option<u32> {
    match key.key {
        "Alt" => Some(modifiers::ALT),
        "Control" => Some(modifiers::CONTROL),
        "Meta" => Some(modifiers::META),
        "Shift" => Some(modifiers::SHIFT),
        _ => None,
    }
}

/// The names of keys that WebArena writes in lower case. Source: `SPECIAL_KEY_MAPPINGS`.
const MAPPED: [&str; 31] = [
    "Backquote",
    "Minus",
    "Equal",
    "Backslash",
    "Backspace",
    "Meta",
    "Tab",
    "Delete",
    "Escape",
    "ArrowDown",
    "End",
    "Enter",
    "Home",
    "Insert",
    "PageDown",
    "PageUp",
    "ArrowRight",
    "ArrowUp",
    "F1",
    "F2",
    "F3",
    "F4",
    "F5",
    "F6",
    "F7",
    "F8",
    "F9",
    "F10",
    "F11",
    "F12",
    "ArrowLeft",
];

/// Returns the keys of a combination such as `ctrl+a`, in the order in which they are pressed.
///
/// WebArena maps names whatever their case, and presses Control for Meta except on a Mac.
pub fn combination(text: &str) -> Result<Vec<Key>, UnknownKey> {
    let mapped = text.split('+').map(|name| {
        let mapped = MAPPED.iter().find(|known| known.eq_ignore_ascii_case(name));
        // The source does not map this one.
        let mapped = mapped.filter(|known| **known != "ArrowLeft" || name == "ArrowLeft");
        mapped.map_or(name, |known| *known).replace("Meta", "Control")
    });
    let mapped: Vec<String> = mapped.collect();
    names(&mapped.join("+")).into_iter().map(|name| key(&name).ok_or(UnknownKey(name))).collect()
}

/// Splits a combination. A plus sign that follows another is a key. Source: Playwright's `Keyboard.press`.
fn names(text: &str) -> Vec<String> {
    let (mut names, mut name) = (Vec::new(), String::new());
    for c in text.chars() {
        if c == '+' && !name.is_empty() {
            names.push(std::mem::take(&mut name));
        } else {
            name.push(c);
        }
    }
    names.push(name);
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pressed(text: &str) -> Result<Vec<&'static str>, String> {
        let keys = combination(text).map_err(|error| error.to_string())?;
        Ok(keys.iter().map(|key| key.code).collect())
    }

    #[test]
    fn combinations_are_read_as_webarena_reads_them() {
        assert_eq!(pressed("Enter"), Ok(vec!["Enter"]));
        assert_eq!(pressed("enter"), Ok(vec!["Enter"]));
        assert_eq!(pressed("Control+a"), Ok(vec!["ControlLeft", "KeyA"]));
        assert_eq!(pressed("meta+A"), Ok(vec!["ControlLeft", "KeyA"]));
        assert_eq!(pressed("Meta+Shift+z"), Ok(vec!["ControlLeft", "ShiftLeft", "KeyZ"]));
        assert_eq!(pressed("PageDown"), Ok(vec!["PageDown"]));
        assert_eq!(pressed("Control++"), Ok(vec!["ControlLeft", "Equal"]));
        assert_eq!(pressed("ctrl+a"), Err("Unknown key: \"ctrl\"".to_owned()));
        assert_eq!(pressed("arrowleft"), Err("Unknown key: \"arrowleft\"".to_owned()));
    }

    #[test]
    fn held_keys_change_what_a_key_means() {
        let a = key("a").expect("a key");
        assert_eq!(held(a, 0).text, "a");
        assert_eq!((held(a, modifiers::SHIFT).text, held(a, modifiers::SHIFT).key), ("A", "A"));
        assert_eq!((held(a, modifiers::CONTROL).text, held(a, modifiers::CONTROL).key), ("", "a"));
        assert_eq!(key_of('A').map(|key| (key.code, key.text)), Some(("KeyA", "A")));
        assert_eq!(key_of('\n').map(|key| key.text), Some("\r"));
        assert_eq!(key_of('é'), None);
    }
}

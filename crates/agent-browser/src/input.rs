//! The mouse and the keyboard of an agent. Source: Playwright's `Mouse` and `Keyboard`.

use serde_json::json;

use crate::error::StepError;
use crate::keys::{self, Key};
use crate::tab::Tab;

/// Moves the mouse, without a button pressed.
pub(crate) async fn hover(tab: &Tab, (x, y): (f64, f64)) -> Result<(), StepError> {
    let moved = json!({ "type": "mouseMoved", "x": x, "y": y, "button": "none", "buttons": 0 });
    tab.call("Input.dispatchMouseEvent", moved).await?;
    Ok(())
}

/// Moves the mouse and clicks.
pub(crate) async fn click(tab: &Tab, (x, y): (f64, f64)) -> Result<(), StepError> {
    hover(tab, (x, y)).await?;
    for (kind, buttons) in [("mousePressed", 1), ("mouseReleased", 0)] {
        let event = json!({ "type": kind, "x": x, "y": y, "button": "left", "buttons": buttons, "clickCount": 1 });
        tab.call("Input.dispatchMouseEvent", event).await?;
    }
    Ok(())
}

/// Types a text, as if each of its characters were pressed. Characters that no key has are inserted.
pub(crate) async fn write(tab: &Tab, text: &str) -> Result<(), StepError> {
    for character in text.chars() {
        match keys::key_of(character) {
            Some(key) => {
                key_event(tab, "down", key, 0).await?;
                key_event(tab, "up", key, 0).await?;
            }
            None => drop(tab.call("Input.insertText", json!({ "text": character.to_string() })).await?),
        }
    }
    Ok(())
}

/// Presses a combination of keys: one after the other, and releases them in the opposite order.
pub(crate) async fn press(tab: &Tab, combination: &str) -> Result<(), StepError> {
    let mut held = 0;
    let mut pressed = Vec::new();
    for key in keys::combination(combination)? {
        let key = keys::held(key, held);
        held |= keys::modifier(key).unwrap_or_default();
        key_event(tab, "down", key, held).await?;
        pressed.push(key);
    }
    for key in pressed.into_iter().rev() {
        held &= !keys::modifier(key).unwrap_or_default();
        key_event(tab, "up", key, held).await?;
    }
    Ok(())
}

async fn key_event(tab: &Tab, direction: &str, key: Key, held: u32) -> Result<(), StepError> {
    let kind = match direction {
        "up" => "keyUp",
        _ if key.text.is_empty() => "rawKeyDown",
        _ => "keyDown",
    };
    let mut event = json!({
        "type": kind, "modifiers": held, "windowsVirtualKeyCode": key.key_code, "code": key.code, "key": key.key,
        "location": key.location,
    });
    if kind == "keyDown" {
        event["text"] = json!(key.text);
        event["unmodifiedText"] = json!(key.text);
    }
    tab.call("Input.dispatchKeyEvent", event).await?;
    Ok(())
}

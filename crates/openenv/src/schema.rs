//! The JSON Schemas of `GET /schema`, in the form in which Pydantic writes them.

use serde_json::{Value as Json, json};

/// Returns the schemas of actions, observations and states.
pub fn schemas() -> Json {
    json!({
        "action": action(),
        "observation": observation(),
        "state": state(),
        "reset_observation": observation(),
    })
}

fn metadata() -> Json {
    json!({ "type": "object", "additionalProperties": true, "title": "Metadata" })
}

/// Returns the schema of actions. It has one required field, so that clients can send the text of a model as it is.
pub fn action() -> Json {
    json!({
        "title": "BrowserAction",
        "description": "An action in the browser, in WebArena's notation.",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "metadata": metadata(),
            "action": {
                "title": "Action",
                "type": "string",
                "description": "click [id], hover [id], type [id] [text] [press_enter], press [keys], scroll [up|down], \
                    select [id] [option], new_tab, tab_focus [index], close_tab, goto [url], go_back, go_forward or \
                    stop [answer]",
            },
        },
        "required": ["action"],
    })
}

/// Returns the schema of observations.
pub fn observation() -> Json {
    let text = |title: &str, description: &str| json!({ "title": title, "type": "string", "description": description });
    let or_null = |kind: &str, title: &str, description: &str| json!({ "title": title, "anyOf": [{ "type": kind }, { "type": "null" }], "default": null, "description": description });
    json!({
        "title": "BrowserObservation",
        "description": "A page, as an agent sees it.",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "done": { "title": "Done", "type": "boolean", "default": false },
            "reward": {
                "title": "Reward", "default": null,
                "anyOf": [{ "type": "boolean" }, { "type": "integer" }, { "type": "number" }, { "type": "null" }],
            },
            "metadata": metadata(),
            "text": text("Text", "The list of tabs, and the tree of the page with the ids of elements"),
            "url": text("Url", "The address of the current page"),
            "tabs": {
                "title": "Tabs", "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "title": { "type": "string" }, "url": { "type": "string" }, "is_current": { "type": "boolean" },
                    },
                    "required": ["title", "url", "is_current"],
                },
            },
            "intent": or_null("string", "Intent", "The instruction of the task"),
            "screenshot": or_null("string", "Screenshot", "The viewport as PNG in base64"),
            "error": or_null("string", "Error", "The reason why the last action failed"),
            "answer": or_null("string", "Answer", "The answer of `stop`"),
            "verdict": or_null("string", "Verdict", "The verdict after `stop`"),
        },
        "required": ["text", "url", "tabs"],
    })
}

fn state() -> Json {
    json!({
        "title": "BrowserState",
        "description": "The state of a session.",
        "type": "object",
        "additionalProperties": true,
        "properties": {
            "episode_id": { "title": "Episode Id", "anyOf": [{ "type": "string" }, { "type": "null" }], "default": null },
            "step_count": { "title": "Step Count", "type": "integer", "minimum": 0, "default": 0 },
            "task": { "title": "Task", "anyOf": [{ "type": "string" }, { "type": "null" }], "default": null },
            "environment": { "title": "Environment", "anyOf": [{ "type": "string" }, { "type": "null" }], "default": null },
            "status": { "title": "Status", "anyOf": [{ "type": "string" }, { "type": "null" }], "default": null },
            "done": { "title": "Done", "type": "boolean", "default": false },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_has_one_required_field() {
        assert_eq!(action()["required"], json!(["action"]));
        assert_eq!(schemas()["action"], action());
        assert!(observation()["properties"].get("reward").is_some());
    }
}

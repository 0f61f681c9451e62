//! The JSON Schemas of `GET /schema`, in the form in which Pydantic writes them, and the OpenAPI document that consists
//! of them.

use serde_json::{Map, Value as Json, json};

/// Returns the schemas of actions, observations and states.
pub fn schemas() -> Json {
    json!({
        "action": action(),
        "observation": observation(),
        "state": state(),
        "reset_observation": observation(),
    })
}

/// The version of OpenEnv's HTTP API, which `openenv validate` calls the version of the standard.
const API_VERSION: &str = "1.0.0";

/// The requests of the service by HTTP: method, path and summary.
pub const ROUTES: [(&str, &str, &str); 14] = [
    ("get", "/health", "Returns whether resets can succeed"),
    ("get", "/metadata", "Returns the description of the service"),
    ("get", "/schema", "Returns the JSON Schemas of actions, observations and states"),
    ("get", "/state", "Returns the state of an environment without an episode"),
    ("post", "/reset", "Begins an episode, observes its first page, and ends it"),
    ("post", "/step", "Checks an action"),
    ("post", "/mcp", "Answers a call by JSON-RPC"),
    ("get", "/list_environments", "Returns the names of the environments"),
    ("get", "/{env_name}/splits", "Returns the splits of an environment"),
    ("post", "/{env_name}/tasks", "Returns the tasks of a split"),
    ("post", "/{env_name}/num_tasks", "Returns the number of tasks of a split"),
    ("post", "/{env_name}/task", "Returns a task of a split"),
    ("post", "/{env_name}/task_range", "Returns some tasks of a split"),
    ("get", "/openapi.json", "Returns this document"),
];

/// Returns the OpenAPI document of the requests by HTTP. Sessions are WebSockets, which OpenAPI does not describe.
pub fn openapi() -> Json {
    let json_of = |schema: Json| json!({ "application/json": { "schema": schema } });
    let mut paths = Map::new();
    for (method, path, summary) in ROUTES {
        let observation = json!({
            "type": "object", "required": ["observation", "reward", "done"],
            "properties": {
                "observation": { "$ref": "#/components/schemas/BrowserObservation" },
                "reward": { "anyOf": [{ "type": "number" }, { "type": "null" }] }, "done": { "type": "boolean" },
            },
        });
        let (body, answer) = match path {
            "/reset" => (Some(json!({ "type": "object" })), observation),
            "/step" => {
                let action = json!({ "$ref": "#/components/schemas/BrowserAction" });
                let body = json!({ "type": "object", "required": ["action"], "properties": { "action": action } });
                (Some(body), observation)
            }
            "/state" => (None, json!({ "$ref": "#/components/schemas/BrowserState" })),
            _ => ((method == "post").then(|| json!({ "type": "object" })), json!({})),
        };
        let mut operation = json!({
            "summary": summary,
            "responses": { "200": { "description": "Successful Response", "content": json_of(answer) } },
        });
        if let Some(body) = body {
            operation["requestBody"] = json!({ "content": json_of(body) });
        }
        if path.starts_with("/{env_name}") {
            operation["parameters"] =
                json!([{ "name": "env_name", "in": "path", "required": true, "schema": { "type": "string" } }]);
        }
        let path = paths.entry(path).or_insert_with(|| json!({}));
        path[method] = operation;
    }
    json!({
        "openapi": "3.1.0",
        "info": { "title": "arenad's environment service", "version": API_VERSION },
        "paths": paths,
        "components": { "schemas": {
            "BrowserAction": action(), "BrowserObservation": observation(), "BrowserState": state(),
        } },
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
                    select [id] [option], upload [id] [file], new_tab, tab_focus [index], close_tab, goto [url], \
                    go_back, go_forward or stop [answer]",
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
            "text": text("Text", "The list of tabs, and the tree of the page with the ids of elements; or the list of marks"),
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
            "images": {
                "title": "Images", "type": "array", "items": { "type": "string" }, "default": [],
                "description": "The pictures that belong to the instruction, as addresses or paths of the benchmark",
            },
            "screenshot": or_null("string", "Screenshot", "The viewport as PNG in base64, with boxes around marked elements"),
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
            "episode_id": {
                "title": "Episode Id", "anyOf": [{ "type": "string" }, { "type": "null" }], "default": null,
                "description": "The id that the reset gave the episode, or the daemon's",
            },
            "arenad_episode": {
                "title": "Arenad Episode", "anyOf": [{ "type": "string" }, { "type": "null" }], "default": null,
                "description": "The daemon's id of the episode",
            },
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

    #[test]
    fn the_openapi_document_has_every_route_once() {
        let document = openapi();
        assert_eq!(document["info"]["version"], API_VERSION);
        let paths = document["paths"].as_object().expect("paths");
        assert_eq!(paths.len(), ROUTES.len());
        for (method, path, summary) in ROUTES {
            assert_eq!(paths[path][method]["summary"], summary, "{path}");
        }
    }
}

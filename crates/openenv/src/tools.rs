//! The actions of an agent as tools with JSON Schemas, for clients that speak MCP.

use serde_json::{Map, Value as Json, json};

/// The reason why a tool was not called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolFailure {
    /// There is no such tool.
    Unknown(String),
    /// An argument is missing, or has the wrong type.
    Arguments(String),
}

impl ToolFailure {
    /// Returns the kind of failure. Source: `ToolErrorType`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "tool_not_found",
            Self::Arguments(_) => "invalid_args",
        }
    }

    /// Returns the explanation for people.
    pub fn message(&self) -> String {
        match self {
            Self::Unknown(name) => format!("Tool not found: {name}"),
            Self::Arguments(problem) => problem.clone(),
        }
    }
}

/// A tool: its name, what it does, and its arguments.
struct Tool {
    name: &'static str,
    description: &'static str,
    arguments: &'static [Argument],
}

struct Argument {
    name: &'static str,
    kind: &'static str,
    description: &'static str,
    is_required: bool,
}

const fn required(name: &'static str, kind: &'static str, description: &'static str) -> Argument {
    Argument { name, kind, description, is_required: true }
}

const fn optional(name: &'static str, kind: &'static str, description: &'static str) -> Argument {
    Argument { name, kind, description, is_required: false }
}

const ID: Argument = required("id", "string", "The id of the element, as the last observation shows it");

const TOOLS: [Tool; 14] = [
    Tool { name: "click", description: "Clicks on an element", arguments: &[ID] },
    Tool { name: "hover", description: "Moves the mouse to an element", arguments: &[ID] },
    Tool {
        name: "type",
        description: "Clicks on an element and types a text",
        arguments: &[
            ID,
            required("text", "string", "The text"),
            optional("press_enter", "boolean", "Whether Enter is pressed afterwards; true by default"),
        ],
    },
    Tool {
        name: "press",
        description: "Presses a combination of keys",
        arguments: &[required("keys", "string", "The keys, such as Control+a")],
    },
    Tool {
        name: "scroll",
        description: "Scrolls by the height of the viewport",
        arguments: &[required("direction", "string", "up or down")],
    },
    Tool {
        name: "select",
        description: "Selects an option of a list",
        arguments: &[ID, required("option", "string", "The text or the value of the option")],
    },
    Tool {
        name: "upload",
        description: "Puts a file into a field for files",
        arguments: &[
            required(
                "id",
                "string",
                "The id of the field or of the button that opens it, as the last observation shows it",
            ),
            required("file", "string", "The name of a file that the task provides, without a folder"),
        ],
    },
    Tool { name: "new_tab", description: "Opens an empty tab", arguments: &[] },
    Tool {
        name: "tab_focus",
        description: "Makes a tab the current one",
        arguments: &[required("index", "integer", "The number of the tab; the first one is 0")],
    },
    Tool { name: "close_tab", description: "Closes the current tab", arguments: &[] },
    Tool { name: "goto", description: "Opens an address", arguments: &[required("url", "string", "The address")] },
    Tool { name: "go_back", description: "Goes back in the history of the tab", arguments: &[] },
    Tool { name: "go_forward", description: "Goes forward in the history of the tab", arguments: &[] },
    Tool {
        name: "stop",
        description: "Ends the task",
        arguments: &[optional("answer", "string", "The answer, if the task asks for one")],
    },
];

/// Returns the tools. `schema_key` is `input_schema` in observations, and `inputSchema` in MCP.
pub fn tools(schema_key: &str) -> Vec<Json> {
    let tools = TOOLS.iter().map(|tool| {
        let properties: Map<String, Json> = tool
            .arguments
            .iter()
            .map(|it| (it.name.to_owned(), json!({ "type": it.kind, "description": it.description })))
            .collect();
        let required: Vec<&str> = tool.arguments.iter().filter(|it| it.is_required).map(|it| it.name).collect();
        let schema = json!({
            "type": "object", "properties": properties, "required": required, "additionalProperties": false,
        });
        json!({ "name": tool.name, "description": tool.description, schema_key: schema })
    });
    tools.collect()
}

/// Returns the action that a call of a tool stands for.
pub fn action_of(name: &str, arguments: &Map<String, Json>) -> Result<String, ToolFailure> {
    let tool = TOOLS.iter().find(|tool| tool.name == name).ok_or_else(|| ToolFailure::Unknown(name.to_owned()))?;
    if let Some(extra) = arguments.keys().find(|key| !tool.arguments.iter().any(|it| it.name == key.as_str())) {
        return Err(ToolFailure::Arguments(format!("{name} has no argument {extra}")));
    }
    let mut fields = Vec::new();
    for argument in tool.arguments {
        let given = arguments.get(argument.name).filter(|value| !value.is_null());
        let Some(given) = given else {
            if argument.is_required {
                return Err(ToolFailure::Arguments(format!("{name} needs the argument {}", argument.name)));
            }
            match argument.kind {
                "boolean" => fields.push("1".to_owned()),
                _ => fields.push(String::new()),
            }
            continue;
        };
        let wrong = || ToolFailure::Arguments(format!("{} of {name} is of the type {}", argument.name, argument.kind));
        fields.push(match argument.kind {
            "boolean" => u8::from(given.as_bool().ok_or_else(wrong)?).to_string(),
            "integer" => given.as_u64().ok_or_else(wrong)?.to_string(),
            // Models write ids of elements as numbers too.
            _ if argument.name == "id" && given.is_u64() => given.to_string(),
            _ => given.as_str().ok_or_else(wrong)?.to_owned(),
        });
    }
    let parts: String = fields.iter().map(|field| format!(" [{field}]")).collect();
    Ok(format!("{name}{parts}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, arguments: Json) -> Result<String, ToolFailure> {
        action_of(name, arguments.as_object().expect("an object"))
    }

    #[test]
    fn calls_become_actions() {
        assert_eq!(call("click", json!({ "id": "12" })), Ok("click [12]".to_owned()));
        assert_eq!(call("click", json!({ "id": 12 })), Ok("click [12]".to_owned()));
        assert_eq!(call("type", json!({ "id": "1", "text": "a b" })), Ok("type [1] [a b] [1]".to_owned()));
        let unsent = json!({ "id": "1", "text": "a", "press_enter": false });
        assert_eq!(call("type", unsent), Ok("type [1] [a] [0]".to_owned()));
        assert_eq!(call("tab_focus", json!({ "index": 1 })), Ok("tab_focus [1]".to_owned()));
        let photo = json!({ "id": 7, "file": "photo.jpg" });
        assert_eq!(call("upload", photo), Ok("upload [7] [photo.jpg]".to_owned()));
        assert_eq!(call("new_tab", json!({})), Ok("new_tab".to_owned()));
        assert_eq!(call("stop", json!({})), Ok("stop []".to_owned()));
        assert_eq!(call("stop", json!({ "answer": "42" })), Ok("stop [42]".to_owned()));
    }

    #[test]
    fn other_calls_are_refused_with_the_reason() {
        assert_eq!(call("dance", json!({})), Err(ToolFailure::Unknown("dance".to_owned())));
        for (name, arguments) in [
            ("click", json!({})),
            ("click", json!({ "id": true })),
            ("new_tab", json!({ "url": "x" })),
            ("tab_focus", json!({ "index": -1 })),
        ] {
            assert!(matches!(call(name, arguments.clone()), Err(ToolFailure::Arguments(_))), "{name} {arguments}");
        }
    }

    #[test]
    fn every_tool_is_listed_with_its_schema() {
        let listed = tools("input_schema");
        assert_eq!(listed.len(), TOOLS.len());
        assert_eq!(listed[2]["input_schema"]["required"], json!(["id", "text"]));
        assert!(tools("inputSchema")[0]["inputSchema"].is_object());
    }
}

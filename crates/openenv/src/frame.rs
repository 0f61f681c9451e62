//! The messages of a session. Each is one text frame with a JSON object.

use serde::Serialize;
use serde_json::{Map, Value as Json, json};

/// The reason why a message failed, as a word for programs. Source: `WSErrorCode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ErrorCode {
    /// The message is not JSON.
    InvalidJson,
    /// The type of the message is unknown.
    UnknownType,
    /// A field of the message is missing, unknown, or has the wrong type.
    ValidationError,
    /// The server could not do what the message asks for. The session stays open.
    ExecutionError,
    /// There are as many sessions, or episodes, as may be.
    CapacityReached,
    /// The session cannot begin.
    SessionError,
}

/// A field that was not understood. Source: Pydantic's `ValidationError.errors()`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldError {
    /// The kind of error, such as `missing`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The path of the field.
    pub loc: Vec<String>,
    /// The explanation for people.
    pub msg: String,
}

impl FieldError {
    /// Describes a field that must be there.
    pub fn missing(field: &str) -> Self {
        Self { kind: "missing", loc: vec![field.to_owned()], msg: "Field required".to_owned() }
    }

    /// Describes a field that must not be there.
    pub fn extra(field: &str) -> Self {
        Self { kind: "extra_forbidden", loc: vec![field.to_owned()], msg: "Extra inputs are not permitted".to_owned() }
    }

    /// Describes a field of another type. `wanted` is a noun phrase, such as `a valid string`.
    pub fn wrong(field: &str, kind: &'static str, wanted: &str) -> Self {
        Self { kind, loc: vec![field.to_owned()], msg: format!("Input should be {wanted}") }
    }
}

/// An answer that says why a message failed.
#[derive(Debug, Clone, PartialEq)]
pub struct ErrorFrame {
    /// The kind of failure.
    pub code: ErrorCode,
    /// The explanation for people.
    pub message: String,
    /// Further facts, by name.
    pub more: Map<String, Json>,
}

impl ErrorFrame {
    /// Creates an error without further facts.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), more: Map::new() }
    }

    /// Creates the error for fields that were not understood.
    pub fn invalid(errors: &[FieldError]) -> Self {
        Self::new(ErrorCode::ValidationError, "Invalid message").with("errors", json!(errors))
    }

    /// Creates the error for a server that is full.
    pub fn capacity(active: usize, most: usize) -> Self {
        let message = format!("Server at capacity: {active}/{most} sessions active. Cannot accept new connections.");
        Self::new(ErrorCode::CapacityReached, message)
            .with("active_sessions", json!(active))
            .with("max_sessions", json!(most))
    }

    /// Adds a fact to the data of the frame.
    #[must_use]
    pub fn with(mut self, name: &str, value: Json) -> Self {
        self.more.insert(name.to_owned(), value);
        self
    }

    /// Returns the text of the frame.
    pub fn text(&self) -> String {
        let mut data = json!({ "message": self.message, "code": self.code });
        if let Some(data) = data.as_object_mut() {
            data.extend(self.more.clone());
        }
        json!({ "type": "error", "data": data }).to_string()
    }
}

/// A message of a client.
#[derive(Debug, Clone, PartialEq)]
pub enum ClientFrame {
    /// Begins an episode, in place of the one that the session has.
    Reset(Map<String, Json>),
    /// Performs an action, and observes its effect.
    Step(Map<String, Json>),
    /// Asks for the state of the session.
    State,
    /// Ends the session. There is no answer.
    Close,
    /// A call by JSON-RPC.
    Mcp(Json),
}

impl ClientFrame {
    /// Parses a text frame.
    ///
    /// Errors: the frame that answers it.
    pub fn parse(text: &str) -> Result<Self, ErrorFrame> {
        let parsed: Json = serde_json::from_str(text)
            .map_err(|error| ErrorFrame::new(ErrorCode::InvalidJson, format!("Invalid JSON: {error}")))?;
        let Json::Object(mut message) = parsed else {
            return Err(ErrorFrame::new(ErrorCode::InvalidJson, "Invalid JSON: a message is an object"));
        };
        let kind = message.remove("type");
        let data = message.remove("data");
        let kind = kind.as_ref().and_then(Json::as_str).unwrap_or_default();
        let takes_data = matches!(kind, "reset" | "step" | "mcp");
        let mut errors: Vec<FieldError> = message.keys().map(|key| FieldError::extra(key)).collect();
        if !takes_data && data.is_some() {
            errors.push(FieldError::extra("data"));
        }
        let object = |data: Option<Json>, is_required: bool, errors: &mut Vec<FieldError>| match data {
            Some(Json::Object(data)) => data,
            Some(_) => {
                errors.push(FieldError::wrong("data", "dict_type", "a valid dictionary"));
                Map::new()
            }
            None if is_required => {
                errors.push(FieldError::missing("data"));
                Map::new()
            }
            None => Map::new(),
        };
        let frame = match kind {
            "reset" => Self::Reset(object(data, false, &mut errors)),
            "step" => Self::Step(object(data, true, &mut errors)),
            "mcp" => Self::Mcp(Json::Object(object(data, true, &mut errors))),
            "state" => Self::State,
            "close" => Self::Close,
            other => return Err(ErrorFrame::new(ErrorCode::UnknownType, format!("Unknown message type: {other}"))),
        };
        if errors.is_empty() { Ok(frame) } else { Err(ErrorFrame::invalid(&errors)) }
    }
}

/// Returns the answer to a reset or a step. `metadata` is left out if it is empty, as in the source.
pub fn observation_frame(data: &Json) -> String {
    json!({ "type": "observation", "data": data }).to_string()
}

/// Returns the answer to a question for the state.
pub fn state_frame(data: &Json) -> String {
    json!({ "type": "state", "data": data }).to_string()
}

/// Returns the answer to a call.
pub fn rpc_frame(data: &Json) -> String {
    json!({ "type": "mcp", "data": data }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> Json {
        let error = ClientFrame::parse(text).expect_err("an error");
        serde_json::from_str(&error.text()).expect("JSON")
    }

    #[test]
    fn messages_are_read() {
        assert_eq!(ClientFrame::parse(r#"{"type":"reset"}"#), Ok(ClientFrame::Reset(Map::new())));
        let step = ClientFrame::parse(r#"{"type":"step","data":{"action":"new_tab"}}"#).expect("a step");
        assert!(matches!(step, ClientFrame::Step(data) if data["action"] == "new_tab"));
        assert_eq!(ClientFrame::parse(r#"{"type":"state"}"#), Ok(ClientFrame::State));
        assert_eq!(ClientFrame::parse(r#"{"type":"close"}"#), Ok(ClientFrame::Close));
        assert!(matches!(ClientFrame::parse(r#"{"type":"mcp","data":{"id":1}}"#), Ok(ClientFrame::Mcp(_))));
    }

    #[test]
    fn other_messages_are_answered_with_codes() {
        assert_eq!(error("{")["data"]["code"], "INVALID_JSON");
        assert_eq!(error("[]")["data"]["code"], "INVALID_JSON");
        assert_eq!(
            error(r#"{"type":"dance"}"#),
            json!({ "type": "error", "data": { "message": "Unknown message type: dance", "code": "UNKNOWN_TYPE" } })
        );
        assert_eq!(
            error(r#"{"type":"reset","seed":1}"#),
            json!({ "type": "error", "data": { "message": "Invalid message", "code": "VALIDATION_ERROR", "errors": [
                { "type": "extra_forbidden", "loc": ["seed"], "msg": "Extra inputs are not permitted" },
            ] } })
        );
        assert_eq!(error(r#"{"type":"step"}"#)["data"]["errors"][0]["type"], "missing");
        assert_eq!(error(r#"{"type":"step","data":3}"#)["data"]["errors"][0]["type"], "dict_type");
        assert_eq!(error(r#"{"type":"state","data":{}}"#)["data"]["code"], "VALIDATION_ERROR");
    }

    #[test]
    fn a_full_server_says_how_full_it_is() {
        let frame: Json = serde_json::from_str(&ErrorFrame::capacity(64, 64).text()).expect("JSON");
        assert_eq!(
            frame["data"],
            json!({ "message": "Server at capacity: 64/64 sessions active. Cannot accept new connections.", "code": "CAPACITY_REACHED",
                "active_sessions": 64, "max_sessions": 64 })
        );
    }
}

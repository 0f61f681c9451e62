//! JSON-RPC 2.0, by which clients of MCP list and call tools. Source: `mcp_types.py`.

use serde_json::{Map, Value as Json, json};

/// The codes of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RpcErrorCode {
    /// The text is not JSON.
    Parse,
    /// The JSON is not a request.
    InvalidRequest,
    /// The method is unknown.
    MethodNotFound,
    /// The parameters do not fit the method.
    InvalidParams,
    /// The server could not do what the request asks for.
    Server,
}

impl RpcErrorCode {
    fn number(self) -> i32 {
        match self {
            Self::Parse => -32700,
            Self::InvalidRequest => -32600,
            Self::MethodNotFound => -32601,
            Self::InvalidParams => -32602,
            Self::Server => -32000,
        }
    }
}

/// A call of a method.
#[derive(Debug, Clone, PartialEq)]
pub enum RpcCall {
    /// Lists the tools (`tools/list`).
    ListTools,
    /// Calls a tool (`tools/call`).
    CallTool {
        /// The name of the tool.
        name: String,
        /// The arguments, by name.
        arguments: Map<String, Json>,
    },
}

/// The answer to a call, with the id of the call.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcAnswer {
    /// The id that the client chose; null if it could not be read.
    pub id: Json,
    /// The result, or the code and the text of an error.
    pub result: Result<Json, (RpcErrorCode, String)>,
}

impl RpcAnswer {
    /// Returns the answer in its JSON.
    pub fn json(&self) -> Json {
        match &self.result {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": self.id, "result": result }),
            Err((code, message)) => {
                json!({ "jsonrpc": "2.0", "id": self.id, "error": { "code": code.number(), "message": message, "data": null } })
            }
        }
    }
}

impl RpcCall {
    /// Reads a request, and returns its id and the call.
    ///
    /// Errors: the answer to a request that was not understood.
    pub fn read(request: &Json) -> Result<(Json, Self), Box<RpcAnswer>> {
        let id = request.get("id").filter(|id| id.is_string() || id.is_i64() || id.is_u64()).cloned();
        let id = id.unwrap_or_default();
        let failed = |code, message: String| Box::new(RpcAnswer { id: id.clone(), result: Err((code, message)) });
        if request["jsonrpc"] != "2.0" {
            return Err(failed(RpcErrorCode::InvalidRequest, "Invalid request: jsonrpc should be '2.0'".to_owned()));
        }
        let no_parameters = Map::new();
        let parameters = match request.get("params") {
            None | Some(Json::Null) => &no_parameters,
            Some(Json::Object(parameters)) => parameters,
            Some(_) => {
                let message = "Invalid request: params should be a dictionary".to_owned();
                return Err(failed(RpcErrorCode::InvalidRequest, message));
            }
        };
        let call = match request["method"].as_str() {
            None => return Err(failed(RpcErrorCode::InvalidRequest, "Invalid request: no method".to_owned())),
            Some("tools/list") => Self::ListTools,
            Some("tools/call") => {
                let name = parameters.get("name").and_then(Json::as_str);
                let name = name.ok_or_else(|| {
                    failed(RpcErrorCode::InvalidParams, "Invalid params - 'name' is required".to_owned())
                })?;
                let arguments = match parameters.get("arguments") {
                    None | Some(Json::Null) => Map::new(),
                    Some(Json::Object(arguments)) => arguments.clone(),
                    Some(_) => {
                        let message = "Invalid params - 'arguments' should be a dictionary".to_owned();
                        return Err(failed(RpcErrorCode::InvalidParams, message));
                    }
                };
                Self::CallTool { name: name.to_owned(), arguments }
            }
            Some(other) => return Err(failed(RpcErrorCode::MethodNotFound, format!("Method not found: {other}"))),
        };
        Ok((id, call))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_listed_and_called() {
        let list = json!({ "jsonrpc": "2.0", "method": "tools/list", "id": 1 });
        assert_eq!(RpcCall::read(&list), Ok((json!(1), RpcCall::ListTools)));
        let call = json!({ "jsonrpc": "2.0", "method": "tools/call", "id": "a", "params": { "name": "new_tab" } });
        let called = RpcCall::CallTool { name: "new_tab".to_owned(), arguments: Map::new() };
        assert_eq!(RpcCall::read(&call), Ok((json!("a"), called)));
    }

    #[test]
    fn other_requests_are_answered_with_codes() {
        for (request, code) in [
            (json!({ "method": "tools/list" }), -32600),
            (json!({ "jsonrpc": "2.0" }), -32600),
            (json!({ "jsonrpc": "2.0", "method": "tools/list", "params": [] }), -32600),
            (json!({ "jsonrpc": "2.0", "method": "dance" }), -32601),
            (json!({ "jsonrpc": "2.0", "method": "tools/call" }), -32602),
            (json!({ "jsonrpc": "2.0", "method": "tools/call", "params": { "name": "x", "arguments": 1 } }), -32602),
        ] {
            let answer = RpcCall::read(&request).expect_err("an error").json();
            assert_eq!(answer["error"]["code"], code, "{request}");
            assert_eq!(answer["id"], Json::Null);
            assert!(answer.get("result").is_none());
        }
        let done = RpcAnswer { id: json!(3), result: Ok(json!({ "tools": [] })) };
        assert_eq!(done.json(), json!({ "jsonrpc": "2.0", "id": 3, "result": { "tools": [] } }));
    }
}

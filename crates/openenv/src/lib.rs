//! The protocols of OpenEnv's environment servers and NeMo Gym's resources servers, without I/O. Source: `openenv` 0.10.0,
//! `core/env_server`; `nemo-gym` 0.4.0.
//!
//! | File | Job |
//! |---|---|
//! | `frame` | the messages of a session's WebSocket, in both directions |
//! | `parameters` | the parameters of a reset, and the action of a step |
//! | `tools` | the actions as tools with JSON Schemas |
//! | `rpc` | JSON-RPC, by which tools are listed and called |
//! | `gym` | the messages of NeMo Gym, and its metrics |
//! | `schema` | the JSON Schemas of actions, observations and states |
//!
//! The daemon holds the sessions (`daemon/openenv`): it grants an episode for each reset, and drives its browser. Start
//! reading at [`ClientFrame`].

mod frame;
pub mod gym;
mod parameters;
mod rpc;
pub mod schema;
mod tools;

pub use frame::{ClientFrame, ErrorCode, ErrorFrame, FieldError, observation_frame, rpc_frame, state_frame};
pub use parameters::{ResetParameters, StepAction, ViewportSize, WantedObservation};
pub use rpc::{RpcAnswer, RpcCall, RpcErrorCode};
pub use tools::{ToolFailure, action_of, tools};

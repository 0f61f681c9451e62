//! Queries the engine, or determines why it does not answer.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use super::folder;
use crate::facts::{Absence, AnsweringEngine, EngineState};
use arenad_engine::{Engine, EngineError};
use arenad_model::error::describe;

pub(super) async fn look(engine: &dyn Engine) -> EngineState {
    let endpoint = engine.endpoint().to_owned();
    match engine.details().await {
        Ok(details) => {
            let data_root = folder::look(details.version.root.clone()).await;
            // Copies are free if files share their blocks, so there is no speed to measure.
            let copy_speed = match data_root.reflinks {
                Some(false) => folder::copy_speed(data_root.path.clone()).await,
                Some(true) | None => None,
            };
            let subnets = engine.subnets().await.unwrap_or_default();
            EngineState::Answers(Box::new(AnsweringEngine { endpoint, details, data_root, copy_speed, subnets }))
        }
        Err(EngineError::TooOld { endpoint, found }) => EngineState::TooOld { endpoint, api: found },
        Err(error) => EngineState::Away { why: absence(&endpoint, &error), endpoint },
    }
}

/// Returns the reason why an engine does not answer. The client's error does not distinguish a missing socket from a
/// forbidden one, so this connects once more.
pub(crate) fn absence(endpoint: &str, error: &EngineError) -> Absence {
    let other = Absence::Other(describe(error));
    let Some(socket) = endpoint.strip_prefix("unix://").map(Path::new) else { return other };
    match UnixStream::connect(socket).map_err(|error| error.kind()) {
        Err(ErrorKind::NotFound) => Absence::NoSocket,
        Err(ErrorKind::ConnectionRefused) => Absence::NobodyListens,
        Err(ErrorKind::PermissionDenied) => Absence::Denied { group: group_of(socket) },
        Ok(_) | Err(_) => other,
    }
}

fn group_of(path: &Path) -> Option<String> {
    let gid = path.metadata().ok()?.gid().to_string();
    let groups = std::fs::read_to_string("/etc/group").ok()?;
    // The format is name:password:gid:members.
    let found = groups.lines().find(|line| line.split(':').nth(2) == Some(gid.as_str()))?;
    // A user cannot simply join root's group, so that group is not suggested.
    found.split(':').next().filter(|name| *name != "root").map(str::to_owned)
}

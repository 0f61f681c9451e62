//! The program of images without an installed program: it runs until it is stopped and does nothing.

use std::sync::Arc;
use std::time::Duration;

use super::program::{
    CommandOutcome, ContainerView, ProcessLife, Program, ProgramMaker, ProgramRequest, ProgramResponse,
};

struct Idle;

pub(super) fn maker() -> ProgramMaker {
    Arc::new(|| Box::new(Idle))
}

impl Program for Idle {
    fn start(&mut self, _inside: &mut ContainerView<'_>) -> ProcessLife {
        ProcessLife::Serves
    }

    fn is_listening(&self, _port: u16, _uptime: Duration) -> bool {
        false
    }

    fn answer(&mut self, _request: &ProgramRequest, _inside: &mut ContainerView<'_>) -> ProgramResponse {
        ProgramResponse::text(404, "nothing is here\n")
    }

    fn run(&mut self, command: &[String], _user: Option<&str>, _inside: &mut ContainerView<'_>) -> CommandOutcome {
        match command.first().map(String::as_str) {
            Some("true") => CommandOutcome::code(0),
            Some("false") => CommandOutcome::code(1),
            _ => CommandOutcome { stderr: format!("{command:?}: not found\n"), ..CommandOutcome::code(127) },
        }
    }
}

//! Health checks that the engine runs.

use super::support::{command, period};
use crate::raw::compose_parts::{CommandLine, RawHealthCheck};
use crate::scope::Scope;
use arenad_model::service::HealthCheck;
use std::time::Duration;

pub(super) fn health_check(scope: Scope<'_>, raw: &RawHealthCheck) -> HealthCheck {
    let at = |key: &str, raw| Option::map(raw, |raw| period(scope.key(key), Some(raw), Duration::ZERO));
    HealthCheck {
        test: test(scope, raw),
        interval: at("interval", raw.interval.as_ref()),
        timeout: at("timeout", raw.timeout.as_ref()),
        retries: raw.retries,
        start_period: at("start_period", raw.start_period.as_ref()),
    }
}

fn test(scope: Scope<'_>, raw: &RawHealthCheck) -> Vec<String> {
    let none = || vec!["NONE".to_owned()];
    if raw.disable == Some(true) {
        if raw.test.is_some() {
            scope
                .key("test")
                .key_error("conflict", "a health check that is disabled has a test")
                .help("remove `disable` or `test`")
                .report();
        }
        return none();
    }
    let scope_of_test = scope.key("test");
    match &raw.test {
        None if scope.has("test") => none(),
        None => {
            scope
                .key_error("missing-key", "the health check has no `test`")
                .expected("`test`: `[CMD, program, argument]`, `[CMD-SHELL, line]` or a text")
                .help("write `disable: true` to switch off the image's own")
                .report();
            none()
        }
        Some(CommandLine::Text(line)) => {
            super::support::filled(scope_of_test, line, "the test");
            vec!["CMD-SHELL".to_owned(), line.clone()]
        }
        Some(CommandLine::Words(words)) => {
            let is_complete = match words.first().map(String::as_str) {
                Some("NONE") => words.len() == 1,
                Some("CMD-SHELL") => words.len() == 2,
                Some("CMD") => words.len() >= 2,
                _ => false,
            };
            if !is_complete {
                scope_of_test
                    .error("value", "the test does not say how it is run")
                    .expected("`[CMD, program, argument]`, `[CMD-SHELL, line]` or `[NONE]`")
                    .report();
            }
            command(scope_of_test, words);
            words.clone()
        }
    }
}

//! The choice of an environment for a request that names none: the only one that is up, or the only one that has the
//! subject of the request. The command line and the Python client both rely on it.

use axum::http::StatusCode;

use super::Api;
use super::error::ApiError;
use arenad_model::site::Environment;

/// The subject of a request, for messages.
pub(super) struct RequestSubject {
    /// A description such as `task shopping.order.1`.
    pub(super) what: String,
    /// The error code for the case that no environment has the subject.
    pub(super) unknown: &'static str,
}

/// Returns the environment that is meant. If only one is up, it is chosen without a test, so that errors in the request
/// are reported for that environment.
pub(super) fn environment(
    api: &Api,
    subject: &RequestSubject,
    has: impl Fn(&Environment) -> bool,
) -> Result<String, ApiError> {
    let up: Vec<Environment> = api.environments.list().into_iter().map(|(definition, _)| definition).collect();
    let names: Vec<&str> = up.iter().map(|definition| definition.name.as_str()).collect();
    let having = match up.as_slice() {
        [_] => names.clone(),
        several => several.iter().filter(|it| has(it)).map(|it| it.name.as_str()).collect(),
    };
    choose(subject, &names, &having)
}

fn choose(subject: &RequestSubject, up: &[&str], having: &[&str]) -> Result<String, ApiError> {
    let what = &subject.what;
    match having {
        [only] => Ok((*only).to_owned()),
        [] if up.is_empty() => {
            let detail = format!("no environment is up that could have {what}");
            Err(ApiError::new(StatusCode::NOT_FOUND, "unknown_environment", detail)
                .hint("bring it up with `arenad up`"))
        }
        [] => {
            let detail = format!("no environment that is up has {what}; up are {}", up.join(", "));
            Err(ApiError::new(StatusCode::NOT_FOUND, subject.unknown, detail)
                .hint("correct the name, bring its environment up, or name the environment"))
        }
        several => {
            let detail = format!("{what} belongs to several environments that are up: {}", several.join(", "));
            let options: Vec<String> = several.iter().map(|name| format!("--environment {name}")).collect();
            let hint = format!("name one with {}; environment= in Python", options.join(" or "));
            Err(ApiError::new(StatusCode::CONFLICT, "which_environment", detail).hint(hint))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(up: &[&str], having: &[&str]) -> Result<String, String> {
        let subject = RequestSubject { what: "task a.b".to_owned(), unknown: "unknown_task" };
        choose(&subject, up, having).map_err(|error| format!("{error:?}"))
    }

    #[test]
    fn one_is_taken_and_several_are_named() {
        assert_eq!(chosen(&["mini", "tracker"], &["tracker"]), Ok("tracker".to_owned()));
        let several = chosen(&["mini", "tracker"], &["mini", "tracker"]).expect_err("several");
        assert!(several.contains("which_environment") && several.contains("--environment tracker"), "{several}");
        assert!(chosen(&["mini", "tracker"], &[]).expect_err("none").contains("unknown_task"));
        assert!(chosen(&[], &[]).expect_err("nothing").contains("unknown_environment"));
    }
}

//! jq filters: this module compiles them; locators run them in a confined process.

use jaq_core::load::{self, Arena, File, Loader};
use jaq_core::{Compiler, data};

use super::QueryError;

/// A filter that can be run on JSON.
pub(crate) type Filter = jaq_core::Filter<data::JustLut<jaq_json::Val>>;

/// The maximum length of a filter, in bytes.
const LENGTH_MAX: usize = 64 << 10;

/// The maximum length of a filter that [`check`] compiles, in bytes, and the size of the stack that it uses for that,
/// in bytes. Both are needed because the parser recurses into brackets, and filters come from clients.
const CHECKED_MAX: usize = 2000;
const STACK: usize = 64 << 20;

/// Compiles a filter, which may use jq's standard functions.
///
/// Errors: the defect of the filter, with its position if it is known.
pub fn compile(filter: &str) -> Result<Filter, QueryError> {
    check_length(filter)?;
    let arena = Arena::default();
    let definitions = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
    let functions = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
    let modules = Loader::new(definitions).load(&arena, File { code: filter, path: () }).map_err(|errors| {
        let first = errors.first().map_or_else(String::new, |(_, error)| match error {
            load::Error::Io(files) => format!("it includes {} files", files.len()),
            load::Error::Lex(errors) => near(errors.first().map(|(_, rest)| *rest)),
            load::Error::Parse(errors) => near(errors.first().map(|(_, rest)| *rest)),
        });
        QueryError(first)
    })?;
    Compiler::default().with_funs(functions).compile(modules).map_err(|errors| {
        let unknown = errors.first().and_then(|(_, errors)| errors.first());
        QueryError(unknown.map_or_else(String::new, |(name, kind)| format!("{} `{name}` is not known", kind.as_str())))
    })
}

/// Checks a filter without running it. A filter that is too long to be parsed safely is assumed to be valid.
///
/// Errors: as for [`compile`].
pub fn check(filter: &str) -> Result<(), QueryError> {
    check_length(filter)?;
    if filter.len() > CHECKED_MAX {
        return Ok(());
    }
    std::thread::scope(|scope| {
        let work = || compile(filter).map(drop);
        match std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work).map(|work| work.join()) {
            Ok(Ok(read)) => read,
            // The thread could not start, or the parser panicked. Running the filter will report the error.
            Ok(Err(_)) | Err(_) => Ok(()),
        }
    })
}

fn check_length(filter: &str) -> Result<(), QueryError> {
    match filter.len() > LENGTH_MAX {
        true => Err(format!("it has {} bytes, and at most {LENGTH_MAX} are read", filter.len()).into()),
        false => Ok(()),
    }
}

fn near(rest: Option<&str>) -> String {
    match rest.map(str::trim_start) {
        Some("") | None => "it ends too early".to_owned(),
        Some(rest) => format!("near `{}`", rest.chars().take(20).collect::<String>()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_read_without_being_run() {
        assert_eq!(check("[limit(10; repeat(1))] | map({a: .}) | halt"), Ok(()));
        assert!(check(".items [").is_err_and(|error| error.to_string().contains("ends too early")));
        assert!(check(".a | nonsense").is_err_and(|error| error.to_string().contains("nonsense")));
        assert!(check(&"(".repeat(CHECKED_MAX)).is_err(), "and the stack suffices");
        assert!(check(&"-".repeat(CHECKED_MAX)).is_err());
        assert_eq!(check(&"[".repeat(LENGTH_MAX)), Ok(()), "it is read where it is run, in a process of its own");
        assert!(check(&"[".repeat(LENGTH_MAX + 1)).is_err_and(|error| error.to_string().contains("at most")));
    }
}

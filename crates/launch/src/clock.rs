//! Gives containers a clock that differs from the host's: libfaketime is loaded into every program that a container
//! runs.
//!
//! libfaketime does not affect programs that call the kernel without the C library (most Go programs), clear their
//! environment or run with another user's rights. [`check_clock`] therefore reads the containers' time before anything
//! relies on it.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::{Incarnation, LaunchError};
use arenad_engine::Engine;
use arenad_model::clock::ClockSetting;
use arenad_model::service::ServiceSpec;
use arenad_model::site::Site;

/// The path of the library in Debian and its derivatives; the loader replaces `$LIB` by the architecture's folder.
const LIBRARY: &str = "/usr/$LIB/faketime/libfaketime.so.1";

/// The time limit for `date` in a container.
const PATIENCE: Duration = Duration::from_secs(20);

/// Returns the variables that are added to a service's environment; none if the service shows the host's time.
pub(super) fn variables(
    site: &Site,
    service: &ServiceSpec,
    setting: Option<&ClockSetting>,
) -> BTreeMap<String, String> {
    let sees_it = site.clock.as_ref().is_some_and(|clock| clock.services.contains(&service.name));
    let Some(setting) = setting.filter(|_| sees_it) else { return BTreeMap::new() };
    let mut variables: BTreeMap<String, String> =
        setting.variables().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let preloaded = match service.environment.get("LD_PRELOAD") {
        Some(other) => format!("{LIBRARY}:{other}"),
        None => LIBRARY.to_owned(),
    };
    variables.insert("LD_PRELOAD".to_owned(), preloaded);
    variables
}

/// Checks that the containers show the time that they were set to.
///
/// Errors: [`LaunchError::Clock`] if a container shows another time or none; [`LaunchError::Engine`] if it cannot be asked.
pub async fn check_clock(
    engine: &dyn Engine,
    site: &Site,
    incarnation: &Incarnation,
    setting: &ClockSetting,
) -> Result<(), LaunchError> {
    let command = ["date".to_owned(), "+%s".to_owned()];
    for service in site.clock.iter().flat_map(|clock| &clock.services) {
        let Some(handle) = incarnation.containers.get(service) else { continue };
        let wrong = |what: String| LaunchError::Clock { service: service.clone(), wanted: setting.shows(), what };
        let said = engine.exec(handle, &command, None, PATIENCE).await?;
        let shown = said.stdout.trim().parse::<i64>().map_err(|_| {
            wrong(format!("`date` says nothing that is a time: {}{}", said.stdout.trim(), said.stderr.trim()))
        })?;
        if !setting.allows(shown, Timestamp::now()) {
            let shown = Timestamp::from_second(shown).map_or_else(|_| shown.to_string(), |time| time.to_string());
            return Err(wrong(format!("it shows {shown}; is libfaketime in its image, as {LIBRARY}?")));
        }
    }
    Ok(())
}

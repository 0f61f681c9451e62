//! The instances that a request is about.

use axum::http::StatusCode;

use crate::api::{Api, ApiError};
use arenad_compat::address::{CompatSubject, FIRST_SLOT};
use arenad_instance::InstanceHandle;
use arenad_model::ids::EnvironmentName;
use arenad_model::reset_scope::ResetScope;

/// The instances of a request, in the definition's order, and the extent of its reset.
#[derive(Clone)]
pub(super) struct ResetTargets {
    pub(super) scope: ResetScope,
    pub(super) instances: Vec<InstanceHandle>,
}

/// Finds the instances that a request is about. Sites that all episodes share have no slots of their own, so further
/// slots are complete without them.
pub(super) fn find(api: &Api, subject: &CompatSubject) -> Result<ResetTargets, ApiError> {
    let environment = environment(api, subject)?;
    let name = environment.as_str();
    let instances = match &subject.site {
        Some(site) => vec![api.environments.choose_slot(name, &format!("{site}:{}", subject.slot))?],
        None => {
            let first = api.environments.choose(name, &[])?;
            let own = first.iter().filter(|instance| subject.slot == FIRST_SLOT || !instance.site.is_shared());
            let found = own.map(|instance| api.environments.numbered(instance, subject.slot));
            found.collect::<Result<Vec<_>, _>>()?
        }
    };
    if instances.is_empty() {
        let detail = format!("no site of {environment} has a slot {}", subject.slot);
        return Err(ApiError::new(StatusCode::NOT_FOUND, "unknown_slot", detail));
    }
    Ok(ResetTargets { scope: ResetScope { environment, slot: subject.slot, site: subject.site.clone() }, instances })
}

/// Returns the environment that is named, or else the only one that is up. One that could not be restored counts: the
/// client may mean it, and would otherwise reset another one.
fn environment(api: &Api, subject: &CompatSubject) -> Result<EnvironmentName, ApiError> {
    if let Some(named) = &subject.environment {
        return Ok(named.clone());
    }
    let up = api.environments.list().into_iter().map(|(definition, _)| definition.name.to_string());
    let mut known: Vec<String> = up.chain(api.environments.stranded().into_iter().map(|lost| lost.name)).collect();
    known.sort();
    known.dedup();
    match known.as_slice() {
        [] => Err(ApiError::new(StatusCode::NOT_FOUND, "unknown_environment", "no environment is up")
            .hint("bring one up with `arenad up`")),
        [only] => EnvironmentName::parse(only).map_err(|error| ApiError::bad_request(error.to_string())),
        several => {
            let detail = format!("several environments are up: {}", several.join(", "));
            let bases: Vec<String> = several.iter().map(|name| format!("/environments/{name}")).collect();
            Err(ApiError::new(StatusCode::CONFLICT, "which_environment", detail)
                .hint(format!("append {} to the base URL", bases.join(" or "))))
        }
    }
}

//! Restoring the environments of an earlier daemon.

use super::EnvironmentRegistry;
use crate::slots::is_public;
use crate::stranded::Stranded;
use arenad_model::error::describe;
use arenad_model::event::EventKind;
use arenad_model::instance::InstanceId;
use arenad_model::request_queue::Purpose;
use arenad_store::{StoreError, StoredInstance};

impl EnvironmentRegistry {
    /// Restores the environments of an earlier daemon. It is repeated every minute for environments that could not be
    /// restored.
    pub(crate) async fn restore(&self) -> Result<(), StoreError> {
        let _turn = self.change.lock().await;
        let mut misses_further = false;
        for stored in self.shared.store.environments().await? {
            let name = stored.name.clone();
            let mut rows = self.shared.store.instances(&name).await?;
            rows.retain(|row| row.desired_up);
            // Some of the environment's sites may be up already: the others were on an engine that did not answer when
            // these came up.
            let is_up = self.read(|running| running.contains_key(&name));
            rows.retain(|row| !self.has_driver(&row.id));
            misses_further |= rows.iter().any(|row| !is_public(&row.id));
            // Further slots follow their sites.
            let firsts: Vec<&StoredInstance> = rows.iter().filter(|row| is_public(&row.id)).collect();
            if firsts.is_empty() {
                if !is_up {
                    self.shared.store.forget_environment(&name).await?;
                }
                continue;
            }
            let definition = self.read_definition(&stored);
            // Sites on this engine are restored, regardless of the sites on other engines.
            let (mut wanted, mut elsewhere, mut other) = (Vec::new(), Vec::new(), None);
            for row in firsts {
                match self.shared.store.other_engine_of(&row.id).await? {
                    None => wanted.push(row.id.site.to_string()),
                    Some(engine) => {
                        elsewhere.push(row.id.site.to_string());
                        other = Some(engine);
                    }
                }
            }
            if is_up && wanted.is_empty() {
                continue;
            }
            if let Some(other) = other {
                if wanted.is_empty() {
                    let stranded = Stranded::on_other_engine(&name, definition.ok(), rows, &other.endpoint);
                    let message = format!("environment {name} was not restored: {}", stranded.trouble.reason);
                    if self.stranded.keep(stranded) {
                        self.shared.events.note(EventKind::EnvironmentElsewhere, None, &message).await;
                    }
                    continue;
                }
                let message = format!(
                    "{} of environment {name} was not restored: the containers are on another engine, which was at {}",
                    elsewhere.join(", "),
                    other.endpoint
                );
                self.shared.events.note(EventKind::EnvironmentElsewhere, None, &message).await;
            }
            let known = definition.as_ref().ok().cloned();
            let begun = match definition {
                Ok(definition) => self.up_in_turn(stored, definition, &wanted, Purpose::Restore).await,
                Err(error) => Err(error),
            };
            if let Err(error) = begun {
                if is_up {
                    tracing::warn!("{} of {name} cannot be restored: {}", wanted.join(", "), describe(&error));
                    continue;
                }
                let stranded = Stranded::new(&name, known, rows, &error);
                let message = format!("environment {name} could not be restored: {}", describe(&error));
                if self.stranded.keep(stranded) {
                    self.shared.events.note(EventKind::EnvironmentFailed, None, &message).await;
                }
            }
        }
        // Usually all have a driver, and the rows need not be read again.
        if misses_further { self.restore_further().await } else { Ok(()) }
    }

    pub(super) fn has_driver(&self, id: &InstanceId) -> bool {
        self.slots.instance(id).is_some()
    }
}

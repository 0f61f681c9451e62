//! The labels on all objects that arenad creates. Reconciliation relies on them: a container, network, volume or image
//! belongs to this installation only if it bears the installation's id.

use std::collections::BTreeMap;

use arenad_model::instance::InstanceId;

/// The id of the daemon's state directory; two daemons on one engine never touch each other's objects.
pub const INSTALLATION: &str = "dev.arenad.installation";
/// The name of the environment.
pub const ENVIRONMENT: &str = "dev.arenad.environment";
/// The name of the site.
pub const SITE: &str = "dev.arenad.site";
/// The id that the object is filed under, such as `mini/shopping/1`. All generations of a site are filed under the id
/// with number 1, in whichever slot they serve; the containers in which a baseline is built are filed under the slot
/// that builds it.
pub const INSTANCE: &str = "dev.arenad.instance";
/// The name of the service in the Compose file.
pub const SERVICE: &str = "dev.arenad.service";
/// The number of the generation that the object was created for. No two generations of a site have the same number.
pub const GENERATION: &str = "dev.arenad.generation";
/// The snapshot that the container was made from, or that the image belongs to.
pub(crate) const SNAPSHOT: &str = "dev.arenad.snapshot";
/// The role of the object: `instance`, `builder` (builds a baseline) or `snapshot`.
pub const ROLE: &str = "dev.arenad.role";
/// On built images: the SHA-256 over context, Dockerfile, arguments and target.
pub const BUILD_INPUTS: &str = "dev.arenad.build-inputs";
/// On the stages of multi-stage builds, set by the Dockerfiles: stages have no name and are found by this label.
pub const BUILD_STAGE: &str = "dev.arenad.build-stage";
/// On volumes: the path at which the volume is mounted.
pub const MOUNT_TARGET: &str = "dev.arenad.mount-target";

/// The role of the containers of serving instances and of standbys.
pub const ROLE_INSTANCE: &str = "instance";
/// The role of the containers in which a baseline is built.
pub const ROLE_BUILDER: &str = "builder";
/// The role of committed images, which belong to snapshots.
pub const ROLE_SNAPSHOT: &str = "snapshot";

/// Returns the id that the objects of a role are filed under if they are made for an instance.
pub fn filed_under(id: &InstanceId, role: &str) -> InstanceId {
    if role == ROLE_BUILDER { id.clone() } else { id.owner() }
}

/// The owner of a container, network or volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ownership {
    /// The id of the installation.
    pub installation: String,
    /// The name of the environment.
    pub environment: String,
    /// The name of the site.
    pub site: String,
    /// The id that the object is filed under: see [`INSTANCE`].
    pub instance: String,
    /// The number of the generation.
    pub generation: u64,
    /// The role: [`ROLE_INSTANCE`] or [`ROLE_BUILDER`].
    pub role: &'static str,
    /// The snapshot that the object is created from; empty for builders, which start from plain images.
    pub snapshot: String,
}

impl Ownership {
    /// Returns the ownership of a generation, or of a builder, that is made for an instance.
    pub fn of(installation: &str, id: &InstanceId, generation: u64, role: &'static str, snapshot: &str) -> Self {
        Self {
            installation: installation.to_owned(),
            environment: id.environment.to_string(),
            site: id.site.to_string(),
            instance: filed_under(id, role).to_string(),
            generation,
            role,
            snapshot: snapshot.to_owned(),
        }
    }

    /// Returns the labels of an object that belongs to the instance as a whole: a network, a volume.
    pub fn labels(&self) -> BTreeMap<String, String> {
        [
            (INSTALLATION, self.installation.clone()),
            (ENVIRONMENT, self.environment.clone()),
            (SITE, self.site.clone()),
            (INSTANCE, self.instance.clone()),
            (GENERATION, self.generation.to_string()),
            (ROLE, self.role.to_owned()),
            (SNAPSHOT, self.snapshot.clone()),
        ]
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
    }

    /// Returns the labels of one service's container: arenad's, and those by which Compose's own tools group
    /// containers.
    pub fn container_labels(&self, service: &str) -> BTreeMap<String, String> {
        let mut labels = self.labels();
        labels.insert(SERVICE.to_owned(), service.to_owned());
        labels.insert("com.docker.compose.project".to_owned(), format!("arenad-{}", self.environment));
        labels.insert("com.docker.compose.service".to_owned(), service.to_owned());
        labels.insert("com.docker.compose.container-number".to_owned(), "1".to_owned());
        labels.insert("com.docker.compose.oneoff".to_owned(), "False".to_owned());
        labels
    }
}

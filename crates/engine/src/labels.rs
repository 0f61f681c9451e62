//! The labels on everything that arenad creates. They are what reconciliation trusts: a container, network, volume or
//! image belongs to an installation if it bears that installation's id, and to nobody here otherwise.

use std::collections::BTreeMap;

use arenad_model::instance::InstanceId;

/// The id of the daemon's state directory; two daemons on one engine never touch each other's things.
pub const INSTALLATION: &str = "dev.arenad.installation";
/// The environment's name.
pub const ENVIRONMENT: &str = "dev.arenad.environment";
/// The site's name.
pub const SITE: &str = "dev.arenad.site";
/// The instance's id, such as `mini/shopping/1`.
pub const INSTANCE: &str = "dev.arenad.instance";
/// The service's name in the Compose file.
pub const SERVICE: &str = "dev.arenad.service";
/// The instance's generation: counts the times that its containers were made anew.
pub const GENERATION: &str = "dev.arenad.generation";
/// The snapshot that the container was made from, or that the image belongs to.
pub const SNAPSHOT: &str = "dev.arenad.snapshot";
/// `instance`, `builder` (makes a baseline) or `snapshot`.
pub const ROLE: &str = "dev.arenad.role";
/// On built images: SHA-256 over context, Dockerfile, arguments and target.
pub const BUILD_INPUTS: &str = "dev.arenad.build-inputs";
/// On the stages of multi-stage builds, set by the Dockerfiles: they have no name, and this finds them again.
pub const BUILD_STAGE: &str = "dev.arenad.build-stage";
/// On volumes: the path at which the volume is mounted.
pub const MOUNT_TARGET: &str = "dev.arenad.mount-target";

/// The role of a serving or standby instance's containers.
pub const ROLE_INSTANCE: &str = "instance";
/// The role of the containers that a baseline is being made in.
pub const ROLE_BUILDER: &str = "builder";
/// The role of committed images.
pub const ROLE_SNAPSHOT: &str = "snapshot";

/// What a container, network or volume belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ownership {
    /// The installation's id.
    pub installation: String,
    /// The environment's name.
    pub environment: String,
    /// The site's name.
    pub site: String,
    /// The instance's id.
    pub instance: String,
    /// The instance's generation.
    pub generation: u64,
    /// [`ROLE_INSTANCE`] or [`ROLE_BUILDER`].
    pub role: &'static str,
    /// The snapshot it is made from; empty for builders, which start from plain images.
    pub snapshot: String,
}

impl Ownership {
    /// What belongs to a generation of an instance.
    pub fn of(installation: &str, id: &InstanceId, generation: u64, role: &'static str, snapshot: &str) -> Self {
        Self {
            installation: installation.to_owned(),
            environment: id.environment.to_string(),
            site: id.site.to_string(),
            instance: id.to_string(),
            generation,
            role,
            snapshot: snapshot.to_owned(),
        }
    }

    /// The labels of something that belongs to the instance as a whole: a network, a volume.
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

    /// The labels of one service's container: ours, and those by which Compose's own tools group containers.
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

//! One thing that was found, fine or not.

/// How grave a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// As it should be.
    Ok,
    /// Worth knowing; nothing needs to be done.
    Note,
    /// Works, but slower, or not for everything.
    Warning,
    /// Something will not work until it is cured.
    Problem,
}

impl Level {
    /// As it is printed, and as JSON has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// What a finding is about; findings are shown in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Area {
    /// The container engine.
    Engine,
    /// File systems.
    Storage,
    /// Space, memory, processors.
    Capacity,
    /// Addresses, ports, filters.
    Network,
    /// The system and the programs on it.
    Host,
    /// Images of the environment.
    Images,
}

impl Area {
    /// As it is printed, and as JSON has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Engine => "engine",
            Self::Storage => "storage",
            Self::Capacity => "capacity",
            Self::Network => "network",
            Self::Host => "host",
            Self::Images => "images",
        }
    }
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Its name for programs; the same check has the same id whatever it found.
    pub id: &'static str,
    /// What it is about.
    pub area: Area,
    /// How grave it is.
    pub level: Level,
    /// Which of several it is about: a site, an image, a folder.
    pub subject: Option<String>,
    /// What was seen.
    pub seen: String,
    /// What follows from it.
    pub consequence: Option<String>,
    /// What to do, a command where there is one.
    pub cure: Option<String>,
}

impl Finding {
    /// A finding without consequence and cure.
    pub fn new(area: Area, id: &'static str, level: Level, seen: impl Into<String>) -> Self {
        Self { id, area, level, subject: None, seen: seen.into(), consequence: None, cure: None }
    }

    /// The same about one of several.
    pub fn about(mut self, subject: impl ToString) -> Self {
        self.subject = Some(subject.to_string());
        self
    }

    /// The same with what follows from it.
    pub fn so(mut self, consequence: impl Into<String>) -> Self {
        self.consequence = Some(consequence.into());
        self
    }

    /// The same with what to do.
    pub fn cure(mut self, cure: impl Into<String>) -> Self {
        self.cure = Some(cure.into());
        self
    }
}

impl From<&Finding> for arenad_api::Finding {
    fn from(finding: &Finding) -> Self {
        Self {
            id: finding.id.to_owned(),
            area: finding.area.name().to_owned(),
            level: finding.level.name().to_owned(),
            subject: finding.subject.clone(),
            seen: finding.seen.clone(),
            consequence: finding.consequence.clone(),
            cure: finding.cure.clone(),
        }
    }
}

//! One finding of the doctor, of any level.

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The fact is as it should be.
    Ok,
    /// The fact is worth knowing, but requires no action.
    Note,
    /// A function works, but more slowly, or not in every case.
    Warning,
    /// A function will fail until the cause is removed.
    Problem,
}

impl Level {
    /// Returns the name in printed output and in JSON.
    pub fn name(self) -> &'static str {
        arenad_api::FindingLevel::from(self).word()
    }
}

/// The area of a finding; findings are shown in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Area {
    /// The container engine and the daemon that uses it.
    Engine,
    /// The file systems and their features.
    Storage,
    /// Disk space, memory and processors.
    Capacity,
    /// Addresses, ports and packet filters.
    Network,
    /// The system and its programs.
    Host,
    /// The images of the environment.
    Images,
}

impl Area {
    /// Returns the name in printed output and in JSON.
    pub fn name(self) -> &'static str {
        arenad_api::FindingArea::from(self).word()
    }
}

/// One fact with its consequence and its cure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The id for programs; the same check has the same id regardless of its result.
    pub id: &'static str,
    /// The area of the check.
    pub area: Area,
    /// The severity of the finding.
    pub level: Level,
    /// The object of a check that runs once for each of several: a site, an image, a folder.
    pub subject: Option<String>,
    /// The observed fact, as a sentence.
    pub seen: String,
    /// The effect of the fact on arenad.
    pub consequence: Option<String>,
    /// The action that removes the cause, as a command if possible.
    pub cure: Option<String>,
}

impl Finding {
    /// Creates a finding without consequence and cure.
    pub(crate) fn new(area: Area, id: &'static str, level: Level, seen: impl Into<String>) -> Self {
        Self { id, area, level, subject: None, seen: seen.into(), consequence: None, cure: None }
    }

    /// Sets the object of the finding.
    pub(crate) fn about(mut self, subject: impl ToString) -> Self {
        self.subject = Some(subject.to_string());
        self
    }

    /// Sets the consequence of the finding.
    pub fn so(mut self, consequence: impl Into<String>) -> Self {
        self.consequence = Some(consequence.into());
        self
    }

    /// Sets the cure of the finding.
    pub fn cure(mut self, cure: impl Into<String>) -> Self {
        self.cure = Some(cure.into());
        self
    }
}

impl From<Level> for arenad_api::FindingLevel {
    fn from(level: Level) -> Self {
        match level {
            Level::Ok => Self::Ok,
            Level::Note => Self::Note,
            Level::Warning => Self::Warning,
            Level::Problem => Self::Problem,
        }
    }
}

impl From<Area> for arenad_api::FindingArea {
    fn from(area: Area) -> Self {
        match area {
            Area::Engine => Self::Engine,
            Area::Storage => Self::Storage,
            Area::Capacity => Self::Capacity,
            Area::Network => Self::Network,
            Area::Host => Self::Host,
            Area::Images => Self::Images,
        }
    }
}

impl From<&Finding> for arenad_api::ReportedFinding {
    fn from(finding: &Finding) -> Self {
        Self {
            id: finding.id.to_owned(),
            area: finding.area.into(),
            level: finding.level.into(),
            subject: finding.subject.clone(),
            seen: finding.seen.clone(),
            consequence: finding.consequence.clone(),
            cure: finding.cure.clone(),
        }
    }
}

//! Finds orphans: objects of this installation in the engine and the state directory that neither the store nor a
//! driver claims. The decision is pure, and the same at start and every minute.
//!
//! ```text
//!   objects (listed first)  ──► Claims::judge ──► claimed:   stays, and is no longer a suspect
//!   claims (read afterwards)                  ──► unclear:   stays, because an operation may be creating it
//!                                             ──► left over: suspect ── for the whole grace period ──► removed
//! ```
//! Rows are not objects in this sense: reconciliation removes no snapshot, environment or instance from the store.
//!
//! The order of reading matters: first the objects, then the drivers, then the rows, then the drivers again. An object
//! that is listed and not claimed afterwards was not being created when the drivers were first read, and no later
//! object gets its name.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::instance::InstanceId;
use crate::snapshot::SnapshotId;

/// The kind of an object, in the order of removal: networks and volumes are removed after the containers that use them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ObjectKind {
    /// A container of the engine.
    Container,
    /// A network of the engine.
    Network,
    /// A volume of the engine.
    Volume,
    /// A tree of the state root.
    Tree,
    /// An image that was committed as a part of a snapshot.
    Image,
    /// The archive of a volume, in the state directory.
    Archive,
}

impl ObjectKind {
    fn word(self) -> &'static str {
        match self {
            Self::Container => "container",
            Self::Network => "network",
            Self::Volume => "volume",
            Self::Tree => "state",
            Self::Image => "image",
            Self::Archive => "archive",
        }
    }
}

/// The owner of an object, according to its labels or its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObjectOwner {
    /// A generation of a site, by the number under which its containers were created.
    Generation {
        /// The id that the generation is filed under ([`InstanceId::owner`]).
        instance: InstanceId,
        /// The number of the generation for which the object was created.
        made: u64,
    },
    /// The build of an instance's baseline.
    Builder {
        /// The id of the instance.
        instance: InstanceId,
    },
    /// A snapshot, by its id.
    Snapshot(SnapshotId),
    /// The snapshots whose rows name the object.
    SnapshotsThatNameIt,
}

/// An object that bears this installation's id, or is in its state directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thing {
    /// The kind of the object.
    pub kind: ObjectKind,
    /// The identifier by which the engine or the directory knows the object.
    pub id: String,
    /// The name that messages show.
    pub name: String,
    /// The owner of the object.
    pub owner: ObjectOwner,
}

impl Thing {
    /// Returns a description for messages, which differs from those of all other objects.
    pub fn describe(&self) -> String {
        format!("{} {}", self.kind.word(), self.name)
    }
}

/// The claims of the store and of the drivers.
#[derive(Debug, Clone, Default)]
pub struct Claims {
    /// The generations that rows request, that a driver of this daemon holds or that are standbys, by the id that they are
    /// filed under.
    pub generations: BTreeMap<InstanceId, BTreeSet<u64>>,
    /// The instances that an operation is working on.
    pub busy: BTreeSet<InstanceId>,
    /// The instances whose baseline could not be built, and whose containers are kept for inspection.
    pub kept_builders: BTreeSet<InstanceId>,
    /// The generations whose containers are on engines that are not in use, by instance.
    pub elsewhere: BTreeMap<InstanceId, BTreeSet<u64>>,
    /// The ids of the snapshots that have rows or are being imported.
    pub snapshots: BTreeSet<SnapshotId>,
    /// The images that those snapshots name.
    pub images: BTreeSet<String>,
    /// The archives that those snapshots name.
    pub archives: BTreeSet<String>,
    /// Whether archives are being imported that have no name yet.
    pub awaits_archives: bool,
}

/// The judgement of an object by the claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgement {
    /// The store or a driver claims the object.
    Claimed,
    /// An operation may be creating the object.
    Unclear,
    /// The object is an orphan: neither the store nor a driver claims it.
    LeftOver,
}

impl Claims {
    /// Adds a generation of an instance to the claims.
    pub fn claim(&mut self, instance: &InstanceId, made: u64) {
        self.generations.entry(instance.clone()).or_default().insert(made);
    }

    /// Judges an object by the claims.
    pub fn judge(&self, thing: &Thing) -> Judgement {
        let has = |generations: &BTreeMap<InstanceId, BTreeSet<u64>>, instance: &InstanceId, made: u64| {
            generations.get(instance).is_some_and(|known| known.contains(&made))
        };
        let is_claimed = match &thing.owner {
            ObjectOwner::Generation { instance, made } => {
                has(&self.generations, instance, *made)
                    // The containers of this generation are on another engine, but its trees are on this host.
                    || (thing.kind == ObjectKind::Tree && has(&self.elsewhere, instance, *made))
            }
            ObjectOwner::Builder { instance } => self.kept_builders.contains(instance),
            ObjectOwner::Snapshot(id) => self.snapshots.contains(id),
            ObjectOwner::SnapshotsThatNameIt => match thing.kind {
                ObjectKind::Image => self.images.contains(&thing.id),
                ObjectKind::Archive => self.archives.contains(&thing.id),
                ObjectKind::Container | ObjectKind::Network | ObjectKind::Volume | ObjectKind::Tree => true,
            },
        };
        let is_unclear = match &thing.owner {
            ObjectOwner::Generation { instance, .. } | ObjectOwner::Builder { instance } => {
                self.busy.contains(instance)
            }
            // A snapshot that is being taken has no row yet.
            ObjectOwner::Snapshot(_) => !self.busy.is_empty(),
            ObjectOwner::SnapshotsThatNameIt => {
                !self.busy.is_empty() || (self.awaits_archives && thing.kind == ObjectKind::Archive)
            }
        };
        match (is_claimed, is_unclear) {
            (true, _) => Judgement::Claimed,
            (false, true) => Judgement::Unclear,
            (false, false) => Judgement::LeftOver,
        }
    }
}

/// The objects that were orphans in the last pass, with the time since which they have been.
#[derive(Debug, Default)]
pub struct Suspects(BTreeMap<String, Duration>);

impl Suspects {
    /// Whether an object with this description ([`Thing::describe`]) was an orphan in the last pass.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }
}

/// Chooses the objects to remove now, in the order of removal: those that have been orphans for the whole `grace`
/// period. `now` is a time on a monotonic clock.
pub fn plan<'a>(
    things: &'a [Thing],
    claims: &Claims,
    suspects: &mut Suspects,
    now: Duration,
    grace: Duration,
) -> Vec<&'a Thing> {
    let mut still = BTreeMap::new();
    let mut due = Vec::new();
    for thing in things {
        let name = thing.describe();
        let since = suspects.0.get(&name).copied();
        match claims.judge(thing) {
            Judgement::Claimed => {}
            // The object may soon be claimed, or be an orphan as before, so it keeps its time.
            Judgement::Unclear => still.extend(since.map(|since| (name, since))),
            Judgement::LeftOver => {
                let since = since.unwrap_or(now);
                if now.saturating_sub(since) >= grace {
                    due.push(thing);
                }
                still.insert(name, since);
            }
        }
    }
    suspects.0 = still;
    due.sort_by_key(|thing| thing.kind);
    due
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GRACE: Duration = Duration::from_secs(45);
    const MINUTE: Duration = Duration::from_secs(60);

    fn thing(kind: ObjectKind, name: &str, owner: ObjectOwner) -> Thing {
        Thing { kind, id: name.to_owned(), name: name.to_owned(), owner }
    }

    fn id(text: &str) -> InstanceId {
        text.parse().expect("an id")
    }

    fn of(kind: ObjectKind, instance: &str, made: u64) -> Thing {
        let owner = ObjectOwner::Generation { instance: id(instance), made };
        thing(kind, &format!("{instance}-g{made}"), owner)
    }

    fn builder(instance: &str) -> Thing {
        let owner = ObjectOwner::Builder { instance: id(instance) };
        thing(ObjectKind::Container, &format!("{instance}-builder"), owner)
    }

    fn image(name: &str) -> Thing {
        thing(ObjectKind::Image, name, ObjectOwner::SnapshotsThatNameIt)
    }

    fn archive(name: &str) -> Thing {
        thing(ObjectKind::Archive, name, ObjectOwner::SnapshotsThatNameIt)
    }

    fn snapshot_tree(id: &str) -> Thing {
        thing(ObjectKind::Tree, &format!("{id}/db"), ObjectOwner::Snapshot(id.to_owned().into()))
    }

    fn claims() -> Claims {
        Claims {
            generations: BTreeMap::from([(id("mini/a/1"), [3, 5].into()), (id("mini/b/1"), [1].into())]),
            busy: [id("mini/b/1")].into(),
            kept_builders: BTreeSet::new(),
            elsewhere: BTreeMap::from([(id("mini/a/1"), [2].into())]),
            snapshots: [SnapshotId::from("kept".to_owned())].into(),
            images: ["sha256:kept".into()].into(),
            archives: ["kept.tar".into()].into(),
            awaits_archives: false,
        }
    }

    #[test]
    fn what_serves_and_what_stands_by_stays() {
        let judge = |instance, made| claims().judge(&of(ObjectKind::Container, instance, made));
        assert_eq!(judge("mini/a/1", 3), Judgement::Claimed);
        assert_eq!(judge("mini/a/1", 5), Judgement::Claimed);
        assert_eq!(judge("mini/a/1", 4), Judgement::LeftOver);
        assert_eq!(judge("mini/gone/1", 1), Judgement::LeftOver);
        assert_eq!(judge("mini/b/1", 7), Judgement::Unclear, "a busy instance is left alone");
    }

    #[test]
    fn a_builder_that_nobody_works_in_is_left_over() {
        assert_eq!(claims().judge(&builder("mini/a/1")), Judgement::LeftOver);
        assert_eq!(claims().judge(&builder("mini/b/1")), Judgement::Unclear);
    }

    #[test]
    fn trees_of_a_generation_on_another_engine_stay_and_its_containers_here_do_not() {
        assert_eq!(claims().judge(&of(ObjectKind::Tree, "mini/a/1", 2)), Judgement::Claimed);
        assert_eq!(claims().judge(&of(ObjectKind::Container, "mini/a/1", 2)), Judgement::LeftOver);
    }

    #[test]
    fn what_snapshots_name_stays_and_nothing_of_them_goes_while_one_may_be_taken() {
        let idle = Claims { busy: BTreeSet::new(), ..claims() };
        for (thing, idle_says, busy_says) in [
            (image("sha256:kept"), Judgement::Claimed, Judgement::Claimed),
            (image("sha256:other"), Judgement::LeftOver, Judgement::Unclear),
            (archive("kept.tar"), Judgement::Claimed, Judgement::Claimed),
            (archive("other.tar"), Judgement::LeftOver, Judgement::Unclear),
            (snapshot_tree("kept"), Judgement::Claimed, Judgement::Claimed),
            (snapshot_tree("other"), Judgement::LeftOver, Judgement::Unclear),
        ] {
            assert_eq!(idle.judge(&thing), idle_says, "{thing:?}");
            assert_eq!(claims().judge(&thing), busy_says, "{thing:?}");
        }
        let arriving = Claims { awaits_archives: true, ..idle };
        assert_eq!(arriving.judge(&archive("x.partial")), Judgement::Unclear);
        assert_eq!(arriving.judge(&image("sha256:other")), Judgement::LeftOver);
    }

    #[test]
    fn a_thing_goes_when_it_has_been_left_over_for_the_grace() {
        let mut suspects = Suspects::default();
        let things = [
            of(ObjectKind::Network, "mini/gone/1", 1),
            of(ObjectKind::Container, "mini/gone/1", 1),
            image("sha256:other"),
        ];
        let idle = Claims { busy: BTreeSet::new(), ..claims() };
        let pass = |suspects: &mut Suspects, claims: &Claims, now| {
            plan(&things, claims, suspects, now, GRACE).into_iter().map(Thing::describe).collect::<Vec<_>>()
        };
        assert!(pass(&mut suspects, &idle, MINUTE).is_empty());
        assert!(pass(&mut suspects, &idle, MINUTE + GRACE / 2).is_empty(), "two passes soon after each other");
        // Images are not judged while an operation works on any instance, but the suspects are not forgotten.
        let later = pass(&mut suspects, &claims(), MINUTE * 2);
        assert_eq!(later, ["container mini/gone/1-g1", "network mini/gone/1-g1"]);
        let names = ["container mini/gone/1-g1", "network mini/gone/1-g1", "image sha256:other"];
        assert_eq!(pass(&mut suspects, &idle, MINUTE * 3), names);
        assert_eq!(pass(&mut suspects, &idle, MINUTE * 4), names, "what could not be removed is tried again");
    }

    #[test]
    fn a_thing_that_was_claimed_in_between_begins_anew() {
        let mut suspects = Suspects::default();
        let things = [image("sha256:other")];
        let idle = Claims { busy: BTreeSet::new(), ..claims() };
        let taken = Claims { images: ["sha256:other".into()].into(), ..idle.clone() };
        assert!(plan(&things, &idle, &mut suspects, MINUTE, GRACE).is_empty());
        assert!(plan(&things, &taken, &mut suspects, MINUTE * 2, GRACE).is_empty());
        assert!(plan(&things, &idle, &mut suspects, MINUTE * 3, GRACE).is_empty());
        assert_eq!(plan(&things, &idle, &mut suspects, MINUTE * 4, GRACE).len(), 1);
    }

    #[test]
    fn at_a_start_there_is_no_grace() {
        let things = [of(ObjectKind::Container, "mini/gone/1", 1)];
        let due = plan(&things, &claims(), &mut Suspects::default(), MINUTE, Duration::ZERO);
        assert_eq!(due.len(), 1);
    }

    fn instances() -> impl Strategy<Value = String> {
        (0..4_u8).prop_map(|number| format!("mini/{number}/1"))
    }

    fn ids() -> impl Strategy<Value = InstanceId> {
        instances().prop_map(|instance| id(&instance))
    }

    fn things() -> impl Strategy<Value = Thing> {
        let kinds = prop::sample::select(vec![
            ObjectKind::Container,
            ObjectKind::Network,
            ObjectKind::Volume,
            ObjectKind::Tree,
        ]);
        let names = (0..6_u8).prop_map(|number| number.to_string());
        prop_oneof![
            (kinds, instances(), 0..5_u64).prop_map(|(kind, instance, made)| of(kind, &instance, made)),
            instances().prop_map(|instance| builder(&instance)),
            names.clone().prop_map(|name| image(&name)),
            names.clone().prop_map(|name| archive(&name)),
            names.prop_map(|name| snapshot_tree(&name)),
        ]
    }

    #[test]
    fn builders_that_somebody_looks_into_stay() {
        let claims = Claims { kept_builders: [id("mini/a/1")].into(), ..claims() };
        assert_eq!(claims.judge(&builder("mini/a/1")), Judgement::Claimed);
        assert_eq!(claims.judge(&builder("mini/c/1")), Judgement::LeftOver);
    }

    fn any_claims() -> impl Strategy<Value = Claims> {
        let generations = || prop::collection::btree_map(ids(), prop::collection::btree_set(0..5_u64, 0..4), 0..4);
        let names = || prop::collection::btree_set((0..6_u8).prop_map(|number| number.to_string()), 0..5);
        let busy = prop_oneof![Just(BTreeSet::new()), prop::collection::btree_set(ids(), 0..3)];
        let snapshots = names().prop_map(|names| names.into_iter().map(SnapshotId::from).collect());
        (generations(), busy, generations(), snapshots, names(), names(), any::<bool>()).prop_map(
            |(generations, busy, elsewhere, snapshots, images, archives, awaits_archives)| Claims {
                generations,
                busy,
                kept_builders: BTreeSet::new(),
                elsewhere,
                snapshots,
                images,
                archives,
                awaits_archives,
            },
        )
    }

    proptest! {
        #[test]
        fn nothing_that_is_claimed_in_the_making_or_young_is_ever_removed(
            passes in prop::collection::vec((prop::collection::vec(things(), 0..12), any_claims(), 0..90_u64), 1..8)
        ) {
            let mut suspects = Suspects::default();
            let mut now = Duration::ZERO;
            // The time since which each object has been found without being claimed, by description.
            let mut unclaimed: BTreeMap<String, Duration> = BTreeMap::new();
            for (mut things, claims, pause) in passes {
                things.sort_by_key(Thing::describe);
                things.dedup();
                now += Duration::from_secs(pause);
                let found: BTreeSet<String> = things.iter().map(Thing::describe).collect();
                unclaimed.retain(|name, _| found.contains(name));
                for thing in &things {
                    match claims.judge(thing) {
                        Judgement::Claimed => drop(unclaimed.remove(&thing.describe())),
                        Judgement::Unclear => {}
                        Judgement::LeftOver => drop(unclaimed.entry(thing.describe()).or_insert(now)),
                    }
                }
                let due = plan(&things, &claims, &mut suspects, now, GRACE);
                prop_assert!(due.is_sorted_by_key(|thing| thing.kind));
                for thing in due {
                    let is_wanted = match &thing.owner {
                        ObjectOwner::Generation { instance, made } => {
                            claims.busy.contains(instance)
                                || claims.generations.get(instance).is_some_and(|known| known.contains(made))
                                || thing.kind == ObjectKind::Tree
                                    && claims.elsewhere.get(instance).is_some_and(|known| known.contains(made))
                        }
                        ObjectOwner::Builder { instance } => claims.busy.contains(instance),
                        ObjectOwner::Snapshot(id) => claims.snapshots.contains(id) || !claims.busy.is_empty(),
                        ObjectOwner::SnapshotsThatNameIt => {
                            let named = if thing.kind == ObjectKind::Image { &claims.images } else { &claims.archives };
                            named.contains(&thing.id) || !claims.busy.is_empty()
                        }
                    };
                    prop_assert!(!is_wanted, "{thing:?} of {claims:?}");
                    let since = unclaimed.get(&thing.describe()).copied();
                    prop_assert!(since.is_some_and(|since| now - since >= GRACE), "{thing:?} is young");
                }
            }
        }
    }
}

//! Resetting an instance by the best way that is ready: left as it is, swapped for a standby, or made anew.

use std::sync::atomic::Ordering;
use std::time::Duration;

use jiff::Timestamp;
use tokio::net::TcpStream;
use tokio::sync::SetOnce;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::core::{Core, tell, unless};
use super::spare::Spare;
use super::standbys::{Chosen, KeptProof, MOST_RENEWALS};
use super::trouble::{self, Failure};
use crate::daemon::baseline::snapshot;
use crate::daemon::proof::Candidate;
use crate::daemon::store::{NewSwap, ResetEnd, Serving, StageTime, StoredSnapshot};
use crate::digest::{Lines, Taken};
use crate::domain::instance::{InstanceEvent, InstanceState};
use crate::domain::verify::Extent;
use crate::engine::CpuWeight;
use crate::fault::{self, Point};
use crate::launch::{self, Incarnation, LaunchError};
use crate::probes::describe;
use crate::reset::{ResetError, Rewind, Stages};

/// The tier that makes new containers, as it is stored and shown.
const RECREATE: &str = "recreate";
/// What is only read is not reset.
const KEEP: &str = "keep";
/// What was not touched is not reset.
const UNTOUCHED: &str = "untouched";
/// The tier that lets a standby take over.
const SWAP: &str = "swap";

/// How long a standby's entry may take to accept a connection.
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);

/// Why a reset goes no faster way than it does, as far as the definition asks for one.
#[derive(Debug, Default)]
struct Slower(String);

impl Slower {
    fn because(&mut self, why: String) {
        let between = if self.0.is_empty() { "" } else { "; " };
        self.0.push_str(between);
        self.0.push_str(&why);
    }

    fn told(&self) -> Option<String> {
        (!self.0.is_empty()).then(|| self.0.clone())
    }
}

impl Core {
    /// The snapshot of an id; none if none is named, which means the baseline.
    pub(super) async fn target(&self, id: Option<&str>) -> Result<Option<StoredSnapshot>, Failure> {
        let Some(id) = id else { return Ok(None) };
        let found = self.shared.store.snapshot(id).await?;
        found.map(Some).ok_or_else(|| Failure::NoSnapshot(id.to_owned()))
    }

    /// Brings the instance to a snapshot; to its baseline, if none is given.
    pub(super) async fn reset(
        &mut self,
        operation: &str,
        to: Option<StoredSnapshot>,
        begun: Instant,
        stages: &Stages,
        cancel: &CancellationToken,
    ) -> Result<(), Failure> {
        if self.is_only_read() && unless(cancel, stages.time("verify", self.is_kept(to.as_ref()))).await? {
            return self.leave(operation, KEEP, begun, stages, "it is only read, and as its snapshot").await;
        }
        self.standbys.expect_resets();
        self.snapshot = to.or_else(|| self.baseline.clone());
        let number = self.resets;
        self.resets += 1;
        stages.note("queue", begun.elapsed());
        let mut slower = Slower::default();
        if self.swap(operation, number, begun, stages, &mut slower).await? {
            return Ok(());
        }
        // First of all: from here on nothing that a client writes can be acknowledged and then lost.
        self.hold_traffic("is being reset");
        stages.note("hold", begun.elapsed());
        fault::reach(Point::ResetHeld).await;
        self.enter(InstanceEvent::ResetRequested).await;
        self.shared.store.begin_reset(operation, &self.id, RECREATE).await?;
        fault::reach(Point::ResetRecorded).await;
        let extent = self.site.reset.verify.extent(number, false);
        let work = self.bring_back(stages, extent, &mut slower);
        let result = unless(cancel, work).await.and_then(|result| result);
        let took = begun.elapsed();
        let (tier, outcome, reason) = match &result {
            Ok(tier) => (*tier, "done", slower.told()),
            Err(Failure::Superseded) => (RECREATE, "cancelled", None),
            Err(failure) => (RECREATE, "failed", Some(trouble::of(failure, &self.id).reason)),
        };
        let (duration_ms, stages) = (milliseconds(took), times(stages));
        let verified = result.is_ok().then(|| if self.proven.is_some() { extent } else { Extent::Nothing });
        let reason = reason.as_deref();
        let end = ResetEnd { strategy: tier, outcome, reason, duration_ms, stages: &stages, verified };
        self.shared.store.end_reset(operation, end).await?;
        if result.is_ok() {
            self.note_reset(duration_ms, tier, reason);
            self.prepare_spare();
        }
        result.map(drop)
    }

    /// Has clones made for the next rewind, unless there are some.
    fn prepare_spare(&mut self) {
        let Some(snapshot) = &self.snapshot else { return };
        if self.spare.as_ref().is_none_or(|spare| !spare.is_of(&snapshot.id)) {
            self.spare = Spare::begin(&self.shared, &self.site, snapshot);
        }
    }

    /// Brings the instance back to its snapshot, unless it is proven to be as that is.
    pub(super) async fn reset_if_dirty(
        &mut self,
        operation: &str,
        begun: Instant,
        stages: &Stages,
        cancel: &CancellationToken,
    ) -> Result<(), Failure> {
        let is_dirty = unless(cancel, stages.time("verify", self.is_dirty())).await?;
        if is_dirty {
            return self.reset(operation, None, begun, stages, cancel).await;
        }
        self.leave(operation, UNTOUCHED, begun, stages, "it is proven to be as its snapshot").await
    }

    /// Whether the instance may differ from its snapshot, for all that can be told.
    async fn is_dirty(&mut self) -> bool {
        // What was let in has changed something or not; whoever asks wants to be sure.
        if self.state() != InstanceState::Ready || self.route_stats().unsafe_requests > 0 {
            return true;
        }
        let (Some(snapshot), Some(incarnation), Some(last)) = (&self.snapshot, &self.incarnation, &self.proven) else {
            return true;
        };
        if self.baseline.as_ref().is_none_or(|baseline| baseline.id != snapshot.id) {
            return true;
        }
        let candidate = Candidate { shared: &self.shared, id: &self.id, site: &self.site, snapshot, incarnation };
        match candidate.prove_again(last, &Lines::passing()).await {
            Ok(None) => false,
            Ok(moved) => {
                self.proven = moved;
                false
            }
            Err(_) => true,
        }
    }

    /// Whether there is nothing to bring back to a snapshot, the baseline if none is given: the site is what it serves
    /// already, its probes say that it is well, and nobody has written to it.
    async fn is_kept(&mut self, to: Option<&StoredSnapshot>) -> bool {
        let id = |snapshot: &StoredSnapshot| snapshot.id.clone();
        let wanted = to.or(self.baseline.as_ref()).map(id);
        let Some(incarnation) = self.incarnation.as_ref().filter(|_| wanted == self.snapshot.as_ref().map(id)) else {
            return false;
        };
        let probes = &self.site.readiness.probes;
        self.shared.prober.round(probes, &self.site, incarnation, None).await.is_ok() && self.is_trusted().await
    }

    /// Notes a reset that had nothing to do.
    async fn leave(
        &self,
        operation: &str,
        tier: &'static str,
        begun: Instant,
        stages: &Stages,
        why: &str,
    ) -> Result<(), Failure> {
        self.shared.store.begin_reset(operation, &self.id, tier).await?;
        let verified = Some(if self.proven.is_some() { Extent::Moved } else { Extent::Nothing });
        let (duration_ms, stages) = (milliseconds(begun.elapsed()), times(stages));
        let end = ResetEnd { strategy: tier, outcome: "done", reason: None, duration_ms, stages: &stages, verified };
        self.shared.store.end_reset(operation, end).await?;
        self.forget_recorded();
        let message = format!("{} was left as it is: {why}", self.id);
        self.shared.events.note("instance.reset", Some(&self.id.to_string()), &message).await;
        Ok(())
    }

    /// Lets a standby take over; false if none can. What served goes to the pool, which brings it back or removes it.
    async fn swap(
        &mut self,
        operation: &str,
        number: u64,
        begun: Instant,
        stages: &Stages,
        slower: &mut Slower,
    ) -> Result<bool, Failure> {
        let Some(snapshot) = self.snapshot.clone() else { return Ok(false) };
        let extent = self.site.reset.verify.extent(number, true);
        if !self.standbys.has_ready(&snapshot.id) {
            self.await_resumed(stages).await;
        }
        while let Some((made, chosen)) = self.standbys.choose(&snapshot.id) {
            if let Err(reason) = self.wake(&chosen, &snapshot, extent, stages).await {
                let message = format!("standby {made} of {} is given up: {reason}", self.id);
                self.shared.events.note("standby.failed", Some(&self.id.to_string()), &message).await;
                self.standbys.reject(chosen.incarnation, &snapshot.id);
                slower.because(format!("a standby was given up: {reason}"));
                continue;
            }
            let verified = if chosen.proof.is_some() { extent } else { Extent::Nothing };
            self.switch_to(chosen, &snapshot, operation, verified, begun, stages).await?;
            return Ok(true);
        }
        self.standbys.why_none(&self.site.reset).into_iter().for_each(|why| slower.because(why));
        Ok(false)
    }

    /// Makes sure that a standby runs, answers, and is still as the snapshot.
    async fn wake(
        &self,
        chosen: &Chosen,
        snapshot: &StoredSnapshot,
        extent: Extent,
        stages: &Stages,
    ) -> Result<(), String> {
        fault::reach(Point::SwapChosen).await;
        let Chosen { incarnation, is_frozen, proof, .. } = chosen;
        if *is_frozen {
            let thawed = stages.time("thaw", launch::thaw(self.shared.engine.as_ref(), incarnation)).await;
            thawed.map_err(|error| describe(&error))?;
        }
        fault::reach(Point::SwapThawed).await;
        let entry = &self.site.entry;
        let Some(address) = incarnation.socket(&entry.service, entry.port) else {
            return Err("it has no address".to_owned());
        };
        let knock = async {
            let connecting = tokio::time::timeout(ANSWERS_WITHIN, TcpStream::connect(address));
            match stages.time("knock", connecting).await {
                Ok(Ok(_)) => Ok(()),
                Ok(Err(error)) => Err(format!("it does not answer: {error}")),
                Err(_) => Err(format!("it does not answer: no connection within {ANSWERS_WITHIN:?}")),
            }
        };
        let verify = async {
            let Some(proof) = proof else { return Ok(()) };
            let (shared, id, site) = (&self.shared, &self.id, &self.site);
            let candidate = Candidate { shared, id, site, snapshot, incarnation };
            // Where it is being looked at in the background, that is waited for: what has moved is compared already.
            let again = stages.time("verify", async { proof.lock().await.again(&candidate, extent).await }).await;
            again.map_err(|error| describe(&error))
        };
        // The first that fails is enough: servers of containers that are gone would be waited for in vain.
        tokio::try_join!(knock, verify)?;
        fault::reach(Point::SwapVerified).await;
        Ok(())
    }

    async fn switch_to(
        &mut self,
        chosen: Chosen,
        snapshot: &StoredSnapshot,
        operation: &str,
        verified: Extent,
        begun: Instant,
        stages: &Stages,
    ) -> Result<(), Failure> {
        let Chosen { mut incarnation, renewals, proof, .. } = chosen;
        let swap = NewSwap {
            id: operation,
            snapshot: &snapshot.id,
            duration_ms: milliseconds(begun.elapsed()),
            stages: &times(stages),
            verified,
        };
        let recorded = stages.time("record", self.shared.store.record_swap(&self.id, incarnation.made, &swap)).await;
        let Serving { generation, .. } = recorded?;
        fault::reach(Point::SwapRecorded).await;
        incarnation.generation = generation;
        let was_well = self.report.borrow().state.trouble().is_none();
        // What served may be of another snapshot, and then its containers are no use for this one.
        let served = self.report.borrow().snapshot.clone().unwrap_or_default();
        self.report.send_modify(|report| report.snapshot = Some(snapshot.id.clone()));
        self.is_open.store(true, Ordering::SeqCst);
        let used = self.incarnation.replace(incarnation);
        // One step: the route cuts every exchange with what served before, and lets nothing of it through afterwards.
        let switching = Instant::now();
        self.route_to_current();
        stages.note("switch", switching.elapsed());
        let took = begun.elapsed();
        fault::reach(Point::SwapSwitched).await;
        let untouched = self.untouched(used.as_ref());
        self.proven = self.end_proof(proof).await;
        self.show_containers();
        self.advance(InstanceEvent::Swapped, Timestamp::now());
        self.report.send_modify(|report| report.last_passed = Some(Timestamp::now()));
        self.begin_watch();
        let serving_renewals = std::mem::replace(&mut self.renewals, renewals);
        if let Some(used) = used {
            match was_well {
                true => self.standbys.retire(used, &served, serving_renewals, untouched),
                false => self.standbys.reject(used, &served),
            }
        }
        self.show_standbys();
        self.weigh_current();
        self.note_swap(operation, milliseconds(took), times(stages), verified);
        Ok(())
    }

    /// What was proven of what has just left service, if nothing can have reached it since.
    fn untouched(&mut self, used: Option<&Incarnation>) -> Option<Taken> {
        let was_looked_at = used.is_none_or(|used| self.looked_at.load(Ordering::SeqCst) == used.generation);
        let proven = self.proven.take()?;
        (!was_looked_at && !self.route_stats().was_reached).then_some(proven)
    }

    /// Takes what was proven of what serves now. Its servers have nothing of ours any more: they belong to its clients.
    async fn end_proof(&self, proof: Option<KeptProof>) -> Option<Taken> {
        let proof = proof?;
        let taken = proof.lock().await.taken().clone();
        self.shared.tasks.spawn(async move { proof.lock().await.end().await });
        Some(taken)
    }

    /// What serves now was made in the background; who waits for it to get its share of the processors is nobody.
    fn weigh_current(&self) {
        let Some(incarnation) = self.incarnation.clone() else { return };
        let shared = self.shared.clone();
        self.shared.tasks.spawn(async move {
            for handle in incarnation.containers.values() {
                if let Err(error) = shared.engine.weigh(handle, CpuWeight::Serving).await {
                    tracing::warn!(error = describe(&error), "a container keeps a standby's share of the processors");
                }
            }
        });
    }

    /// Completes the row of a swap with what could not be known before, and notes the event, beside what the client waits for.
    fn note_swap(&self, operation: &str, duration_ms: f64, times: Vec<StageTime>, verified: Extent) {
        let (shared, operation) = (self.shared.clone(), operation.to_owned());
        self.shared.tasks.spawn(async move {
            let (strategy, outcome, reason) = (SWAP, "done", None);
            let end = ResetEnd { strategy, outcome, reason, duration_ms, stages: &times, verified: Some(verified) };
            if let Err(error) = shared.store.end_reset(&operation, end).await {
                tracing::warn!(error = describe(&error), "a swap's last stages are not stored");
            }
        });
        self.note_reset(duration_ms, SWAP, None);
    }

    /// Notes a reset among the events, beside what the client waits for.
    fn note_reset(&self, duration_ms: f64, tier: &'static str, slower: Option<&str>) {
        let (shared, id) = (self.shared.clone(), self.id.to_string());
        let because = slower.map(|why| format!(" ({why})")).unwrap_or_default();
        let message = format!("{id} was reset in {duration_ms:.0} ms by {tier}{because}");
        self.shared.tasks.spawn(async move { shared.events.note("instance.reset", Some(&id), &message).await });
    }

    /// Brings back what serves: in place, if that can be done and works, and by new containers otherwise. Returns the way.
    async fn bring_back(
        &mut self,
        stages: &Stages,
        extent: Extent,
        slower: &mut Slower,
    ) -> Result<&'static str, Failure> {
        if self.snapshot.is_none() {
            self.provide_baseline().await?;
        }
        match self.rewind(stages, extent, slower).await {
            Ok(true) => return Ok(Rewind::NAME),
            Ok(false) => {}
            Err(error) => {
                let reason = describe(&error);
                let message = format!("{} could not be rewound and is made anew: {reason}", self.id);
                slower.because(format!("the rewind failed: {reason}"));
                self.shared.events.note("instance.rewind_failed", Some(&self.id.to_string()), &message).await;
            }
        }
        let is_baseline = self.snapshot.as_ref().map(|it| &it.id) == self.baseline.as_ref().map(|it| &it.id);
        match self.recreate(stages, extent).await {
            // Someone removed the snapshot's images: they are made again, once.
            Err(Failure::Reset(ResetError::Launch(LaunchError::Engine(error))))
                if error.is_not_found() && is_baseline =>
            {
                self.provide_baseline().await?;
                self.recreate(stages, extent).await
            }
            result => result,
        }?;
        Ok(RECREATE)
    }

    async fn provide_baseline(&mut self) -> Result<(), Failure> {
        let prepared = self.prepare().await?;
        self.baseline = Some(prepared.clone());
        self.snapshot = Some(prepared);
        Ok(())
    }

    /// Rewinds the serving containers; false if that is out of the question.
    async fn rewind(&mut self, stages: &Stages, extent: Extent, slower: &mut Slower) -> Result<bool, Failure> {
        let shared = self.shared.clone();
        let site = self.site.clone();
        // Where the definition does not ask for it, nothing is missing.
        let Some(writers) = site.rewinds() else { return Ok(false) };
        let (Some(snapshot), Some(mut incarnation)) = (self.snapshot.clone(), self.incarnation.clone()) else {
            slower.because("no rewind: nothing of it runs".to_owned());
            return Ok(false);
        };
        let Some(source) = snapshot::state(&shared, &snapshot) else {
            let missing =
                if shared.storage.is_none() { "there is no state root" } else { "its snapshot lies in images" };
            slower.because(format!("no rewind: {missing}"));
            return Ok(false);
        };
        let hindrance = if self.report.borrow().snapshot.as_ref() != Some(&snapshot.id) {
            Some("it serves another snapshot".to_owned())
        } else if self.renewals >= MOST_RENEWALS {
            Some(format!("its containers have been brought back {} times", self.renewals))
        } else {
            shared.prober.still_running(&site, &incarnation).await.err().map(|failure| describe(&failure))
        };
        if let Some(hindrance) = hindrance {
            slower.because(format!("no rewind: {hindrance}"));
            return Ok(false);
        }
        incarnation.generation = shared.store.begin_rewind(&self.id).await?;
        fault::reach(Point::RewindRecorded).await;
        let report = &self.report;
        let rewind = Rewind {
            engine: shared.engine.as_ref(),
            prober: &shared.prober,
            id: &self.id,
            site: &site,
            writers,
            source,
            stages,
            stage: &|text| tell(report, text),
            waiting: &|failure| report.send_modify(|report| report.waiting_for = Some(failure.to_string())),
        };
        let spare = self.spare.take();
        let spare = async { spare?.take(&snapshot.id).await };
        let candidate =
            Candidate { shared: &shared, id: &self.id, site: &site, snapshot: &snapshot, incarnation: &incarnation };
        let started = SetOnce::new();
        self.proven = match extent {
            Extent::Nothing => rewind.run(&incarnation, spare, std::future::ready(None), &started).await?,
            Extent::Everything | Extent::Moved => {
                let lines = Lines::kept();
                let early = {
                    let proof = candidate.prove_rising(&lines, Some(&started));
                    rewind.run(&incarnation, spare, proof, &started).await?
                };
                let proven = stages.time("verify", candidate.prove_since(early, &lines)).await;
                lines.close().await;
                proven?
            }
        };
        fault::reach(Point::RewindVerified).await;
        self.renewals += 1;
        self.forget_writes();
        self.serve(incarnation, stages).await;
        Ok(true)
    }
}

fn milliseconds(took: Duration) -> f64 {
    took.as_secs_f64() * 1e3
}

/// The stages as they are stored and shown.
pub(super) fn times(stages: &Stages) -> Vec<StageTime> {
    let all = stages.list().into_iter();
    all.map(|(stage, took)| StageTime { stage: stage.to_owned(), duration_ms: milliseconds(took) }).collect()
}

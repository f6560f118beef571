//! The speed of the CPUs, through cpufreq's files, and the way back.
//!
//! All domains go together, since a reserved thread may run on any CPU: each gets, of its own
//! speeds, the lowest that is at least the same share of its highest. A governor stays what it is:
//! `userspace` is told the speed (`scaling_setspeed`), any other one gets limits with one speed
//! between them (`scaling_min_freq`, `scaling_max_freq`). The limits that the administrator allowed
//! when onbeat began are never left.
//!
//! Before each change the state file has what was there before; a domain that another program
//! changed since is not touched again.

pub(crate) mod domain;

use std::io;

use onbeat_kernel::clock;
use onbeat_model::{Feature, Instant, Ladder, Refusal, Reservation, Span, Speed, Speeds, Support};

use crate::restore::{StateFile, StateRecord};
use crate::server::used_before_stopped;

pub use domain::{Domain, DomainError, DomainSettings, Tree};

/// For how long after a change the kernel may tell the settings before it: a worker of its own puts
/// limits in force, which waits for a CPU as others do.
const ON_THE_WAY: onbeat_model::Span = onbeat_model::Span::from_secs(5);

#[derive(Debug, thiserror::Error)]
pub enum CpufreqError {
    #[error(
        "this kernel cannot set the CPUs' speed: there is no cpufreq (in a virtual machine that is the \
         rule). Leave power.rule out"
    )]
    NoCpufreq,
    #[error(
        "the CPUs have one speed only, {0}: see scaling_min_freq and scaling_max_freq, or leave power.rule out"
    )]
    OneSpeed(Speed),
    #[error(transparent)]
    Domain(#[from] DomainError),
}

/// Sets the speed of all CPUs. Dropping it puts back what was there before.
#[derive(Debug)]
pub struct Cpufreq {
    state_file: StateFile,
    domains: Vec<HeldDomain>,
    ladder: Ladder,
    present: Speed,
    runtimes_follow_speed: bool,
}

#[derive(Debug)]
struct HeldDomain {
    domain: Domain,
    ladder: Ladder,
    before: DomainSettings,
    /// The last setting given to it, and when; none if it was not touched.
    set: Option<(DomainSettings, Instant)>,
    earlier: Option<DomainSettings>,
    taken_over: bool,
}

impl Cpufreq {
    pub fn new(tree: &Tree, state_file: StateFile) -> Result<Self, CpufreqError> {
        let mut domains = Vec::new();
        for domain in tree.domains() {
            domains.push(HeldDomain {
                ladder: domain.ladder()?,
                before: domain.settings()?,
                set: None,
                earlier: None,
                taken_over: false,
                domain,
            });
        }
        let fastest = domains.iter().max_by_key(|held| held.ladder.highest());
        let Some(HeldDomain { ladder, domain, .. }) = fastest else {
            return Err(CpufreqError::NoCpufreq);
        };
        if ladder.lowest() == ladder.highest() {
            return Err(CpufreqError::OneSpeed(ladder.highest()));
        }
        let (ladder, present) = (ladder.clone(), ladder.at_least(domain.present()?));
        Ok(Self {
            state_file,
            domains,
            ladder,
            present,
            runtimes_follow_speed: false,
        })
    }

    /// Measures whether the scheduler counts runtimes by the speed. For a moment the CPUs have the
    /// lowest one: to be called before anything is reserved.
    pub fn measure_runtimes(&mut self) -> Result<(), Refusal> {
        let (lowest, highest) = (self.ladder.lowest(), self.ladder.highest());
        self.set(lowest)?;
        self.runtimes_follow_speed = follows_speed(highest.ratio(lowest)).unwrap_or(false);
        self.set(highest)
    }

    #[must_use]
    pub fn speeds(&self) -> Speeds {
        Speeds {
            ladder: self.ladder.clone(),
            present: self.present,
            runtimes_follow_speed: self.runtimes_follow_speed,
        }
    }

    /// Gives all domains `speed`, or their nearest to it.
    /// Fails if one refuses, or was taken over: then all have what they had.
    pub fn set(&mut self, speed: Speed) -> Result<(), Refusal> {
        let highest = self.ladder.highest();
        for index in 0..self.domains.len() {
            let done = match self.domains.get_mut(index) {
                Some(held) => held.set_speed(speed, highest, &mut self.state_file),
                None => Ok(()),
            };
            if let Err(refusal) = done {
                let earlier = self.domains.iter_mut().take(index);
                for held in earlier {
                    let _ = held.set_speed(self.present, highest, &mut self.state_file);
                }
                return Err(refusal);
            }
        }
        self.present = speed;
        Ok(())
    }

    /// Puts back what was there before, except where another program has changed it since.
    /// Fails if a domain refuses; the state file then tells of it still.
    pub fn release(&mut self) -> Result<(), Refusal> {
        let mut failed = None;
        for held in &mut self.domains {
            if let Err(refusal) = held.release(&mut self.state_file) {
                failed.get_or_insert(refusal);
            }
        }
        failed.map_or(Ok(()), Err)
    }
}

impl Drop for Cpufreq {
    fn drop(&mut self) {
        // `onbeat restore` tries again where that fails.
        let _ = self.release();
    }
}

impl HeldDomain {
    /// The lowest of the domain's speeds that is the same share of its highest as `speed` is of
    /// `highest`.
    fn share_of(&self, speed: Speed, highest: Speed) -> Speed {
        let own = u128::from(self.ladder.highest().as_khz());
        let khz = own * u128::from(speed.as_khz()) / u128::from(highest.as_khz());
        let wanted = u64::try_from(khz).ok().and_then(Speed::from_khz);
        self.ladder.at_least(wanted.unwrap_or(self.ladder.lowest()))
    }

    fn set_speed(
        &mut self,
        speed: Speed,
        highest: Speed,
        state_file: &mut StateFile,
    ) -> Result<(), Refusal> {
        let now = self.look()?;
        let set = self.before.with_speed(self.share_of(speed, highest));
        if self.set.as_ref().is_some_and(|(last, _)| *last == set) {
            return Ok(());
        }
        let change = StateRecord::Speed {
            domain: self.domain.number(),
            before: self.before.clone(),
            set: set.clone(),
        };
        state_file.write(change).map_err(|error| {
            Refusal::Other(format!("the state file cannot be written: {error}"))
        })?;
        let last = self.set.replace((set.clone(), clock::now()));
        self.earlier = last.map(|(settings, _)| settings);
        self.domain.set(&set, &now).map_err(|e| refusal(&e))
    }

    fn look(&mut self) -> Result<DomainSettings, Refusal> {
        let now = self.domain.settings().map_err(|e| refusal(&e))?;
        let is_ours = match &self.set {
            None => now == self.before,
            Some((set, at)) if clock::now() < *at + ON_THE_WAY => {
                let before = [&self.before].into_iter().chain(&self.earlier);
                now.are_on_the_way(before.chain([set]))
            }
            Some((set, _)) => now == *set,
        };
        self.taken_over |= !is_ours;
        if self.taken_over {
            return Err(Refusal::TakenOver {
                now: format!("CPU {} and its like: {now}", self.domain.number()),
            });
        }
        Ok(now)
    }

    fn release(&mut self, state_file: &mut StateFile) -> Result<(), Refusal> {
        if self.set.is_none() {
            return Ok(());
        }
        match self.look() {
            Ok(now) => {
                self.domain
                    .set(&self.before, &now)
                    .map_err(|e| refusal(&e))?;
            }
            // Theirs stays.
            Err(Refusal::TakenOver { .. }) => {}
            Err(other) => return Err(other),
        }
        self.set = None;
        // Not worth failing for: restoring finds out by itself that nothing is to be done.
        let domain = self.domain.number();
        let _ = state_file.write(StateRecord::SpeedDone { domain });
        Ok(())
    }
}

fn refusal(error: &DomainError) -> Refusal {
    let kind = match error {
        DomainError::Read { error, .. } | DomainError::Write { error, .. } => error.kind(),
        DomainError::Odd { .. } => io::ErrorKind::InvalidData,
    };
    match kind {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            Refusal::NotPermitted {
                advice: format!("{error}: run onbeat as root, or without power.rule"),
            }
        }
        _ => Refusal::Other(error.to_string()),
    }
}

#[must_use]
pub fn probe(tree: &Tree) -> Feature {
    let name = "CPU frequencies";
    let domains = tree.domains();
    let Some(first) = domains.first() else {
        let detail = "no cpufreq: this kernel does not change the CPUs' speed, so no budget has to follow it";
        let advice = "nothing to do: only the speed of the CPUs cannot be set here";
        return Feature::new(name, Support::Partial, detail, advice);
    };
    let odd = domains.iter().find_map(|domain| domain.ladder().err());
    if let Some(error) = odd {
        let advice = "leave power.rule out, and report this";
        return Feature::new(name, Support::Partial, &error.to_string(), advice);
    }
    let count = match domains.len() {
        1 => "1 domain".to_owned(),
        n => format!("{n} domains"),
    };
    let detail = format!(
        "{} ({count}): {}",
        first.driver(),
        describe(first).unwrap_or_default()
    );
    if domains.iter().all(Domain::may_be_set) {
        Feature::new(name, Support::Full, &detail, "")
    } else {
        let advice = "to set the speed, run onbeat as root";
        Feature::new(name, Support::Partial, &detail, advice)
    }
}

fn describe(domain: &Domain) -> Option<String> {
    let (ladder, settings) = (domain.ladder().ok()?, domain.settings().ok()?);
    let way = if settings.setspeed.is_some() {
        "scaling_setspeed"
    } else {
        "its limits"
    };
    Some(format!(
        "{} speeds from {} to {}; governor {}, asked through {way}",
        ladder.speeds().count(),
        ladder.lowest(),
        ladder.highest(),
        settings.governor,
    ))
}

// Whether the scheduler counts a reservation's runtime in time at the highest speed, and so gives
// more of it by itself when the CPUs run slower (frequency-invariant accounting). No file tells,
// and a kernel that can do it does so only where the processor counts its cycles. So it is
// measured: a thread that always wants to run gets a runtime, at the lowest speed, and what it has
// used when it is stopped was either that, or as much more as the speed is lower.

/// By how much the two answers differ: more ticks than a thread may be stopped late.
const DIFFERENCE: Span = Span::from_ms(40);
/// Below this ratio of speeds the measurement would take too long, and the answer hardly matters.
const LEAST_RATIO: f64 = 1.1;

/// Measures, while the CPUs are `ratio` times slower than at their highest speed. None if that is
/// too little to tell, or the thread got no reservation.
fn follows_speed(ratio: f64) -> Option<bool> {
    let given = runtime_for(ratio)?;
    let period = given.scale(ratio * 2.0);
    let reservation = Reservation::implicit(given, period).ok()?;
    let measure = std::thread::spawn(move || used_before_stopped(reservation));
    Some(says_follows(given, measure.join().ok()??, ratio))
}

fn runtime_for(ratio: f64) -> Option<Span> {
    (ratio >= LEAST_RATIO).then(|| DIFFERENCE.scale(1.0 / (ratio - 1.0)))
}

/// Whether `used` is nearer to `given` stretched by `ratio` than to `given` itself.
fn says_follows(given: Span, used: Span, ratio: f64) -> bool {
    used > given.scale((1.0 + ratio) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_stopped_some_ticks_late_is_not_taken_for_one_that_was_given_more() {
        for ratio in [1.1, 1.6, 10.0 / 3.0] {
            let given = runtime_for(ratio).unwrap();
            let late = Span::from_ms(10);
            assert!(!says_follows(given, given, ratio));
            assert!(!says_follows(given, given + late, ratio));
            assert!(says_follows(given, given.scale(ratio), ratio));
            assert!(says_follows(given, given.scale(ratio) + late, ratio));
        }
        assert_eq!(runtime_for(1.05), None);
    }
}

//! The speed of the CPUs: looked at in every sampling interval, raised at once, and lowered only
//! when all budgets are in force for it (`decide`'s `power`; LFS++, section 6.3; GRACE-OS, section
//! 2.4).
//!
//! Everything the loop keeps is in time at the present speed. While a fall is on its way, wishes
//! are stretched to what they will be; after a change, what was learnt is projected to the new
//! speed.

pub(crate) mod account;

use onbeat_decide::power::{PowerManager, Rule, Step, Uniform};
use onbeat_decide::supervisor::Request;
use onbeat_model::{Actuator, Bandwidth, Instant, Refusal, Span, Speed, Speeds};

use crate::allocation::Conditions;
use crate::run_loop::Controller;
use crate::speed::account::{SpeedAccount, SpeedEntry, SpeedWhat, SpeedWhy};
use crate::{PowerSettings, SpeedRule, Why};

/// After a fall for which the kernel had no room, before the next is tried.
const PAUSE: Span = Span::from_secs(30);

/// What the loop keeps about the speed.
pub(crate) struct Power {
    manager: PowerManager,
    highest: Speed,
    runtimes_follow_speed: bool,
    every: Span,
    /// When the CPUs' idle times were last looked at, and what they were.
    sampled: Option<(Instant, Vec<Span>)>,
    pub(crate) account: SpeedAccount,
    pub(crate) journal: Vec<SpeedEntry>,
    /// The last entry was a refusal: another one is no news.
    refused: bool,
    /// The actuator's, until somebody else takes the speed over.
    ours: bool,
    /// Budgets were raised for nothing: until then, they are not raised for a fall again.
    no_fall_before: Instant,
}

impl Power {
    pub(crate) fn new(settings: PowerSettings, speeds: Speeds, cpus: u32) -> Self {
        let highest = speeds.ladder.highest();
        let rule = match settings.rule {
            SpeedRule::Band(band) => Rule::Band(band),
            SpeedRule::Uniform { best_effort } => Rule::Uniform(Uniform { best_effort, cpus }),
        };
        Self {
            manager: PowerManager::new(rule, speeds.ladder, speeds.present),
            highest,
            runtimes_follow_speed: speeds.runtimes_follow_speed,
            every: settings.sampling,
            sampled: None,
            account: SpeedAccount::default(),
            journal: Vec::new(),
            refused: false,
            ours: true,
            no_fall_before: Instant::ZERO,
        }
    }

    /// By what factor jobs will take longer at the speed at which budgets must suffice.
    pub(crate) fn stretch(&self) -> f64 {
        self.manager.present().ratio(self.manager.budgets_for())
    }

    /// By what factor the scheduler counts runtimes: budgets are in time at the speed at which they
    /// must suffice, and the scheduler's own time may be that at the highest.
    pub(crate) fn scale(&self) -> Option<f64> {
        let scale = self.manager.budgets_for().ratio(self.highest);
        self.runtimes_follow_speed.then_some(scale)
    }

    fn enter(&mut self, at: Instant, what: SpeedWhat, why: SpeedWhy, new: Option<Speed>) {
        self.journal.push(SpeedEntry {
            at,
            what,
            why,
            old: Some(self.manager.present()),
            new,
        });
    }

    /// The share of the time since the last look that the busiest CPU was in use; none without a
    /// last look, or if CPUs came or went since.
    fn utilisation(&mut self, idle: Vec<Span>, now: Instant) -> Option<Bandwidth> {
        let (at, before) = self.sampled.replace((now, idle))?;
        let (_, idle) = self.sampled.as_ref()?;
        let over = now.since(at);
        if idle.len() != before.len() || over.is_zero() {
            return None;
        }
        let idle = idle.iter().zip(&before).map(|(&now, &then)| now - then);
        Some(Bandwidth::ONE - Bandwidth::of(idle.min()?, over))
    }
}

/// What all these come to.
fn promised(requests: &[Request]) -> Bandwidth {
    requests
        .iter()
        .map(|request| request.wanted.bandwidth())
        .sum()
}

impl<A: Actuator> Controller<A> {
    /// Whether it is time to tell how long the CPUs have been idle ([`idle`](Self::idle)).
    #[must_use]
    pub fn wants_idle(&self, now: Instant) -> bool {
        self.power.as_ref().is_some_and(|power| {
            let due = power.sampled.as_ref().map(|(at, _)| *at + power.every);
            power.ours && due.is_none_or(|due| due <= now)
        })
    }

    /// Takes in how long each CPU has been idle up to `now`, and decides about the speed. What
    /// follows for the budgets is put in force in the next [`turn`](Self::turn).
    pub fn idle(&mut self, idle: Vec<Span>, now: Instant) {
        let Some(power) = &mut self.power else {
            return;
        };
        if power.sampled.is_none() {
            let highest = power.highest;
            self.set_speed(highest, SpeedWhy::Began, now);
        }
        let Some(power) = &mut self.power else {
            return;
        };
        let Some(utilisation) = power.utilisation(idle, now) else {
            return;
        };
        let falling = power.manager.budgets_for();
        let may_fall = now >= power.no_fall_before;
        let lasting = self.lasting();
        let Some(power) = &mut self.power else {
            return;
        };
        let requests = lasting.as_deref().unwrap_or(self.arbiter.requests());
        let wanted = power
            .manager
            .wants(utilisation, requests, self.arbiter.limits());
        if !may_fall && wanted.is_some_and(|to| to < power.manager.present()) {
            return;
        }
        let step = power
            .manager
            .sampled(utilisation, requests, self.arbiter.limits());
        let (busy, idle) = match &lasting {
            None => (
                SpeedWhy::Busy { utilisation },
                SpeedWhy::Idle { utilisation },
            ),
            Some(lasting) => {
                let why = SpeedWhy::Budgets(promised(lasting));
                (why.clone(), why)
            }
        };
        match step {
            Some(Step::Rise(to)) => self.set_speed(to, busy, now),
            Some(Step::RaiseBudgets(to)) => {
                let why = idle;
                power.enter(now, SpeedWhat::Announced, why, Some(to));
                let from = power.manager.present();
                self.put_all_in(&Why::SpeedFalls { from, to });
            }
            Some(Step::Dismiss(dismissed)) => {
                let why = SpeedWhy::NoRoom(dismissed.projected);
                self.refuse_speed(dismissed.to, why, now);
            }
            Some(Step::Fall(_)) => {}
            None if falling < power.manager.budgets_for() => {
                power.enter(now, SpeedWhat::GivenUp, busy, Some(falling));
            }
            None => {}
        }
    }

    /// What is wanted to last, in time at the speed at which budgets must suffice, if the speed
    /// follows from it.
    fn lasting(&self) -> Option<Vec<Request>> {
        let power = self.power.as_ref()?;
        let Rule::Uniform(_) = power.manager.rule() else {
            return None;
        };
        let conditions = Conditions {
            settings: &self.settings,
            capacity: self.enforcer.capacity(),
            stretch: power.stretch(),
        };
        let of_place = |(place, request): (usize, &Request)| {
            let thread = self.tasks.get(self.arbiter.slot(place)?)?;
            let wanted = thread.lasting(&conditions)?;
            Some(Request { wanted, ..*request })
        };
        let requests = self.arbiter.requests().iter().enumerate();
        Some(requests.filter_map(of_place).collect())
    }

    /// Wishes have changed: where the speed follows from them, it rises before they are settled.
    pub(crate) fn press_speed(&mut self, now: Instant) {
        if !self.arbiter.has_changes() {
            return;
        }
        let Some(lasting) = self.lasting() else {
            return;
        };
        let Some(power) = self.power.as_mut().filter(|power| power.ours) else {
            return;
        };
        if let Some(Step::Rise(to)) = power.manager.pressed(&lasting, self.arbiter.limits()) {
            self.set_speed(to, SpeedWhy::Budgets(promised(&lasting)), now);
        }
    }

    /// Goes on with a fall that is on its way, now that all wishes are settled.
    pub(crate) fn pace_speed(&mut self, now: Instant) {
        let Some(power) = &mut self.power else {
            return;
        };
        let to = power.manager.budgets_for();
        if power.manager.awaits_budgets() {
            match self.longest_period_in_force() {
                Some(longest) => self.budgets_in_force(now, longest),
                None => self.give_up_fall(to, now),
            }
        }
        let lasting = self.lasting();
        let Some(power) = &mut self.power else {
            return;
        };
        let requests = lasting.as_deref().unwrap_or(self.arbiter.requests());
        match power.manager.due(now, requests, self.arbiter.limits()) {
            Some(Step::Fall(to)) => self.set_speed(to, SpeedWhy::BudgetsInForce, now),
            Some(Step::Dismiss(dismissed)) => {
                let why = SpeedWhy::NoRoom(dismissed.projected);
                power.enter(now, SpeedWhat::GivenUp, why, Some(dismissed.to));
            }
            _ => {}
        }
    }

    /// The longest period of all wishes, if each of them is in force as it is.
    fn longest_period_in_force(&self) -> Option<Span> {
        let mut longest = Span::ZERO;
        for (place, request) in self.arbiter.requests().iter().enumerate() {
            let thread = self.tasks.get(self.arbiter.slot(place)?)?;
            if thread.held()? != request.wanted {
                return None;
            }
            longest = longest.max(request.wanted.period());
        }
        Some(longest)
    }

    fn budgets_in_force(&mut self, now: Instant, longest: Span) {
        if let Some(power) = &mut self.power {
            power.manager.budgets_in_force(now, longest);
        }
    }

    fn give_up_fall(&mut self, to: Speed, now: Instant) {
        if let Some(power) = &mut self.power {
            power.manager.give_up();
            power.no_fall_before = now + PAUSE;
            power.enter(now, SpeedWhat::GivenUp, SpeedWhy::BudgetRefused, Some(to));
        }
    }

    fn refuse_speed(&mut self, to: Speed, why: SpeedWhy, now: Instant) {
        if let Some(power) = &mut self.power
            && !std::mem::replace(&mut power.refused, true)
        {
            power.enter(now, SpeedWhat::Refused, why, Some(to));
        }
    }

    fn set_speed(&mut self, to: Speed, why: SpeedWhy, now: Instant) {
        let Some(power) = &mut self.power else {
            return;
        };
        if let Err(refusal) = self.enforcer.set_speed(to) {
            power.manager.give_up();
            power.ours = !matches!(refusal, Refusal::TakenOver { .. });
            self.refuse_speed(to, SpeedWhy::Refused(refusal), now);
            return;
        }
        power.enter(now, SpeedWhat::Set, why, Some(to));
        power.refused = false;
        let from = power.manager.present();
        power.manager.switched(to);
        power.account.switched(to, now);
        let counted_anew = power.runtimes_follow_speed && to > from;
        for (_, thread) in self.tasks.iter_mut() {
            thread.speed_changed(from.ratio(to));
        }
        // The scheduler gives less time by itself: the books are to say so.
        if counted_anew {
            self.put_all_in(&Why::SpeedRose { from, to });
        }
    }

    /// Gives the speed back, and tells for how long the CPUs had which.
    pub(crate) fn finish_speed(&mut self, now: Instant) -> Vec<crate::AtSpeed> {
        let Some(power) = &mut self.power else {
            return Vec::new();
        };
        let at_speeds = power.account.at_speeds(now);
        if power.ours {
            match self.enforcer.release_speed() {
                Ok(()) => power.enter(now, SpeedWhat::Released, SpeedWhy::Finished, None),
                Err(refusal) => {
                    power.enter(now, SpeedWhat::Refused, SpeedWhy::Refused(refusal), None);
                }
            }
        }
        at_speeds
    }

    /// The changes of speed since this was last called.
    pub fn speed_journal(&mut self) -> impl Iterator<Item = SpeedEntry> + '_ {
        self.power
            .iter_mut()
            .flat_map(|power| power.journal.drain(..))
    }
}

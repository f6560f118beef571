//! Finds threads that starve, and so cannot show the rhythm that they have.
//!
//! A player that gets a fifth of a CPU and needs a third is always behind. It never sleeps until
//! its next frame, and its bursts show no rhythm. Such a thread is ready most of the time and does
//! not run. It gets a reservation for a limited time, on probation. If it shows a rhythm then, the
//! reservation stays; if not, the next probation comes much later.
//!
//! A thread that is even worse off never blocks, and has no bursts. So the CPU time of a thread
//! without events is looked at now and then. A sleeper uses none, and a hog that is alone uses all.
//! A share in between means that the thread waits for a CPU.

use onbeat_model::{Burst, Instant, Span};

use crate::Why;
use crate::tuning::starvation::{
    AWAKE, FED, FEWEST_BURSTS, FEWEST_BURSTS_TOO, FIRST_PAUSE, LONG_ENOUGH, LONGEST_PAUSE,
    LOOK_EVERY, LOOK_RARELY, PROBATION, WAITING, WAITING_TOO, WINDOW,
};

/// A thread's waiting and bursts of late.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Starving {
    since: Option<Instant>,
    waited: Span,
    bursts: u32,
    probations: u32,
    not_before: Instant,
    look: Option<StarvationLook>,
}

/// The last look at a thread's CPU time.
#[derive(Clone, Copy, Debug)]
struct StarvationLook {
    at: Instant,
    executed: Span,
    every: Span,
    starved: u32,
}

impl Starving {
    /// Looks at the thread's CPU time up to `now`. Its last burst ended at `heard`. Returns when to
    /// look again, and whether the thread starves.
    pub(super) fn look(&mut self, now: Instant, executed: Span, heard: Instant) -> (Instant, bool) {
        let mut look = StarvationLook {
            at: now,
            executed,
            every: LOOK_EVERY,
            starved: 0,
        };
        let mut starves = false;
        if let Some(last) = self.look.filter(|last| heard < last.at) {
            let over = now.since(last.at);
            let share = (executed - last.executed).ratio(over);
            if share < AWAKE {
                look.every = (last.every * 2).min(LOOK_RARELY);
            } else if share <= FED {
                look.starved = last.starved + 1;
                starves = look.starved >= 2 && now >= self.not_before;
            }
        }
        self.look = Some(look);
        (now + look.every, starves)
    }

    /// Takes in a burst. True if the thread starves, and a probation is worth it.
    pub(crate) fn heard(&mut self, burst: &Burst) -> bool {
        let since = *self.since.get_or_insert(burst.woke);
        self.waited += burst.response() - burst.executed;
        self.bursts += 1;
        let over = burst.blocked.since(since);
        let starves = over >= LONG_ENOUGH
            && self.bursts >= FEWEST_BURSTS
            && self.waited.ratio(over) >= WAITING;
        if over > WINDOW {
            self.since = Some(since + over / 2);
            self.waited = self.waited / 2;
            self.bursts /= 2;
        }
        starves && burst.blocked >= self.not_before
    }

    /// True if the thread starves enough to join another one on probation.
    pub(crate) fn starves_too(&self, now: Instant) -> bool {
        let (waited, over) = self.waited(now);
        self.bursts >= FEWEST_BURSTS_TOO
            && waited.ratio(over) >= WAITING_TOO
            && now >= self.not_before
    }

    /// How long it waited, and over which time.
    fn waited(&self, now: Instant) -> (Span, Span) {
        (self.waited, now.since(self.since.unwrap_or(now)))
    }

    /// The reason for a probation.
    pub(super) fn why(&self, now: Instant) -> Why {
        let (waited, over) = self.waited(now);
        Why::Starves { waited, over }
    }

    /// Notes that a probation begins. The pause before the next one doubles.
    pub(crate) fn tried(&mut self, now: Instant) {
        let pause = FIRST_PAUSE.doubled(self.probations, LONGEST_PAUSE);
        *self = Self {
            probations: self.probations + 1,
            not_before: now + PROBATION + pause,
            ..Self::default()
        };
    }

    /// No probation before `until`.
    pub(crate) fn postpone(&mut self, until: Instant) {
        self.not_before = self.not_before.max(until);
    }

    /// Notes that it showed a rhythm, which ends the pause before the next probation.
    pub(crate) fn proved(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use onbeat_model::TaskId;

    use super::*;

    fn burst(woke_ms: u64, response_ms: u64, executed_ms: u64) -> Burst {
        let woke = Instant::ZERO + Span::from_ms(woke_ms);
        Burst {
            executed: Span::from_ms(executed_ms),
            ..Burst::alone(TaskId::recorded(1), woke, Span::from_ms(response_ms))
        }
    }

    fn times_starved(starving: &mut Starving, until_ms: u64, response_ms: u64) -> usize {
        let starved = (0..until_ms)
            .step_by(50)
            .filter(|&ms| starving.heard(&burst(ms, response_ms, 8)));
        starved.count()
    }

    #[test]
    fn a_thread_that_mostly_waits_for_a_cpu_starves_and_one_that_mostly_sleeps_does_not() {
        assert!(times_starved(&mut Starving::default(), 1000, 40) > 0);
        assert_eq!(times_starved(&mut Starving::default(), 60_000, 20), 0);
        assert_eq!(times_starved(&mut Starving::default(), 60_000, 8), 0);
    }

    #[test]
    fn starving_is_told_over_half_a_second_to_a_second() {
        let mut starving = Starving::default();
        for ms in (0..60_000).step_by(50) {
            let burst = burst(ms, 40, 8);
            starving.heard(&burst);
            let (_, over) = starving.waited(burst.blocked);
            assert!(ms < 1000 || over >= Span::from_ms(500), "{over}");
            assert!(over <= Span::from_ms(1000), "{over}");
        }
    }

    #[test]
    fn a_short_squeeze_is_no_starving() {
        assert_eq!(times_starved(&mut Starving::default(), 250, 45), 0);
    }

    #[test]
    fn probations_in_vain_become_rare() {
        let mut starving = Starving::default();
        let mut probations = 0;
        for ms in (0..600_000).step_by(50) {
            let burst = burst(ms, 40, 8);
            if starving.heard(&burst) {
                starving.tried(burst.blocked);
                probations += 1;
            }
        }
        assert!((4..=8).contains(&probations), "{probations}");
    }

    /// How often a thread that executes for a share of the time, and never blocks, is found
    /// starving in ten seconds.
    fn found_starving(share: f64) -> usize {
        let mut starving = Starving::default();
        let mut now = Instant::ZERO + Span::from_ms(1);
        let mut found = 0;
        while now < Instant::ZERO + Span::from_secs(10) {
            let executed = now.since(Instant::ZERO).scale(share);
            let (next, starves) = starving.look(now, executed, Instant::ZERO);
            found += usize::from(starves);
            now = next;
        }
        found
    }

    #[test]
    fn a_thread_that_never_blocks_and_hardly_runs_starves() {
        assert!(found_starving(0.05) > 0);
    }

    #[test]
    fn neither_a_sleeper_nor_a_hog_with_a_cpu_of_its_own_starves() {
        assert_eq!(found_starving(0.0), 0);
        assert_eq!(found_starving(0.9), 0);
    }

    #[test]
    fn a_sleeper_is_looked_at_ever_more_rarely() {
        let mut starving = Starving::default();
        let mut now = Instant::ZERO + Span::from_ms(1);
        let mut looks = 0;
        while now < Instant::ZERO + Span::from_secs(60) {
            (now, _) = starving.look(now, Span::ZERO, Instant::ZERO);
            looks += 1;
        }
        assert!(looks < 35, "{looks}");
    }

    #[test]
    fn a_thread_that_starves_all_day_is_tried_every_ten_minutes_in_the_end() {
        let mut starving = Starving::default();
        let mut probations = 0;
        for ms in (0..3 * 3600 * 1000).step_by(50) {
            let burst = burst(ms, 40, 8);
            if starving.heard(&burst) {
                starving.tried(burst.blocked);
                probations += u32::from(ms >= 2 * 3600 * 1000);
            }
        }
        assert!(
            (5..=6).contains(&probations),
            "{probations} in the last hour"
        );
    }

    #[test]
    fn a_thread_joins_a_probation_after_three_bursts() {
        let mut starving = Starving::default();
        for ms in [0, 50] {
            starving.heard(&burst(ms, 40, 8));
        }
        let now = Instant::ZERO + Span::from_ms(100);
        assert!(!starving.starves_too(now));
        starving.heard(&burst(100, 40, 8));
        assert!(starving.starves_too(now));
    }

    #[test]
    fn a_thread_that_runs_for_a_five_hundredth_of_the_time_is_awake() {
        assert_eq!(found_starving(0.0015), 0);
        assert!(found_starving(0.003) > 0);
    }

    #[test]
    fn a_thread_without_events_is_looked_at_after_120_ms() {
        let (next, _) = Starving::default().look(Instant::ZERO, Span::ZERO, Instant::ZERO);
        assert_eq!(next, Instant::ZERO + Span::from_ms(120));
    }
}

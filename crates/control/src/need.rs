//! Whether an application needs anything: it waits for CPUs that others use.
//!
//! Nothing is changed without need. It begins with waits that the sensor tells of, and goes on
//! while others keep the CPUs busy: once its members go first, they do not wait any more.

use onbeat_model::{Instant, Span};

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Need {
    /// Since when waits are added up, and their sum.
    window: Instant,
    waited: Span,
    until: Instant,
}

/// What a member of an application tells.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sign {
    Waited(Span),
    /// Behind many, each of which ran for a moment.
    Crowded(Span),
    /// It says so: if it waited at all, that is need. Its account bounds what a liar gets.
    MissedDeadline,
}

/// Waits are added up for this time: a few periods of most programs.
const WINDOW: Span = Span::from_ms(100);
/// The sum that is need: a quarter of the shortest period, but no less than 3 ms, for which a hog
/// has a CPU at a time, and no more than a tenth of the time: a film and its display that share a
/// CPU wait for each other that much, and no frame is late.
const ENOUGH: Span = Span::from_ms(3);
const MOST: Span = Span::from_ms(10);
/// A wait behind many short turns counts for this part: display servers and others that work for a
/// program have such turns, too, but less than a tenth of the time.
const CROWDED: u64 = 3;
/// How long need outlasts its last sign: some reviews, so that a build between two compilers does
/// not end it.
const LASTS: Span = Span::from_secs(1);
/// The CPUs are wanted by others if less than this share is idle, and others use more than it: the
/// rest of a system that is otherwise idle uses less.
pub(crate) const SHARE: f64 = 0.1;

impl Need {
    pub(crate) fn is_there(&self, now: Instant) -> bool {
        now < self.until
    }

    /// A member of an application with this shortest period shows need. True if that begins with
    /// it.
    pub(crate) fn sign(&mut self, sign: Sign, period: Option<Span>, at: Instant) -> bool {
        if at.since(self.window) > WINDOW {
            self.window = at;
            self.waited = Span::ZERO;
        }
        let enough = period.map_or(ENOUGH, |period| (period / 4).clamp(ENOUGH, MOST));
        let (waited, enough) = match sign {
            Sign::Waited(waited) => (waited, enough),
            Sign::Crowded(waited) => (waited / CROWDED, ENOUGH),
            Sign::MissedDeadline => (Span::ZERO, Span::from_ns(1)),
        };
        self.waited += waited;
        if self.waited < enough {
            return false;
        }
        let begins = !self.is_there(at);
        self.until = self.until.max(at + LASTS);
        begins
    }

    pub(crate) fn begin(&mut self, now: Instant) {
        self.until = now + LASTS;
    }

    /// A program is as busy as others that are there: it begins beside them.
    pub(crate) fn join(&mut self, other: &Self) {
        self.until = self.until.max(other.until);
    }

    /// Of all CPUs, these shares were idle and used by others lately.
    pub(crate) fn contended(&mut self, idle: f64, others: f64, now: Instant) {
        if self.is_there(now) && idle < SHARE && others > SHARE {
            self.until = now + LASTS;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_ms(ms)
    }

    #[test]
    fn one_turn_of_a_hog_is_need_and_a_short_wait_now_and_then_is_not() {
        let mut need = Need::default();
        assert!(need.sign(Sign::Waited(Span::from_ms(4)), None, at(10)));
        let mut need = Need::default();
        for ms in (0..10_000).step_by(60) {
            assert!(!need.sign(Sign::Waited(Span::from_us(1400)), None, at(ms)));
        }
    }

    #[test]
    fn need_lasts_while_others_want_the_cpus() {
        let mut need = Need::default();
        need.sign(Sign::Waited(Span::from_ms(4)), None, at(0));
        for ms in (250..5000).step_by(250) {
            need.contended(0.0, 0.8, at(ms));
        }
        assert!(need.is_there(at(5000)));
        need.contended(0.5, 0.3, at(5000));
        need.contended(0.0, 0.02, at(5250));
        assert!(!need.is_there(at(5900)));
    }

    #[test]
    fn to_wait_for_a_tenth_of_the_time_behind_many_short_turns_is_need() {
        for (waits, expected) in [(600, true), (300, false)] {
            let mut need = Need::default();
            let signs = (0..1000).step_by(5).map(|ms| {
                let waited = Span::from_us(waits);
                need.sign(Sign::Crowded(waited), None, at(ms))
            });
            assert_eq!(signs.filter(|begins| *begins).count() > 0, expected);
        }
    }
}

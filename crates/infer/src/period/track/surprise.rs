//! Notices that something rare has become frequent: Page's cumulative sum test (Biometrika 41,
//! 1954).
//!
//! Each job either shows the thing or does not. The score multiplies the likelihood ratios between
//! "now every second job shows it" and "as often as ever", and never falls below one (the sum of
//! logarithms that never falls below zero, without the logarithms); an alarm is a score of
//! [`ALARM`]. By Lorden's bound (Annals of Mathematical Statistics 42, 1971), jobs that go on as
//! ever alarm less than once in [`ALARM`], and far less in practice, whatever their habit; and two
//! in a row alarm if it was unheard of.

/// The score that is an alarm.
const ALARM: f64 = 150.0;
/// The frequency that is looked for.
const FREQUENT: f64 = 0.5;
/// Bounds of the habit: nothing is impossible, and what is already frequent surprises nobody.
const RAREST: f64 = 0.02;
const COMMONEST: f64 = 0.45;
/// Jobs over which the habit is learned, and the habit that is assumed for the first of them.
const MEMORY: f64 = 64.0;
const ASSUMED: f64 = 0.1;
const ASSUMED_FOR: f64 = 8.0;

/// One thing that a job may show, how often it usually does, and the score.
#[derive(Clone, Copy, Debug)]
pub(super) struct Surprise {
    habit: f64,
    jobs: f64,
    score: f64,
}

impl Default for Surprise {
    fn default() -> Self {
        Self {
            habit: ASSUMED,
            jobs: ASSUMED_FOR,
            score: 1.0,
        }
    }
}

impl Surprise {
    /// Takes in whether a job showed it; true is an alarm, and the score begins anew.
    pub(super) fn hear(&mut self, shown: bool) -> bool {
        let usual = self.habit.clamp(RAREST, COMMONEST);
        let ratio = if shown {
            FREQUENT / usual
        } else {
            (1.0 - FREQUENT) / (1.0 - usual)
        };
        self.score = (self.score * ratio).max(1.0);
        self.jobs = (self.jobs + 1.0).min(MEMORY);
        self.habit += (f64::from(u8::from(shown)) - self.habit) / self.jobs;
        let alarm = self.score >= ALARM;
        if alarm {
            self.score = 1.0;
        }
        alarm
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_in_a_row_alarm_where_it_was_unheard_of_and_not_where_it_is_a_habit() {
        let mut never = Surprise::default();
        assert!((0..100).all(|_| !never.hear(false)));
        assert!(!never.hear(true));
        assert!(never.hear(true));

        let mut every_third = Surprise::default();
        for n in 0..300 {
            every_third.hear(n % 3 == 0);
        }
        assert!(!every_third.hear(true) && !every_third.hear(true));
    }

    #[test]
    fn jobs_that_go_on_as_ever_alarm_less_often_than_lordens_bound() {
        for percent in [1, 5, 20, 40] {
            let mut surprise = Surprise::default();
            let mut seed: u64 = 3;
            let alarms = (0..20_000)
                .filter(|_| {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    surprise.hear((seed >> 33) % 100 < percent)
                })
                .count();
            assert!(alarms < 20_000 / 150, "{alarms} alarms at {percent}%");
        }
    }
}

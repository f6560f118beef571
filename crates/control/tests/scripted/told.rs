//! Programs that say where their jobs are, and that they missed a deadline.

use crate::kernel::Kernel;
use crate::world::{Noise, Ran, Script, at_ms, ms, play};
use onbeat_control::{Settings, State, What, Why};
use onbeat_model::{Instant, Said, Span};

struct Marker {
    script: Script,
    executed: Span,
}

impl Marker {
    fn new() -> Self {
        let mut script = Script::default();
        script.tracked(7, "player", at_ms(990));
        Self {
            script,
            executed: ms(100),
        }
    }

    fn says(&mut self, said: Said, at: Instant, woke: Instant) {
        self.script.says(7, said, at, (woke, self.executed));
    }

    fn starts(&mut self, permille: u32) {
        let period = ms(40);
        let started = Said::RealTimeStarted { period, permille };
        self.says(started, at_ms(995), at_ms(990));
    }

    /// A job that is released at `woke`, in which the thread sleeps at moments without any pattern.
    fn job(&mut self, woke: Instant, executed: Span, noise: &mut Noise) {
        let mut at = woke;
        self.says(Said::JobBegan, at, woke);
        for part in 0..4 {
            let burst = at;
            at = at + executed / 4 + Span::from_us(10);
            self.executed += executed / 4;
            if part == 3 {
                self.says(Said::JobEnded, at, burst);
            }
            self.script.burst(7, burst, executed / 4);
            at = at + noise.up_to(ms(4));
        }
    }

    fn play(self) -> Ran {
        play(self.script, Kernel::with_cpus(2), Settings::default())
    }
}

/// A film of `jobs` frames at 25 Hz from the first second on.
fn film(jobs: u64) -> Marker {
    let mut marker = Marker::new();
    let mut noise = Noise(11);
    for job in 0..jobs {
        let woke = at_ms(1000 + 40 * job);
        marker.job(woke, ms(8), &mut noise);
    }
    marker
}

#[test]
fn a_program_that_marks_its_jobs_is_kept_without_a_rhythm_heard() {
    let ran = film(251).play();
    let first = ran.of(7)[0];
    assert_eq!(
        (first.what, &first.why),
        (What::Reserved, &Why::Told { period: ms(40) })
    );
    assert!(first.at <= at_ms(1000 + 40 * 4), "{first:?}");
    let found = |entry: &&&onbeat_control::Entry| matches!(entry.why, Why::Found { .. });
    assert_eq!(ran.of(7).iter().filter(found).count(), 0);
    let report = &ran.report.threads[0];
    assert_eq!((report.period, report.told.marks), (Some(ms(40)), 502));
    assert_eq!((report.counted.jobs, report.counted.missed), (251 - 3, 0));
}

#[test]
fn a_period_that_is_told_is_served_from_the_first_job_on() {
    let mut marker = Marker::new();
    marker.starts(950);
    let mut noise = Noise(11);
    marker.job(at_ms(1000), ms(8), &mut noise);
    let ran = marker.play();
    let first = ran.of(7)[0];
    assert_eq!(first.why, Why::Told { period: ms(40) });
    assert_eq!(first.new.unwrap().period(), ms(40));
}

/// The budget after 600 jobs of a thread that wants so many of a thousand in time.
fn runtime_for(permille: u32, long: impl Fn(u64) -> Span) -> Span {
    let mut marker = Marker::new();
    marker.starts(permille);
    let mut noise = Noise(11);
    for job in 0..600 {
        marker.job(at_ms(1000 + 40 * job), long(job), &mut noise);
    }
    let reserves = marker.play().reserves(7);
    reserves.last().expect("it had a reservation").1.runtime()
}

#[test]
fn the_share_of_jobs_that_are_to_be_in_time_decides_about_the_budget() {
    let long = |job| if job % 25 == 7 { ms(14) } else { ms(8) };
    let (strict, lenient) = (runtime_for(999, long), runtime_for(900, long));
    assert!(strict >= ms(14), "{strict}");
    assert!(lenient < ms(10), "{lenient}");
}

#[test]
fn a_burst_of_several_late_jobs_is_cut_where_the_thread_says_it_was_late() {
    let jobs = |says: bool| {
        let mut script = Script::default();
        script.tracked(7, "player", at_ms(990));
        script.periodic(7, ms(40), (at_ms(1000), at_ms(5000)), |_| ms(8));
        let woke = at_ms(5000);
        for late in [42, 83] {
            if says {
                let at = woke + ms(late);
                script.says(7, Said::MissedDeadline, at, (woke, ms(late)));
            }
        }
        script.burst(7, woke, ms(100));
        script.periodic(7, ms(40), (at_ms(5120), at_ms(7000)), |_| ms(8));
        let ran = play(script, Kernel::with_cpus(2), Settings::default());
        ran.report.threads[0].counted.jobs
    };
    assert_eq!(jobs(true), jobs(false) + 2);
}

#[test]
fn a_thread_that_no_longer_says_where_its_jobs_are_is_listened_to_again() {
    for exits in [true, false] {
        let mut marker = film(50);
        if exits {
            marker.says(Said::RealTimeExited, at_ms(2990), at_ms(2980));
        }
        marker
            .script
            .periodic(7, ms(40), (at_ms(3000), at_ms(9000)), |_| ms(8));
        let ran = marker.play();
        let whys: Vec<&Why> = ran.of(7).iter().map(|entry| &entry.why).collect();
        let no_more = whys.iter().position(|why| **why == Why::SaysNoMore);
        let found = whys.iter().position(|why| matches!(why, Why::Found { .. }));
        assert!(no_more.is_some() && no_more < found, "{whys:?}");
        assert_eq!(ran.report.threads[0].state, State::Kept);
    }
}

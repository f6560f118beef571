//! The rules of GRACE-OS: budgets, overruns and speeds inside a job (`schedulers/grace/policy.h`).

/// A whole CPU, as a share.
pub const WHOLE: u64 = 1 << 20;

pub const POINTS: usize = 16;

/// A job that has done `after` runs at `speed` from there on.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Point {
    /// Work, in ns at full speed.
    pub after: u64,
    /// The speed, in the caller's unit.
    pub speed: u64,
}

/// The budget of a task in every period, and its speeds.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    period_ns: u64,
    budget: u64,
    points: u64,
    point: [Point; POINTS],
}

impl Plan {
    /// `budget` (work, in ns at full speed) every `period_ns`; none is best effort. Points beyond
    /// [`POINTS`] are left out.
    pub fn new(period_ns: u64, budget: u64, points: impl IntoIterator<Item = Point>) -> Self {
        let mut plan = Self {
            period_ns,
            budget,
            ..Self::default()
        };
        for (place, point) in plan.point.iter_mut().zip(points) {
            *place = point;
            plan.points += 1;
        }
        plan
    }

    pub const fn budget(&self) -> u64 {
        self.budget
    }
}

/// The turns of a task in best-effort mode.
#[repr(C)]
#[derive(Clone, Debug, Default)]
struct Turns {
    ended_ns: u64,
    ran_ns: u64,
    last_ns: u64,
}

#[repr(C)]
#[derive(Clone, Debug, Default)]
pub struct Task {
    plan: Plan,
    period_end_ns: u64,
    left: u64,
    done: u64,
    turns: Turns,
    owed: u64,
    replenished_ns: u64,
}

mod c {
    use super::{Plan, Task, Turns};

    // SAFETY: the functions of the header. None keeps a pointer, and those without one take every
    // number.
    unsafe extern "C" {
        pub(super) fn grace_set_plan(task: *mut Task, plan: *const Plan);
        pub(super) fn grace_job_begins(task: *mut Task, release_ns: u64);
        pub(super) fn grace_jobs_end(task: *mut Task, jobs: u64) -> u64;
        pub(super) fn grace_period_ends(task: *mut Task, now_ns: u64);
        pub(super) fn grace_wakes(task: *mut Task, ended: bool, now_ns: u64);
        pub(super) fn grace_charge(task: *mut Task, work: u64, now_ns: u64) -> bool;
        pub(super) fn grace_takes_turn(turns: *mut Turns, ran_ns: u64, now_ns: u64) -> bool;
        pub(super) fn grace_turn_left(turns: *const Turns) -> u64;
        pub(super) fn grace_key(task: *const Task) -> u64;
        pub(super) fn grace_speed(task: *const Task) -> u64;
        pub(super) fn grace_until(task: *const Task) -> u64;
        pub(super) safe fn grace_share(work: u64, period_ns: u64) -> u64;
        pub(super) safe fn grace_speed_of(shares: u64, full: u64) -> u64;
    }

    #[cfg(test)]
    unsafe extern "C" {
        pub(super) safe fn grace_size_of_task() -> u64;
        pub(super) safe fn grace_work(ran_ns: u64, speed: u64, full: u64) -> u64;
        pub(super) fn grace_changes_hands(task: *mut Task, now_ns: u64);
    }
}

impl Task {
    /// A new plan: its speeds from now on, its budget from the next period on.
    pub fn set_plan(&mut self, plan: &Plan) {
        // SAFETY: both are whole and in the layout of the C structures (tested).
        unsafe { c::grace_set_plan(self, plan) }
    }

    pub fn job_begins(&mut self, release_ns: u64) {
        // SAFETY: as in `set_plan`.
        unsafe { c::grace_job_begins(self, release_ns) }
    }

    /// Its job is over. The work of that, in ns at full speed.
    pub fn job_ends(&mut self) -> u64 {
        // SAFETY: as in `set_plan`.
        unsafe { c::grace_jobs_end(self, 1) }
    }

    /// The end of its period has come, and its job is not done.
    pub fn period_ends(&mut self, now_ns: u64) {
        // SAFETY: as in `set_plan`.
        unsafe { c::grace_period_ends(self, now_ns) }
    }

    /// It wakes; `ended`: a job of it has ended since it last woke. A caller that is told of
    /// releases calls `job_begins` instead.
    pub fn wakes(&mut self, ended: bool, now_ns: u64) {
        // SAFETY: as in `set_plan`.
        unsafe { c::grace_wakes(self, ended, now_ns) }
    }

    /// It has done so much more work. True if that used up its budget.
    pub fn charge(&mut self, work: u64, now_ns: u64) -> bool {
        // SAFETY: as in `set_plan`.
        unsafe { c::grace_charge(self, work, now_ns) }
    }

    /// It has run for `ran_ns` in best-effort mode: with a whole turn it goes behind the others.
    pub fn takes_turn(&mut self, ran_ns: u64, now_ns: u64) {
        // SAFETY: as in `set_plan`.
        unsafe { c::grace_takes_turn(&mut self.turns, ran_ns, now_ns) };
    }

    pub fn turn_left_ns(&self) -> u64 {
        // SAFETY: as in `set_plan`.
        unsafe { c::grace_turn_left(&self.turns) }
    }

    /// Where it stands in line: the least runs first, and those in best-effort mode are behind all
    /// others.
    pub fn key(&self) -> u64 {
        // SAFETY: as in `set_plan`.
        unsafe { c::grace_key(self) }
    }

    pub fn speed(&self) -> Option<u64> {
        // SAFETY: as in `set_plan`.
        let speed = unsafe { c::grace_speed(self) };
        (speed > 0).then_some(speed)
    }

    pub fn until(&self) -> Option<u64> {
        // SAFETY: as in `set_plan`.
        let work = unsafe { c::grace_until(self) };
        (work < u64::MAX).then_some(work)
    }

    /// It has budget left in this period.
    pub const fn is_real_time(&self) -> bool {
        self.left > 0
    }

    pub const fn left(&self) -> u64 {
        self.left
    }

    pub const fn done(&self) -> u64 {
        self.done
    }

    /// When its present period ends: its deadline.
    pub const fn period_end_ns(&self) -> u64 {
        self.period_end_ns
    }

    pub const fn plan(&self) -> &Plan {
        &self.plan
    }
}

/// The share of a CPU of `work` in every period, in 2^-20, rounded up.
pub fn share(work: u64, period_ns: u64) -> u64 {
    c::grace_share(work, period_ns)
}

/// The speed that shares need together, if the highest is `full`.
pub fn speed_of(shares: u64, full: u64) -> u64 {
    c::grace_speed_of(shares, full)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task() -> Task {
        let points = [(0, 300), (4, 500), (7, 1000)];
        let points = points.map(|(after, speed)| Point { after, speed });
        let mut task = Task::default();
        task.set_plan(&Plan::new(30, 10, points));
        task
    }

    #[test]
    fn both_languages_agree_on_the_size_of_a_task() {
        assert_eq!(c::grace_size_of_task(), size_of::<Task>() as u64);
    }

    #[test]
    fn a_job_that_overruns_waits_behind_all_others_until_its_next_period() {
        let (mut late, mut other) = (task(), task());
        late.job_begins(100);
        other.job_begins(150);
        assert!(late.key() < other.key(), "130 is before 180");
        assert!(late.charge(11, 120));
        assert!(!late.charge(1, 121), "told once");
        assert!(other.key() < late.key());
        assert_eq!((late.until(), late.speed()), (None, Some(1000)));
        late.period_ends(129);
        assert!(!late.is_real_time(), "not over yet");
        late.period_ends(130);
        assert_eq!((late.left(), late.period_end_ns()), (10, 160));
        assert!(late.key() < other.key());
    }

    #[test]
    fn a_job_behind_a_late_one_has_what_is_left_of_the_budget() {
        let mut task = task();
        task.job_begins(100);
        task.charge(10, 125);
        task.period_ends(130);
        task.charge(3, 135);
        assert_eq!(task.job_ends(), 13);
        task.job_begins(130);
        assert_eq!((task.left(), task.done()), (7, 0));
        assert_eq!(task.period_end_ns(), 160);
        task.job_begins(165);
        assert_eq!((task.left(), task.period_end_ns()), (10, 195));
    }

    #[test]
    fn a_period_begins_with_its_job_also_if_one_was_released_late_once() {
        let mut task = Task::default();
        task.set_plan(&Plan::new(30_000, 10_000, []));
        for release in [100_000, 139_000, 160_000, 189_000] {
            task.job_begins(release);
            assert_eq!(
                (task.left(), task.period_end_ns()),
                (10_000, release + 30_000)
            );
            task.charge(6_000, release);
            task.job_ends();
        }
        // A release that comes much too soon gives no more than the task's share.
        task.job_begins(200_000);
        assert_eq!((task.left(), task.period_end_ns()), (4_000, 219_000));
    }

    /// The rules compare budgets by their thousands.
    const K: u64 = 1 << 10;

    /// Was late by 5, and has said where its job ended; its next deadline is at 160.
    fn late() -> Task {
        let mut task = Task::default();
        task.set_plan(&Plan::new(30 * K, 10 * K, []));
        task.wakes(false, 100 * K);
        task.charge(10 * K, 125 * K);
        task.period_ends(130 * K);
        task.charge(3 * K, 135 * K);
        assert_eq!(task.job_ends(), 13 * K);
        task
    }

    /// In thousands: what is left of the budget, what its job has done, its deadline.
    fn state(task: &Task) -> (u64, u64, u64) {
        (task.left / K, task.done / K, task.period_end_ns / K)
    }

    #[test]
    fn periods_begin_with_releases_again_once_a_late_task_has_dropped_a_frame() {
        let mut task = late();
        task.wakes(true, 162 * K);
        assert_eq!(state(&task), (10, 0, 192), "that of 130 is dropped");
        task.charge(6 * K, 170 * K);
        task.job_ends();
        task.wakes(true, 195 * K);
        assert_eq!(state(&task), (10, 0, 225));
        task.charge(2 * K, 197 * K);
        task.wakes(false, 200 * K);
        assert_eq!(state(&task), (8, 2, 225), "a pause in the middle of a job");
    }

    #[test]
    fn a_late_task_goes_on_with_the_job_that_it_began_where_the_last_one_ended() {
        let mut task = late();
        task.charge(2 * K, 138 * K);
        task.wakes(true, 140 * K);
        assert_eq!(state(&task), (5, 2, 160));
        task.charge(3 * K, 145 * K);
        assert_eq!(task.job_ends(), 5 * K);
        task.wakes(true, 160 * K);
        assert_eq!(state(&task), (10, 0, 190));
        // It pauses beyond the end of the period, and so the next release is owed when it ends.
        task.charge(4 * K, 164 * K);
        task.wakes(false, 191 * K);
        assert_eq!(state(&task), (10, 4, 220));
        task.charge(2 * K, 193 * K);
        assert_eq!(task.job_ends(), 6 * K);
        task.charge(K, 194 * K);
        task.wakes(true, 195 * K);
        assert_eq!(state(&task), (7, 1, 220));
    }

    #[test]
    fn who_takes_a_plan_over_owes_nothing_and_is_the_last_in_line() {
        let mut task = late();
        let mut other = Task::default();
        other.takes_turn(other.turn_left_ns(), 199 * K);
        // SAFETY: it is whole, and in the layout of the C structure (tested).
        unsafe { c::grace_changes_hands(&raw mut task, 200 * K) };
        assert_eq!((task.left, task.done, task.owed), (0, 0, 0));
        assert!(other.key() < task.key());
    }

    #[test]
    fn shares_add_up_to_a_speed_that_suffices() {
        assert_eq!(c::grace_work(10, 300, 1000), 3);
        assert_eq!(c::grace_work(10, 1000, 1000), 10);
        let shares = share(9_300_000, 30_000_000) + share(1, 3);
        let speed = speed_of(shares, 1_000_000);
        assert!((643_333..643_340).contains(&speed), "{speed}");
        assert_eq!(speed_of(share(5, 4), 1000), 1000);
        assert_eq!(speed_of(0, 1000), 1, "zero is no speed");
        assert_eq!(share(u64::MAX, 0), share(1 << 43, 1));
    }
}

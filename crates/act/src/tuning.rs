//! Every tuned constant of this crate: its value, what raising it costs, and where the value comes
//! from.
//!
//! "Test" names a test that fails when the value is doubled or halved; "From" is a derivation or a
//! citation. Numbers of the kernel's interface, names and layouts are where they are used.

use std::time::Duration;

use onbeat_model::Span;

/// How a server of the kernel stands.
pub(crate) mod server {
    use super::Span;

    /// The longest tick: a running task gets over its runtime unseen for as long. Raised, a task
    /// that runs is waited for longer when it leaves its reservation. From: `CONFIG_HZ` is 100 at
    /// least.
    pub(crate) const TICK: Span = Span::from_ms(10);
    /// A throttled task whose runtime should have been replenished this long ago never will be.
    /// Raised, its release takes longer. From: the kernel replenishes by a timer, milliseconds late
    /// at most; a look after a second mistakes no period.
    pub(crate) const OVERDUE: Span = Span::from_secs(1);
    /// The share by which two clocks of the kernel may drift apart. Raised, releases are later.
    /// From: `CLOCK_MONOTONIC` is slewed by 500 ppm at most (adjtimex(2)).
    pub(crate) const DRIFT: f64 = 500e-6;
    /// How long a comparison of these clocks is used. Raised, releases are later, by `DRIFT` of it;
    /// lowered, threads are started to compare anew. From: 500 ppm of it are 0.3 s, less than the
    /// longest period.
    pub(crate) const GOOD_FOR: Span = Span::from_secs(600);
}

/// Giving tasks back what they had.
pub(crate) mod give_back {
    use super::Span;

    /// The most that a timer of the kernel is late before its task counts as settled. Raised,
    /// bandwidth is free later. From: a tick at 100 Hz, and two at 250 Hz are 8 ms.
    pub(crate) const MARGIN: Span = Span::from_ms(10);
    /// How long dropping the actuator waits for tasks that are better waited for. Raised, onbeat
    /// ends later. From: five periods of a film at 25 frames a second.
    pub(crate) const LAST_PATIENCE: Span = Span::from_ms(200);
    /// Between two looks at a throttled task. Raised, it is put back later; lowered, looks cost
    /// more. From: a twentieth of that film's period, and one file is read each time.
    pub(crate) const LOOK_EVERY: Span = Span::from_ms(2);
    /// For this number of periods a throttled task is waited for. Raised, a task that is never
    /// replenished keeps its reservation for longer. From: it waits for the next period, or, beyond
    /// its runtime, the one after.
    pub(crate) const PERIODS_OF_PATIENCE: u64 = 2;
    /// How long throttled tasks are waited for, all together: users choose their periods, and the
    /// next onbeat waits for this one. Raised, a start after a crash takes longer. From: a task
    /// with a period of up to half of it is never put back while it is throttled, unless it never
    /// runs.
    pub(crate) const PATIENCE: Span = Span::from_secs(2);
    /// Records beyond what is needed, after which the file is written anew. Raised, the file is
    /// longer; lowered, it is written anew more often. From: as many changes as the 64 tasks of a
    /// user make at sixteen each; a file of so few lines is read in one piece.
    pub(crate) const SLACK: usize = 1000;
}

/// Bandwidth that leaked in the kernel.
pub(crate) mod recount {
    use super::Span;

    /// The time between two looks at every task of the machine, and between two recounts. Raised, a
    /// reservation of another program is seen later. From: a look reads a file for each task of the
    /// machine; at 10 us for each (`rules::FILES_OF` of the daemon), 10,000 tasks take 2% of a CPU.
    pub(crate) const EVERY: Span = Span::from_secs(5);
    /// For how long a leak must show: another program's task that has just left settles within its
    /// period, and is no leak. Raised, a leak is mended later. From: the periods of real programs
    /// are shorter.
    pub(crate) const SUSPECT_FOR: Span = Span::from_secs(1);
    /// For how long the kernel is taken at its word after a recount that did not help. Raised, a
    /// new leak is mended later. From: twelve of `EVERY`; a leak that a recount does not mend stays
    /// until the next boot.
    pub(crate) const FRUITLESS_FOR: Span = Span::from_secs(60);
}

/// The measurement of how exactly a task is stopped.
pub(crate) mod enforcement {
    use super::Span;

    /// The runtime given. Raised, a kernel that stops at ticks is told less surely. From: a kernel
    /// with HRTICK_DL stops within some 10 us of it, one without at the next tick, 1 to 10 ms
    /// later.
    pub(crate) const RUNTIME: Span = Span::from_us(200);
    /// And in this time. Raised, the measurement takes longer. From: a pause of `PERIOD` -
    /// `RUNTIME` is far longer than `GAP`.
    pub(crate) const PERIOD: Span = Span::from_ms(50);
    /// A thread that does not run for this long was throttled. Raised to `PERIOD`, no pause is long
    /// enough, and the measurement tells nothing. From: above the 10 ms for which an interrupt or
    /// another thread stops it, and below `PERIOD`.
    pub(crate) const GAP: Span = Span::from_ms(20);
}

/// How the thread that goes first gives way.
pub(crate) mod own {
    use super::Duration;

    /// How often it is looked whether the thread gives way. Raised, a machine stands still for
    /// longer; lowered, looks cost more. From: ten turns of the loop, and as long as a person
    /// hardly notices.
    pub(crate) const LOOK: Duration = Duration::from_millis(100);
    /// The thread gives way after this CPU time between two looks. Raised to `LOOK`, it never does.
    /// From: a thread without a pause has all of most `LOOK`s, because the kernel keeps no more
    /// than 50 ms of a second from real-time threads (`sched_rt_runtime_us`).
    pub(crate) const WITHOUT_PAUSE: Duration = Duration::from_millis(80);
    /// And goes first again after as little. Raised, it goes to and fro. From: half of
    /// `WITHOUT_PAUSE`.
    pub(crate) const WITH_PAUSES: Duration = Duration::from_millis(40);
}

/// Priorities that tasks asked for.
pub(crate) mod priorities {
    use super::Span;

    /// After how long it is worth looking again whether a reservation is gone. Raised, a task has
    /// its priority later. From: two of the usual periods; a person waits for it.
    pub(crate) const LOOK_AGAIN: Span = Span::from_ms(100);
}

/// The speeds of the CPUs.
pub(crate) mod speed {
    use super::Span;

    /// Between speeds that a driver does not list, in kHz. Raised, a speed fits less well. From:
    /// powernowd's step. Test: `without_a_list_there_is_a_speed_every_100_mhz`.
    pub(crate) const STEP_KHZ: u64 = 100_000;
    /// But no more speeds than this. Raised, a choice of speed costs more. From: no processor runs
    /// at more than 6.4 GHz, 64 of `STEP_KHZ`.
    pub(crate) const MOST_STEPS: u64 = 64;
    /// The time after a change in which the kernel may tell the settings before it: it puts limits
    /// in force by a worker of its own, which waits for a CPU as others do. Raised, an
    /// administrator's change is seen later. From: real-time threads have 95% of each second, so a
    /// worker gets its turn within a few.
    pub(crate) const ON_THE_WAY: Span = Span::from_secs(5);
    /// By how much the two answers differ. Raised, the measurement takes longer. From: ten ticks of
    /// a slow kernel (HZ=250), and four of the slowest, by which a thread may be stopped late.
    pub(crate) const DIFFERENCE: Span = Span::from_ms(40);
    /// Below this ratio of speeds the measurement would take too long, and the answer hardly
    /// matters. Raised, nothing is measured where the speeds differ less. Test:
    /// `a_thread_stopped_some_ticks_late_is_not_taken_for_one_that_was_given_more`.
    pub(crate) const LEAST_RATIO: f64 = 1.1;
}

/// The limits of the kernel's admission test.
pub(crate) mod limits {
    /// The share of each CPU of the fair server, which keeps ordinary tasks alive beside
    /// reservations, unless it was changed: it counts in the kernel's admission test. Raised above
    /// the kernel's, reservations are refused that fit. From: `fair_server_params`, 50 ms in 1 s.
    pub(crate) const FAIR_SERVER: f64 = 0.05;
}

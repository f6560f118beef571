//! Every tuned constant of this crate: its value, what raising it costs, and where the value comes
//! from.
//!
//! "Test" names a test that fails when the value is doubled or halved; "From" is a derivation or a
//! citation. Numbers of the kernel's and of D-Bus's interface, and names, are where they are used.

use std::time::Duration;

use onbeat_model::Span;

/// Messages of the bus.
pub(crate) mod bus {
    /// The longest call or signal that is read, in bytes. Raised, a caller has the service hold
    /// more memory. From: the longest call that makes sense, `Look` with the numbers of 256
    /// threads, has some 1,300; three times that.
    pub(crate) const MOST_BYTES: u64 = 4096;
    /// How much is read at a time of messages that are heard, in bytes. Raised, a connection has
    /// more memory; lowered, more system calls. From: a message that is heard has `MOST_BYTES` at
    /// most, and several wait in a busy time.
    pub(crate) const READ: usize = 16 << 10;
    /// How much is read at a time of what is skipped, in bytes. Raised, the same. From: the longest
    /// message of D-Bus has 128 MiB, and is skipped with 2,048 reads.
    pub(crate) const PIECE: usize = 64 << 10;
    /// After this number of calls in a row that are not heard, others have their turn. Raised,
    /// others wait for longer. From: a third of what a user may send at once (`requests::BURST`).
    pub(crate) const UNHEARD_IN_A_ROW: u32 = 64;
    /// The most calls without an answer that a connection may send before its user is known. A
    /// client whose first call timed out takes it back by one. Raised, calls of unknown users take
    /// more memory. Test: `calls_that_want_no_answer_are_heard_as_often_as_their_user_may_call`.
    pub(crate) const FIRST_CALLS: u32 = 8;
    /// The most connections without a known user that are counted. Beyond, the count begins anew.
    /// Raised, the same. From: a bus has 2,048 connections at most by default, those of one user
    /// 256.
    pub(crate) const MOST_UNKNOWN: usize = 1024;
    /// The number of callers that wait to be told that their call was too long. Further ones are
    /// not told. Raised, the same. From: the answer is an error, of which a program that sends one
    /// too many learns from its first.
    pub(crate) const MOST_UNTOLD: usize = 64;
    /// The most connections of one user that are told of changes. Raised, a change of one user's
    /// tasks, which is told to each of them and to root's, takes longer. From: a person has a few
    /// clients, such as `top` and a panel; 32 leave room, and bound what one change costs.
    pub(crate) const MOST_SUBSCRIBERS: usize = 32;
    /// The most threads whose jobs are told at a time. Raised, an answer is longer. From: more than
    /// a screen has lines.
    pub const MOST_THREADS: usize = 256;
}

/// Calls on their way to the loop.
pub(crate) mod requests {
    use super::Span;

    /// The most requests that wait for the loop. Further ones are refused. Raised, a caller waits
    /// for longer. From: 16 turns of `IN_A_TURN`.
    pub(crate) const MOST_WAITING: usize = 1024;
    /// The number of requests that are carried out between two turns. Raised, the loop's turn is
    /// later. From: a pass of the tracer takes up to 0.3 ms where there are 2,000 tasks, so 64
    /// calls that need one take less than 20 ms.
    pub(crate) const IN_A_TURN: usize = 64;
    /// The most changes that wait to be told on the bus. Raised, a stuck bus takes more memory.
    /// From: 64 tasks that each change four times in a minute fill it in four minutes.
    pub(crate) const MOST_UNTOLD: usize = 1024;
    /// The number of calls of a user that are answered at once after a quiet time. Raised, other
    /// users wait for longer. Test:
    /// `who_floods_is_answered_a_hundred_times_a_second_and_others_are_as_ever`.
    pub(crate) const BURST: i64 = 200;
    /// The time in which one more is. Raised, a program that calls often is refused. Test:
    /// `who_floods_is_answered_a_hundred_times_a_second_and_others_are_as_ever`.
    pub(crate) const REFILL: Span = Span::from_ms(10);
    /// A pass of the tracer over this number of tasks costs as much as another call. Raised, a user
    /// has more of a CPU of them. From: it takes some 0.3 ms, so at 100 calls a second a user has
    /// 3% of a CPU, however many tasks there are. Test:
    /// `a_call_that_goes_through_all_tasks_costs_as_many_as_there_are`.
    pub(crate) const TASKS_PER_CALL: u64 = 2000;
    /// The passes that tracking a task costs. Raised, a user tracks fewer. From: two when it is
    /// tracked, the second of which finds nothing new, and one when it is no longer.
    pub(crate) const PASSES: u64 = 3;
    /// How long a call may take to come here. Raised, memory of calls that never come lasts for
    /// longer. From: longer than anybody takes to be asked for a password.
    pub(crate) const REMEMBERED: Span = Span::from_secs(300);
    /// How long a caller waits for a reservation that the kernel cannot give yet. Raised, it waits
    /// for longer in vain. From: a task's former one is counted until its 0-lag time, a period
    /// later: of four seconds, the longest there is.
    pub(crate) const LONGEST_WAIT: Span = Span::from_secs(6);
}

/// Users and their groups.
pub(crate) mod accounts {
    use super::Duration;

    /// The room for a user's entry in the database, in bytes. Raised, a look-up takes more memory.
    /// From: glibc's own is 1,024 (`_SC_GETPW_R_SIZE_MAX`), and a directory's may be longer.
    pub(crate) const ENTRY_BYTES: usize = 16 * 1024;
    /// For how long what was found is not looked up again. Raised, a user who was added to a group
    /// has its quota later. From: sssd and nscd remember for minutes to hours.
    pub(crate) const FRESH: Duration = Duration::from_secs(60);
    /// How long a caller waits for a look-up. Raised, it waits for longer in vain. From: a bus
    /// gives a caller 25 s by default, a fifth of which a slow directory may take.
    pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
    /// An account that was looked up longer ago is forgotten where there is no room. Raised, fewer
    /// are. From: ten times `FRESH`.
    pub(crate) const KEPT: Duration = Duration::from_secs(600);
    /// The most accounts that are known. Raised, they take more memory. From: one person may have
    /// 65,536 numbers in user namespaces, and no machine has as many people. Test:
    /// `numbers_without_an_account_take_a_bounded_memory_and_displace_no_account`.
    pub(crate) const MOST_KNOWN: usize = 4096;
    /// The most look-ups that wait. Raised, a caller waits for longer. From: with a directory that
    /// does not answer, all are over after `PATIENCE`; 256 users who call at once are more than a
    /// machine has.
    pub(crate) const MOST_WAITING: usize = 256;
}

/// Lines of the log.
pub(crate) mod log {
    use super::Span;

    /// The time of each count. Raised, a user who wrote too much is quiet for longer. Test:
    /// `about_one_users_tasks_few_lines_are_written_a_minute_and_the_others_are_counted`.
    pub(crate) const EACH: Span = Span::from_secs(60);
    /// The changes of one user's tasks that are written in that time. Raised, the journal drops
    /// lines of a service that writes too many. From: 64 tasks may each change four times, and
    /// forty users do not come near what journald takes of a service (10,000 lines in 30 s).
    pub(crate) const CHANGES: u32 = 256;
    /// The lines about processes of one user's that rules name. Raised, the same. From: `THREADED`
    /// processes, each with one.
    pub(crate) const RULED: u32 = 64;
    /// The lines about the partners of one user's threads. Raised, the same. From: a program has
    /// one or two servers that it waits for.
    pub(crate) const PARTNERS: u32 = 8;
}

/// Processes that rules name.
pub(crate) mod rules {
    use super::Span;

    /// The time between two looks for processes, if there is no rule. Raised, another manager of
    /// scheduling is seen later. From: only other managers of scheduling are looked for then, and
    /// they stay.
    pub(crate) const SELDOM: Span = Span::from_secs(10);
    /// The processes that are looked at in one turn of the loop. Raised, the next turn is later.
    /// From: of each, up to four files are read, some 40 us, and the loop is to turn again after 10
    /// ms.
    pub(crate) const FILES_OF: usize = 256;
    /// The processes of one user's that are looked at again and again, because a rule names some of
    /// their threads, which start and are named at any time. Raised, a user has more of the loop's
    /// time. From: a browser has one for each page.
    pub(crate) const THREADED: usize = 64;
    /// The threads of such a process that are looked at, the oldest ones. Raised, the same. From: a
    /// rule names threads that a program begins early; later ones of a process with more are
    /// workers.
    pub(crate) const THREADS: usize = 512;
    /// The most processes that wait for their users to be looked up. The others are found by the
    /// next scan. Raised, they take more memory. From: the next scan is seconds later.
    pub(crate) const OF_UNKNOWN: usize = 64;
    /// For how long a process is looked at, because it may execute a program only later. Raised, a
    /// scan costs more. Test:
    /// `a_process_is_young_for_30_s_and_one_that_ended_is_not_known_any_more`.
    pub(crate) const YOUNG: Span = Span::from_secs(30);
    /// The entries of /proc that are read in one turn of the loop. Raised, the next turn is later.
    /// From: some 1 us each, 2 ms of the 10. Test:
    /// `however_many_processes_there_are_few_are_read_in_a_turn`.
    pub(crate) const ENTRIES: usize = 2048;
    /// The time between two searches of a process for threads whose start was lost. Raised, such a
    /// thread is tracked later. From: 16 a second; each search goes through all tasks of the
    /// machine, up to 0.3 ms where there are 2,000 (`requests::TASKS_PER_CALL`), which is half a
    /// percent of a CPU.
    pub(crate) const SEARCH: Span = Span::from_us(62_500);
    /// The time between two looks whether what is held is still there. Raised, what a gone program
    /// held is free later. From: a user starts a program again within seconds.
    pub(crate) const HOUSEKEEPING: Span = Span::from_secs(1);
    /// The processes of one manager that are remembered. Raised, they take more memory. From: every
    /// user may start any number that are called as GameMode is. Test:
    /// `of_programs_that_any_user_may_start_few_are_remembered`.
    pub(crate) const MOST_OF_A_NAME: usize = 8;
    /// The digits of a container's id that name it. Raised, a rule with the usual ones names none.
    /// From: Docker and Podman show twelve. Test:
    /// `a_container_is_named_by_its_id_or_twelve_digits_of_it`.
    pub(crate) const DIGITS: usize = 12;
}

/// Limits of the configuration.
pub(crate) mod config {
    /// The most that is written as a share, of one CPU. Raised, a wrong number is taken. From: a
    /// hundred CPUs.
    pub(crate) const MOST_PERCENT: f64 = 10_000.0;
    /// The most files of given rules that are read. Raised, a reload takes longer. From: more than
    /// a node of Kubernetes has containers.
    pub(crate) const MOST_GIVEN: usize = 1024;
    /// The jobs whose demands make a distribution. Raised, a plan comes later. From: GRACE-OS,
    /// section 4.3.
    pub(crate) const PROFILED_JOBS: usize = 100;
}

/// Charges of quotas.
pub(crate) mod ledger {
    use super::Span;

    /// The time within which the kernel frees a task that has ended. Raised, a quota is charged for
    /// longer for a thread that executes a program, because its own number is never freed. From:
    /// some 0.1 s on a busy machine. Test:
    /// `what_a_task_held_that_ended_is_charged_until_it_is_known_that_it_had_not_left_it`.
    pub(crate) const FREED_WITHIN: Span = Span::from_secs(2);
    /// The size of the bucket, as a time of the quota's bandwidth. Raised, a user has more than
    /// the quota for longer; lowered, one film's start empties it. Test:
    /// `who_has_used_too_much_has_reservations_again_when_that_is_made_up_for`.
    pub(crate) const HOLDS: Span = Span::from_ms(1000);
    /// The longest period of a reservation that may be soft. Raised, a task that never blocks is
    /// noticed later: when its runtime is used up, which under reclaiming is at the end of a
    /// period. Test: `what_a_quota_could_not_notice_in_time_is_a_ceiling_and_root_has_none`.
    pub(crate) const LONGEST_SOFT_PERIOD: Span = Span::from_ms(200);
}

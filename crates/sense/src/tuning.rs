//! Every tuned constant of this crate: its value, what raising it costs, and where the value comes
//! from.
//!
//! "Test" names a test that fails when the value is doubled or halved; "From" is a derivation or a
//! citation. Numbers of the kernel's interface, layouts that C shares (`record.h`, `ring.h`) and
//! formats are where they are used.

use std::time::Duration;

use onbeat_model::Span;

/// Tracers outside the kernel.
pub(crate) mod tracer {
    use super::Span;

    /// The events that are kept for the loop. Raised, a loop that does not ask has more memory.
    /// From: 1,000 bursts a second for a minute.
    pub(crate) const MOST_EVENTS: usize = 1 << 16;
    /// Between two looks at all threads while events are lost. Raised, a thread whose start was
    /// lost is followed later; lowered, looks cost more while the machine is busy. Test:
    /// `however_often_events_are_lost_threads_are_looked_up_ten_times_a_second`.
    pub(crate) const LOOKS_EVERY: Span = Span::from_ms(100);
    /// How long events wait in the kernel. Raised, the buffer runs over. From: it has room for some
    /// 10,000 events of each CPU, 100,000 in a second.
    pub(crate) const PACE: Span = Span::from_ms(100);
    /// The size of a trace buffer for each CPU, in KiB: some 10,000 events. Raised, memory of the
    /// kernel; lowered, events are lost. From: `PACE`, at 100,000 events a second.
    pub(crate) const BUFFER_KB: u32 = 1024;
    /// The size of the largest ring, in pages. Raised, a second tracer has no room. From: half of
    /// the 516 KiB of a CPU that a user may lock by default (`perf_event_mlock_kb`).
    pub(crate) const MOST_PAGES: usize = 64;
}

/// The tracer by ptrace.
pub(crate) mod ptrace {
    use super::Span;

    /// Between two looks at a thread's name. Raised, a new name is told later. From: programs name
    /// threads at their start, and each look reads a file while the thread is stopped.
    pub(crate) const NAMES_EVERY: Span = Span::from_secs(1);
    /// The files kept open. Raised, none is left for others. From: half of the 1,024 that a process
    /// may have by default.
    pub(crate) const MOST_OPEN: usize = 512;
    /// A shorter sleep does not end a burst. Raised, bursts merge. From: the tracer itself is some
    /// tens of microseconds late, from which it cannot be told.
    pub(crate) const SHORTEST_SLEEP: Span = Span::from_us(100);
}

/// The tracer by a library in the program.
pub(crate) mod preload {
    use super::Span;

    /// Between two looks at who is still there. Raised, the end of a program is told later. From: a
    /// program that ends by itself is told at once.
    pub(crate) const LOOKS_EVERY: Span = Span::from_secs(1);
    /// The most threads that are remembered: a program can make up any number of them. Raised, they
    /// take more memory. From: a tenth of that is a large program; the rest is room for one that
    /// makes numbers up.
    pub(crate) const MOST_THREADS: usize = 8192;
    /// How far up a program's ancestors are looked at. Raised, a look at a deep one costs more.
    /// From: a shell in a terminal in a session is ten deep.
    pub(crate) const MOST_ANCESTORS: usize = 64;
    /// The passes for which a record may be in the making; then its writer was killed. Raised, what
    /// comes after it is told later. From: a record takes less than 1 us, and passes are
    /// milliseconds apart: only a writer that was stopped takes longer.
    pub(crate) const PATIENCE: u32 = 20;
}

/// The tracer in the kernel.
pub(crate) mod bpf {
    use super::Span;

    /// The size of the ring buffer, unless an option says otherwise: 16,384 records. Raised, memory
    /// of the kernel; lowered, events are lost if the loop stalls. From: 16,000 bursts a second for
    /// a second.
    pub(crate) const BUFFER_BYTES: u32 = 1 << 20;
    /// A thread that begins is told within this time. Raised, it is ordinary for longer; lowered,
    /// each thread of a program that begins several wakes the loop. From: short beside the 3 s in
    /// which an application begins, and long enough for the threads that one call begins.
    pub(crate) const BEGIN_TOGETHER: Span = Span::from_ms(1);
    /// Between two readings of who was woken. Raised, a server is followed later. From: pipelines
    /// are reviewed every 250 ms (`onbeat-control`), so two readings fit between two reviews.
    pub(crate) const PARTNERS_EVERY: Span = Span::from_ms(100);
    /// How many are read with one system call. Raised, each call takes more memory. From: the
    /// programs of a desktop wait for some twenty servers.
    pub(crate) const BATCH: u32 = 64;
    /// An interval of the meter that is open for this long is charged at a look. Raised, a thread
    /// that never sleeps is charged later; lowered, each CPU is interrupted more often. From: looks
    /// come every 5 ms.
    pub(crate) const SETTLED_AFTER: Span = Span::from_ms(4);
}

/// Listening to the probes of programs.
pub(crate) mod listener {
    use super::{Duration, Span};

    /// How long the start of a program waits until its files are listened to. Raised, a program on
    /// a stuck file system starts later. From: a hundred libraries take some 20 ms.
    pub(crate) const START: Duration = Duration::from_secs(2);
    /// The most that is read of a file of maps, in bytes. Raised, a look takes longer. From: a
    /// large program (10,000 mappings, names of 100 bytes) has 1 MiB.
    pub(crate) const MOST_BYTES: u64 = 4 << 20;
    /// The most executable mappings of a process that are looked at. Raised, the same. From: a
    /// browser has some 300.
    pub(crate) const MOST_MAPPED: usize = 1024;
    /// From the first look at a process to the second; each further pause is twice as long. Raised,
    /// a library that is loaded late is heard later. From: one frame at 50 a second: a library that
    /// is loaded late is heard from the second frame.
    pub(crate) const FIRST_PAUSE: Span = Span::from_ms(20);
    /// And the longest. Raised, the same. From: a hundred of the first pause; what a program maps
    /// this late, it maps seldom.
    pub(crate) const LONGEST_PAUSE: Span = Span::from_secs(2);
    /// The shortest pause after a look at a process, but the first, in lengths of the look. Raised,
    /// a large process is heard later. From: looks take 5% of a CPU.
    pub(crate) const PAUSE_PER_LOOK: u64 = 20;
    /// The most files whose probes are remembered. Raised, they take more memory. From: at most 10
    /// MiB; a machine runs a few hundred.
    pub(crate) const MOST_FILES: usize = 1024;
    /// The most new mappings of a process that one look opens. Raised, others wait for longer.
    /// From: a hundred libraries take some 20 ms, so these take less than one frame at 60 a second.
    pub(crate) const MOST_OPENED: usize = 64;
    /// The most mappings and probes of a process that are remembered. Raised, a process that maps
    /// ever new files takes more memory. From: each of its mappings is mapped four times.
    pub(crate) const MOST_SEEN: usize = 4 * MOST_MAPPED;
    /// Each user's processes may have this part of all probes: one in this number. Raised, one user
    /// has fewer. From: four users with many programs each.
    pub(crate) const PART_OF_USER: usize = 4;
    /// The most probes of a file, and of a process: each is a descriptor. Raised, a file that is
    /// full of them takes others' place. From: a program has one for each call in each of its
    /// sources.
    pub const MOST_SITES: usize = 256;
    /// The most bytes of notes that are read: a file with holes may claim what it likes. Raised,
    /// such a file takes more memory. From: a probe's note has some 70 bytes, so `MOST_SITES` have
    /// 18,000.
    pub(crate) const MOST_NOTES_BYTES: u64 = 1 << 20;
    /// The most sections of a file that are read. Raised, the same. From: ELF's own field holds as
    /// many.
    pub(crate) const MOST_SECTIONS: u32 = 1 << 16;
    /// The most segments of a file that hold code. Raised, the same. From: a linker makes one or
    /// two.
    pub(crate) const MOST_SEGMENTS: usize = 128;
}

/// The process that parses files.
pub(crate) mod helper {
    use super::Duration;

    /// A request that takes longer, in seconds, ends its worker: the file may be one of a file
    /// system in user space. Raised, others wait for longer. From: a request takes some
    /// milliseconds.
    pub(crate) const LONGEST_REQUEST_S: i64 = 2;
    /// How long an answer is waited for. Raised, the same. From: longer than `LONGEST_REQUEST_S`,
    /// so that a file that takes too long ends the helper first.
    pub(crate) const ANSWER: Duration = Duration::from_secs(3);
    /// The CPU time of a worker, in seconds. Raised, a file that traps a parser costs more. From:
    /// 100 requests of some milliseconds take less than one.
    pub(crate) const MOST_CPU_S: u64 = 5;
    /// The requests of a worker. Raised, what a file did to it lasts for longer; lowered, a worker
    /// is started more often. From: a player has a hundred libraries: one worker parses those of a
    /// program.
    pub(crate) const MOST_REQUESTS: usize = 100;
    /// The memory of a worker beyond what it has at first, in bytes. Raised, a file can take more.
    /// From: parsing takes less than 10 MiB.
    pub(crate) const MOST_MEMORY: u64 = 64 << 20;
    /// The pause until another worker is started, after one that was ended by the kernel; each
    /// further one is twice as long. Raised, the next file is heard later. From: a request that met
    /// the end of a worker is asked again at the next look (`listener::FIRST_PAUSE`).
    pub(crate) const FIRST_PAUSE: Duration = Duration::from_millis(10);
    /// And the longest. Raised, the same; lowered, a program that kills it again and again costs
    /// more. From: `LONGEST_REQUEST_S`, the longest that a request waits in any case.
    pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(2);
}

/// Files of recordings.
pub(crate) mod recording {
    /// The longest line, in bytes. Raised, a file that is no recording takes more memory. From: the
    /// first line of onbeat's own holds a command of `COMMAND_KEPT` bytes, each written as up to
    /// six.
    pub(crate) const LONGEST_LINE: usize = 1 << 20;
    /// The beginning of a file that its format is told from, in bytes. Raised, it takes more
    /// memory. From: `LOOKED_AT` lines of 600 bytes.
    pub(crate) const HEAD: u64 = 64 << 10;
    /// The lines that are looked at for it. Raised, a text that is no recording is told later.
    /// From: trace-cmd writes up to a line for each CPU before the first event.
    pub(crate) const LOOKED_AT: usize = 100;
    /// How much of the command is kept, in bytes: its line must stay within `LONGEST_LINE`. Raised,
    /// a recording may not be read. Test: `the_facts_say_on_what_the_recording_was_made`.
    pub(crate) const COMMAND_KEPT: usize = 64 << 10;
    /// How many characters of a line a message shows. Raised, the message is longer than a line.
    /// From: with what the message says before it, a line of a terminal.
    pub(crate) const EXCERPT: usize = 60;
    /// And how many tasks. Raised, the same. From: two lines of a terminal.
    pub(crate) const TASKS_SHOWN: usize = 8;
}

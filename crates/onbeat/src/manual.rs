//! The parts of the man pages beside the flags: exit statuses, files, environment, examples.

use onbeat_command::pages::{CHILD_EXIT_STATUS, EXIT_STATUS, Entries, Section};

/// The sections of a page, in order: `onbeat`, or `onbeat-COMMAND`.
pub(crate) fn sections(page: &str) -> Vec<Section> {
    let (exit_status, examples): (_, &[_]) = match page {
        "onbeat-run" => (CHILD_EXIT_STATUS, RUN_EXAMPLES),
        "onbeat-watch" => (CHILD_EXIT_STATUS, WATCH_EXAMPLES),
        "onbeat-reserve" => (CHILD_EXIT_STATUS, RESERVE_EXAMPLES),
        "onbeat-attach" => (EXIT_STATUS, ATTACH_EXAMPLES),
        "onbeat-record" => (EXIT_STATUS, RECORD_EXAMPLES),
        "onbeat-analyze" => (EXIT_STATUS, ANALYZE_EXAMPLES),
        "onbeat-replay" => (EXIT_STATUS, REPLAY_EXAMPLES),
        "onbeat-top" => (TOP_EXIT_STATUS, TOP_EXAMPLES),
        "onbeat-report" => (EXIT_STATUS, REPORT_EXAMPLES),
        "onbeat-doctor" => (DOCTOR_EXIT_STATUS, DOCTOR_EXAMPLES),
        "onbeat-restore" => (RESTORE_EXIT_STATUS, RESTORE_EXAMPLES),
        "onbeat-mark" => (EXIT_STATUS, MARK_EXAMPLES),
        "onbeat-daemon" => (EXIT_STATUS, DAEMON_EXAMPLES),
        "onbeat-generate" => (EXIT_STATUS, GENERATE_EXAMPLES),
        _ => (EXIT_STATUS, ONBEAT_EXAMPLES),
    };
    let mut sections = vec![Section {
        title: "EXIT STATUS",
        entries: exit_status,
    }];
    if matches!(
        page,
        "onbeat" | "onbeat-run" | "onbeat-attach" | "onbeat-reserve" | "onbeat-restore"
    ) {
        sections.push(Section {
            title: "FILES",
            entries: FILES,
        });
        sections.push(Section {
            title: "ENVIRONMENT",
            entries: ENVIRONMENT,
        });
    }
    if matches!(
        page,
        "onbeat-run" | "onbeat-attach" | "onbeat-top" | "onbeat-replay"
    ) {
        sections.push(Section {
            title: "SETTINGS",
            entries: SETTINGS,
        });
    }
    if page == "onbeat-daemon" {
        sections.push(Section {
            title: "FILES",
            entries: DAEMON_FILES,
        });
    }
    if page == "onbeat-top" {
        sections.push(Section {
            title: "ENVIRONMENT",
            entries: TOP_ENVIRONMENT,
        });
    }
    sections.push(Section {
        title: "EXAMPLES",
        entries: examples,
    });
    sections
}

const DOCTOR_EXIT_STATUS: Entries = &[
    ("0", "onbeat can work here."),
    (
        "1",
        "A feature that onbeat needs is missing; the table says what to do.",
    ),
    ("2", "The command line was wrong."),
];

const RESTORE_EXIT_STATUS: Entries = &[
    ("0", "Every thread is restored."),
    (
        "1",
        "A thread could not be restored; the message says why and what to do.",
    ),
    ("2", "The command line was wrong."),
];

const FILES: Entries = &[
    (
        "/run/onbeat/, or $XDG_RUNTIME_DIR/onbeat/ if not root",
        "The former scheduling of each thread, from before it is changed; `onbeat restore` reads it.",
    ),
    (
        "/var/cache/onbeat/, or /usr/lib/onbeat/ if that is there",
        "The library that `--tracer preload` of `onbeat record` and `watch` loads into root's programs.",
    ),
];

const DAEMON_FILES: Entries = &[
    (
        "/etc/onbeat/onbeat.toml, /etc/onbeat/onbeat.d/*.toml",
        "Quotas, and the programs that get reservations without a request: onbeat.toml(5).",
    ),
    (
        "/run/onbeat/",
        "The former scheduling of each thread, from before it is changed; after a crash the service restores it when it starts again.",
    ),
];

const ENVIRONMENT: Entries = &[(
    "ONBEAT_STATE_DIR",
    "Another folder for the former scheduling; --state-dir of `onbeat daemon`, `reserve` and `restore` wins.",
)];

/// The settings that `--config` takes. A term is a setting as it is typed, with its default or an
/// example.
pub(crate) const SETTINGS: Entries = &[
    (
        "limits.total=\"85%\"",
        "Limit of all reservations together, of all CPUs, as --cap.",
    ),
    (
        "limits.per-task=\"85%\"",
        "Limit of one thread's reservation, of one CPU; a higher one leaves less to other threads.",
    ),
    (
        "limits.minimum=\"1%\"",
        "Guaranteed minimum of each periodic thread under overload, of one CPU; a higher one leaves less to weights.",
    ),
    (
        "weights.mplayer=2.0",
        "Weight under overload of the threads with this name or number [default: 1]; a higher one takes bandwidth from the others.",
    ),
    (
        "prediction.predictor=\"percentile\"",
        "Rule that predicts the next budget: percentile, rate (LFS++: CPU time per sampling period), mean-sigma, binary (LFS: up when a budget ran out, else slowly down), statistical (GRACE-OS; the default with power.rule=\"grace\"), or pattern (a budget for each place of a group of jobs that repeats, as a film's frames do; else as percentile).",
    ),
    (
        "prediction.samples=16",
        "Number of past jobs in the prediction [statistical: 100]; with more, budgets follow changes later.",
    ),
    (
        "prediction.above=1",
        "Number of these jobs that may need more than predicted; a higher one reserves less (percentile, rate).",
    ),
    (
        "prediction.spread=0.1",
        "Amount added to the prediction, as a share of it; a larger one reserves more.",
    ),
    (
        "prediction.sigmas=3.0",
        "Number of standard deviations added to the mean; a larger one reserves more (mean-sigma).",
    ),
    (
        "prediction.rho=\"95%\"",
        "Share of jobs that stay within their budget, unless a thread declares its own; a higher one reserves more (statistical).",
    ),
    (
        "prediction.sampling=\"1s\"",
        "Time between two samples of the CPU time; a longer one reacts later (rate).",
    ),
    (
        "enforcement.means=\"auto\"",
        "What threads are given: priority (a real-time priority within their program's account), nice (a nice value and a slice), reservations (for those with a period; a nice value for the rest), or auto (priority; with --always or --hard reservations for those with a period).",
    ),
    (
        "power.rule=\"band\"",
        "Rule for the speed of the CPUs [default: onbeat leaves the speed alone]: band keeps the utilisation of the busiest CPU within power.band (LFS++'s power manager); grace takes the lowest speed at which all budgets fit (GRACE-OS). The governor stays.",
    ),
    (
        "power.band=\"20%-80%\"",
        "Utilisation of the busiest CPU below which the speed falls, and above which it is the highest (band).",
    ),
    (
        "power.best-effort=\"10%\"",
        "Share kept for programs without a reservation, of all CPUs at full speed [default: none]; a higher one costs energy (grace).",
    ),
    (
        "power.sampling=\"1s\"",
        "Time between two decisions on the speed; a longer one reacts later.",
    ),
];

const ONBEAT_EXAMPLES: Entries = &[
    ("onbeat doctor", "Check what onbeat needs."),
    (
        "sudo onbeat run -- mplayer film.mkv",
        "Play a film, with CPU time reserved for it.",
    ),
];

const TOP_EXIT_STATUS: Entries = &[
    (
        "0",
        "Done; with a program, its own exit status, as `onbeat run` gives it.",
    ),
    (
        "1",
        "It failed (with a program: 125); a message on standard error says what happened and what to do.",
    ),
    ("2", "The command line was wrong."),
];

const TOP_ENVIRONMENT: Entries = &[
    ("NO_COLOR", "If set, bold and faint instead of colours."),
    (
        "LC_ALL, LC_CTYPE, LANG",
        "If the first of them that is set does not name UTF-8, bars are drawn in ASCII.",
    ),
    (
        "DBUS_SYSTEM_BUS_ADDRESS",
        "The bus of the service, if it is not the system bus.",
    ),
];

const TOP_EXAMPLES: Entries = &[
    (
        "onbeat top",
        "Show what the service does for your programs.",
    ),
    (
        "sudo onbeat top -- mplayer film.mkv",
        "Play a film with a reservation, and watch it.",
    ),
    (
        "sudo onbeat top --always --dry-run --pid $(pidof pipewire)",
        "Show what onbeat would do for a running program.",
    ),
    (
        "onbeat top --json",
        "Print one object for each thread, for a script.",
    ),
];

const RUN_EXAMPLES: Entries = &[
    (
        "sudo onbeat run -- mplayer film.mkv",
        "Let a player go before other programs, when they want its CPUs, until it ends.",
    ),
    (
        "sudo onbeat run --always --config prediction.spread=0.2 -- mplayer film.mkv",
        "Reserve CPU time from its first periods on, and more than usual, for jobs that vary.",
    ),
    (
        "sudo onbeat run --also $(pidof Xorg) -- mplayer film.mkv",
        "The same for the display server that draws its frames.",
    ),
    (
        "sudo onbeat run --always --dry-run --log decisions.jsonl -- mplayer film.mkv",
        "Log what onbeat would do, and why; change nothing.",
    ),
];

const ATTACH_EXAMPLES: Entries = &[(
    "sudo onbeat attach --report report.json $(pidof pipewire)",
    "Serve a running audio server until Ctrl-C, then write the figures to a file.",
)];

const RECORD_EXAMPLES: Entries = &[
    (
        "sudo onbeat record -o film.onbeat --duration 10s -- mplayer film.mkv",
        "Record ten seconds of a player.",
    ),
    (
        "sudo onbeat record -o audio.onbeat -p $(pidof pipewire)",
        "Record a running process until Ctrl-C.",
    ),
];

const WATCH_EXAMPLES: Entries = &[
    (
        "onbeat watch -- mplayer film.mkv",
        "Measure a player, by the best tracer that works for you.",
    ),
    (
        "onbeat watch --tracer preload --children --json -- ./play.sh",
        "Measure all programs that a script starts, with a preloaded library.",
    ),
];

const ANALYZE_EXAMPLES: Entries = &[
    (
        "onbeat analyze film.onbeat",
        "Print the period of each thread, over the whole recording.",
    ),
    (
        "onbeat analyze --window 1s --json trace.txt.gz",
        "Print one JSON object per thread and second of an ftrace text.",
    ),
];

const RESERVE_EXAMPLES: Entries = &[(
    "sudo onbeat reserve --runtime 24ms --period 40ms -- mplayer film.mkv",
    "Play a film under a reservation set by hand.",
)];

const REPLAY_EXAMPLES: Entries = &[
    (
        "onbeat replay film.onbeat",
        "Which reservations would have been made, changed and given back, and why.",
    ),
    (
        "onbeat replay --cpus 1 --json trace.pftrace",
        "For a trace of Perfetto on a machine with one CPU, one JSON object for each decision.",
    ),
];

const REPORT_EXAMPLES: Entries = &[
    (
        "sudo onbeat run --report film.json -- mplayer film.mkv",
        "Reserve for a player, and write what happened to a file.",
    ),
    ("onbeat report film.json -o film.html", "Make a page of it."),
];

const DOCTOR_EXAMPLES: Entries = &[(
    "onbeat doctor --json",
    "Print the table as JSON, for a script.",
)];

const MARK_EXAMPLES: Entries = &[
    ("onbeat mark begin", "Say that a job of a script begins."),
    ("onbeat mark end", "Say that it has ended."),
];

const RESTORE_EXAMPLES: Entries = &[(
    "sudo onbeat restore",
    "Restore every thread, after kill -9 of onbeat and its guard.",
)];

const DAEMON_EXAMPLES: Entries = &[
    (
        "sudo onbeat daemon",
        "Serve this machine's users until Ctrl-C. Permanently: `systemctl enable --now onbeat`.",
    ),
    (
        "onbeat daemon --check",
        "Check the configuration; print the line of a mistake, and what to write instead.",
    ),
];

const GENERATE_EXAMPLES: Entries = &[
    (
        "onbeat generate man /usr/local/share/man/man1",
        "Install the man pages.",
    ),
    (
        "onbeat generate completions completions/",
        "Completions for each shell, to copy where the shell looks.",
    ),
];

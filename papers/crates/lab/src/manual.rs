//! The parts of the man pages beside the flags: exit statuses and examples.

use onbeat_command::pages::{CHILD_EXIT_STATUS, EXIT_STATUS, Entries, Section};

/// The sections of a page, in order: `onbeat-lab`, or `onbeat-lab-COMMAND`.
pub(crate) fn sections(page: &str) -> Vec<Section> {
    let (exit_status, examples): (_, &[_]) = match page {
        "onbeat-lab-plan" => (EXIT_STATUS, PLAN_EXAMPLES),
        "onbeat-lab-reserve" => (CHILD_EXIT_STATUS, RESERVE_EXAMPLES),
        "onbeat-lab-scheduler" => (EXIT_STATUS, SCHEDULER_EXAMPLES),
        _ => (EXIT_STATUS, SIM_EXAMPLES),
    };
    [("EXIT STATUS", exit_status), ("EXAMPLES", examples)]
        .map(|(title, entries)| Section { title, entries })
        .into()
}

const PLAN_EXAMPLES: Entries = &[
    (
        "onbeat-lab plan --misses 5% film.onbeat",
        "Print the smallest reservations under which at most 5% of the jobs would have been late.",
    ),
    (
        "onbeat-lab plan --cie template.yaml robot.onbeat >robot.yaml",
        "Fill in runtime, deadline and period for Autoware's thread_configurator_node.",
    ),
];

const SIM_EXAMPLES: Entries = &[
    (
        "onbeat-lab sim player.toml --timeline player.json",
        "Simulate, and look at the timeline in ui.perfetto.dev.",
    ),
    (
        "onbeat-lab sim --seed 1-100 --json player.toml",
        "A hundred runs on all CPUs, one JSON object each.",
    ),
    (
        "onbeat-lab sim --from film.onbeat --cpus 1,2 --speed 50%,100% --hogs 4",
        "Print misses and energy of the recorded threads on other machines and under other policies.",
    ),
];

const SCHEDULER_EXAMPLES: Entries = &[
    (
        "onbeat-lab scheduler list",
        "List the schedulers, and which of them this kernel takes.",
    ),
    (
        "sudo onbeat-lab scheduler start best",
        "Run one, with live statistics, until Ctrl-C.",
    ),
];

const RESERVE_EXAMPLES: Entries = &[(
    "sudo onbeat-lab reserve --runtime 150ms --period 100ms -- make",
    "Give a compiler and all that it starts one and a half CPUs.",
)];

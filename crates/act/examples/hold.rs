//! Reserves and gives back the tasks it is given, at random, until it is killed: something to try
//! `onbeat restore` on.
//!
//! Usage: `hold DIRECTORY SEED TID...`

use std::path::Path;
use std::process::ExitCode;

use onbeat_act::restore::StateFile;
use onbeat_act::{DeadlineActuator, DeadlineOptions, task};
use onbeat_model::{Actuator, Reservation, Span};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (Some(directory), Some(seed)) = (arguments.first(), arguments.get(1)) else {
        eprintln!("usage: hold DIRECTORY SEED TID...");
        return ExitCode::FAILURE;
    };
    let tasks: Vec<_> = arguments
        .iter()
        .skip(2)
        .filter_map(|tid| task::identify(tid.parse().ok()?).ok())
        .collect();
    let state_file = match StateFile::create(Path::new(directory)) {
        Ok(state_file) => state_file,
        Err(error) => {
            eprintln!("no state file in {directory}: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut actuator = DeadlineActuator::new(state_file, DeadlineOptions::default());
    let mut random = seed.parse::<u64>().unwrap_or(1) | 1;
    let mut below = |bound: u64| {
        // Marsaglia's xorshift: any seed but zero will do.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % bound
    };
    loop {
        for &task in &tasks {
            let period = Span::from_ms(20 + below(80));
            let runtime = period / (100 + below(100));
            // A refused task is tried again a moment later.
            let _ = match (below(4), Reservation::implicit(runtime, period)) {
                (1.., Ok(reservation)) => actuator.reserve(task, reservation),
                _ => actuator.release(task),
            };
        }
        std::thread::sleep(std::time::Duration::from_micros(below(500)));
    }
}

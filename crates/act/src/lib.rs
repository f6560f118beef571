//! Puts reservations in force through SCHED_DEADLINE, and puts everything back.

//! The command line of onbeat.

fn main() {}

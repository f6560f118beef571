//! Experiments on a live machine.

fn main() {}

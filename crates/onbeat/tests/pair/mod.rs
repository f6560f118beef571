//! A player that waits for its server in each of its jobs, in two processes: what the two do is in
//! `pair.py`.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::common::Mortal;

/// See the file's head. The server ends when the player does.
pub(crate) struct Pair {
    /// The first process.
    pub(crate) player: Mortal,
    /// The number of the second one.
    pub(crate) server: u32,
}

impl Pair {
    /// Starts them, as the users of player and server if these are told.
    pub(crate) fn start(users: &[u32]) -> Self {
        let mut command = Command::new("python3");
        command
            .args(["-c", include_str!("pair.py")])
            .args(users.iter().map(u32::to_string))
            .stdout(Stdio::piped());
        let mut player = Mortal::spawn(&mut command);
        let output = player.0.stdout.take().expect("it is piped");
        let mut line = String::new();
        BufReader::new(output)
            .read_line(&mut line)
            .expect("the player tells its server's number");
        let server = line.trim().parse().unwrap();
        Self { player, server }
    }
}

//! A thread of this program, which is not its first, executes another program when told to: it then
//! has the first thread's number.
//!
//! Prints the thread's number, waits for a line, and becomes `sleep 1000`.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let second = std::thread::spawn(|| {
        if let Ok(task) = onbeat_act::task::own() {
            println!("{task}");
        }
        let mut line = String::new();
        let read = io::stdin().read_line(&mut line);
        read.map(|_| Command::new("sleep").arg("1000").exec())
    });
    eprintln!("not executed: {:?}", second.join());
    ExitCode::FAILURE
}

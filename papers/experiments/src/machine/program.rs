//! A program that is ended with all it started, whatever happens to the experiment.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process_group, set_parent_process_death_signal};

use super::LOOK_EVERY;

/// How long a program may take to end in peace: onbeat gives back what it changed meanwhile.
const PATIENCE: Duration = Duration::from_secs(10);

/// A running program, in a process group of its own, so that Ctrl-C reaches the experiment alone,
/// which then ends its programs in order.
pub(crate) struct Program {
    name: String,
    child: Child,
    group: Pid,
}

impl Program {
    /// Starts it. Its messages go to `messages`; it reads nothing.
    pub(crate) fn start(mut command: Command, messages: &Path) -> anyhow::Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        let file = File::create(messages)
            .with_context(|| format!("cannot write {}", messages.display()))?;
        command.stdin(Stdio::null()).stderr(file).process_group(0);
        // SAFETY: between fork and exec the closure makes one prctl system call, which is
        // async-signal-safe and touches no memory of the parent.
        unsafe {
            command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::TERM))?));
        }
        let child = command
            .spawn()
            .with_context(|| format!("cannot start {name}: is it installed?"))?;
        let group = Pid::from_child(&child);
        Ok(Self { name, child, group })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its output, if that is a pipe; once.
    pub(crate) fn take_output(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Asks it to end, insists after a while, and waits until it and all it started are gone.
    pub(crate) fn end(&mut self) {
        if self.ended().is_none() {
            self.signal(Signal::TERM);
            let until = Instant::now() + PATIENCE;
            while self.ended().is_none() && Instant::now() < until {
                std::thread::sleep(LOOK_EVERY);
            }
            if self.ended().is_none() {
                eprintln!("{} does not end, and is killed", self.name);
            }
        }
        self.signal(Signal::KILL);
        // The only failure is that another call has waited for it: then it is gone as well.
        let _ = self.child.wait();
    }

    fn signal(&self, signal: Signal) {
        // Fails only if the group is empty, which is what is wanted.
        let _ = kill_process_group(self.group, signal);
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.end();
    }
}

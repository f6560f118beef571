//! The guard: a process of its own that puts back what this one has changed, however this one ends.
//!
//! It sleeps until this process is no more, then does what `onbeat restore` does, but for the
//! priorities of RealtimeKit's clients, which the next service takes over. After an ordinary
//! end there is nothing left to do. While this process is stopped (SIGSTOP), it ends boosts, which
//! nothing else bounds then. It is started before anything is noted or changed, and a signal
//! that is meant for all of a terminal's or a service's processes does not end it before this one.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::{CommandExt, parent_id};
use std::path::Path;
use std::process::{self, Command, Stdio};

use anyhow::Context;
use onbeat_act::restore::StateFile;
use onbeat_act::watcher::end_boosts_of;
use onbeat_act::{own, task};
use onbeat_kernel::proc::open_process;
use onbeat_kernel::wait;
use onbeat_model::Span;

/// This program, also if its file was replaced.
pub const THIS: &str = "/proc/self/exe";
/// Its name in `ps` and `top`.
const NAME: &str = "onbeat-guard";
/// The signals that would end it by chance, before its time.
const IGNORED: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];
const LOOK: Span = Span::from_ms(100);

/// Opens this process's state file in the folder `state`, after it has started the guard: a kill
/// between the two would leave a file that no process removes. Where the guard cannot be started,
/// says so: a kill then leaves what `onbeat restore` has to put back.
pub fn state_file(onbeat: &Path, state: &Path) -> anyhow::Result<StateFile> {
    start(onbeat, state);
    StateFile::create(state).with_context(|| format!("cannot write to {}", state.display()))
}

/// Starts the guard of this process, whose state files will be in the folder `state`: `onbeat`,
/// which has the command.
pub fn start(onbeat: &Path, state: &Path) {
    if let Err(error) = try_start(onbeat, state) {
        eprintln!(
            "onbeat: cannot start the guard ({error}): if onbeat is killed, run 'onbeat restore'"
        );
    }
}

fn try_start(onbeat: &Path, state: &Path) -> io::Result<()> {
    let arguments = ["restore", "--quiet", "--guard", "--state-dir"];
    // Not waited for: it ends after this process, as a child of the first one's.
    Command::new(onbeat)
        .arg0(NAME)
        .args(arguments.map(OsStr::new).iter().chain([&state.as_os_str()]))
        .stdin(Stdio::from(open_process(process::id())?))
        .stdout(Stdio::null())
        .process_group(0)
        .spawn()?;
    Ok(())
}

/// In the guard: waits for the end of the process that started it, whose state files are in the
/// folder `state`.
pub fn wait(state: &Path) -> io::Result<()> {
    // Hogs must not hold it up when it is needed. Without the right, nothing was changed that a
    // guard could put back late.
    let _ = own::load_first();
    // SAFETY: plain system calls; the name is 12 bytes and a zero.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, c"onbeat-guard".as_ptr());
        for signal in IGNORED {
            libc::signal(signal, libc::SIG_IGN);
        }
    }
    let (guarded, pid) = (io::stdin(), parent_id());
    let mut ended = [wait::PollFd::new(&guarded, wait::PollFlags::IN)];
    while ended[0].revents().is_empty() {
        wait::poll(&mut ended, Some(LOOK))?;
        if task::stat(pid).is_some_and(|stat| stat.state == 'T') {
            end_boosts_of(state, pid);
        }
    }
    // It looks at threads that may be ending.
    let _ = own::go_first(own::LOWEST);
    Ok(())
}

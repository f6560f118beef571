//! Where a user's programs may be heard only in some ways, and what root's programs load.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::*;

/// `command`, whose system calls `forbidden` fail, if they are made with this first argument (or
/// any).
fn sandboxed(mut command: Command, forbidden: (libc::c_long, Option<u32>)) -> Command {
    let (call, first) = forbidden;
    let instruction = |code: u32, k: u32, jt, jf| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let load = |field: usize| {
        instruction(
            libc::BPF_LD | libc::BPF_W | libc::BPF_ABS,
            field as u32,
            0,
            0,
        )
    };
    let skip_unless =
        |k, jt, jf| instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, k, jt, jf);
    let answer = |k| instruction(libc::BPF_RET | libc::BPF_K, k, 0, 0);
    let refuse = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    let mut program = vec![
        // perf would be taken before, where it is for all users.
        load(std::mem::offset_of!(libc::seccomp_data, nr)),
        skip_unless(libc::SYS_perf_event_open as u32, 0, 1),
        answer(refuse),
        skip_unless(call as u32, 1, 0),
        answer(libc::SECCOMP_RET_ALLOW),
    ];
    if let Some(first) = first {
        program.extend([
            load(std::mem::offset_of!(libc::seccomp_data, args)),
            skip_unless(first, 1, 0),
            answer(libc::SECCOMP_RET_ALLOW),
        ]);
    }
    program.push(answer(refuse));
    let install = move || {
        let filter = libc::sock_fprog {
            len: program.len() as u16,
            filter: program.as_mut_ptr(),
        };
        // SAFETY: async-signal-safe calls; the kernel reads the program, which lives until they
        // return.
        let set = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER,
                &raw const filter,
            )
        };
        match set {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: what is done before the `exec` allocates nothing.
    unsafe { command.pre_exec(install) };
    command
}

#[test]
fn where_a_sandbox_forbids_ptrace_or_its_filter_programs_are_heard_by_preload_and_the_reason_is_said()
 {
    let cases = [
        ((libc::SYS_ptrace, None), "--cap-add=SYS_PTRACE"),
        (
            (libc::SYS_prctl, Some(libc::PR_SET_SECCOMP as u32)),
            "seccomp filter",
        ),
    ];
    for (forbidden, remedy) in cases {
        until("a burst of the program", || {
            let mut auto = watch("auto", &[]);
            auto.arg(sleeper()).arg("again");
            let heard = output(&mut sandboxed(auto, forbidden));
            let messages = stderr(&heard);
            assert_eq!(heard.status.code(), Some(0), "{messages}");
            has(messages, &["using the preload tracer"]);
            has(messages, &[remedy]);
            bursts(&heard) > 0
        });

        let mut chosen = watch("ptrace", &[]);
        chosen.arg("true");
        let refused = output(&mut sandboxed(chosen, forbidden));
        assert_eq!(refused.status.code(), Some(125));
        let messages = stderr(&refused);
        has(messages, &[remedy]);
    }
}

#[test]
fn what_root_s_programs_are_preloaded_with_is_for_root_alone_to_change() {
    needs_root!();
    let library = eventually("a burst of the program", || {
        let heard = output(
            Command::new(Programs::get().path("onbeat"))
                .args(["watch", "--tracer", "preload", "--"])
                .args(["sh", "-c", "echo $LD_PRELOAD; exec $0 again"])
                .arg(sleeper()),
        );
        assert_eq!(heard.status.code(), Some(0), "{heard:?}");
        let text = stdout(&heard);
        (bursts(&heard) > 0).then(|| PathBuf::from(text.trim()))
    });
    for path in library.ancestors() {
        let facts = fs::symlink_metadata(path).unwrap();
        assert!(!facts.is_symlink(), "{}", path.display());
        let is_roots = facts.uid() == 0 && facts.mode() & 0o022 == 0;
        assert!(is_roots, "{}", path.display());
    }
    assert!(library.is_file(), "it is there for what runs on");
}

/// onbeat as root, after `script`, which sees and changes file systems of its own.
fn among_other_mounts(script: &str) -> Command {
    let mut command = Command::new("unshare");
    let script = format!("{script}\nexec \"$@\"");
    command
        .args(["--mount", "sh", "-ec", &script, "sh"])
        .arg(Programs::get().path("onbeat"));
    command
}

#[test]
fn where_root_s_programs_could_not_load_the_library_that_is_said_with_what_to_do() {
    needs_root!();
    // The second one, too, if this machine has it: then there is no other.
    let script = "for folder in /var/cache /usr/lib/onbeat; do
        [ ! -d $folder ] || mount -t tmpfs -o noexec,mode=755 none $folder
    done";
    let is_chosen = Path::new("/usr/lib/onbeat").is_dir();
    let mut watch = among_other_mounts(script);
    let refused = output(watch.args(["watch", "--tracer", "preload", "--", "true"]));
    let messages = stderr(&refused);
    assert_eq!(refused.status.code(), Some(125), "{messages}");
    has(messages, &["mounted noexec"]);
    let offers_another = messages.contains("sudo mkdir /usr/lib/onbeat");
    assert_eq!(offers_another, !is_chosen, "{messages}");

    let doctor = output(among_other_mounts(script).arg("doctor"));
    let table = stdout(&doctor);
    has(table, &["mounted noexec"]);
}

#[test]
fn doctor_finds_out_whether_a_library_can_be_preloaded_and_stores_none() {
    needs_root!();
    let script = "mount -t tmpfs -o mode=755 none /var/cache
        \"$@\" || true
        ls -A /var/cache
        set -- true";
    let doctor = output(among_other_mounts(script).args(["doctor", "--json"]));
    let said = stdout(&doctor);
    let mut lines = said.lines();
    let examination: Value = serde_json::from_str(lines.next().unwrap()).unwrap();
    let mut tracers = examination["tracers"].as_array().unwrap().iter();
    let preload = tracers.find(|tracer| tracer["name"] == "tracer preload");
    assert_eq!(preload.unwrap()["standing"], "full", "{said}");
    assert_eq!(lines.next(), None, "nothing is stored");
}

#[test]
fn root_of_a_user_namespace_hears_his_programs_as_an_ordinary_user_does() {
    needs_root!();
    let as_root_of_his_own = || {
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
            .args(["unshare", "--user", "--map-root-user"]);
        command
    };
    if !output(as_root_of_his_own().arg("true")).status.success() {
        return skip("no user namespaces");
    }
    until("a burst of the program", || {
        let mut command = as_root_of_his_own();
        command
            .arg(Programs::get().path("onbeat"))
            .args(["watch", "--tracer", "preload", "--"])
            .args(["sh", "-c", "echo $LD_PRELOAD; exec $0 again"])
            .arg(sleeper());
        let heard = output(&mut command);
        assert_eq!(heard.status.code(), Some(0), "{heard:?}");
        let library = stdout(&heard);
        assert!(library.starts_with("/proc/"), "{library}");
        bursts(&heard) > 0
    });
}

//! The system calls in which a thread can wait, by name.
//!
//! LFS++, section 6.2: it is not known which call ends a thread's job, so all that may block are
//! heard.

use std::fmt;
use std::str::FromStr;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    name: &'static str,
    number: i64,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{name}' is no system call that can wait, or not on this machine; they are: {known}", known = known())]
pub struct UnknownCall {
    pub name: String,
}

macro_rules! calls {
    ($($(#[$condition:meta])* $name:ident = $number:ident,)*) => {
        &[$($(#[$condition])* Call { name: stringify!($name), number: libc::$number },)*]
    };
}

const ALL: &[Call] = calls! {
    nanosleep = SYS_nanosleep,
    clock_nanosleep = SYS_clock_nanosleep,
    #[cfg(target_arch = "x86_64")]
    poll = SYS_poll,
    ppoll = SYS_ppoll,
    #[cfg(target_arch = "x86_64")]
    select = SYS_select,
    pselect6 = SYS_pselect6,
    #[cfg(target_arch = "x86_64")]
    epoll_wait = SYS_epoll_wait,
    epoll_pwait = SYS_epoll_pwait,
    epoll_pwait2 = SYS_epoll_pwait2,
    futex = SYS_futex,
    read = SYS_read,
    readv = SYS_readv,
    write = SYS_write,
    writev = SYS_writev,
    recvfrom = SYS_recvfrom,
    recvmsg = SYS_recvmsg,
    recvmmsg = SYS_recvmmsg,
    sendto = SYS_sendto,
    sendmsg = SYS_sendmsg,
    accept = SYS_accept,
    accept4 = SYS_accept4,
    connect = SYS_connect,
    ioctl = SYS_ioctl,
    #[cfg(target_arch = "x86_64")]
    pause = SYS_pause,
    rt_sigtimedwait = SYS_rt_sigtimedwait,
    rt_sigsuspend = SYS_rt_sigsuspend,
    wait4 = SYS_wait4,
    waitid = SYS_waitid,
    semtimedop = SYS_semtimedop,
    mq_timedreceive = SYS_mq_timedreceive,
    io_getevents = SYS_io_getevents,
    io_uring_enter = SYS_io_uring_enter,
};

fn known() -> String {
    let names: Vec<&str> = ALL.iter().map(|call| call.name).collect();
    names.join(", ")
}

impl Call {
    pub const fn all() -> &'static [Self] {
        ALL
    }

    pub fn number(self) -> u32 {
        u32::try_from(self.number).unwrap_or(u32::MAX)
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl FromStr for Call {
    type Err = UnknownCall;

    fn from_str(name: &str) -> Result<Self, UnknownCall> {
        let found = ALL.iter().find(|call| call.name == name);
        found.copied().ok_or_else(|| UnknownCall {
            name: name.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_reads_back_from_its_name_and_another_name_is_told_with_all_there_are() {
        for &call in Call::all() {
            assert_eq!(call.to_string().parse(), Ok(call));
        }
        let error = "getpid".parse::<Call>().unwrap_err();
        assert!(error.to_string().contains("'getpid'"));
        assert!(error.to_string().contains("clock_nanosleep"));
    }
}

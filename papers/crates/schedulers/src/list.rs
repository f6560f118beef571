//! The schedulers there are.

#[derive(Clone, Copy, Debug)]
pub struct Description {
    pub name: &'static str,
    pub about: &'static str,
    pub(crate) object: &'static [u8],
}

macro_rules! scheduler {
    ($name:literal, $about:literal) => {
        Description {
            name: $name,
            about: $about,
            object: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bpf.o")),
        }
    };
}

pub const ALL: [Description; 5] = [
    scheduler!(
        "linux24",
        "Linux 2.2-2.4: counters of ticks, recomputed when all are spent"
    ),
    scheduler!(
        "best",
        "BEST: finds periods by itself, earliest end of a period first"
    ),
    scheduler!(
        "berate",
        "BeRate: keeps tasks at the rate at which they ran, within their share"
    ),
    scheduler!(
        "reserve",
        "CPU time reserved for whole processes and control groups, earliest deadline first"
    ),
    scheduler!(
        "grace",
        "GRACE-OS: budgets of work, earliest deadline first, jobs that speed up as they go on"
    ),
];

pub fn find(name: &str) -> Option<&'static Description> {
    ALL.iter().find(|scheduler| scheduler.name == name)
}

//! A client that means no good, for tests of the service: it asks for random and malformed things,
//! of its own tasks and others', of such that end at that moment, through connections that come and
//! go, without waiting for the answers.
//!
//! ```text
//! hostile CALLS SEED TASK...   TASK: others' tasks to try, too
//! ```
//!
//! It prints how many of its calls were sent.

use std::collections::HashMap;
use std::process::{Child, Command, Stdio};

use zbus::Message;
use zbus::blocking::Connection;
use zbus::message::Flags;
use zbus::zvariant::Value;

/// What it asks for, some more often.
const METHODS: &str = "Reserve Reserve Reserve Release Track Untrack List ListApplications \
    GetStatistics Subscribe Unsubscribe Reload MakeThreadRealtime MakeThreadRealtimeWithPID \
    MakeThreadHighPriority MakeThreadHighPriorityWithPID ResetKnown Exit Set GetAll NoSuchMethod";

/// Small deterministic noise.
struct Noise(u64);

impl Noise {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit.max(1)
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }

    fn number(&mut self) -> u64 {
        match self.below(6) {
            0 => 0,
            1 => u64::MAX,
            2 => self.below(100),
            3 => 1 << self.below(64),
            4 => self.below(20_000_000),
            _ => self.below(u64::MAX),
        }
    }
}

fn main() -> zbus::Result<()> {
    let numbers: Vec<u64> = std::env::args()
        .skip(1)
        .filter_map(|word| word.parse().ok())
        .collect();
    let (calls, seed) = (
        numbers.first().copied().unwrap_or(1000),
        numbers.get(1).copied(),
    );
    let mut noise = Noise(seed.unwrap_or(1));
    let mut connections = [Connection::system()?, Connection::system()?];
    let mut children: Vec<Child> = (0..8).filter_map(|_| child(&mut noise)).collect();
    for call in 0..calls {
        let place = noise.below(8) as usize;
        if noise.below(20) == 0 && place < children.len() {
            let _ = children[place].kill();
            let _ = children[place].wait();
            if let Some(fresh) = child(&mut noise) {
                children[place] = fresh;
            }
        }
        let which = noise.below(2) as usize;
        // The bus throws out who overdoes it: then anew.
        if noise.below(500) == 0 || connections[which].inner().is_closed() {
            connections[which] = Connection::system()?;
        }
        let own = children.get(place).map_or(0, |child| u64::from(child.id()));
        let others = numbers.get(2..).unwrap_or_default();
        let task = match noise.below(10) {
            0 if !others.is_empty() => noise.of(others),
            1 => noise.number(),
            2 => u64::from(std::process::id()),
            _ => own,
        };
        let message = message(&mut noise, task, call % 64 != 0)?;
        if call % 64 == 0 {
            // An answer now and then, so that no more is on its way than the bus takes.
            let _ = connections[which].inner().is_closed();
            let _ = connections[which].call_method(
                Some("org.onbeat.Manager1"),
                "/org/onbeat/Manager1",
                Some("org.onbeat.Manager1"),
                "List",
                &(),
            );
        }
        let _ = connections[which].send(&message);
    }
    for mut child in children {
        let _ = child.kill();
        let _ = child.wait();
    }
    println!("{calls}");
    Ok(())
}

/// One that ends soon, or in the middle of things.
fn child(noise: &mut Noise) -> Option<Child> {
    let seconds = noise.of(&["0.001", "0.05", "10"]);
    let mut command = Command::new("sleep");
    command.arg(seconds).stdin(Stdio::null()).spawn().ok()
}

/// Something to ask, right or wrong.
fn message(noise: &mut Noise, task: u64, quiet: bool) -> zbus::Result<Message> {
    const MANAGER: (&str, &str) = ("/org/onbeat/Manager1", "org.onbeat.Manager1");
    const KIT: (&str, &str) = (
        "/org/freedesktop/RealtimeKit1",
        "org.freedesktop.RealtimeKit1",
    );
    let (path, interface) = noise.of(&[
        MANAGER,
        MANAGER,
        KIT,
        ("/", "org.freedesktop.DBus.Properties"),
    ]);
    let methods: Vec<&str> = METHODS.split_whitespace().collect();
    let method = noise.of(&methods);
    let mut build = Message::method_call(path, method)?
        .destination("org.onbeat.Manager1")?
        .interface(interface)?;
    if quiet {
        build = build.with_flags(Flags::NoReplyExpected)?;
    }
    let small = task as u32;
    let period = noise.of(&[1_000_000_u64, 5_000_000, 10_000_000, 20_000_000]);
    let share = noise.below(60);
    match (noise.below(12), method) {
        (0, _) => build.build(&()),
        (1, _) => build.build(&"x".repeat(noise.below(20_000) as usize)),
        (2, _) => build.build(&(
            noise.number(),
            noise.number(),
            noise.number(),
            noise.number(),
            1_u8,
        )),
        (3, _) => build.build(&vec![Value::from(noise.number()); noise.below(50) as usize]),
        (4, _) => build.build(&(small, noise.number(), noise.number(), noise.number())),
        (_, "Reserve") => build.build(&(small, period * share / 100, period, period)),
        (_, "Track") => {
            let name = noise.of(&["children", "weight", ""]);
            let options = HashMap::from([(name, Value::from(noise.below(2) == 0))]);
            build.build(&(small, options))
        }
        (_, "MakeThreadRealtime") => build.build(&(task, noise.below(30) as u32)),
        (_, "MakeThreadHighPriority") => build.build(&(task, noise.below(50) as i32 - 25)),
        (_, "MakeThreadRealtimeWithPID") => build.build(&(task, task, noise.below(30) as u32)),
        (_, "MakeThreadHighPriorityWithPID") => {
            build.build(&(task, task, noise.below(50) as i32 - 25))
        }
        _ => build.build(&small),
    }
}

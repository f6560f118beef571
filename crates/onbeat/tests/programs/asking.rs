//! A client of the service for tests and for trying it out: asks what its standard input says, one
//! line at a time, and says in one line each what was answered.
//!
//! ```text
//! track TASK [children]        untrack TASK        list        applications        statistics
//! reserve THREAD RUNTIME_NS DEADLINE_NS PERIOD_NS  release THREAD
//! realtime PROCESS THREAD PRIORITY                 nice PROCESS THREAD LEVEL
//! properties    reset          reload              leave (the bus, and connect anew)
//! subscribe     change (the next one that is told; ends if none is within a minute)
//! look SINCE_NS THREAD WAKEUPS_OF
//! look-at COUNT (threads)      track-with TASK COUNT (unknown options)
//! ```
//!
//! It connects where DBUS_SYSTEM_BUS_ADDRESS says, and leaves the bus at the end of its input.

use std::collections::HashMap;
use std::io::BufRead;

use serde_json::{Value, json};
use zbus::blocking::{Connection, MessageIterator};
use zbus::zvariant::{DynamicType, OwnedValue};
use zbus::{MatchRule, message};

const MANAGER: [&str; 3] = [
    "org.onbeat.Manager1",
    "/org/onbeat/Manager1",
    "org.onbeat.Manager1",
];
const MONITOR: [&str; 3] = [
    "org.onbeat.Manager1",
    "/org/onbeat/Manager1",
    "org.onbeat.Monitor1",
];
const REALTIMEKIT: [&str; 3] = [
    "org.freedesktop.RealtimeKit1",
    "/org/freedesktop/RealtimeKit1",
    "org.freedesktop.RealtimeKit1",
];

type Properties = HashMap<String, OwnedValue>;

fn main() -> zbus::Result<()> {
    let mut bus = Connection::system()?;
    let mut changes = None;
    let mut crowd = Vec::new();
    println!("here");
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split_whitespace().collect();
        if words == ["leave"] {
            bus.close()?;
            bus = Connection::system()?;
            changes = None;
            println!("ok");
            continue;
        }
        if words == ["change"] {
            println!("{}", next(changes.as_mut())?);
            continue;
        }
        if let ["crowd", count] = words[..] {
            crowd = subscribers(count.parse().unwrap_or(0))?;
            println!("{}", crowd.len());
            continue;
        }
        if words == ["subscribe"] {
            changes = Some(changes_told(&bus)?);
        }
        match ask(&bus, &words) {
            Ok(answer) => println!("{answer}"),
            Err(zbus::Error::MethodError(name, text, _)) => {
                println!("error {name} {}", text.unwrap_or_default());
            }
            Err(error) => println!("error {error}"),
        }
    }
    drop(crowd);
    Ok(())
}

/// This number of connections of their own, as far as they may subscribe.
fn subscribers(count: usize) -> zbus::Result<Vec<Connection>> {
    let mut subscribed = Vec::new();
    for _ in 0..count {
        let bus = Connection::system()?;
        if call(&bus, MANAGER, "Subscribe", &()).is_ok() {
            subscribed.push(bus);
        }
        // At a user's rate of calls.
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    Ok(subscribed)
}

/// The signal Changed, as it comes from now on.
fn changes_told(bus: &Connection) -> zbus::Result<MessageIterator> {
    let [_, path, interface] = MANAGER;
    let rule = MatchRule::builder()
        .msg_type(message::Type::Signal)
        .path(path)?
        .interface(interface)?
        .member("Changed")?
        .build();
    MessageIterator::for_match_rule(rule, bus, Some(64))
}

/// The next change: thread, what, why, the old and the new times.
fn next(changes: Option<&mut MessageIterator>) -> zbus::Result<Value> {
    type Times = (u64, u64, u64);
    type Changed = (u32, u32, String, String, String, (Times, Times));
    // SAFETY: takes and gives a number. SIGALRM ends this program.
    unsafe { libc::alarm(60) };
    let Some(message) = changes.and_then(Iterator::next) else {
        return Ok(json!("nobody subscribed"));
    };
    // SAFETY: as above.
    unsafe { libc::alarm(0) };
    let (thread, _, _, what, why, (old, new)): Changed = message?.body().deserialize()?;
    Ok(json!({"thread": thread, "what": what, "why": why, "old": old, "new": new}))
}

fn ask(bus: &Connection, words: &[&str]) -> zbus::Result<Value> {
    let number = |place: usize| {
        words
            .get(place)
            .and_then(|word| word.parse::<u64>().ok())
            .unwrap_or(0)
    };
    let small = |place: usize| u32::try_from(number(place)).unwrap_or(u32::MAX);
    let done = json!("ok");
    match words.first().copied().unwrap_or_default() {
        "track" => {
            let children = words.get(2) == Some(&"children");
            let options = HashMap::from([("children", OwnedValue::from(children))]);
            call(bus, MANAGER, "Track", &(small(1), options))?;
        }
        "untrack" => drop(call(bus, MANAGER, "Untrack", &small(1))?),
        "reserve" => {
            let times = (small(1), number(2), number(3), number(4));
            call(bus, MANAGER, "Reserve", &times)?;
        }
        "release" => drop(call(bus, MANAGER, "Release", &small(1))?),
        "subscribe" => drop(call(bus, MANAGER, "Subscribe", &())?),
        "reload" => {
            let reply = call(bus, MANAGER, "Reload", &())?;
            let later: Vec<String> = reply.body().deserialize()?;
            if !later.is_empty() {
                return Ok(json!(later));
            }
        }
        list @ ("list" | "applications") => {
            let method = ["List", "ListApplications"][usize::from(list == "applications")];
            let reply = call(bus, MANAGER, method, &())?;
            let all: Vec<Properties> = reply.body().deserialize()?;
            return Ok(all.iter().map(in_json).collect());
        }
        "statistics" => {
            let reply = call(bus, MANAGER, "GetStatistics", &())?;
            return Ok(in_json(&reply.body().deserialize()?));
        }
        "progress-of" => {
            let numbers = vec![1_u32; usize::try_from(number(1)).unwrap_or(usize::MAX)];
            call(bus, MONITOR, "Progress", &numbers)?;
        }
        "track-with" => {
            let option = |number| (format!("option {number}"), OwnedValue::from(true));
            let options: Properties = (0..number(2)).map(option).collect();
            call(bus, MANAGER, "Track", &(small(1), options))?;
        }
        "realtime" => {
            let arguments = (number(1), number(2), small(3));
            call(bus, REALTIMEKIT, "MakeThreadRealtimeWithPID", &arguments)?;
        }
        "nice" => {
            let level: i32 = words.get(3).and_then(|word| word.parse().ok()).unwrap_or(0);
            let arguments = (number(1), number(2), level);
            call(
                bus,
                REALTIMEKIT,
                "MakeThreadHighPriorityWithPID",
                &arguments,
            )?;
        }
        "progress" => {
            let reply = call(bus, MONITOR, "Progress", &(small(1), number(2)))?;
            let body = reply.body();
            return Ok(serde_json::from_str(body.deserialize()?).expect("it is JSON"));
        }
        "reset" => drop(call(bus, REALTIMEKIT, "ResetKnown", &())?),
        "properties" => {
            let [name, path, interface] = REALTIMEKIT;
            let there = [name, path, "org.freedesktop.DBus.Properties"];
            let reply = call(bus, there, "GetAll", &interface)?;
            return Ok(in_json(&reply.body().deserialize()?));
        }
        other => return Ok(json!(format!("nobody knows how to {other}"))),
    }
    Ok(done)
}

fn call<B>(bus: &Connection, whom: [&str; 3], method: &str, body: &B) -> zbus::Result<zbus::Message>
where
    B: serde::Serialize + DynamicType,
{
    let [name, path, interface] = whom;
    bus.call_method(Some(name), path, Some(interface), method, body)
}

fn in_json(properties: &Properties) -> Value {
    let value = |value: &OwnedValue| -> Value {
        use zbus::zvariant::Value as Of;
        match &**value {
            Of::U32(number) => json!(number),
            Of::U64(number) => json!(number),
            Of::I32(number) => json!(number),
            Of::I64(number) => json!(number),
            Of::F64(number) => json!(number),
            Of::Str(text) => json!(text.as_str()),
            other => json!(other.to_string()),
        }
    };
    properties
        .iter()
        .map(|(name, of)| (name.clone(), value(of)))
        .collect()
}

use std::collections::HashMap;

use zbus::message::Flags;
use zbus::zvariant::Value;

use crate::account::Account;

use super::prepared::{Prepared, USER, heard_in};
use super::*;

fn call<B: serde::Serialize + zbus::zvariant::DynamicType>(member: &str, body: &B) -> Message {
    let call = Message::method_call("/org/onbeat/Manager1", member).unwrap();
    call.sender(":1.7").unwrap().build(body).unwrap()
}

fn socket(messages: &[&Message]) -> (BoundedRead<Prepared>, Receiver<Skipped>) {
    let bytes = messages.iter().flat_map(|message| message.data().to_vec());
    prepared::socket(bytes.collect(), 1000)
}

fn next(socket: &mut BoundedRead<Prepared>, already: &mut Vec<u8>) -> zbus::Result<Message> {
    zbus::block_on(socket.receive_message(1, already, &mut Vec::new()))
}

fn options(count: usize) -> HashMap<String, Value<'static>> {
    let option = |number| (format!("option {number}"), Value::from(true));
    (0..count).map(option).collect()
}

#[test]
fn a_message_that_is_too_long_is_skipped_told_and_never_held() {
    let long = call("Track", &(7_u32, options(100_000)));
    let many = call("Progress", &vec![1_u32; 100_000]);
    let short = call("Track", &(7_u32, options(1)));
    let (mut socket, untold) = socket(&[&long, &many, &short]);
    let read = next(&mut socket, &mut Vec::new()).unwrap();
    assert_eq!(
        read.primary_header().serial_num(),
        short.primary_header().serial_num()
    );
    for message in [&long, &many] {
        let Skipped { call, bytes } = untold.try_recv().unwrap();
        assert_eq!(bytes, message.data().len() as u64);
        assert_eq!(call.header().sender().unwrap().as_str(), ":1.7");
        assert_eq!(
            call.primary_header().serial_num(),
            message.primary_header().serial_num()
        );
    }
    assert!(untold.is_empty());
    assert!(socket.inner.widest <= PIECE);
}

#[test]
fn the_longest_call_and_the_longest_answer_that_make_sense_are_read() {
    let track = call("Track", &(7_u32, options(64)));
    let answer = |words| {
        let answer = Message::method_return(&track.header()).unwrap();
        answer.build(&vec![1_u32; words]).unwrap()
    };
    let (too_long, answer) = (answer(1 << 20), answer(65_536));
    let (mut socket, untold) = socket(&[&track, &too_long, &answer]);
    let mut already = Vec::new();
    for message in [&track, &answer] {
        let read = next(&mut socket, &mut already).unwrap();
        assert_eq!(read.data().len(), message.data().len());
    }
    assert!(untold.is_empty());
}

#[test]
fn what_was_read_before_belongs_to_the_message() {
    let long = call("Track", &(7_u32, options(1_000)));
    let short = call("List", &());
    let (mut socket, _untold) = socket(&[&long, &short]);
    for known in [3, 20, 2_000] {
        let mut already: Vec<u8> = socket.inner.bytes.drain(..known).collect();
        let before: Vec<u8> = already.clone();
        let read = next(&mut socket, &mut already).unwrap();
        assert_eq!(
            read.primary_header().serial_num(),
            short.primary_header().serial_num()
        );
        assert!(already.is_empty() && before.len() == known);
        let again = long.data().iter().chain(short.data().iter());
        socket.inner.bytes.extend(again);
    }
}

#[test]
fn a_signal_that_is_too_long_and_a_call_that_wants_no_answer_are_told_to_nobody() {
    let signal = Message::signal("/", "org.example.Any", "Any").unwrap();
    let signal = signal.build(&vec![1_u32; 10_000]).unwrap();
    let call = Message::method_call("/", "Any").unwrap();
    let call = call.with_flags(Flags::NoReplyExpected).unwrap();
    let call = call.build(&vec![1_u32; 10_000]).unwrap();
    let (mut socket, untold) = socket(&[&signal, &call]);
    assert!(
        next(&mut socket, &mut Vec::new()).is_err(),
        "nothing else comes"
    );
    assert!(untold.is_empty());
}

#[test]
fn calls_are_heard_as_often_as_their_user_may_call_whatever_they_call() {
    let flood = |sender: &str, member: &str, interface: &str, wants_answer: bool| {
        let call = Message::method_call("/org/onbeat/Manager1", member).unwrap();
        let call = call.interface(interface.to_owned()).unwrap();
        let mut call = call.sender(sender.to_owned()).unwrap();
        if !wants_answer {
            call = call.with_flags(Flags::NoReplyExpected).unwrap();
        }
        call.build(&()).unwrap()
    };
    let own = "org.onbeat.Manager1";
    let all = [
        flood(":1.9", "List", own, false),
        flood(":1.9", "Ping", "org.freedesktop.DBus.Peer", true),
        flood(":1.7", "List", own, false),
        flood(
            ":1.7",
            "Introspect",
            "org.freedesktop.DBus.Introspectable",
            true,
        ),
        flood(":1.8", "GetAll", "org.freedesktop.DBus.Properties", true),
    ];
    let all: Vec<&Message> = all.iter().flat_map(|call| vec![call; 1000]).collect();
    let (mut socket, skipped) = socket(&all);
    // The bus does not say whose the third is.
    socket.inner.strangers = None;
    for name in [":1.7", ":1.8"] {
        socket.clients.enter(name);
        socket.clients.know_user(name, USER);
    }
    let heard = all_senders(&mut socket);
    assert!(!heard.contains(&":1.9".to_owned()), "its user is not known");
    // All of the user's connections together: 200, and 100 for each second that this took.
    assert!((200..1000).contains(&heard.len()), "{}", heard.len());
    assert_eq!(
        skipped.len(),
        MOST_UNTOLD,
        "they are told, but not without end"
    );
}

fn all_heard(socket: &mut BoundedRead<Prepared>) -> Vec<Message> {
    let mut already = Vec::new();
    std::iter::from_fn(|| next(socket, &mut already).ok()).collect()
}

/// The senders of all calls that are heard.
fn all_senders(socket: &mut BoundedRead<Prepared>) -> Vec<String> {
    let sender = |message: Message| message.header().sender().unwrap().to_string();
    all_heard(socket).into_iter().map(sender).collect()
}

#[test]
fn a_user_with_a_connection_for_each_call_is_heard_no_more_often() {
    let call = |number: u32| {
        let call = Message::method_call("/org/onbeat/Manager1", "List").unwrap();
        let call = call.sender(format!(":1.{number}")).unwrap();
        call.build(&()).unwrap()
    };
    let calls: Vec<Message> = (0..1000).map(call).collect();
    let (mut socket, skipped) = socket(&calls.iter().collect::<Vec<_>>());
    let heard = all_senders(&mut socket);
    assert!((200..1000).contains(&heard.len()), "{}", heard.len());
    assert_eq!(skipped.len(), MOST_UNTOLD);
}

#[test]
fn calls_that_wait_are_heard_before_later_ones_of_their_connection() {
    let calls: Vec<Message> = (0..150)
        .map(|number| call("Track", &(number, options(0))))
        .collect();
    let (mut socket, _skipped) = socket(&calls.iter().collect::<Vec<_>>());
    let serial = |message: &Message| message.primary_header().serial_num();
    let heard = all_heard(&mut socket);
    assert!(heard.iter().map(serial).eq(calls.iter().map(serial)));
}

#[test]
fn the_end_of_a_connection_is_told_if_something_was_done_for_it() {
    let bus = "org.freedesktop.DBus";
    let signal = |from: &'static str, member: &'static str, name: &str| {
        let signal = Message::signal("/org/freedesktop/DBus", bus, member).unwrap();
        let signal = signal.sender(from).unwrap();
        signal.build(&(name, name, "")).unwrap()
    };
    let ends = [":1.6", ":1.7", ":1.8"].map(|name| signal(bus, "NameOwnerChanged", name));
    let others = [
        signal(":1.9", "NameOwnerChanged", ":1.6"),
        signal(bus, "NameLost", ":1.6"),
        signal(bus, "NameOwnerChanged", "org.freedesktop.PolicyKit1"),
    ];
    let (mut socket, _) = socket(&ends.iter().chain(&others).collect::<Vec<_>>());
    let unserved = socket.clients.enter(":1.7").client;
    socket.clients.enter(":1.8");
    let alice = Arc::new(Account::of_no_group(USER));
    socket.clients.know(":1.8", &alice);
    let serial = |message: &Message| message.primary_header().serial_num();
    let told = ends[2..].iter().chain(&others);
    let heard = all_heard(&mut socket);
    assert!(heard.iter().map(serial).eq(told.map(serial)));
    assert!(unserved.is_gone());
}

/// The library would give the connection up at a name that is none.
#[test]
fn a_call_that_is_not_heard_is_not_given_to_the_library() {
    let from = |sender: &'static str| {
        let call = Message::method_call("/org/onbeat/Manager1", "List").unwrap();
        call.sender(sender).unwrap().build(&()).unwrap()
    };
    let [flood, other] = [from(":1.7"), from(":1.8")];
    let mut beyond = flood.data().to_vec();
    let name = beyond.windows(4).position(|part| part == b"List").unwrap();
    beyond[name] = b'?';
    let bytes = [&*beyond.repeat(100), other.data()].concat();
    let (mut socket, skipped) = prepared::socket(bytes.into(), 1000);
    socket.clients.enter(":1.7");
    socket.clients.know_user(":1.7", USER + 1);
    let flood = flood.data();
    socket.clients.admits(":1.7", flood, clock::now());
    let mut calls = socket.clients.calls.lock().unwrap();
    calls.charge(USER + 1, u64::MAX);
    drop(calls);
    assert_eq!(all_senders(&mut socket), [":1.8"]);
    assert_eq!(skipped.len(), MOST_UNTOLD);
}

#[test]
fn damaged_messages_are_read_the_same_in_whatever_pieces_they_come() {
    let messages = [
        call("Track", &(7_u32, options(2))),
        call("Track", &(7_u32, options(64))),
        call("Track", &(7_u32, options(400))),
    ];
    let whole: Vec<u8> = messages
        .iter()
        .flat_map(|message| message.data().to_vec())
        .collect();
    let undamaged = heard_in(&whole, 4096);
    assert_eq!((undamaged.messages.len(), undamaged.skipped.len()), (2, 0));
    let mut random: u64 = 1;
    let mut next = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random % below as u64).unwrap()
    };
    for _ in 0..500 {
        let mut bytes = whole.clone();
        for _ in 0..=next(4) {
            // Mostly in heads, where lengths are.
            let place = if next(2) == 0 {
                next(160)
            } else {
                next(bytes.len())
            };
            bytes[place] = u8::try_from(next(256)).unwrap();
        }
        bytes.truncate(bytes.len() - next(200));
        let heard = heard_in(&bytes, 4096);
        assert_eq!(heard, heard_in(&bytes, 1 + next(300)));
        let read = heard.messages.iter().sum::<usize>() as u64;
        assert!(read + heard.skipped.iter().sum::<u64>() <= bytes.len() as u64);
        for endian in [Endian::Little, Endian::Big] {
            let _ = prepared::track_in_body(&bytes, endian);
        }
    }
}

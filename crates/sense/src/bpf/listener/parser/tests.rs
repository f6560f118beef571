use std::io::Write;
use std::os::fd::FromRawFd;

use super::*;

/// A helper of this process, which has several threads. With glibc a copy of it may allocate.
fn helper() -> Parser {
    Parser(ParserLocation::Helper(
        helper::start(false).expect("a process").into(),
    ))
}

fn own_program() -> File {
    File::open("/proc/self/exe").expect("it is there")
}

fn own_maps() -> File {
    File::open("/proc/self/maps").expect("it is there")
}

#[test]
fn the_helper_finds_what_is_found_here() {
    let helper = helper();
    // More than one worker's requests.
    for _ in 0..150 {
        assert_eq!(
            helper.probes(&own_program()).unwrap(),
            Parser::here().probes(&own_program()).unwrap()
        );
    }
    // The mappings of a process that maps nothing meanwhile.
    let mut sleeper = std::process::Command::new("sleep");
    let mut sleeper = sleeper.arg("100").spawn().expect("sleep runs");
    let maps = || File::open(format!("/proc/{}/maps", sleeper.id())).expect("it runs");
    while Parser::here().maps(maps()).unwrap().len() < 3 {
        std::thread::yield_now();
    }
    std::thread::sleep(std::time::Duration::from_millis(100));
    let found = helper.maps(maps()).unwrap();
    assert!(found.len() >= 3, "{found:?}");
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
}

#[test]
fn a_file_that_never_ends_costs_an_answer_and_the_next_file_is_parsed() {
    let helper = helper();
    let mut ends = [0; 2];
    // SAFETY: the kernel writes two numbers.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    // SAFETY: the call gave both descriptors, which are new.
    let [silent, _writer] = ends.map(|end| unsafe { File::from_raw_fd(end) });
    let silenced = helper.maps(silent);
    assert_eq!(silenced.unwrap_err().kind(), io::ErrorKind::TimedOut);
    let found = (0..20).find_map(|_| helper.maps(own_maps()).ok());
    assert!(found.is_some_and(|found| !found.is_empty()));
}

#[test]
fn an_answer_is_read_as_it_was_written() {
    let maps = "7f00-7f02 r-xp 00000000 103:1f 77     /opt/a name/with spaces.so\n\
                00401000-00479000 r-xp 00001000 00:02 301            /usr/bin/static\n";
    let maps = maps::executable(maps.as_bytes());
    assert_eq!(maps.len(), 2);
    assert_eq!(maps_in(&mut &*bytes_of_maps(&maps)), Some(maps));
    let register = |is_signed| Argument::Register {
        place: 14,
        size_log2: 3,
        is_signed,
    };
    let site = |probe, arguments| Site {
        probe,
        offset: 4711,
        arguments,
    };
    let sites = [
        site(Probe::JobBegin, [register(true), register(false)]),
        site(Probe::RealTimeExit, [Argument::Constant(-7); 2]),
    ];
    assert_eq!(
        sites_in(&mut &*bytes_of_sites(&sites)),
        Some(sites.to_vec())
    );
}

#[test]
fn a_damaged_answer_is_no_answer() {
    let sites = [Site {
        probe: Probe::Mdn,
        offset: 1,
        arguments: [Argument::Constant(0); 2],
    }];
    let whole = bytes_of_sites(&sites);
    for length in 0..whole.len() {
        assert_eq!(sites_in(&mut &whole[..length]), None, "{length} bytes");
    }
    let mut longer = whole.clone();
    longer.write_all(b"x").unwrap();
    assert_eq!(sites_in(&mut &*longer), None);
    for (place, byte) in [(0, 2), (0, 255), (8, 6), (24, 2), (24, 1)] {
        let mut changed = whole.clone();
        changed[place] = byte;
        let read = sites_in(&mut &*changed);
        // A register of no bytes is one; every other change is none.
        assert_eq!(read.is_some(), (place, byte) == (24, 1), "{place} {byte}");
    }
    assert_eq!(maps_in(&mut &[255; 64][..]), None);
}

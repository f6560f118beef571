use onbeat_act::attributes::Attributes;
use onbeat_act::restore::{SavedState, StateFile, StateRecord, TaskChange, parse_state};
use onbeat_model::{Reservation, Span, TaskId};

fn before(nice: i32) -> Attributes {
    Attributes::ordinary(nice, false)
}

fn reserved(ms: u64) -> Attributes {
    let reservation = Reservation::implicit(Span::from_ms(ms), Span::from_ms(100)).unwrap();
    Attributes::reserved(reservation, false)
}

fn change(tid: u32, ms: u64) -> StateRecord {
    change_from(3, tid, ms)
}

fn change_from(nice: i32, tid: u32, ms: u64) -> StateRecord {
    StateRecord::Change {
        task: TaskId::recorded(tid),
        leader: None,
        before: before(nice),
        set: reserved(ms),
    }
}

fn state_of(records: &[StateRecord]) -> SavedState {
    let mut state = SavedState::default();
    for record in records {
        state.apply(record.clone());
    }
    state
}

fn bytes_of(records: &[StateRecord]) -> Vec<u8> {
    let line = |record| serde_json::to_string(record).unwrap() + "\n";
    records.iter().map(line).collect::<String>().into_bytes()
}

#[test]
fn a_file_cut_off_anywhere_tells_all_complete_records() {
    let records = [
        change(1, 5),
        change(2, 6),
        StateRecord::Refused {
            task: TaskId::recorded(2),
        },
        change(1, 7),
        StateRecord::Done {
            task: TaskId::recorded(1),
        },
        change(3, 8),
    ];
    let bytes = bytes_of(&records);
    for cut in 0..=bytes.len() {
        let kept = bytes.get(..cut).unwrap();
        let complete = kept.iter().filter(|&&byte| byte == b'\n').count();
        let expected = state_of(records.get(..complete).unwrap());
        assert_eq!(parse_state(kept), expected, "cut at {cut}");
    }
}

#[test]
fn a_damaged_line_is_counted_and_the_others_stand() {
    let mut bytes = bytes_of(&[change(1, 5)]);
    bytes.extend(b"\xff\x00 not a record\n{}\n");
    bytes.extend(bytes_of(&[change(2, 6)]));
    let state = parse_state(&bytes);
    assert_eq!(state.damaged_lines, 2);
    assert_eq!(
        state.changes,
        state_of(&[change(1, 5), change(2, 6)]).changes
    );
}

#[test]
fn a_file_that_is_written_for_hours_stays_small_and_says_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let mut file = StateFile::create(directory.path()).unwrap();
    let [steady, changing, ended] = [1, 2, 3].map(TaskId::recorded);
    let mut write = |record| file.write(record).unwrap();
    write(change_from(1, 1, 9));
    for ms in 1..=60 {
        for _ in 0..20 {
            write(change_from(2, 2, ms));
            write(StateRecord::Refused { task: changing });
        }
        write(change_from(2, 2, ms));
        write(change(3, ms));
        write(StateRecord::Done { task: ended });
    }
    let bytes = std::fs::read(file.path()).unwrap();
    assert!(bytes.iter().filter(|&&byte| byte == b'\n').count() < 1100);
    let state = parse_state(&bytes);
    assert_eq!(state.damaged_lines, 0);
    assert_eq!(state.owner.unwrap().process.tid, std::process::id());
    let told = state.changes.into_iter().collect::<Vec<_>>();
    let setting = |nice, in_force, pending| TaskChange {
        leader: None,
        before: before(nice),
        in_force,
        pending: Some(pending),
    };
    let expected = [
        (steady, setting(1, None, reserved(9))),
        (changing, setting(2, Some(reserved(59)), reserved(60))),
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_file_with_nothing_left_to_put_back_is_removed() {
    let directory = tempfile::tempdir().unwrap();
    let task = TaskId::recorded(1);
    let mut file = StateFile::create(directory.path()).unwrap();
    let path = file.path().to_owned();
    file.write(change(1, 5)).unwrap();
    file.write(StateRecord::Done { task }).unwrap();
    drop(file);
    assert!(!path.exists());

    let mut file = StateFile::create(directory.path()).unwrap();
    let path = file.path().to_owned();
    file.write(change(1, 5)).unwrap();
    drop(file);
    assert!(path.exists());
}

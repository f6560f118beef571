//! The screen, at the sizes that people have.

use onbeat_control::{
    Application, DoneJob, JobCounts, Present, ReservationFigures, ServedBy, State, ThreadReport,
};
use onbeat_model::{Bandwidth, Instant, Name, Reservation, Span, Task, TaskId};
use proptest::prelude::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::*;
use crate::keys::KeyEffect;
use crate::{News, Snapshot};

const PLAIN: ScreenLook = ScreenLook {
    has_colour: false,
    has_unicode: false,
};
const RICH: ScreenLook = ScreenLook {
    has_colour: true,
    has_unicode: true,
};
const SIZES: [(u16, u16); 3] = [(80, 24), (40, 12), (200, 60)];

fn at(ms: u64) -> Instant {
    Instant::ZERO + Span::from_secs(1000) + Span::from_ms(ms)
}

fn kept(tid: u32, name: &str, now: u64) -> ThreadReport {
    let period = Span::from_ms(10 + u64::from(tid));
    let jobs = now / 20;
    ThreadReport {
        task: Task {
            id: TaskId {
                tid,
                started_ticks: 7,
            },
            pid: 4000,
            comm: Name::new(name.as_bytes()),
        },
        state: State::Kept,
        period: Some(period),
        confidence: 0.9999,
        counted: JobCounts {
            jobs,
            missed: jobs / 3,
            counted_from: Some(at(20)),
        },
        reservations: ReservationFigures {
            exhaustions: 2,
            ..ReservationFigures::default()
        },
        served: of(4000),
        executed: Span::from_ms(now / 10),
        present: Present {
            user: Some(1000),
            reservation: Reservation::implicit(Span::from_ms(4), period).ok(),
            bursts: jobs,
            why: "its jobs take 4 ms".to_owned(),
            ..Present::default()
        },
        ..ThreadReport::default()
    }
}

fn of(application: u32) -> ServedBy {
    ServedBy {
        application,
        ..ServedBy::default()
    }
}

/// The last jobs of `thread` at `now`, every third of them late.
fn done(thread: &ThreadReport, now: u64) -> (TaskId, Vec<DoneJob>) {
    let period = thread.period.unwrap_or_default();
    let jobs = now / 20;
    let job = |n: u64| DoneJob {
        ended: at(n * 20),
        response: if n.is_multiple_of(3) {
            period * 2
        } else {
            period / 4
        },
        executed: Span::from_ms(1 + n % 3),
        missed: n.is_multiple_of(3),
    };
    let news = (jobs.saturating_sub(12)..jobs).map(job);
    (thread.task.id, news.collect())
}

fn watched(tid: u32, name: &str) -> ThreadReport {
    ThreadReport {
        state: State::Watched,
        period: None,
        confidence: 0.0,
        counted: JobCounts::default(),
        present: Present {
            bursts: 25,
            ..Present::default()
        },
        ..kept(tid, name, 500)
    }
}

fn snapshot(now: u64, threads: Vec<ThreadReport>) -> Snapshot {
    let periodic = threads.iter().filter(|thread| thread.period.is_some());
    Snapshot {
        now: at(now),
        reserved: Bandwidth::from_cpus(0.4),
        total: Bandwidth::from_cpus(1.7),
        applications: Vec::new(),
        jobs: periodic.map(|thread| done(thread, now)).collect(),
        threads,
        decisions: Vec::new(),
    }
}

fn model(threads: impl Fn(u64) -> Vec<ThreadReport>) -> Model {
    let mut model = Model::new("the service");
    for now in (0..10).map(|turn| 1000 + turn * 250) {
        model.update(News::Snapshot(snapshot(now, threads(now))));
    }
    model
}

fn press(model: &mut Model, keys: &[KeyCode]) {
    for &code in keys {
        let key = KeyEvent::new(code, KeyModifiers::NONE);
        assert_eq!(model.key(key), KeyEffect::GoOn, "{code:?}");
    }
}

fn lines(model: &Model, look: &ScreenLook, (width, height): (u16, u16)) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal
        .draw(|frame| draw(model, look, frame.area(), frame.buffer_mut()))
        .unwrap();
    let buffer = terminal.backend().buffer();
    let rows = buffer.content().chunks(usize::from(width));
    rows.map(|row| row.iter().map(ratatui::buffer::Cell::symbol).collect())
        .collect()
}

fn row_of<'a>(lines: &'a [String], name: &str) -> &'a str {
    let found = lines.iter().find(|line| line.starts_with(name));
    found.unwrap_or_else(|| panic!("no row of {name}: {lines:#?}"))
}

#[test]
fn at_80_by_24_a_row_tells_all_of_a_thread() {
    let model = model(|now| vec![kept(40, "player", now), watched(41, "shell")]);
    let lines = lines(&model, &PLAIN, (80, 24));
    for part in ["2 threads, 1 reserved for", "40% of 170% reserved"] {
        assert!(lines[0].contains(part), "{}", lines[0]);
    }
    let player = row_of(&lines, "player");
    for part in ["40 ", "kept", "50 ms", ">99%", "10.0/8.0%", "######"] {
        assert!(player.contains(part), "{part}: {player}");
    }
    // Three whole seconds and a bit of a fourth, each with a job that was late.
    assert!(player.trim_end().ends_with("##"), "{player}");
    let shell = row_of(&lines, "shell");
    assert!(
        shell.contains("watched") && !shell.contains("ms"),
        "{shell}"
    );
    assert!(lines[23].contains("q quit"), "{}", lines[23]);
}

fn application(pid: u32, name: &str, executed: Span) -> Application {
    Application {
        pid,
        comm: Name::new(name.as_bytes()),
        members: 3,
        living: 2,
        by_reservation: 1,
        by_nice: 1,
        refused: 0,
        jobs: 100,
        missed: 7,
        executed,
        bandwidth_used: Bandwidth::from_cpus(0.9),
        bandwidth_reserved: Bandwidth::from_cpus(0.5),
    }
}

fn two_applications(now: u64) -> Snapshot {
    let of = |application, seen| ThreadReport {
        served: of(application),
        ..seen
    };
    Snapshot {
        applications: vec![
            application(10, "film", Span::from_ms(now / 5)),
            application(20, "\x1b[2Jgame", Span::ZERO),
        ],
        ..snapshot(
            now,
            vec![
                of(10, kept(40, "decoder", now)),
                of(20, kept(41, "loop", now)),
                of(10, watched(42, "worker")),
                of(20, watched(43, "helper")),
            ],
        )
    }
}

#[test]
fn an_application_with_its_sums_stands_above_its_threads() {
    let mut model = Model::new("the service");
    for now in (0..10).map(|turn| 1000 + turn * 250) {
        model.update(News::Snapshot(two_applications(now)));
    }
    let wide = lines(&model, &PLAIN, (200, 60));
    let expected = [
        "film",
        "  decoder",
        "  worker",
        "·[2Jgame",
        "  loop",
        "  helper",
    ];
    for (line, name) in wide[2..].iter().zip(expected) {
        assert!(line.starts_with(name), "{line}");
    }
    for part in ["20.0/8.0%", " 7 ", "3 threads: 1 by reservation, 1 raised"] {
        assert!(wide[2].contains(part), "{part}: {}", wide[2]);
    }
    for size in SIZES {
        // The row of an application cannot be selected, and counts for the room.
        press(&mut model, &[KeyCode::Home, KeyCode::Down, KeyCode::Down]);
        assert_eq!(model.view.selected.map(|id| id.tid), Some(41));
        lines(&model, &PLAIN, size);
    }
    let (headings, rows) = crate::as_table(&model);
    assert_eq!((headings[0].0, rows.len()), ("application, thread", 6));
    assert_eq!(rows[3][..2], ["·[2Jgame", "20"]);
    let json = crate::as_lines(&model).unwrap();
    assert!(
        json.lines().all(|line| line.contains("\"application\":")),
        "{json}"
    );
}

#[test]
fn of_more_threads_than_lines_those_around_the_selected_one_are_seen() {
    let crowd = |now| {
        (1..=300)
            .map(|tid| kept(tid, &format!("t{tid:03}"), now))
            .collect()
    };
    let mut model = model(crowd);
    for size in SIZES {
        press(&mut model, &[KeyCode::Home]);
        row_of(&lines(&model, &PLAIN, size), "t001");
        press(&mut model, &[KeyCode::End]);
        let shown = lines(&model, &PLAIN, size);
        let last = &shown[usize::from(size.1) - 4];
        assert!(last.starts_with("t300"), "{last}");
        let up = [KeyCode::PageUp, KeyCode::Up, KeyCode::Char('k')];
        press(&mut model, &up);
        row_of(&lines(&model, &PLAIN, size), "t288");
    }
}

#[test]
fn hostile_names_stay_in_their_cells() {
    let names = [
        "\x1b[31mred\x07",
        "a\nb\rc\td",
        "\u{202e}evil",
        "日本語の名前",
        "\u{301}\u{301}\u{301}x",
        "",
        "\u{ff}",
    ];
    let crowd = |now| {
        let named = (1..).zip(names);
        named.map(|(tid, name)| kept(tid, name, now)).collect()
    };
    let mut model = model(crowd);
    for keys in [
        &[][..],
        &[KeyCode::Home],
        &[KeyCode::Enter],
        &[KeyCode::Esc, KeyCode::End, KeyCode::Enter],
    ] {
        press(&mut model, keys);
        for (look, size) in [PLAIN, RICH]
            .into_iter()
            .flat_map(|look| SIZES.map(|size| (look, size)))
        {
            for line in lines(&model, &look, size) {
                assert!(!line.contains(char::is_control), "{line:?}");
                assert!(!line.contains('\u{202e}'), "{line:?}");
            }
        }
    }
}

#[test]
fn one_thread_s_page_has_its_figures_and_histograms() {
    let mut model = model(|now| vec![kept(40, "player", now)]);
    press(&mut model, &[KeyCode::Enter]);
    let shown = lines(&model, &PLAIN, (80, 24));
    let text = shown.join("\n");
    for part in [
        "player 40 of process 4000, user 1000",
        "kept: its jobs take 4 ms",
        "period 50 ms",
        "missed 54",
        "jobs, ^ period 50 ms",
        "jobs, ^ budget 4 ms",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    for (look, size, part) in [
        (&PLAIN, (40, 12), "response time, "),
        (&RICH, (200, 60), "what changed while you looked"),
    ] {
        let text = lines(&model, look, size).join("\n");
        assert!(text.contains(part), "{text}");
    }
    press(&mut model, &[KeyCode::Esc]);
    row_of(&lines(&model, &PLAIN, (80, 24)), "player");
}

#[test]
fn a_pause_holds_the_screen_until_it_is_over() {
    let mut model = model(|_| vec![watched(40, "player")]);
    press(&mut model, &[KeyCode::Char('p')]);
    let news = |now| News::Snapshot(snapshot(now, vec![kept(40, "player", now)]));
    model.update(news(3500));
    let shown = lines(&model, &PLAIN, (80, 24));
    assert!(shown[0].contains("PAUSED") && row_of(&shown, "player").contains("watched"));
    press(&mut model, &[KeyCode::Char(' ')]);
    model.update(news(3750));
    assert!(row_of(&lines(&model, &PLAIN, (80, 24)), "player").contains("kept"));
}

#[test]
fn a_filter_shows_what_has_it_in_its_name_number_or_state() {
    let mut model = model(|now| {
        vec![
            kept(40, "Player", now),
            watched(41, "shell"),
            watched(517, "x"),
        ]
    });
    let typed = |model: &mut Model, text: &str| {
        press(model, &[KeyCode::Esc, KeyCode::Char('/')]);
        for c in text.chars() {
            press(model, &[KeyCode::Char(c)]);
        }
        press(model, &[KeyCode::Enter]);
        let ids = model.rows.iter().map(|id| id.tid);
        ids.collect::<Vec<u32>>()
    };
    assert_eq!(typed(&mut model, "play"), [40]);
    assert_eq!(typed(&mut model, "517"), [517]);
    assert_eq!(typed(&mut model, "watch"), [41, 517]);
    assert_eq!(typed(&mut model, "q"), [0_u32; 0]);
    assert!(lines(&model, &PLAIN, (80, 24))[2].starts_with("No thread passes"));
    press(&mut model, &[KeyCode::Esc]);
    assert_eq!(model.rows.len(), 3);
}

#[test]
fn rows_are_sorted_by_any_column_and_the_selection_goes_with_its_thread() {
    let mut model = model(|now| vec![kept(3, "a", now), watched(2, "b"), kept(1, "c", now)]);
    let tids = |model: &Model| model.rows.iter().map(|id| id.tid).collect::<Vec<u32>>();
    assert_eq!(tids(&model), [3, 1, 2]);
    press(&mut model, &[KeyCode::End, KeyCode::Char('<')]);
    assert_eq!((tids(&model), model.place()), (vec![1, 2, 3], Some(1)));
    press(&mut model, &[KeyCode::Char('r')]);
    assert_eq!((tids(&model), model.place()), (vec![3, 2, 1], Some(1)));
    press(&mut model, &[KeyCode::Char('>'), KeyCode::Char('>')]);
    assert_eq!(tids(&model), [1, 3, 2]);
}

#[test]
fn a_selected_thread_that_ends_gives_way_to_the_one_in_its_place() {
    let mut model = model(|now| (1..=3).map(|tid| kept(tid, "t", now)).collect());
    press(&mut model, &[KeyCode::End, KeyCode::Enter]);
    model.update(News::Snapshot(snapshot(9000, vec![kept(1, "t", 9000)])));
    assert_eq!(model.view.selected.map(|id| id.tid), Some(1));
    assert!(!model.view.is_drilled);
    model.update(News::Snapshot(snapshot(9250, Vec::new())));
    assert_eq!(model.view.selected, None);
}

#[test]
fn without_colours_no_cell_has_one() {
    let mut model = model(|now| vec![kept(40, "player", now), watched(41, "shell")]);
    for keys in [&[][..], &[KeyCode::Enter]] {
        press(&mut model, keys);
        let mut buffer = Buffer::empty(Rect::new(0, 0, 80, 24));
        draw(&model, &PLAIN, buffer.area, &mut buffer);
        for cell in buffer.content() {
            assert_eq!((cell.fg, cell.bg), Default::default());
            assert!(cell.symbol().is_ascii(), "{cell:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn any_screen_is_drawn_on_whatever_is_pressed(
        width in 0_u16..220,
        height in 0_u16..70,
        keys in prop::collection::vec(0_usize..14, 0..20),
        threads in 0_u32..40,
        wild in any::<u64>(),
    ) {
        let all = [
            KeyCode::Up, KeyCode::Down, KeyCode::PageUp, KeyCode::PageDown, KeyCode::Home, KeyCode::End,
            KeyCode::Enter, KeyCode::Esc, KeyCode::Char('<'), KeyCode::Char('>'), KeyCode::Char('r'),
            KeyCode::Char('p'), KeyCode::Char('/'), KeyCode::Char('?'),
        ];
        let mut model = Model::new("the service");
        let area = Rect::new(0, 0, width, height);
        for (turn, key) in (0..).zip(keys.into_iter().chain([0])) {
            let crowd = (0..threads).map(|tid| ThreadReport {
                executed: Span::from_ns(wild),
                period: Some(Span::from_ns(wild.rotate_left(tid))),
                counted: JobCounts { jobs: 1, missed: wild, counted_from: None },
                ..kept(tid, "t", turn * 250)
            });
            model.update(News::Snapshot(snapshot(turn * 250, crowd.collect())));
            if let Some(&code) = all.get(key) {
                press(&mut model, &[code]);
            }
            let mut buffer = Buffer::empty(area);
            draw(&model, &RICH, area, &mut buffer);
        }
    }
}

//! Holds the page of the papers' figures against the tables that it links.

use serde_json::Value;

use super::{assert_says, cell, cells, figure, figures, least_and_most, row, rows_with, tables_of};

fn papers_say(claim: &str) {
    assert_says("experiments/papers.md", claim);
}

#[test]
fn what_a_servers_period_costs_is_what_its_tables_have() {
    const PAGE: &str = "experiments/server-period/README.md";
    let of_page = tables_of(PAGE, "server period");
    let [_, kernel, lfs] = of_page.as_slice() else {
        panic!("{PAGE} has {} such tables", of_page.len());
    };
    let shares = |column: usize| {
        let shares = [("100 ms", 100.0), ("36 ms", 36.0), ("200 ms", 200.0)].map(|(period, ms)| {
            let row = kernel.iter().find(|row| row[0] == period).unwrap();
            format!("{:.1}%", 100.0 * figure(&row[column]) / ms)
        });
        shares.join(", ")
    };
    papers_say(&format!(
        "{} by analysis; {} on a kernel",
        shares(1),
        shares(3)
    ));
    let longest = |row: &Vec<String>| figure(&row[4]);
    let (least, most) = least_and_most(lfs[..4].iter().map(longest));
    papers_say(&format!(
        "longest {least:.1} to {most:.1} ms up to 50 ms, {:.1} ms at 90 ms",
        longest(&lfs[4])
    ));
    let others = lfs.iter().filter(|row| row[0] != "40 ms");
    let (least, most) = least_and_most(others.map(|row| figure(&row[5])));
    papers_say(&format!(
        "most there: {}, elsewhere {least:.1} to {most:.1}%",
        lfs[2][5]
    ));
}

#[test]
fn what_analysers_find_in_recordings_is_what_their_tables_have() {
    const WAKEUPS: &str = "experiments/wakeups-vs-syscalls/README.md";
    let found = |column: usize| cell(WAKEUPS, &["ffmpegre30.l3", "0%", "0.6 s"], column);
    papers_say(&format!(
        "ffmpeg (30 Hz) at 0.6 s: system calls {}, wakeups {}, onbeat's bursts {}",
        found(9),
        found(10),
        found(11)
    ));
    for (name, from) in [("mplayer25.l0", 0.4), ("mplayer25.l3", 0.4)] {
        for row in rows_with(WAKEUPS, &[name]) {
            let right = row[5..9].iter().all(|share| share == "100%");
            assert_eq!(figure(&row[2]) >= from, right, "{row:?}");
        }
    }
    let at_load = |load: &str, column| cell(WAKEUPS, &["mplayer in the guest", load], column);
    assert!(
        figure(&at_load("80%", 5)) < 50.0,
        "system calls are right at 80%"
    );
    papers_say(&format!(
        "system calls from 80% ({} right at 70%)",
        at_load("70%", 5)
    ));
    assert_eq!(at_load("85%", 6), "100%", "wakeups are wrong at 85%");
    const DETECTION: &str = "experiments/period-detection/README.md";
    let at = |name: &str, analyser: &str, column: usize| {
        cell(DETECTION, &[name, analyser, "0.2 s"], column)
    };
    let both = |analyser: &str, column: usize| {
        let cells = ["mplayer25.l0", "mplayer25.l3"].map(|name| at(name, analyser, column));
        least_and_most(cells.iter().map(|cell| figure(cell)))
    };
    let (least, most) = both("LFS++", 6);
    papers_say(&format!(
        "the paper's analyser says \"not periodic\" of mplayer in {least:.0} to {most:.0}%"
    ));
    let (least, most) = both("onbeat", 3);
    assert_says(
        DETECTION,
        &format!("{least:.0} to {most:.0}% right, the same"),
    );
}

#[test]
fn the_tasks_and_the_encoder_in_virtual_time_are_those_of_their_tables() {
    const TASKS: &str = "experiments/three-rt-apps/README.md";
    let tables = tables_of(TASKS, "run");
    let of = |table: &[Vec<String>], run: &str, column: usize| {
        let mut rows = table.iter();
        let row = rows.find(|row| row[0] == run && row[1] == "short").unwrap();
        figure(&row[column])
    };
    let (guest, live) = (&tables[0], tables.last().unwrap());
    let in_time = |run| format!("{:.0}%", of(guest, run, 4));
    papers_say(&format!(
        "in virtual time {} by default, {} under LFS++ as written, {} where the fair server does not \
         keep 5% of the CPU",
        in_time("default scheduler"),
        in_time("LFS++"),
        in_time("LFS++, no fair server")
    ));
    papers_say(&format!(
        "on a live machine {:.0}% by default, {:.1}% under LFS++ as written, {:.1}% under onbeat, which \
         reserves {:.2} times what is used (LFS++ {:.2})",
        of(live, "default scheduler", 4),
        of(live, "LFS++", 4),
        of(live, "onbeat", 4),
        of(live, "onbeat", 11),
        of(live, "LFS++", 11)
    ));
    const ENCODER: &str = "experiments/adaptive-reservations/README.md";
    let of = |run: &str| {
        let rows = rows_with(ENCODER, &[run]);
        let row = rows.into_iter().find(|row| row.len() == 10).unwrap();
        format!("{:.0}%|{}", figure(&row[2]), row[9])
    };
    let (unmodified, marked) = (of("unmodified, onbeat"), of("marked, onbeat"));
    papers_say(&format!(
        "{} reserved, {}",
        unmodified.replace('|', " unmodified at "),
        marked.replace('|', " marked at ")
    ));
}

#[test]
fn the_overruns_of_a_falling_frequency_are_those_of_their_table() {
    let rows = tables_of("experiments/frequency-switch/README.md", "governor").remove(0);
    let (with, without): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row[2] == "yes");
    assert!(
        with.iter().all(|row| row[4] == "0"),
        "the page says that none overruns"
    );
    let of = |controller: &str| {
        let rows = without.iter().filter(|row| row[1] == controller);
        let rows: Vec<_> = rows.map(|row| [figure(&row[4]), figure(&row[5])]).collect();
        assert_eq!(rows.len(), 2);
        assert_eq!(
            rows[0], rows[1],
            "the page gives one figure for both governors"
        );
        rows[0]
    };
    papers_say(&format!(
        "{} with onbeat's controller, until {} jobs after with the paper's; none with the protocol",
        of("onbeat's")[0],
        of("the paper's")[1]
    ));
}

#[test]
fn the_two_tasks_of_aquosa_are_those_of_their_tables() {
    let longest = |run: &str| {
        ["10 ms", "400 ms"].map(|task| {
            let longest = cell("experiments/reservations-vs-rr/README.md", &[run, task], 6);
            format!("{:.1}", figure(&longest))
        })
    };
    for run in ["SCHED_RR", "reserved by hand"] {
        papers_say(&format!("| {} ms |", longest(run).join(", ")));
    }
    let late = |load| cell("experiments/rate-monotonic/README.md", &[load], 2);
    assert_eq!([late("71.0%"), late("72.5%")], ["0", "1"]);
    papers_say(&format!("one at 72.5%, {} at 90%", late("90.0%")));
}

#[test]
fn the_progress_of_programs_is_that_of_its_tables() {
    let pair = |name: &str, number: u64, program: &str| {
        let rows = figures(&format!("mdn-progress/{name}"));
        let rows = rows.as_array().unwrap();
        let missed = |mdn| {
            let is_it = |row: &&Value| {
                row["figure"] == number && row["mdn"] == mdn && row["program"] == program
            };
            let of = rows.iter().find(is_it).unwrap();
            format!("{:.1}%", of["missed_percent"].as_f64().unwrap())
        };
        format!("{}, {}", missed(false), missed(true))
    };
    for (number, program, between) in [
        (5, "srt (25 f/s, 50%)", "; "),
        (10, "srt (25 f/s, 60%)", " of one film; "),
    ] {
        let simulated = pair("mdn-progress", number, program);
        let on_a_kernel = pair("mdn-progress-guest", number, program);
        papers_say(&format!("{simulated}{between}{on_a_kernel}"));
    }
}

#[test]
fn the_speeds_of_grace_os_are_those_of_its_tables() {
    const FIRST: &str = "grace-os-as-written, first 100 jobs";
    let rows = tables_of("experiments/grace-os/README.md", "changes of speed a job").remove(0);
    let changes = |scheme: &str| {
        let row = rows.iter().find(|row| row[0] == scheme).unwrap();
        let (_, most) = least_and_most(row[1..6].iter().map(|cell| figure(cell)));
        format!("0 to {most:.2}, together {}", row[6])
    };
    let timer = rows.iter().find(|row| row[0] == "grace-os, 500 us timer");
    papers_say(&format!(
        "as written with budgets of the first 100 jobs {}; here {}, with the paper's timer {}",
        changes(FIRST),
        changes("grace-os"),
        timer.unwrap()[6]
    ));
    let runs = figures("grace-os/grace-os");
    let of = |codecs, scheme| row(&runs, &[("codecs", codecs), ("scheme", scheme)]);
    let idle = |run: &Value| 100.0 * run["idle"].as_f64().unwrap();
    let mpgplay = of("mpgplay", FIRST);
    let speeds = mpgplay["speeds"].as_array().unwrap();
    let lowest = speeds.iter().find(|speed| speed[0] == 300.0).unwrap();
    papers_say(&format!(
        "first 100 jobs {:.1}%; {:.1}%",
        100.0 * lowest[1].as_f64().unwrap(),
        idle(mpgplay)
    ));
    let written = |codec| idle(of(codec, "grace-os-as-written"));
    papers_say(&format!(
        "{:.1} and {:.1}%",
        written("toast"),
        written("madplay")
    ));
    let played = figures("grace-os/grace-os-as-played");
    let slow = |scheme| {
        let share = row(&played, &[("scheme", scheme)])["ours"]["at_lowest"].as_f64();
        100.0 * share.unwrap()
    };
    papers_say(&format!(
        "{:.1}% and {:.1}% as written",
        slow("grace-os-as-written"),
        slow("worst-stochastic-as-written")
    ));
}

#[test]
fn the_costs_of_grace_os_are_those_of_their_table() {
    let rows = tables_of("experiments/grace-os/README.md", "what").remove(0);
    let of = |what: &str| {
        let rows = rows.iter().filter(|row| row[0].starts_with(what));
        least_and_most(rows.map(|row| figure(&row[2])))
    };
    let (least, most) = of("estimation");
    papers_say(&format!("{least:.0} to {most:.0} us | grace-os"));
    let (least, most) = of("scheduling");
    papers_say(&format!("{:.1} to {:.1} us a job", least / 1e3, most / 1e3));
}

#[test]
fn the_cost_of_an_analysis_is_that_of_its_table() {
    const PAGE: &str = "experiments/period-bench/README.md";
    let of = |what: &str| {
        let rows = cells(PAGE).into_iter().filter(|row| row.len() == 4);
        let rows = rows.filter(|row| row[1].starts_with(what));
        least_and_most(rows.map(|row| figure(&row[2])))
    };
    let (least, most) = of("default/");
    let (few, many) = of("reference, plain sum");
    papers_say(&format!(
        "{least:.2} to {most:.2} ms for 100 and 1,000 events, the paper's spectrum {few:.0} and {many:.0} ms"
    ));
}

#[test]
fn the_player_with_deadlines_is_that_of_its_table() {
    let ways = figures("player-deadlines/player-deadlines");
    let mean = |rule, what: &str| {
        let way = row(&ways, &[("policy", "cbs"), ("rule", rule)]);
        way[what]["mean"].as_f64().unwrap()
    };
    let shown = ["heuristic", "deadline"].map(|rule| {
        format!(
            "{:.1} ms and {:.1}",
            mean(rule, "delay_ms"),
            mean(rule, "dropped")
        )
    });
    papers_say(&shown.join("; "));
    let errors = ["heuristic", "deadline"].map(|rule| {
        let error = mean(rule, "rmse").round() as u64;
        format!("{},{:03}", error / 1000, error % 1000)
    });
    papers_say(&errors.join("; "));
}

/// The table may be taken again, longer and on another machine: the pages give bounds.
#[test]
fn a_violation_is_notified_within_the_bounds_that_the_papers_page_gives() {
    let cells = figures("notification-latency/notification-latency");
    let p50 = |is_it: &dyn Fn(&Value) -> bool| {
        let cells = cells.as_array().unwrap().iter().filter(|cell| is_it(cell));
        least_and_most(cells.map(|cell| cell["p50_us"].as_f64().unwrap()))
    };
    let is_of = |cell: &Value, source: &str| cell["source"] == source;
    let (_, protected) = p50(&|cell| is_of(cell, "deadline") && cell["policy"] != "other");
    let (unprotected, _) = p50(&|cell| {
        is_of(cell, "deadline") && cell["policy"] == "other" && cell["load_tasks"] == 10
    });
    let timer =
        p50(&|cell| is_of(cell, "execution time, CPU-time timer") && cell["policy"] != "other");
    let (_, clock) =
        p50(&|cell| is_of(cell, "execution time, perf's clock") && cell["policy"] != "other");
    let bounds = [
        ("50% below 50 us protected", protected < 50.0),
        ("above 5 ms beside ten tasks by default", unprotected > 5e3),
        (
            "by the CPU-time timer 1 to 4 ms",
            timer.0 > 1e3 && timer.1 < 4e3,
        ),
        ("by perf's clock below 100 us", clock < 100.0),
    ];
    for (claim, holds) in bounds {
        papers_say(claim);
        assert!(
            holds,
            "'{claim}' in experiments/papers.md no longer holds: edit its row and this bound \
             (p50 in us: {protected}, {unprotected}, {timer:?}, {clock})"
        );
    }
}

//! One schedule in every form of text that people's tools write, by their options and versions.

use onbeat_model::Burst;

use crate::{bursts, check, read_bytes};

/// A waking of a thread, or a switch from one in a state to another.
#[derive(Clone, Copy)]
enum What {
    Waking(u32),
    Switch(u32, &'static str, u32),
}

/// Where a line is: its time in microseconds, its CPU, and the thread that runs there.
#[derive(Clone, Copy)]
struct Line {
    us: u64,
    cpu: u32,
    tid: u32,
    what: What,
}

const NAMES: [(u32, &str); 4] = [(0, "<idle>"), (1201, "beat"), (1202, "a b"), (1300, "hog")];

fn comm(tid: u32) -> &'static str {
    NAMES.iter().find(|(known, _)| *known == tid).unwrap().1
}

/// `beat` each 10 ms for 2 ms instead of `hog`, `a b` each 25 ms for 5 ms instead of nobody.
fn schedule() -> Vec<Line> {
    let mut lines = Vec::new();
    for (tid, cpu, other, state, period, length) in [
        (1201, 0, 1300, "R", 10_000, 2000),
        (1202, 1, 0, "R", 25_000, 5000),
    ] {
        for job in 0..200_000 / period {
            let us = 5_000_000_000 + job * period;
            let line = |us, tid, what| Line { us, cpu, tid, what };
            lines.push(line(us + 8, other, What::Waking(tid)));
            lines.push(line(us + 16, other, What::Switch(other, state, tid)));
            lines.push(line(us + length, tid, What::Switch(tid, "S", other)));
        }
    }
    lines.sort_by_key(|line| line.us);
    lines
}

impl Line {
    fn at(&self) -> String {
        format!("{}.{:06}", self.us / 1_000_000, self.us % 1_000_000)
    }

    fn name(&self) -> &'static str {
        match self.what {
            What::Waking(_) => "sched_waking",
            What::Switch(..) => "sched_switch",
        }
    }

    /// The kernel's own fields, with `arrow` between the threads of a switch.
    fn fields(&self, arrow: &str, state: impl Fn(&str) -> String) -> String {
        match self.what {
            What::Waking(tid) => {
                format!("comm={} pid={tid} prio=120 target_cpu=000", comm(tid))
            }
            What::Switch(prev, was, next) => format!(
                "prev_comm={} prev_pid={prev} prev_prio=120 prev_state={} {arrow}next_comm={} next_pid={next} next_prio=120",
                comm(prev),
                state(was),
                comm(next)
            ),
        }
    }

    fn kernels(&self) -> String {
        self.fields("==> ", str::to_owned)
    }

    fn numbers(&self, preempted: &str, asleep: &str) -> String {
        self.fields("", |state| {
            (if state == "R" { preempted } else { asleep }).to_owned()
        })
    }

    fn short(&self) -> String {
        match self.what {
            What::Waking(tid) => format!("{}:{tid} [120] CPU:000", comm(tid)),
            What::Switch(prev, state, next) => {
                format!(
                    "{}:{prev} [120] {state} ==> {}:{next} [120]",
                    comm(prev),
                    comm(next)
                )
            }
        }
    }

    /// As babeltrace2 writes it, of LTTng (`tid`) or of perf (`pid`).
    fn braces(&self, tid: &str) -> String {
        match self.what {
            What::Waking(woken) => {
                format!(
                    "{{ comm = \"{}\", {tid} = {woken}, prio = 20, target_cpu = 0 }}",
                    comm(woken)
                )
            }
            What::Switch(prev, state, next) => format!(
                "{{ prev_comm = \"{}\", prev_{tid} = {prev}, prev_prio = 20, prev_state = {}, next_comm = \"{}\", next_{tid} = {next}, next_prio = 20 }}",
                comm(prev),
                if state == "R" { 256 } else { 1 },
                comm(next)
            ),
        }
    }

    fn ftrace(&self, before_time: &str, event: &str) -> String {
        let (comm, tid, at) = (comm(self.tid), self.tid, self.at());
        format!(
            "{comm:>16}-{tid:<7} {}{before_time} {at}: {event}",
            format_args!("[{:03}]", self.cpu)
        )
    }

    fn perf(&self, event: &str) -> String {
        let (comm, tid, at) = (comm(self.tid), self.tid, self.at());
        format!("{comm:>16} {tid:>7} [{:03}] {at}: {event}", self.cpu)
    }

    fn lttng(&self, head: &str, fields: &str) -> String {
        format!(
            "[{}000] {head}{}: {{ cpu_id = {} }}, {fields}",
            self.at(),
            self.name(),
            self.cpu
        )
    }
}

fn text(mut line: impl FnMut(&Line) -> String) -> String {
    schedule().iter().map(|event| line(event) + "\n").collect()
}

/// The bursts without their wakers, which some forms do not tell.
fn alike(text: &str, form: &str) -> Vec<Burst> {
    let recording = read_bytes(text).unwrap_or_else(|error| panic!("{form}: {error}"));
    check(&recording);
    let mut bursts = bursts(&recording);
    for burst in &mut bursts {
        burst.waker = 0;
    }
    bursts
}

fn kernel(line: &Line) -> String {
    format!("{}: {}", line.name(), line.kernels())
}

/// Every form, and its text.
fn forms() -> Vec<(&'static str, String)> {
    let perf_event = |line: &Line| format!("{:>12}sched:{}", "", kernel(line));
    let plain = text(|line| line.ftrace(" d..2.", &kernel(line)));
    let graph = |line: &Line| {
        format!(
            " {} |   {})  {:>10}-{:<6} |               |  /* {} */\n {} |   {})  {:>10}-{:<6} |   0.405 us    |  update_rq_clock();",
            line.at(),
            line.cpu,
            comm(line.tid),
            line.tid,
            kernel(line),
            line.at(),
            line.cpu,
            comm(line.tid),
            line.tid
        )
    };
    let stacks = |line: &Line| {
        format!(
            "{}\n\tffffffff9f0a12b4 __schedule+0x2f4 ([kernel.kallsyms])\n\t      0 [unknown] ([unknown])\n",
            line.perf(&perf_event(line))
        )
    };
    let json = serde_json::json!({ "traceEvents": [], "systemTraceEvents": format!("# tracer: nop\n{plain}") });
    vec![
        ("no irq-info", text(|line| line.ftrace("", &kernel(line)))),
        ("record-tgid", plain.replace(" [0", " (  1200) [0")),
        ("no tgid known", plain.replace(" [0", " (-----) [0")),
        (
            "trace-cmd report",
            format!(
                "cpus=2\n{}",
                text(|line| line.ftrace(" d..2.", &format!("{}:   {}", line.name(), line.short())))
            ),
        ),
        (
            "trace-cmd report -R",
            text(|line| {
                line.ftrace(
                    "",
                    &format!("{}:   {}", line.name(), line.numbers("256", "1")),
                )
            }),
        ),
        (
            "-R of 32 bits",
            text(|line| {
                line.ftrace(
                    "",
                    &format!("{}:   {}", line.name(), line.numbers("0x100", "0x1")),
                )
            }),
        ),
        (
            "-R of trace-cmd 3.3",
            text(|line| {
                line.ftrace(
                    "-0x9",
                    &format!("{}: {}", line.name(), line.numbers("256", "1")),
                )
            }),
        ),
        (
            "not understood by libtraceevent",
            text(|line| {
                line.ftrace(
                    " d..2.",
                    &format!(
                        "{}: [FAILED TO PARSE] {}",
                        line.name(),
                        line.numbers("256", "1")
                    ),
                )
            }),
        ),
        (
            "trace-cmd report -l",
            text(|line| {
                format!(
                    "{:>8.8}-{:<7} {}d..2. {}: {}",
                    comm(line.tid),
                    line.tid,
                    line.cpu,
                    line.at(),
                    kernel(line)
                )
            }),
        ),
        (
            "trace-cmd report --ts-diff",
            text(|line| line.ftrace(" d..2.", &format!("(+2000271) {}", kernel(line)))),
        ),
        (
            "trace-cmd report of two buffers",
            text(|line| format!("{:>8}: {}", "mine", line.ftrace(" d..2.", &kernel(line)))),
        ),
        (
            "192 CPUs",
            format!(
                "version = 6\n{}{plain}",
                (2..192)
                    .map(|cpu| format!("CPU {cpu} is empty\n"))
                    .collect::<String>()
            ),
        ),
        (
            "trace-cmd's statistics",
            format!("{plain}CPU: 0\nentries: 40\noverrun: 0\n"),
        ),
        (
            "atrace",
            format!("capturing trace... done\nTRACE:\n# tracer: nop\n{plain}"),
        ),
        (
            "sections of CPUs",
            [0, 1]
                .map(|cpu| {
                    format!(
                        "##### CPU {cpu} buffer started ####\n{}",
                        schedule()
                            .iter()
                            .filter(|line| line.cpu == cpu)
                            .map(|line| line.ftrace(" d..2.", &kernel(line)) + "\n")
                            .collect::<String>()
                    )
                })
                .concat(),
        ),
        (
            "cut at the start",
            format!("ched_switch: prev_comm=x\n{plain}"),
        ),
        (
            "a mark of several lines",
            plain.replacen(
                '\n',
                "\n   beat-1201 [000] ..... 5000.000017: tracing_mark_write: one\ntwo\n\n",
                1,
            ),
        ),
        (
            "stack traces of ftrace",
            text(|line| {
                format!(
                    "{}\n{}\n => __schedule\n => schedule",
                    line.ftrace(" d..2.", &kernel(line)),
                    line.ftrace(" d..2.", "<stack trace>")
                )
            }),
        ),
        (
            "CRLF and a byte order mark",
            format!("\u{feff}{}", plain.replace('\n', "\r\n")),
        ),
        (
            "a comma in the time",
            text(|line| {
                line.ftrace(" d..2.", &kernel(line)).replacen(
                    &line.at(),
                    &line.at().replace('.', ","),
                    1,
                )
            }),
        ),
        (
            "function_graph",
            format!("# tracer: function_graph\n{}", text(graph)),
        ),
        (
            "function_graph between threads",
            text(|line| {
                format!(
                    " {}\n {}) hog-1300 => beat-1201\n {}\n\n{}",
                    "-".repeat(42),
                    line.cpu,
                    "-".repeat(42),
                    graph(line)
                )
            }),
        ),
        (
            "a page",
            format!(
                "<!DOCTYPE html>\n<html>\n<script class=\"trace-data\" type=\"application/text\">\n{plain}  </script>\n</html>\n"
            ),
        ),
        (
            "the viewer's page",
            format!(
                "<html>\n<script>x = 'sched_switch'</script><script class=\"viewer-data\">{plain}</script>\n</html>\n"
            ),
        ),
        ("Chrome's JSON", json.to_string()),
        (
            "Chrome's JSON in lines",
            serde_json::to_string_pretty(&json).unwrap(),
        ),
        (
            "NuttX",
            text(|line| {
                format!(
                    "{:>8}-{:<3} [{}] {}: {}",
                    comm(line.tid),
                    line.tid,
                    line.cpu,
                    line.at(),
                    kernel(line)
                        .replace(" prio=120", "")
                        .replace(" prev_prio=120", "")
                        .replace(" next_prio=120", "")
                )
            }),
        ),
        ("perf script", text(|line| line.perf(&perf_event(line)))),
        (
            "perf script -F -comm",
            text(|line| {
                format!(
                    "{:>7} [{:03}] {}: {}",
                    line.tid,
                    line.cpu,
                    line.at(),
                    perf_event(line)
                )
            }),
        ),
        (
            "perf script -F +pid,-cpu",
            text(|line| {
                format!(
                    "{:>16} 1200/{} {}: {}",
                    comm(line.tid),
                    line.tid,
                    line.at(),
                    perf_event(line)
                )
            }),
        ),
        (
            "perf script -F +period,+ip",
            text(|line| {
                line.perf(&format!(
                    "  1 sched:{}  ffffffff9f0a12b4 __schedule+0x2f4 ([kernel.kallsyms])",
                    kernel(line)
                ))
            }),
        ),
        (
            "perf script -F +misc",
            text(|line| line.perf(&perf_event(line)).replacen("] ", "] K   ", 1)),
        ),
        (
            "perf script -F +tod",
            text(|line| {
                line.perf(&perf_event(line))
                    .replacen("] ", "] 2026-03-24 12:34:56.789012 ", 1)
            }),
        ),
        (
            "perf script with machines",
            text(|line| format!("VM:00001 VCPU:000 {}", line.perf(&perf_event(line)))),
        ),
        (
            "perf record with terms",
            text(|line| {
                line.perf(&format!(
                    "sched:{}/call-graph=no/: {}",
                    line.name(),
                    line.kernels()
                ))
            }),
        ),
        (
            "perf record with a modifier",
            text(|line| line.perf(&format!("sched:{}:u: {}", line.name(), line.kernels()))),
        ),
        ("perf record -g", text(stacks)),
        (
            "perf's header",
            format!(
                "# ========\n# captured on    : Tue\n# event : name = sched:sched_switch, , id = 5\n#\n{}",
                text(|line| line.perf(&perf_event(line)))
            ),
        ),
        (
            "babeltrace2 --clock-seconds",
            text(|line| line.lttng("(+0.000003000) board ", &line.braces("tid"))),
        ),
        (
            "babeltrace2 --no-delta",
            text(|line| line.lttng("board ", &line.braces("tid"))),
        ),
        (
            "babeltrace2 -f all",
            text(|line| line.lttng("(+0.000003000) kernel:board:3 (12) ", &line.braces("tid"))),
        ),
        (
            "contexts of LTTng",
            text(|line| {
                line.lttng(
                    "(+0.000003000) board ",
                    &format!(
                        "{{ tid = {}, procname = \"x, }}\" }}, {}",
                        line.tid,
                        line.braces("tid")
                    ),
                )
            }),
        ),
        (
            "perf data convert --to-ctf",
            text(|line| {
                format!(
                    "[{}000] (+0.000003000) sched:{}: {{ cpu_id = {} }}, {{ perf_ip = 0xFFFFFFFF9F0A12B4, perf_tid = {}, {}",
                    line.at(),
                    line.name(),
                    line.cpu,
                    line.tid,
                    &line.braces("pid")[2..]
                )
            }),
        ),
    ]
}

#[test]
fn every_form_of_text_tells_the_same_bursts() {
    let expected = alike(&text(|line| line.ftrace(" d..2.", &kernel(line))), "ftrace");
    assert_eq!(expected.len(), 28);
    let mut wrong = Vec::new();
    for (form, text) in forms() {
        match read_bytes(&text) {
            Err(error) => wrong.push(format!("{form}: {error}")),
            Ok(recording) if !recording.warnings.is_empty() => {
                wrong.push(format!("{form}: {:?}", recording.warnings))
            }
            Ok(_) => {}
        }
        if read_bytes(&text).is_ok() && alike(&text, form) != expected {
            wrong.push(format!(
                "{form}: {:?}\nnot {:?}",
                &alike(&text, form)[..2],
                &expected[..2]
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_form_that_cannot_be_read_is_an_error_that_says_what_to_do() {
    let one = "sched_switch: prev_comm=a prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=b next_pid=8 next_prio=120";
    for (text, said) in [
        (text(|line| format!("[00000005000000008805] (+000000000000) board {}: {{ cpu_id = 0 }}, {}", line.name(), line.braces("tid"))), "--clock-cycles"),
        (text(|line| format!("timestamp = {}000, delta = +0.000003000, name = {}, stream.packet.context = {{ cpu_id = 0 }}, event.fields = {}", line.at(), line.name(), line.braces("tid"))), "without options on fields or names"),
        (text(|line| format!("[{}000] (+0.000003000) board {}: {{ 0 }}, {{ \"a\", 7 }}", line.at(), line.name())), "without options on fields or names"),
        (format!(" 0)               |  /* {one} */\n 0)   0.405 us    |  update_rq_clock();\n"), "funcgraph-abstime"),
        (format!("  <idle>-0         0dN.2    5us : {one}\n"), "latency-format"),
        (format!("  hog-1300 [000] d..2. 12345678901234: {one}\n"), "with the clock 'mono'"),
        (format!("  hog-1300 [000] d..2. {one}\n"), "it needs a thread's number, a time"),
        ("[5000.000008805] (+0.000000000) board:demo:1234 my:event: { cpu_id = 0 }, { x = 1 }\n".into(), "record the kernel's events"),
        ("  a-7 [000] d..2. 5000.000008: update_rq_clock <-__schedule\n".into(), "record the kernel's events"),
        (text(|line| line.perf(&kernel(line)).replacen(&line.at(), &format!("0.{:06}", line.us * 7919 % 997), 1)), "--deltatime"),
        ("           time    cpu  task name       wait time  sch delay   run time\n 5000.000016 [0000]  hog[1300]  8.000  0.008  2.000\n".into(), "perf script"),
        ("{\"traceEvents\": []}\n".into(), "JSON without ftrace's text"),
        ("<html><script class=\"trace-data\"># tracer: nop\n</script></html>\n".into(), "without ftrace's text"),
        ("time,value\n5000.000000,1\n5000.010001,1\n".into(), "no time in whole nanoseconds"),
        ((0..40).map(|row| format!("{};5000.{:02}0050000;5\n", row % 2, row)).collect(), "its first column do not grow"),
        ("\u{feff}Dear diary\n".into(), "begins with 'Dear diary'"),
    ] {
        let error = read_bytes(&text).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    for (bytes, said) in [
        (&b"\xff\xfe#\0"[..], "iconv -f UTF-16"),
        (b"\xfd7zXZ\0", "xz -d"),
        (b"BZh9", "bzip2 -d"),
        (b"PK\x03\x04", "unzip"),
    ] {
        let error = read_bytes(bytes).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn what_the_recorder_lost_is_counted_in_every_form() {
    let begin: String = schedule()[..20]
        .iter()
        .map(|line| line.ftrace(" d..2.", &kernel(line)) + "\n")
        .collect();
    for (line, lost) in [
        ("CPU:1 [LOST 123 EVENTS]", 123),
        ("CPU:1 [LOST EVENTS]", 1),
        ("CPU:0 [45 EVENTS DROPPED]", 45),
        ("CPU:0 [EVENTS DROPPED]", 1),
        (
            "WARNING: Tracer discarded 3 packets between [01:23:21.000] and [01:23:22.000]",
            3,
        ),
        (
            "11-27 12:00:00.000 W PLUGIN/CTF Tracer discarded 41 events between [1.0] and [2.0]",
            41,
        ),
        (
            "WARNING: Tracer may have discarded events between [1.0] and [2.0]",
            1,
        ),
        ("Processed 99 events and lost 7 chunks!", 7),
        ("  perf 9 [000] 5000.000002: PERF_RECORD_LOST lost 45", 45),
    ] {
        let recording = read_bytes(format!("{begin}{line}\n")).unwrap();
        assert_eq!(recording.lost, lost, "{line}");
        assert_eq!(recording.warnings.len(), 1, "{line}");
    }
}

#[test]
fn threads_that_the_recorder_knew_no_name_of_have_that_of_other_lines() {
    let mut named = 0;
    let text = text(|line| {
        named += u32::from(line.tid == 1201);
        let text = line.ftrace(" d..2.", &kernel(line));
        if named == 3 {
            text
        } else {
            text.replace("beat", "<...>")
        }
    });
    let recording = read_bytes(text).unwrap();
    let names: Vec<_> = recording
        .tasks
        .iter()
        .map(|task| task.comm.to_text())
        .collect();
    assert_eq!(names, ["beat", "a b"]);
    assert!(
        recording
            .events
            .iter()
            .all(|event| !matches!(event, onbeat_model::Event::Renamed { .. }))
    );
}

#[test]
fn a_wakeup_without_success_is_none() {
    let wakeup = |success| {
        format!(
            "<idle>-0 [000] d.h2. 1.00010{success}: sched_wakeup: comm=a pid=7 prio=120 success={success} target_cpu=000\n"
        )
    };
    let recording = read_bytes(wakeup(0) + &wakeup(1)).unwrap();
    let woke: Vec<_> = bursts(&recording)
        .iter()
        .map(|burst| burst.woke.as_ns())
        .collect();
    assert_eq!(woke, [1_000_101_000]);
}

use onbeat_model::Burst;

use crate::{bursts, check, is_refused, read_bytes};

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
    /// The kernel's own fields, with `arrow` between the threads of a switch, and its states as
    /// these: preempted, asleep.
    fn fields(&self, arrow: &str, states: [&str; 2]) -> String {
        match self.what {
            What::Waking(tid) => format!("comm={} pid={tid} prio=120 target_cpu=000", comm(tid)),
            What::Switch(prev, state, next) => format!(
                "prev_comm={} prev_pid={prev} prev_prio=120 prev_state={} {arrow}next_comm={} next_pid={next} next_prio=120",
                comm(prev),
                states[usize::from(state == "S")],
                comm(next)
            ),
        }
    }

    fn short(&self) -> String {
        match self.what {
            What::Waking(tid) => format!("{}:{tid} [120] CPU:000", comm(tid)),
            What::Switch(prev, state, next) => {
                let [prev_comm, next_comm] = [comm(prev), comm(next)];
                format!("{prev_comm}:{prev} [120] {state} ==> {next_comm}:{next} [120]")
            }
        }
    }

    /// As babeltrace2 writes it, of LTTng (`tid`) or of perf (`pid`).
    fn braces(&self, tid: &str) -> String {
        match self.what {
            What::Waking(woken) => {
                let comm = comm(woken);
                format!("{{ comm = \"{comm}\", {tid} = {woken}, prio = 20, target_cpu = 0 }}")
            }
            What::Switch(prev, state, next) => format!(
                "{{ prev_comm = \"{}\", prev_{tid} = {prev}, prev_prio = 20, prev_state = {}, next_comm = \"{}\", next_{tid} = {next}, next_prio = 20 }}",
                comm(prev),
                if state == "R" { 256 } else { 1 },
                comm(next)
            ),
        }
    }

    fn in_form(&self, form: &str) -> String {
        let name = match self.what {
            What::Waking(_) => "sched_waking",
            What::Switch(..) => "sched_switch",
        };
        let fields = [
            (
                "%a",
                format!("{}.{:06}", self.us / 1_000_000, self.us % 1_000_000),
            ),
            (
                "%A",
                format!("{},{:06}", self.us / 1_000_000, self.us % 1_000_000),
            ),
            ("%c", comm(self.tid).to_owned()),
            ("%t", self.tid.to_string()),
            ("%p", self.cpu.to_string()),
            ("%n", name.to_owned()),
            ("%k", self.fields("==> ", ["R", "S"])),
            ("%w", self.fields("", ["256", "1"])),
            ("%x", self.fields("", ["0x100", "0x1"])),
            ("%s", self.short()),
            ("%l", self.braces("tid")),
            ("%b", self.braces("pid")[2..].to_owned()),
        ];
        let fill = |text: String, (field, value): (&str, String)| text.replace(field, &value);
        fields.into_iter().fold(form.to_owned(), fill)
    }
}

fn text_of<'a>(lines: impl IntoIterator<Item = &'a Line>, form: &str) -> String {
    lines
        .into_iter()
        .map(|line| line.in_form(form) + "\n")
        .collect()
}

fn text(form: &str) -> String {
    text_of(&schedule(), form)
}

const PLAIN: &str = "         %c-%t    [00%p] d..2. %a: %n: %k";
const SWITCH: &str = "sched_switch: prev_comm=a prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=b next_pid=8 next_prio=120";

fn alike(text: &str, form: &str) -> Vec<Burst> {
    let recording = read_bytes(text).unwrap_or_else(|error| panic!("{form}: {error}"));
    check(&recording);
    assert!(
        recording.warnings.is_empty(),
        "{form}: {:?}",
        recording.warnings
    );
    let mut bursts = bursts(&recording);
    for burst in &mut bursts {
        burst.waker = 0;
    }
    bursts
}

/// Forms of each line by itself.
#[rustfmt::skip]
const LINES: [(&str, &str); 33] = [
    ("no irq-info", "         %c-%t    [00%p] %a: %n: %k"),
    ("record-tgid", "         %c-%t    (  1200) [00%p] d..2. %a: %n: %k"),
    ("no tgid known", "         %c-%t    (-----) [00%p] d..2. %a: %n: %k"),
    ("trace-cmd report -R", "         %c-%t    [00%p] %a: %n:   %w"),
    ("-R of 32 bits", "         %c-%t    [00%p] %a: %n:   %x"),
    ("-R of trace-cmd 3.3", "         %c-%t    [00%p]-0x9 %a: %n: %w"),
    ("not understood by libtraceevent", "         %c-%t    [00%p] d..2. %a: %n: [FAILED TO PARSE] %w"),
    ("trace-cmd report -l", "    %c-%t    %pd..2. %a: %n: %k"),
    ("trace-cmd report --ts-diff", "         %c-%t    [00%p] d..2. %a: (+2000271) %n: %k"),
    ("trace-cmd report of two buffers", "    mine:          %c-%t    [00%p] d..2. %a: %n: %k"),
    ("stack traces of ftrace", "         %c-%t    [00%p] d..2. %a: %n: %k\n         %c-%t    [00%p] d..2. %a: <stack trace>\n => __schedule\n => schedule"),
    ("a comma in the time", "         %c-%t    [00%p] d..2. %A: %n: %k"),
    ("function_graph", " %a |   %p)  %c-%t |               |  /* %n: %k */\n %a |   %p)  %c-%t |   0.405 us    |  update_rq_clock();"),
    ("function_graph between threads", " ------------------------------------------\n %p) hog-1300 => beat-1201\n ------------------------------------------\n\n %a |   %p)  %c-%t |               |  /* %n: %k */\n %a |   %p)  %c-%t |   0.405 us    |  update_rq_clock();"),
    ("perf script", "            %c    %t [00%p] %a:             sched:%n: %k"),
    ("perf script -F -comm", "   %t [00%p] %a:             sched:%n: %k"),
    ("perf script -F +pid,-cpu", "            %c 1200/%t %a:             sched:%n: %k"),
    ("perf script -F +period,+ip", "            %c    %t [00%p] %a:   1 sched:%n: %k  ffffffff9f0a12b4 __schedule+0x2f4 ([kernel.kallsyms])"),
    ("perf script -F +misc", "            %c    %t [00%p] K   %a:             sched:%n: %k"),
    ("perf script -F +tod", "            %c    %t [00%p] 2026-03-24 12:34:56.789012 %a:             sched:%n: %k"),
    ("perf script with machines", "VM:00001 VCPU:000             %c    %t [00%p] %a:             sched:%n: %k"),
    ("perf record with terms", "            %c    %t [00%p] %a: sched:%n/call-graph=no/: %k"),
    ("perf record with a modifier", "            %c    %t [00%p] %a: sched:%n:u: %k"),
    ("perf record -g", "            %c    %t [00%p] %a:             sched:%n: %k\n\tffffffff9f0a12b4 __schedule+0x2f4 ([kernel.kallsyms])\n\t      0 [unknown] ([unknown])\n"),
    ("babeltrace2 --clock-seconds", "[%a000] (+0.000003000) board %n: { cpu_id = %p }, %l"),
    ("babeltrace2 --no-delta", "[%a000] board %n: { cpu_id = %p }, %l"),
    ("babeltrace2 -f all", "[%a000] (+0.000003000) kernel:board:3 (12) %n: { cpu_id = %p }, %l"),
    ("contexts of LTTng", "[%a000] (+0.000003000) board %n: { cpu_id = %p }, { tid = %t, procname = \"x, }\" }, %l"),
    ("perf data convert --to-ctf", "[%a000] (+0.000003000) sched:%n: { cpu_id = %p }, { perf_ip = 0xFFFFFFFF9F0A12B4, perf_tid = %t, %b"),
    ("a prefix of grep", "trace.txt:12:         %c-%t    [00%p] d..2. %a: %n: %k"),
    ("quoted in a letter", ">          %c-%t    [00%p] d..2. %a: %n: %k"),
    ("a vendor's kernel", "         %c-%t    [00%p] d..2. %a: %n: %k expeller_type=0"),
    ("threads that perf does not know any more", "[%a000] (+0.000003000) sched:%n: { cpu_id = %p }, { perf_ip = 0xFFFFFFFF9F0A12B4, perf_tid = -1, %b"),
];

fn wholes() -> Vec<(&'static str, String)> {
    let plain = text(PLAIN);
    let ftrace = format!("# tracer: nop\n{plain}");
    let json = serde_json::json!({ "traceEvents": [], "systemTraceEvents": ftrace });
    let empty: String = (2..192)
        .map(|cpu| format!("CPU {cpu} is empty\n"))
        .collect();
    let mark = "\n   beat-1201 [000] ..... 5000.000017: tracing_mark_write: one\ntwo\n\n";
    let section = |cpu| {
        let lines = schedule();
        let of_cpu = lines.iter().filter(|line| line.cpu == cpu);
        format!(
            "##### CPU {cpu} buffer started ####\n{}",
            text_of(of_cpu, PLAIN)
        )
    };
    let report = text("         %c-%t    [00%p] d..2. %a: %n:   %s");
    let nuttx = text("    %c-%t [%p] %a: %n: %k");
    let nuttx = [" prio=120", " prev_prio=120", " next_prio=120"]
        .iter()
        .fold(nuttx, |text, prio| text.replace(prio, ""));
    let perf = text("            %c    %t [00%p] %a:             sched:%n: %k");
    vec![
        ("trace-cmd report", format!("cpus=2\n{report}")),
        ("192 CPUs", format!("version = 6\n{empty}{plain}")),
        (
            "trace-cmd's statistics",
            format!("{plain}CPU: 0\nentries: 40\noverrun: 0\n"),
        ),
        (
            "atrace",
            format!("capturing trace... done\nTRACE:\n{ftrace}"),
        ),
        ("sections of CPUs", [0, 1].map(section).concat()),
        (
            "cut at the start",
            format!("ched_switch: prev_comm=x\n{plain}"),
        ),
        ("a mark of several lines", plain.replacen('\n', mark, 1)),
        (
            "CRLF and a byte order mark",
            format!("\u{feff}{}", plain.replace('\n', "\r\n")),
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
        ("NuttX", nuttx),
        (
            "perf's header",
            format!(
                "# ========\n# captured on    : Tue\n# event : name = sched:sched_switch, , id = 5\n#\n{perf}"
            ),
        ),
    ]
}

#[test]
fn every_form_of_text_tells_the_same_bursts() {
    let expected = alike(&text(PLAIN), "ftrace");
    assert_eq!(expected.len(), 28);
    let lines = LINES.map(|(name, form)| (name, text(form)));
    for (form, text) in lines.into_iter().chain(wholes()) {
        assert_eq!(alike(&text, form), expected, "{form}");
    }
}

#[test]
fn a_form_that_cannot_be_read_is_an_error_that_says_what_to_do() {
    #[rustfmt::skip]
    let forms = [
        (text("[00000005000000008805] (+000000000000) board %n: { cpu_id = 0 }, %l"), "--clock-cycles"),
        (text("timestamp = %a000, delta = +0.000003000, name = %n, stream.packet.context = { cpu_id = 0 }, event.fields = %l"), "without options on fields or names"),
        (text("[%a000] (+0.000003000) board %n: { 0 }, { \"a\", 7 }"), "without options on fields or names"),
        (text("[\u{1b}[1m%a000\u{1b}[0m] board %n: { cpu_id = %p }, %l"), "without --color"),
        (text("[ 5002.100000] %c-%t 0d..2. 1234us : %n: %k"), "without the option 'latency-format'"),
        ("capturing trace... done\nTRACE:\nx\u{9c}\u{8d}".into(), "without -z"),
        (format!(" 0)               |  /* {SWITCH} */\n 0)   0.405 us    |  update_rq_clock();\n"), "funcgraph-abstime"),
        (format!("  <idle>-0         0dN.2    5us : {SWITCH}\n"), "latency-format"),
        (format!("  hog-1300 [000] d..2. 12345678901234: {SWITCH}\n"), "with the clock 'mono'"),
        (format!("  hog-1300 [000] d..2. {SWITCH}\n"), "it needs a thread's number, a time"),
        ("[5000.000008805] (+0.000000000) board:demo:1234 my:event: { cpu_id = 0 }, { x = 1 }\n".into(), "record the kernel's events"),
        ("  a-7 [000] d..2. 5000.000008: update_rq_clock <-__schedule\n".into(), "record the kernel's events"),
        (schedule().iter().map(|line| line.in_form("   %c %t [00%p] @: %n: %k\n").replace('@', &format!("0.{:06}", line.us * 7919 % 997))).collect(), "--deltatime"),
        ("           time    cpu  task name       wait time  sch delay   run time\n 5000.000016 [0000]  hog[1300]  8.000  0.008  2.000\n".into(), "perf script"),
        ("{\"traceEvents\": []}\n".into(), "JSON without ftrace's text"),
        ("<html><script class=\"trace-data\"># tracer: nop\n</script></html>\n".into(), "without ftrace's text"),
        ("time,value\n5000.000000,1\n5000.010001,1\n".into(), "no time in whole nanoseconds"),
        ((0..40).map(|row| format!("{};5000.{:02}0050000;5\n", row % 2, row)).collect(), "its first column do not grow"),
        ("\u{feff}Dear diary\n".into(), "begins with 'Dear diary'"),
    ];
    for (text, said) in forms {
        is_refused(&text, "", &[said]);
    }
    for (bytes, said) in [
        (&b"\xff\xfe#\0"[..], "iconv -f UTF-16"),
        (b"", "made is no recording that onbeat reads: it is empty"),
        (b"\x7fELF\x02\x01\x01\0\0\0", "nor onbeat's own recording"),
        (b"PERFILE2\x68\0\0\0", "it is perf's data, which is broken"),
        (b"\x17\x08\x44tracing6\0", "trace-cmd report -i FILE"),
        (b"\x1f\x8b\x08", "cut off before the first line"),
        (b"\xfd7zXZ\0", "xz -d"),
        (b"BZh9", "bzip2 -d"),
        (b"PK\x03\x04", "unzip"),
    ] {
        is_refused(bytes, "", &[said]);
    }
}

#[test]
fn what_the_recorder_lost_is_counted_in_every_form() {
    let begin = text_of(&schedule()[..20], PLAIN);
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
    let mut lines: Vec<String> = schedule().iter().map(|line| line.in_form(PLAIN)).collect();
    let of_beat = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| line.contains(" beat-1201 "));
    let named = of_beat.map(|(place, _)| place).nth(2);
    for (place, line) in lines.iter_mut().enumerate() {
        if Some(place) != named {
            *line = line.replace("beat", "<...>");
        }
    }
    let recording = read_bytes(lines.join("\n") + "\n").unwrap();
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

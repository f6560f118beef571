use onbeat_model::{Bandwidth, Span};

use super::*;

fn one(text: &str) -> Result<Config, String> {
    parse(&[(PathBuf::from("onbeat.toml"), text.to_owned())]).map_err(|error| error.to_string())
}

fn sources(folder: &Path) -> Sources {
    Sources {
        config: Some(folder.join("onbeat.toml")),
        rules: folder.join("rules.d"),
        units: Vec::new(),
        given: folder.join("given"),
    }
}

#[test]
fn nothing_written_is_the_default_and_what_is_written_counts() {
    assert_eq!(one(""), Ok(Config::default()));
    let config = one(r#"
        scan = "500ms"
        [limits]
        total = "70%"
        per-task = "50%"
        [prediction]
        samples = 8
        [quota]
        bandwidth = "150%"
        tasks = 7
        seat = "10000%"
        [quota.user.root]
        shortest-period = "5ms"
        longest-runtime = "20ms"
        [realtimekit]
        priority = 10
        [[rule]]
        name = "film"
        program = "mplayer"
        weight = 2
        cap = "40%"
    "#)
    .unwrap();
    assert_eq!(config.budgets.total, 0.7);
    assert_eq!(config.rules.scan, Span::from_ms(500));
    assert_eq!(config.budgets.parameters.window, 8);
    let quotas = config.quotas().unwrap();
    assert_eq!(quotas.default.bandwidth, Bandwidth::from_cpus(1.5));
    let cpus = quotas.seat.bandwidth.as_cpus() / 100.0;
    assert!(cpus >= 1.0 && cpus.fract() == 0.0, "{cpus}");
    assert_eq!(quotas.seat.longest_runtime, Span::from_ms(100).scale(cpus));
    assert_eq!(
        quotas.default.at_seat(Bandwidth::from_cpus(0.5), 2.0),
        quotas.default
    );
    let root = quotas.users.get(&0).unwrap();
    assert_eq!((root.tasks, root.shortest_period), (7, Span::from_ms(5)));
    assert_eq!(root.longest_runtime, Span::from_ms(20));
    assert_eq!(quotas.default.longest_runtime, Span::from_ms(100));
    assert_eq!(config.realtimekit.map(|limits| limits.priority), Some(10));
    let rule = config.rules.list.first().unwrap();
    assert_eq!(&*rule.name, "film");
    assert_eq!(rule.treatment.cap, Some(Bandwidth::from_cpus(0.4)));
}

#[test]
fn every_mistake_is_told_with_its_file_its_line_and_what_to_do() {
    #[rustfmt::skip]
    let cases = [
        ("x = 1\n", 1, "expected one of"),
        ("[limits]\ntotal = \"eighty\"\n", 2, "write per cent above 0"),
        ("[limits]\ntotal = 80\n", 2, "expected a text in quotes"),
        ("[limits]\n\ntotal = \"180%\"\n", 3, "write at most"),
        ("[quota]\nbandwidth = \"-1%\"\n", 2, "write per cent above 0"),
        ("[quota]\nshortest-period = \"5\"\n", 2, "with its unit"),
        ("[quota]\ntasks = -5\n", 2, "expected"),
        ("[quota.user.alice]\nbandwidht = \"5%\"\n", 2, "expected one of"),
        ("[prediction]\npredictor = \"crystal-ball\"\n", 2, "unknown field `predictor`"),
        ("[prediction]\nsamples = 0\n", 2, "write 1 to 4096"),
        ("[prediction]\nsamples = 4\nabove = 4\n", 3, "write at most 3"),
        ("[realtimekit]\npriority = 99\n", 2, "from 1 to 98"),
        ("[realtimekit]\nnice = -21\n", 2, "from -20 to 19"),
        ("\n[[rule]]\nweight = 2\n", 2, "write program, unit, cgroup or container"),
        ("[[rule]]\nunit = \"a\"\nweight = 0\n", 1, "write a weight above 0"),
        ("[[rule]\n", 1, "expected"),
    ];
    for (text, line, remedy) in cases {
        let error = one(text).unwrap_err();
        let place = format!("onbeat.toml:{line}: ");
        assert!(error.starts_with(&place), "{text}: {error}");
        assert!(error.contains(remedy), "{text}: {error}");
    }
    let error = one("\n\n[quota.group.nobody-is-in-it]\ntasks = 3\n").unwrap();
    let error = error.quotas().unwrap_err().to_string();
    assert!(
        error.starts_with("onbeat.toml:3: there is no group nobody-is-in-it: mend"),
        "{error}"
    );
}

#[test]
fn a_file_that_was_named_must_be_there_and_those_beside_it_are_read_in_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("onbeat.toml");
    let sources = sources(folder.path());
    let error = read(&sources).unwrap_err().to_string();
    assert!(error.contains("--config"), "{error}");
    fs::write(&path, "").unwrap();
    assert_eq!(read(&sources).unwrap(), Config::default());
    let beside = folder.path().join("onbeat.d");
    fs::create_dir(&beside).unwrap();
    fs::write(beside.join("20.toml"), "[quota]\ntasks = 20\n").unwrap();
    fs::write(beside.join("10.toml"), "[quota]\ntasks = 10\n").unwrap();
    fs::write(beside.join("30.toml.old"), "no configuration").unwrap();
    let config = read(&sources).unwrap();
    assert_eq!(config.quotas().unwrap().default.tasks, 20);
}

#[test]
fn the_example_says_what_holds_without_it() {
    let example = include_str!("../../../../packaging/onbeat.toml");
    let uncommented: String = example
        .lines()
        .map(|line| line.strip_prefix("#: ").unwrap_or(line))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(one(example), Ok(Config::default()));
    let config = one(&uncommented).unwrap();
    assert_eq!(config.rules.list.len(), 3, "{uncommented}");
    let (mut whole, mut default) = (config, Config::default());
    // The names of the defaults are no difference.
    let named = "[prediction]\nsamples = 16\n";
    default.budgets = one(named).unwrap().budgets;
    for config in [&mut whole, &mut default] {
        config.rules.list.clear();
        config.users.clear();
        config.groups.clear();
    }
    assert_eq!(whole, default);
}

#[test]
fn shipped_rules_come_last_hold_for_users_alone_and_go_by_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("onbeat.toml");
    let sources = sources(folder.path());
    let names = || {
        let config = read(&sources).unwrap();
        let rules = config.rules.list.iter();
        let told = rules.map(|rule| (rule.name.to_string(), rule.but_root));
        told.collect::<Vec<_>>()
    };
    let own = "[[rule]]\nname = \"own\"\nprogram = \"mpv\"\n";
    fs::write(&path, own).unwrap();
    assert_eq!(names(), [("own".to_owned(), false)]);
    fs::create_dir(&sources.rules).unwrap();
    let shipped = "[[rule]]\nname = \"players\"\nprogram = \"mpv\"\n";
    fs::write(sources.rules.join("players.toml"), shipped).unwrap();
    let both = [("own".to_owned(), false), ("players".to_owned(), true)];
    assert_eq!(names(), both);
    fs::write(&path, format!("shipped-rules = false\n{own}")).unwrap();
    assert_eq!(names(), both[..1]);
    fs::write(&path, own).unwrap();
    fs::write(sources.rules.join("more.toml"), "scan = \"1s\"\n").unwrap();
    let error = read(&sources).unwrap_err().to_string();
    assert!(
        error.contains("more.toml:1: unknown field `scan`"),
        "{error}"
    );
}

#[test]
fn given_rules_come_before_shipped_ones_and_a_wrong_file_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("onbeat.toml");
    let sources = sources(folder.path());
    fs::write(&path, "[[rule]]\nprogram = \"mpv\"\n").unwrap();
    let none = sources.given_now();
    fs::create_dir(&sources.given).unwrap();
    assert_eq!(sources.given_now(), none);
    let rule = "[[rule]]\nname = \"one\"\ncontainer = \"0123456789ab\"\nbandwidth = \"25%\"\n";
    fs::write(sources.given.join("a.toml"), "scan = \"1s\"\n").unwrap();
    fs::write(sources.given.join("b.toml"), rule).unwrap();
    let config = read(&sources).unwrap();
    let [_, given] = &config.rules.list[..] else {
        panic!("{:?}", config.rules.list);
    };
    assert_eq!((&*given.name, given.but_root), ("one", false));
    assert_eq!(given.bandwidth, Some(Bandwidth::from_cpus(0.25)));
    // A file in the place of another one is a change, whatever is in it.
    let two = sources.given_now();
    fs::write(sources.given.join("new"), rule).unwrap();
    fs::rename(sources.given.join("new"), sources.given.join("b.toml")).unwrap();
    assert_ne!(sources.given_now(), two);
}

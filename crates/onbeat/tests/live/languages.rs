//! The lines of docs/marks.md by which programs in other languages mark their jobs.

use std::fs;

use crate::*;

/// A language of the page: its name there, the program that it needs, its source file, what stands
/// before and after its lines, and a command of the shell that compiles and runs it, as the last
/// program that it executes.
type Language = [&'static str; 6];

#[rustfmt::skip]
const LANGUAGES: [Language; 7] = [
    ["c", "cc", "main.c", "#include <sys/prctl.h>\nint main(void) {\n", "}\n", "cc -static main.c && exec ./a.out"],
    ["c", "c++", "main.cpp", "#include <sys/prctl.h>\nint main() {\n", "}\n", "c++ main.cpp && exec ./a.out"],
    ["rust", "rustc", "main.rs",
        "mod libc { extern \"C\" { pub fn prctl(option: i32, ...) -> i32; } }\nfn main() {\n", "}\n",
        "rustc main.rs && exec ./main"],
    ["go", "go", "main.go",
        "package main\nimport (\"runtime\"; \"syscall\")\nfunc main() {\nruntime.LockOSThread()\n", "}\n",
        "GOCACHE=$PWD/cache go build main.go && exec ./main"],
    ["python", "python3", "main.py", "", "", "exec python3 main.py"],
    ["java", "java", "Main.java",
        "import java.lang.foreign.*;\nimport static java.lang.foreign.ValueLayout.*;\n\
         class Main { public static void main(String[] a) throws Throwable {\n", "} }\n",
        "exec java Main.java"],
    ["sh", "sh", "main.sh", "", "", "exec sh main.sh"],
];

/// The lines of the page's block of a language.
fn lines(page: &str, language: &str) -> String {
    let block = page.split(&format!("\n```{language}\n")).nth(1);
    let block = block.and_then(|rest| rest.split("```").next());
    block.unwrap_or_else(|| panic!("no {language}")).to_owned()
}

/// Whether the language is here; Java needs java.lang.foreign.
fn is_here(name: &str, needs: &str) -> bool {
    let is_here = match name {
        "java" => "java --version | grep -qE '^[a-z]+ (2[2-9]|[3-9][0-9])'".to_owned(),
        _ => format!("command -v {needs}"),
    };
    let mut shell = Command::new("sh");
    let shell = shell.args(["-c", &is_here]).stdout(Stdio::null());
    shell.stderr(Stdio::null()).status().unwrap().success()
}

#[test]
fn a_program_in_each_language_of_the_page_marks_its_jobs() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/marks.md");
    let page = fs::read_to_string(page).unwrap();
    for [name, needs, file, before, after, run] in LANGUAGES {
        if !is_here(name, needs) {
            println!("skipped: {name}: no {needs}");
            continue;
        }
        let folder = Folder::new();
        let source = format!("{before}{}{after}", lines(&page, name));
        fs::write(folder.path(file), source).unwrap();
        let own = Path::new(env!("CARGO_BIN_EXE_onbeat")).parent().unwrap();
        let path = std::env::var("PATH").unwrap();
        let recording = folder.path("marks");
        let recorded = folder
            .onbeat()
            .args(["record", "--quiet", "--children", "--output"])
            .arg(&recording)
            .args(["--", "sh", "-c", run])
            .env("PATH", format!("{}:{path}", own.display()))
            .current_dir(folder.path(""))
            .status();
        assert!(recorded.unwrap().success(), "{name}");
        let recording = fs::read_to_string(&recording).unwrap();
        let events = recording
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        let said = events.filter_map(|event| event["said"].as_str().map(str::to_owned));
        let said: Vec<String> = said.collect();
        let all = ["job_began", "job_ended", "missed_deadline"];
        assert_eq!(said, all, "{name}");
    }
}

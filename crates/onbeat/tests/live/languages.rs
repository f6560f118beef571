//! The lines of docs/marks.md by which programs in other languages mark their jobs.

use std::fs;

use crate::*;

/// A language of the page: its source file, what stands around its lines, and a command of the
/// shell that compiles and runs it, as the last program that it executes.
struct Language {
    name: &'static str,
    needs: &'static str,
    file: &'static str,
    around: [&'static str; 2],
    run: &'static str,
}

const LANGUAGES: [Language; 7] = [
    Language {
        name: "c",
        needs: "cc",
        file: "main.c",
        around: ["#include <sys/prctl.h>\nint main(void) {\n", "}\n"],
        run: "cc -static main.c && exec ./a.out",
    },
    Language {
        name: "c",
        needs: "c++",
        file: "main.cpp",
        around: ["#include <sys/prctl.h>\nint main() {\n", "}\n"],
        run: "c++ main.cpp && exec ./a.out",
    },
    Language {
        name: "rust",
        needs: "rustc",
        file: "main.rs",
        around: [
            "mod libc { extern \"C\" { pub fn prctl(option: i32, ...) -> i32; } }\nfn main() {\n",
            "}\n",
        ],
        run: "rustc main.rs && exec ./main",
    },
    Language {
        name: "go",
        needs: "go",
        file: "main.go",
        around: [
            "package main\nimport (\"runtime\"; \"syscall\")\nfunc main() {\nruntime.LockOSThread()\n",
            "}\n",
        ],
        run: "GOCACHE=$PWD/cache go build main.go && exec ./main",
    },
    Language {
        name: "python",
        needs: "python3",
        file: "main.py",
        around: ["", ""],
        run: "exec python3 main.py",
    },
    Language {
        name: "java",
        needs: "java",
        file: "Main.java",
        around: [
            "import java.lang.foreign.*;\nimport static java.lang.foreign.ValueLayout.*;\n\
             class Main { public static void main(String[] a) throws Throwable {\n",
            "} }\n",
        ],
        run: "exec java Main.java",
    },
    Language {
        name: "sh",
        needs: "sh",
        file: "main.sh",
        around: ["", ""],
        run: "exec sh main.sh",
    },
];

/// The lines of the page's block of a language.
fn lines(page: &str, language: &str) -> String {
    let block = page.split(&format!("\n```{language}\n")).nth(1);
    let block = block.and_then(|rest| rest.split("```").next());
    block.unwrap_or_else(|| panic!("no {language}")).to_owned()
}

/// Whether the language is here; Java needs java.lang.foreign.
fn is_here(language: &Language) -> bool {
    let is_here = match language.name {
        "java" => "java --version | grep -qE '^[a-z]+ (2[2-9]|[3-9][0-9])'".to_owned(),
        _ => format!("command -v {}", language.needs),
    };
    let mut shell = Command::new("sh");
    let shell = shell.args(["-c", &is_here]).stdout(Stdio::null());
    shell.stderr(Stdio::null()).status().unwrap().success()
}

#[test]
fn a_program_in_each_language_of_the_page_marks_its_jobs() {
    needs_root!();
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/marks.md");
    let page = fs::read_to_string(page).unwrap();
    for language in &LANGUAGES {
        if !is_here(language) {
            println!("skipped: {}: no {}", language.name, language.needs);
            continue;
        }
        let folder = Folder::new();
        let [before, after] = language.around;
        let source = format!("{before}{}{after}", lines(&page, language.name));
        fs::write(folder.path(language.file), source).unwrap();
        let own = Path::new(env!("CARGO_BIN_EXE_onbeat")).parent().unwrap();
        let path = std::env::var("PATH").unwrap();
        let recording = folder.path("marks");
        let recorded = folder
            .onbeat()
            .args(["record", "--quiet", "--children", "--output"])
            .arg(&recording)
            .args(["--", "sh", "-c", language.run])
            .env("PATH", format!("{}:{path}", own.display()))
            .current_dir(folder.path(""))
            .status();
        assert!(recorded.unwrap().success(), "{}", language.name);
        let recording = fs::read_to_string(&recording).unwrap();
        let events = recording
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        let said = events.filter_map(|event| event["said"].as_str().map(str::to_owned));
        let said: Vec<String> = said.collect();
        let all = ["job_began", "job_ended", "missed_deadline"];
        assert_eq!(said, all, "{}", language.name);
    }
}

//! Man pages and completions are whole.

use std::fs;

use crate::*;

#[test]
fn every_man_page_has_its_sections_and_every_flag() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man");
    let output = onbeat(["generate", "man", pages.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let page = |name: &str| fs::read_to_string(pages.join(name)).unwrap();
    let entries = fs::read_dir(&pages).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names: Vec<String> = names.filter(|name| name.ends_with(".1")).collect();
    assert!(names.len() > 10, "{names:?}");
    for name in names {
        let text = page(&name);
        for section in ["SYNOPSIS", "OPTIONS", "\"EXIT STATUS\"", "EXAMPLES"] {
            let section = format!(".SH {section}\n");
            assert!(text.contains(&section), "{name}: {section}\n{text}");
        }
    }
    let configuration = page("onbeat.toml.5");
    for told in [".SH [limits]", ".SH [quota]", "#: total = \"85%\""] {
        assert!(configuration.contains(told), "{told}\n{configuration}");
    }
    assert!(page("onbeat-run.1").contains("125"));
    assert!(page("onbeat-run.1").contains("run [OPTIONS] \\-\\- <CMD>"));
}

#[test]
fn a_folder_that_cannot_be_written_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "in the way").unwrap();
    let output = onbeat(["generate", "man", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    has(stderr(&output), &["cannot make the folder"]);
}

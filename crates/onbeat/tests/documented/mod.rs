//! Compares the fields of JSON objects with the tables of `docs/formats.md` and, where there is
//! one, `docs/report.md`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

/// The fields that the tables of the section with this heading list.
pub(crate) fn documented(heading: &str) -> BTreeSet<String> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let pages = ["formats.md", "report.md"];
    let texts = pages.map(|page| fs::read_to_string(docs.join(page)).unwrap_or_default());
    let text = texts.join("\n");
    let (_, section) = text
        .split_once(&format!("## {heading}\n"))
        .unwrap_or_else(|| panic!("no section '{heading}'"));
    section
        .split("\n## ")
        .next()
        .unwrap_or_default()
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split(" |").next())
        .flat_map(|cell| cell.split(", "))
        .map(|field| field.trim_matches('`').to_owned())
        .collect()
}

/// The fields of an object, and of the objects in its lists.
pub(crate) fn written(object: &Value) -> BTreeSet<String> {
    let fields = object.as_object().into_iter().flatten();
    let inner = fields
        .clone()
        .filter_map(|(_, value)| value.as_array())
        .flatten()
        .flat_map(written);
    fields
        .clone()
        .map(|(name, _)| name.clone())
        .chain(inner)
        .collect()
}

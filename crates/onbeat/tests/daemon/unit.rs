//! The units of systemd, as far as that can be had without systemd as the machine's first process;
//! tests/packages/in-sandbox.sh starts them.

use crate::prelude::*;

const UNIT: &str = include_str!("../../../../packaging/systemd/onbeat.service");
const GUARD: &str = include_str!("../../../../packaging/systemd/onbeat-guard.service");

#[test]
fn systemd_takes_the_units_and_rates_the_exposure_of_each_at_1_5_or_less() {
    let folder = tempfile::tempdir().unwrap();
    let units = [("onbeat.service", UNIT), ("onbeat-guard.service", GUARD)];
    let paths = units.map(|(name, text)| {
        let path = folder.path().join(name);
        // The program is where it will be installed; here it is somewhere else.
        let text = text.replace("/usr/bin/onbeat", env!("CARGO_BIN_EXE_onbeat"));
        fs::write(&path, text).unwrap();
        path
    });
    // In tenths.
    for (words, rated) in [
        ("verify --man=no --recursive-errors=no", 0),
        ("security --offline=true --threshold=15", 2),
    ] {
        let mut command = Command::new("systemd-analyze");
        let output = match command.args(words.split(' ')).args(&paths).output() {
            Ok(output) => output,
            Err(error) => return skip(&format!("systemd-analyze: {error}")),
        };
        let said = [stdout(&output), stderr(&output)].concat();
        assert!(output.status.success(), "{said}");
        assert_eq!(
            said.matches("Overall exposure level").count(),
            rated,
            "{said}"
        );
        assert_eq!(said.is_empty(), rated == 0, "{said}");
    }
}

use crate::tree::Fake;

#[test]
fn an_error_names_the_file_and_what_it_says() {
    for (file, text) in [
        ("scaling_min_freq", "fast"),
        ("scaling_max_freq", "0"),
        ("scaling_max_freq", "-1"),
        ("scaling_min_freq", "99999999999999999999999"),
        ("scaling_available_frequencies", "1000000 fast"),
        ("scaling_governor", "two words"),
        ("scaling_governor", ""),
        ("scaling_governor", "a_name_longer_than_any_of_the_kernel"),
    ] {
        let fake = Fake::laptop();
        fake.write(0, file, text);
        let error = fake.cpufreq().unwrap_err().to_string();
        assert!(error.contains(file), "{error}");
        assert!(error.contains(&format!("'{text}'")), "{error}");
    }
}

#[test]
fn limits_without_a_speed_between_them_are_an_error() {
    let fake = Fake::laptop();
    fake.write(0, "scaling_min_freq", "900000");
    fake.write(0, "scaling_max_freq", "950000");
    let error = fake.cpufreq().unwrap_err().to_string();
    assert!(error.contains("'900 MHz to 950 MHz'"), "{error}");
}

//! The CPUs that are online.

use std::fs;

pub fn online() -> Option<Vec<u32>> {
    list(&fs::read_to_string("/sys/devices/system/cpu/online").ok()?)
}

/// The numbers of a list such as `0-3,7`, as the kernel writes it; none if it is another text.
pub fn list(text: &str) -> Option<Vec<u32>> {
    let range = |text: &str| {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        Some(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?)
    };
    let ranges: Option<Vec<_>> = text.trim().split(',').map(range).collect();
    Some(ranges?.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_cpus_has_single_ones_and_ranges() {
        assert_eq!(list("0-2,7\n"), Some(vec![0, 1, 2, 7]));
        assert_eq!(list("7"), Some(vec![7]));
        for wrong in ["", "a", "0-", "1,,2"] {
            assert_eq!(list(wrong), None, "{wrong}");
        }
        assert!(online().is_some_and(|cpus| !cpus.is_empty()));
    }
}

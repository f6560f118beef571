//! The executable mappings of a process, from `/proc/PID/maps`, whose length the process chooses.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The most that is read of a file of maps, in bytes. A large program (10,000 mappings, names of
/// 100 bytes) has 1 MiB.
const MOST_BYTES: u64 = 4 << 20;
/// The most executable mappings of a process that are looked at. A browser has some 300.
pub(crate) const MOST_MAPPED: usize = 1024;

/// An executable mapping of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Mapped {
    begin: u64,
    end: u64,
    /// The file's device and inode, as statx(2) has them.
    device: (u32, u32),
    inode: u64,
}

impl Mapped {
    /// Its name in `/proc/PID/map_files`. A line of maps has leading zeros for an address below
    /// 4 GiB, and the name has none.
    pub(super) fn name(&self) -> String {
        format!("{:x}-{:x}", self.begin, self.end)
    }

    pub(super) fn numbers(&self) -> [u64; 5] {
        let (major, minor) = self.device;
        [self.begin, self.end, major.into(), minor.into(), self.inode]
    }

    /// The mapping with these [`numbers`](Self::numbers).
    pub(super) fn of_numbers([begin, end, major, minor, inode]: [u64; 5]) -> Option<Self> {
        Some(Self {
            begin,
            end,
            device: (major.try_into().ok()?, minor.try_into().ok()?),
            inode,
        })
    }

    /// True if it maps the file with these numbers.
    pub(super) fn is_of(&self, device: (u32, u32), inode: u64) -> bool {
        (self.device, self.inode) == (device, inode)
    }
}

/// The executable mappings of files in the beginning of `maps`, with the files' names.
pub(super) fn executable(maps: impl Read) -> Vec<(Mapped, PathBuf)> {
    let lines = BufReader::new(maps.take(MOST_BYTES)).split(b'\n');
    let lines = lines.map_while(Result::ok);
    lines
        .filter_map(|line| mapped(&line))
        .take(MOST_MAPPED)
        .collect()
}

/// The executable mapping of a file in a line, if there is one.
fn mapped(line: &[u8]) -> Option<(Mapped, PathBuf)> {
    let mut fields = line.splitn(6, u8::is_ascii_whitespace);
    let mut field = || std::str::from_utf8(fields.next()?).ok();
    let (begin, end) = field()?.split_once('-')?;
    field()?.contains('x').then_some(())?;
    let _offset = field()?;
    let (major, minor) = field()?.split_once(':')?;
    let inode = field()?.parse().ok().filter(|inode| *inode != 0)?;
    let address = |digits| u64::from_str_radix(digits, 16).ok();
    let number = |digits| u32::from_str_radix(digits, 16).ok();
    let mapped = Mapped {
        begin: address(begin)?,
        end: address(end)?,
        device: (number(major)?, number(minor)?),
        inode,
    };
    let name = OsStr::from_bytes(fields.next().unwrap_or_default().trim_ascii());
    Some((mapped, Path::new(name).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_at_a_low_address_has_its_name_without_the_zeros_of_its_line() {
        let text = "00401000-00479000 r-xp 00001000 00:02 301            /usr/bin/static\n\
                    7f0123456000-7f0123458000 r-xp 00000000 08:01 77     /lib/libc.so.6\n";
        let names: Vec<String> = executable(text.as_bytes())
            .iter()
            .map(|(mapped, _)| mapped.name())
            .collect();
        assert_eq!(names, ["401000-479000", "7f0123456000-7f0123458000"]);
    }

    #[test]
    fn a_mapping_has_its_files_numbers_and_the_name_that_it_had() {
        let line = "7f00-7f02 r-xp 00000000 103:1f 77     /opt/a name/with spaces.so";
        let (mapped, path) = executable(line.as_bytes()).pop().unwrap();
        assert!(mapped.is_of((0x103, 0x1f), 77));
        assert!(!mapped.is_of((0x103, 0x1f), 78));
        assert_eq!(path, Path::new("/opt/a name/with spaces.so"));
    }

    #[test]
    fn only_executable_mappings_of_files_are_looked_at() {
        let data = "00479000-004a1000 r--p 00079000 00:02 301 /usr/bin/static";
        let code_without_a_file = "7ffd7a5c4000-7ffd7a5c6000 r-xp 00000000 00:00 0 [vdso]";
        for line in [
            data,
            code_without_a_file,
            "",
            "x",
            "zz-zz r-xp 0 0 1",
            "1-2 r-xp \u{e9}",
        ] {
            assert_eq!(executable(line.as_bytes()), [], "{line}");
        }
    }

    #[test]
    fn of_maps_without_an_end_only_the_beginning_is_read() {
        /// Never ends, and counts what is read of it.
        struct Endless<'a>(&'a [u8], usize);

        impl Read for Endless<'_> {
            fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
                for (byte, at) in to.iter_mut().zip(self.1..) {
                    *byte = self.0[at % self.0.len()];
                }
                self.1 += to.len();
                Ok(to.len())
            }
        }
        let mut long_names = Endless(&[b'a'; 5000], 0);
        assert_eq!(executable(&mut long_names), []);
        assert_eq!(long_names.1 as u64, MOST_BYTES);
        let mut many = Endless(b"1-2 r-xp 0 0:0 5\n", 0);
        assert_eq!(executable(&mut many).len(), MOST_MAPPED);
        assert!((many.1 as u64) < MOST_BYTES);
    }
}

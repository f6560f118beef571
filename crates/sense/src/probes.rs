//! Which of libonbeat's static probes an ELF file holds, and where.
//!
//! A probe is a note of the section `.note.stapsdt`: the address of an instruction that does
//! nothing, the provider, the name, and where the arguments are. The file belongs to the user who
//! runs it, and no claim in it is believed: what is read has limits, it is read and not mapped (a
//! file that is truncated meanwhile ends early), and a site that makes no sense is passed over. The
//! kernel sets a probe in the process that maps the file alone.

use std::ffi::CStr;
use std::fs::File;
use std::io::BufReader;

use object::elf::{FileHeader64, PF_X, PT_LOAD, SHT_NOTE};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use object::{Endianness, ReadCache, ReadRef};

pub use argument::Argument;
use argument::Machine;

/// The most probes of a file, and of a process: each is a descriptor. A program has one for each
/// call in each of its sources.
pub const MOST_SITES: usize = 256;
/// The most bytes of notes that are read: a file with holes may claim what it likes. A probe's note
/// has some 70 bytes, so `MOST_SITES` have 18,000.
const MOST_NOTES_BYTES: u64 = 1 << 20;
/// The most sections of a file that are read. ELF's own field holds as many.
const MOST_SECTIONS: u32 = 1 << 16;
/// The most segments of a file that hold code. A linker makes one or two.
const MOST_SEGMENTS: usize = 128;

mod argument;

/// The provider of libonbeat's probes.
pub const PROVIDER: &str = "onbeat";

/// A call of `<onbeat/job.h>` or `<onbeat/mdn.h>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Probe {
    /// `onbeat_job_begin`.
    JobBegin,
    /// `onbeat_job_end`.
    JobEnd,
    /// `onbeat_mdn`.
    Mdn,
    /// `onbeat_realtime_start`.
    RealTimeStart,
    /// `onbeat_realtime_finish_job`.
    RealTimeFinishJob,
    /// `onbeat_realtime_exit`.
    RealTimeExit,
}

impl Probe {
    /// All there are.
    pub const ALL: [Self; 6] = [
        Self::JobBegin,
        Self::JobEnd,
        Self::Mdn,
        Self::RealTimeStart,
        Self::RealTimeFinishJob,
        Self::RealTimeExit,
    ];

    /// The probe's name in the note.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::JobBegin => "job_begin",
            Self::JobEnd => "job_end",
            Self::Mdn => "mdn",
            Self::RealTimeStart => "realtime_start",
            Self::RealTimeFinishJob => "realtime_finish_job",
            Self::RealTimeExit => "realtime_exit",
        }
    }
}

/// A place in a file where a probe stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Site {
    /// The probe.
    pub probe: Probe,
    /// The instruction's place in the file, in bytes.
    pub offset: u64,
    /// Where the first two arguments are; what is not there is 0.
    pub arguments: [Argument; 2],
}

/// How many bits of a cookie are the kind, and the first argument: cookie.h.
const KIND_BITS: u32 = 4;
const FIRST_BITS: u32 = 36;
const SECOND_BITS: u32 = 64 - KIND_BITS - FIRST_BITS;

impl Site {
    /// The data by which the program in the kernel finds the argument: `kind`, and where the
    /// arguments are. None if that does not fit.
    #[must_use]
    pub fn cookie(&self, kind: u32) -> Option<u64> {
        let [first, second] = self.arguments;
        let first = first.packed(FIRST_BITS)?;
        let second = second.packed(SECOND_BITS)?;
        (kind < 1 << KIND_BITS).then_some(())?;
        Some(u64::from(kind) | first << KIND_BITS | second << (KIND_BITS + FIRST_BITS))
    }
}

/// Where the probes stand in the file, in order, at most [`MOST_SITES`]. No site if it is no ELF
/// file of 64 bits, or damaged.
#[must_use]
pub fn in_file(file: File) -> Vec<Site> {
    in_elf(&ReadCache::new(BufReader::new(file)))
}

/// The probes in a file's bytes, as [`in_file`].
#[must_use]
pub fn in_bytes(bytes: &[u8]) -> Vec<Site> {
    in_elf(bytes)
}

fn in_elf<'data>(file: impl ReadRef<'data>) -> Vec<Site> {
    let mut sites = read(file).unwrap_or_default();
    sites.sort_unstable();
    sites.dedup();
    sites.truncate(MOST_SITES);
    sites
}

/// A part of the file that is mapped to be executed.
#[derive(Clone, Copy)]
struct Code {
    address: u64,
    offset: u64,
    size: u64,
}

/// The meaning of the addresses in notes.
struct NoteAddresses {
    code: Vec<Code>,
    /// Where the section `.stapsdt.base` is: notes say where it was when they were written.
    base: Option<u64>,
    machine: Machine,
}

fn read<'data>(file: impl ReadRef<'data>) -> object::Result<Vec<Site>> {
    let header = FileHeader64::<Endianness>::parse(file)?;
    let endian = header.endian()?;
    let mut found = Vec::new();
    let Some(machine) = Machine::of(header.e_machine(endian)) else {
        return Ok(found);
    };
    if header.shnum(endian, file)? > MOST_SECTIONS {
        return Ok(found);
    }
    let sections = header.sections(endian, file)?;
    let segments = header.program_headers(endian, file)?;
    let is_code = |segment: &&object::elf::ProgramHeader64<Endianness>| {
        segment.p_type(endian) == PT_LOAD && segment.p_flags(endian).contains(PF_X)
    };
    let code = segments.iter().filter(is_code).map(|segment| Code {
        address: segment.p_vaddr(endian),
        offset: segment.p_offset(endian),
        size: segment.p_filesz(endian),
    });
    let mut places = NoteAddresses {
        code: code.take(MOST_SEGMENTS).collect(),
        base: None,
        machine,
    };
    let mut notes_in = Vec::new();
    let mut left_bytes = MOST_NOTES_BYTES;
    for section in sections.iter() {
        let size = section.sh_size(endian);
        match sections.section_name(endian, section)? {
            b".stapsdt.base" => places.base = Some(section.sh_addr(endian)),
            b".note.stapsdt" if section.sh_type(endian) == SHT_NOTE && size <= left_bytes => {
                left_bytes -= size;
                notes_in.push(section);
            }
            _ => {}
        }
    }
    for section in notes_in {
        let Some(mut notes) = section.notes(endian, file)? else {
            continue;
        };
        while let Some(note) = notes.next()? {
            found.extend(site(note.desc(), endian, &places));
        }
    }
    Ok(found)
}

/// The content of a note: the addresses of the probe, of the base and of a semaphore; then the
/// provider, the name and the arguments, each ended by a zero.
fn site(description: &[u8], endian: Endianness, places: &NoteAddresses) -> Option<Site> {
    let (address, rest) = word(description, endian)?;
    let (base, rest) = word(rest, endian)?;
    let (_semaphore, rest) = word(rest, endian)?;
    let (provider, rest) = text(rest)?;
    let (name, rest) = text(rest)?;
    let (arguments, _) = text(rest)?;
    (provider == PROVIDER.as_bytes()).then_some(())?;
    let mut probes = Probe::ALL.into_iter();
    let probe = probes.find(|probe| probe.name().as_bytes() == name)?;
    let moved = places.base.map_or(0, |now| now.wrapping_sub(base));
    Some(Site {
        probe,
        offset: places.offset(address.wrapping_add(moved))?,
        arguments: places
            .machine
            .arguments(std::str::from_utf8(arguments).ok()?)?,
    })
}

fn word(bytes: &[u8], endian: Endianness) -> Option<(u64, &[u8])> {
    let (word, rest) = bytes.split_first_chunk()?;
    let word = match endian {
        Endianness::Little => u64::from_le_bytes(*word),
        Endianness::Big => u64::from_be_bytes(*word),
    };
    Some((word, rest))
}

fn text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = CStr::from_bytes_until_nul(bytes).ok()?.to_bytes();
    Some((text, bytes.get(text.len() + 1..)?))
}

impl NoteAddresses {
    /// Where in the file that is which is mapped at `address`, to be executed.
    fn offset(&self, address: u64) -> Option<u64> {
        let within = |code: &Code| {
            let distance = address.checked_sub(code.address)?;
            (distance < code.size).then_some(())?;
            code.offset.checked_add(distance)
        };
        self.code.iter().find_map(within)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;

    /// Where the code of a test's file is mapped, and where it is in the file.
    const ADDRESS: u64 = 0x40_1000;
    const OFFSET: u64 = 0x1000;
    const SIZE: u64 = 0x100;

    fn note_at(address: u64, provider: &str, name: &str, arguments: &str) -> Vec<u8> {
        let mut description = [address, 0, 0]
            .map(u64::to_le_bytes)
            .as_flattened()
            .to_vec();
        description.extend(format!("{provider}\0{name}\0{arguments}\0").bytes());
        let words = [8, description.len() as u32, 3].map(u32::to_le_bytes);
        let mut note = [words.as_flattened(), b"stapsdt\0", &description].concat();
        note.resize(note.len().next_multiple_of(4), 0);
        note
    }

    fn note(provider: &str, name: &str) -> Vec<u8> {
        note_at(ADDRESS, provider, name, "-8@%rdi -4@$950")
    }

    fn elf(notes: &[(&str, &str)]) -> Vec<u8> {
        let notes = notes
            .iter()
            .flat_map(|(provider, name)| note(provider, name));
        elf_of(&[notes.collect()])
    }

    /// A program with one segment of code, and `n` sections of notes.
    fn elf_of(sections: &[Vec<u8>]) -> Vec<u8> {
        const NAMES: &[u8] = b"\0.shstrtab\0.note.stapsdt\0";
        let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
        bytes.resize(64, 0);
        let half = |bytes: &mut Vec<u8>, at: usize, value: u16| {
            bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
        };
        half(&mut bytes, 16, 2);
        half(&mut bytes, 18, object::elf::EM_X86_64.0);
        half(&mut bytes, 54, 56);
        half(&mut bytes, 56, 1);
        half(&mut bytes, 58, 64);
        half(&mut bytes, 60, 2 + sections.len() as u16);
        half(&mut bytes, 62, 1);
        bytes[32] = 64;
        bytes.extend([1_u32, 5].map(u32::to_le_bytes).as_flattened());
        let segment = [OFFSET, ADDRESS, ADDRESS, SIZE, SIZE, 0x1000];
        bytes.extend(segment.map(u64::to_le_bytes).as_flattened());
        let mut headers = vec![0; 64];
        let mut add = |bytes: &mut Vec<u8>, name: u32, kind: u32, data: &[u8]| {
            headers.extend([name, kind].map(u32::to_le_bytes).as_flattened());
            let words = [0, 0, bytes.len() as u64, data.len() as u64, 0, 4, 0];
            headers.extend(words.map(u64::to_le_bytes).as_flattened());
            bytes.extend(data);
        };
        add(&mut bytes, 1, 3, NAMES);
        for notes in sections {
            add(&mut bytes, 11, SHT_NOTE.0, notes);
        }
        let at = (bytes.len() as u64).to_le_bytes();
        bytes[40..48].copy_from_slice(&at);
        bytes.extend(headers);
        bytes
    }

    fn probes_in(bytes: &[u8]) -> Vec<Probe> {
        in_bytes(bytes).iter().map(|site| site.probe).collect()
    }

    #[test]
    fn each_probe_of_the_library_is_found_once_and_those_of_others_are_not() {
        let file = elf(&[
            ("onbeat", "mdn"),
            ("libc", "setjmp"),
            ("onbeat", "job_begin"),
            ("onbeat", "mdn"),
            ("onbeat", "unheard_of"),
            ("on", "mdn"),
        ]);
        assert_eq!(probes_in(&file), [Probe::JobBegin, Probe::Mdn]);
        for probe in Probe::ALL {
            assert_eq!(probes_in(&elf(&[("onbeat", probe.name())])), [probe]);
        }
        assert_eq!(probes_in(&elf(&[])), []);
        assert_eq!(probes_in(b"\x7fELF"), []);
    }

    #[test]
    fn a_site_is_told_by_its_place_in_the_file_and_its_arguments() {
        let at = |address| note_at(address, "onbeat", "realtime_start", "-8@%rdi -4@$950");
        let expected = Site {
            probe: Probe::RealTimeStart,
            offset: OFFSET + 7,
            arguments: [
                Argument::Register {
                    place: 14,
                    size_log2: 3,
                    is_signed: true,
                },
                Argument::Constant(950),
            ],
        };
        assert_eq!(in_bytes(&elf_of(&[at(ADDRESS + 7)])), [expected]);
        assert_eq!(expected.cookie(9), Some(9 | 0xef << 4 | 1900 << 40));
        assert_eq!(expected.cookie(16), None);
        for outside in [0, ADDRESS - 1, ADDRESS + SIZE, u64::MAX] {
            assert_eq!(in_bytes(&elf_of(&[at(outside)])), []);
        }
    }

    #[test]
    fn a_file_is_read_as_its_bytes_are() {
        let mut file = tempfile::tempfile().unwrap();
        let bytes = elf(&[("onbeat", "job_end")]);
        std::io::Write::write_all(&mut file, &bytes).unwrap();
        assert_eq!(in_file(file), in_bytes(&bytes));
        assert_eq!(in_bytes(&bytes).len(), 1);
    }

    #[test]
    fn notes_are_read_up_to_a_limit_for_all_sections_together() {
        let half = |name| {
            let note = note("onbeat", name);
            note.repeat(MOST_NOTES_BYTES as usize / 2 / note.len() + 1)
        };
        let file = elf_of(&[half("job_end"), half("mdn")]);
        assert_eq!(probes_in(&file), [Probe::JobEnd]);
    }

    #[test]
    fn a_file_full_of_probes_has_no_more_of_them_than_a_program_has() {
        let notes = (0..SIZE).flat_map(|at| {
            let both = ["mdn", "job_end"];
            both.map(|name| note_at(ADDRESS + at, "onbeat", name, ""))
                .concat()
        });
        assert_eq!(in_bytes(&elf_of(&[notes.collect()])).len(), MOST_SITES);
    }

    #[test]
    fn a_file_that_claims_more_sections_than_a_program_has_is_not_read() {
        let claims = |count: u64| {
            let mut file = elf(&[("onbeat", "mdn")]);
            let at = u64::from_le_bytes(file[0x28..0x30].try_into().unwrap()) as usize;
            // The count is in the first section's size if the header says none.
            file[0x3c..0x3e].fill(0);
            file[at + 0x20..at + 0x28].copy_from_slice(&count.to_le_bytes());
            file.resize(at + count as usize * 64, 0);
            probes_in(&file)
        };
        assert_eq!(claims(u64::from(MOST_SECTIONS)), [Probe::Mdn]);
        assert_eq!(claims(u64::from(MOST_SECTIONS) + 1), []);
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            rng_seed: RngSeed::Fixed(23),
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn a_damaged_file_is_answered(at in 0_usize..600, byte: u8, cut in 0_usize..600) {
            let mut file = elf(&[("onbeat", "mdn"), ("onbeat", "job_end")]);
            let length = file.len();
            file[at % length] = byte;
            file.truncate(length - cut % length);
            let found = in_bytes(&file);
            prop_assert!(found.len() <= 2);
        }
    }
}

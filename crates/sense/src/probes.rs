//! Which of libonbeat's static probes an ELF file holds.
//!
//! A probe is a note of the section `.note.stapsdt`: the address of an instruction that does nothing, the
//! provider, the name, and where the arguments are. What is read here decides only whether the kernel
//! is asked to attach to the file, so that files without such probes cost one look, and a hostile one no
//! more than that.

use std::ffi::CStr;
use std::fs::File;
use std::io::BufReader;

use object::elf::{FileHeader64, SHT_NOTE};
use object::read::elf::{FileHeader, SectionHeader};
use object::{Endianness, ReadCache, ReadRef};

/// The provider of libonbeat's probes.
pub const PROVIDER: &str = "onbeat";

/// More notes than this no program has, and no more sections; reading them would only cost memory. A file with
/// holes may claim what it likes.
const MOST_NOTES_BYTES: u64 = 1 << 20;
const MOST_SECTIONS: u32 = 1 << 16;

/// The addresses at the head of a note's description: of the probe, of a base, of its semaphore.
const ADDRESSES: usize = 3 * 8;

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

/// The probes in the file, each once, in order. No probe if it is no ELF file of 64 bits, or damaged.
#[must_use]
pub fn in_file(file: File) -> Vec<Probe> {
    in_elf(&ReadCache::new(BufReader::new(file)))
}

/// The probes in a file's bytes, as [`in_file`].
#[must_use]
pub fn in_bytes(bytes: &[u8]) -> Vec<Probe> {
    in_elf(bytes)
}

fn in_elf<'data>(file: impl ReadRef<'data>) -> Vec<Probe> {
    let mut probes = read(file).unwrap_or_default();
    probes.sort_unstable();
    probes.dedup();
    probes
}

fn read<'data>(file: impl ReadRef<'data>) -> object::Result<Vec<Probe>> {
    let header = FileHeader64::<Endianness>::parse(file)?;
    let endian = header.endian()?;
    let mut found = Vec::new();
    if header.shnum(endian, file)? > MOST_SECTIONS {
        return Ok(found);
    }
    let sections = header.sections(endian, file)?;
    let mut left_bytes = MOST_NOTES_BYTES;
    for section in sections.iter() {
        let size = section.sh_size(endian);
        if section.sh_type(endian) != SHT_NOTE
            || size > left_bytes
            || sections.section_name(endian, section)? != b".note.stapsdt"
        {
            continue;
        }
        left_bytes -= size;
        let Some(mut notes) = section.notes(endian, file)? else {
            continue;
        };
        while let Some(note) = notes.next()? {
            found.extend(note.desc().get(ADDRESSES..).and_then(probe));
        }
    }
    Ok(found)
}

/// The probe that a provider and a name, each ended by a zero, speak of.
fn probe(text: &[u8]) -> Option<Probe> {
    let provider = CStr::from_bytes_until_nul(text).ok()?;
    let rest = text.get(provider.count_bytes() + 1..)?;
    let name = CStr::from_bytes_until_nul(rest).ok()?;
    (provider.to_bytes() == PROVIDER.as_bytes()).then_some(())?;
    Probe::ALL
        .into_iter()
        .find(|probe| probe.name().as_bytes() == name.to_bytes())
}

#[cfg(test)]
mod tests {
    use object::write::{Object, SectionKind};
    use object::{Architecture, BinaryFormat, Endianness};
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;

    fn note(provider: &str, name: &str) -> Vec<u8> {
        let mut description = vec![0; ADDRESSES];
        description.extend(format!("{provider}\0{name}\0-8@%rdi\0").bytes());
        let words = [8, description.len() as u32, 3].map(u32::to_le_bytes);
        let mut note = [words.as_flattened(), b"stapsdt\0", &description].concat();
        note.resize(note.len().next_multiple_of(4), 0);
        note
    }

    fn elf(notes: &[(&str, &str)]) -> Vec<u8> {
        let notes = notes
            .iter()
            .flat_map(|(provider, name)| note(provider, name));
        elf_of(&[notes.collect()])
    }

    /// With so many sections of notes.
    fn elf_of(sections: &[Vec<u8>]) -> Vec<u8> {
        let mut file = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
        for notes in sections {
            let name = b".note.stapsdt".to_vec();
            let section = file.add_section(Vec::new(), name, SectionKind::Note);
            file.append_section_data(section, notes, 4);
        }
        file.write().unwrap()
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
        assert_eq!(in_bytes(&file), [Probe::JobBegin, Probe::Mdn]);
        for probe in Probe::ALL {
            assert_eq!(in_bytes(&elf(&[("onbeat", probe.name())])), [probe]);
        }
        assert_eq!(in_bytes(&elf(&[])), []);
        assert_eq!(in_bytes(b"\x7fELF"), []);
    }

    #[test]
    fn a_file_is_read_as_its_bytes_are() {
        let mut file = tempfile::tempfile().unwrap();
        let bytes = elf(&[("onbeat", "job_end")]);
        std::io::Write::write_all(&mut file, &bytes).unwrap();
        assert_eq!(in_file(file), [Probe::JobEnd]);
    }

    #[test]
    fn notes_are_read_up_to_a_limit_for_all_sections_together() {
        let half = |name| {
            let note = note("onbeat", name);
            note.repeat(MOST_NOTES_BYTES as usize / 2 / note.len() + 1)
        };
        let file = elf_of(&[half("job_end"), half("mdn")]);
        assert_eq!(in_bytes(&file), [Probe::JobEnd]);
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
            in_bytes(&file)
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

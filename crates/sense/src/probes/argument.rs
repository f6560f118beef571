//! Where a probe's argument is: in a register, or known when the program was compiled. libonbeat's
//! header asks its compiler for these two (`ONBEAT_PROBE_ARGUMENTS`), so that an argument is a part
//! of a probe's cookie, and nothing of it is kept for all programs together.

use object::elf::{self, EM_AARCH64, EM_X86_64};

/// Where an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Argument {
    /// It is this.
    Constant(i64),
    /// In a register.
    Register {
        /// Its place among the registers that the kernel saves (`struct pt_regs`), in words of 64
        /// bits.
        place: u8,
        /// How many of its bytes are the argument, as a power of two: 0 to 3.
        size_log2: u8,
        /// The argument has a sign.
        is_signed: bool,
    },
}

impl Argument {
    /// Whether there is such a register.
    pub(crate) const fn is_register(place: u8, size_log2: u8) -> bool {
        place <= ARM_STACK && size_log2 <= 3
    }

    /// The number of bits: the lowest says whether it is a register (cookie.h). None if it does not
    /// fit.
    pub(super) fn packed(self, bits: u32) -> Option<u64> {
        let word = match self {
            Self::Constant(value) => {
                let unused = 65 - bits;
                (value << unused >> unused == value).then_some(value.cast_unsigned() << 1)?
            }
            Self::Register {
                place,
                size_log2,
                is_signed,
            } => {
                let (place, size) = (u64::from(place), u64::from(size_log2));
                1 | size << 1 | u64::from(is_signed) << 3 | place << 4
            }
        };
        Some(word & (u64::MAX >> (64 - bits)))
    }
}

/// The machine of the registers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Machine {
    X86,
    Arm,
}

/// In the order of the kernel's `struct pt_regs`, each with its names of 64, 32, 16 and 8 bits.
/// Five are no registers of a program's.
const X86: [[&str; 4]; 20] = [
    ["r15", "r15d", "r15w", "r15b"],
    ["r14", "r14d", "r14w", "r14b"],
    ["r13", "r13d", "r13w", "r13b"],
    ["r12", "r12d", "r12w", "r12b"],
    ["rbp", "ebp", "bp", "bpl"],
    ["rbx", "ebx", "bx", "bl"],
    ["r11", "r11d", "r11w", "r11b"],
    ["r10", "r10d", "r10w", "r10b"],
    ["r9", "r9d", "r9w", "r9b"],
    ["r8", "r8d", "r8w", "r8b"],
    ["rax", "eax", "ax", "al"],
    ["rcx", "ecx", "cx", "cl"],
    ["rdx", "edx", "dx", "dl"],
    ["rsi", "esi", "si", "sil"],
    ["rdi", "edi", "di", "dil"],
    [""; 4],
    [""; 4],
    [""; 4],
    [""; 4],
    ["rsp", "esp", "sp", "spl"],
];

/// The stack pointer's place; before it are x0 to x30.
const ARM_STACK: u8 = 31;

impl Machine {
    /// By the number in an ELF file's header.
    pub(super) const fn of(number: elf::Machine) -> Option<Self> {
        match number {
            EM_X86_64 => Some(Self::X86),
            EM_AARCH64 => Some(Self::Arm),
            _ => None,
        }
    }

    /// The first two of the arguments of a note, such as `-8@%rdi -4@$950`.
    pub(super) fn arguments(self, text: &str) -> Option<[Argument; 2]> {
        let mut arguments = [Argument::Constant(0); 2];
        for (argument, word) in arguments.iter_mut().zip(text.split_ascii_whitespace()) {
            *argument = self.argument(word)?;
        }
        Some(arguments)
    }

    fn argument(self, word: &str) -> Option<Argument> {
        let (size, place) = word.split_once('@')?;
        let size: i8 = size.parse().ok()?;
        let size_log2 = match size.unsigned_abs() {
            1 => 0,
            2 => 1,
            4 => 2,
            8 => 3,
            _ => return None,
        };
        if let Some(constant) = self.constant(place) {
            return constant.parse().ok().map(Argument::Constant);
        }
        Some(Argument::Register {
            place: self.register(place)?,
            size_log2,
            is_signed: size < 0,
        })
    }

    fn constant(self, place: &str) -> Option<&str> {
        match self {
            Self::X86 => place.strip_prefix('$'),
            Self::Arm => {
                let is_number = |first: char| first == '-' || first.is_ascii_digit();
                place.starts_with(is_number).then_some(place)
            }
        }
    }

    fn register(self, name: &str) -> Option<u8> {
        match self {
            Self::X86 => {
                let name = name.strip_prefix('%').filter(|name| !name.is_empty())?;
                let place = X86.iter().position(|names| names.contains(&name))?;
                u8::try_from(place).ok()
            }
            Self::Arm if name == "sp" => Some(ARM_STACK),
            Self::Arm => {
                let number: u8 = name.strip_prefix(['x', 'w'])?.parse().ok()?;
                (number < ARM_STACK).then_some(number)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn register(place: u8, size_log2: u8, is_signed: bool) -> Argument {
        Argument::Register {
            place,
            size_log2,
            is_signed,
        }
    }

    #[test]
    fn an_argument_is_a_constant_or_in_a_register() {
        let x86 = Machine::X86.arguments("-8@%rdi -4@$950");
        let expected = [register(14, 3, true), Argument::Constant(950)];
        assert_eq!(x86, Some(expected));
        let arm = Machine::Arm.arguments("-8@40000000 4@w1 8@x2");
        let expected = [Argument::Constant(40_000_000), register(1, 2, false)];
        assert_eq!(arm, Some(expected));
        let none = Some([Argument::Constant(0); 2]);
        assert_eq!(Machine::X86.arguments(""), none);
    }

    #[test]
    fn what_is_elsewhere_is_no_argument() {
        let elsewhere = ["8@-8(%rbp)", "8@%", "8@%rip", "3@%rdi", "8", "@", "8@$"];
        let odd = ["-129@%rdi", "8@$99999999999999999999"];
        for text in elsewhere.into_iter().chain(odd) {
            assert_eq!(Machine::X86.arguments(text), None, "{text}");
        }
        for text in ["8@[sp, 16]", "8@x31", "8@x", "8@%rdi", "8@w-1"] {
            assert_eq!(Machine::Arm.arguments(text), None, "{text}");
        }
    }

    #[test]
    fn an_argument_fits_its_bits_or_is_refused() {
        let constant = |value| Argument::Constant(value).packed(24);
        assert_eq!(constant((1 << 22) - 1), Some((1 << 23) - 2));
        assert_eq!(constant(-1), Some((1 << 24) - 2));
        assert_eq!(constant(1 << 22), None);
        assert_eq!(constant(-(1 << 22) - 1), None);
        assert_eq!(constant(i64::MIN), None);
        assert_eq!(register(14, 2, true).packed(24), Some(0b0_1110_1101));
    }
}

//! The CPUs a task may run on: the kernel reserves only for tasks that may run on all of their root
//! domain.

use std::fmt;
use std::io;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Affinity {
    cpus: Vec<u32>,
}

/// Bytes of the mask that is asked for: room for 8192 CPUs, the most the kernel can be built for.
const MASK_BYTES: usize = 1024;

impl Affinity {
    /// The CPUs that the task `tid` may run on; 0 is the calling thread.
    /// Fails with `ESRCH` if there is no such task.
    pub fn of(tid: u32) -> io::Result<Self> {
        let mut mask = [0_usize; MASK_BYTES / size_of::<usize>()];
        // SAFETY: the kernel writes at most MASK_BYTES bytes into `mask`, which has as many.
        let written = unsafe {
            libc::syscall(
                libc::SYS_sched_getaffinity,
                tid,
                MASK_BYTES,
                mask.as_mut_ptr(),
            )
        };
        if written < 0 {
            return Err(io::Error::last_os_error());
        }
        let cpus = mask
            .iter()
            .enumerate()
            .flat_map(|(index, &word)| {
                (0..usize::BITS)
                    .filter(move |bit| word & (1 << bit) != 0)
                    .map(move |bit| index as u32 * usize::BITS + bit)
            })
            .collect();
        Ok(Self { cpus })
    }

    #[must_use]
    pub fn count(&self) -> u32 {
        self.cpus.len() as u32
    }
}

impl fmt::Display for Affinity {
    /// As the kernel lists CPUs: `0-3,6`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = self.cpus.chunk_by(|&a, &b| b == a + 1);
        for (index, run) in runs.enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            match run {
                [first, .., last] => write!(f, "{first}-{last}")?,
                [only] => write!(f, "{only}")?,
                [] => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_cpus_reads_as_the_kernel_lists_it() {
        let affinity = Affinity {
            cpus: vec![0, 1, 2, 3, 6, 64, 65],
        };
        assert_eq!(affinity.to_string(), "0-3,6,64-65");
    }
}

//! The frames of the workload of the paper on missed deadline notification, number for number as
//! `experiments/workloads/srtgen.c` computes them: so a live run and a simulated one have the same
//! jobs.

use onbeat_model::Span;

/// The demands of the frames of a group of pictures (IBBPBBPBBPBB), in permille of their mean.
const GROUP: [i64; 12] = [
    1300, 906, 906, 1150, 906, 906, 1150, 907, 906, 1150, 907, 906,
];
const OWN_DEVIATION: i64 = 80;
const SCENE_DEVIATION: i64 = 60;
const SHORTEST_SCENE: u64 = 24;
const LONGEST_SCENE: u64 = 72;

/// A film: scenes that are harder or easier than the mean; each hard one is followed by one as long
/// and as easy, or the other way round.
#[derive(Clone, Debug)]
pub struct Film {
    random: u64,
    variation: i64,
    frame: usize,
    scene: i64,
    left: u64,
    length: u64,
    is_second: bool,
}

impl Film {
    pub const fn of_seed(seed: u64) -> Self {
        Self {
            random: seed,
            variation: 1000,
            frame: 0,
            scene: 0,
            left: 0,
            length: 0,
            is_second: false,
        }
    }

    /// With so much variation, in permille of a decoder's: 0 makes all frames alike.
    pub fn varied(mut self, permille: u32) -> Self {
        self.variation = permille.into();
        self
    }

    /// splitmix64 (S. Vigna).
    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = self.random;
        let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn normal(&mut self, deviation: i64) -> i64 {
        let sum: u64 = (0..12).map(|_| self.random() % 1001).sum();
        (sum as i64 - 6000) * deviation / 1000
    }

    pub(super) fn next(&mut self, mean: Span) -> Span {
        let kind = GROUP[self.frame % GROUP.len()] - 1000;
        self.frame += 1;
        if self.left == 0 {
            if self.is_second {
                self.scene = -self.scene;
            } else {
                self.scene = self.normal(SCENE_DEVIATION);
                self.length = SHORTEST_SCENE + self.random() % (LONGEST_SCENE - SHORTEST_SCENE);
            }
            self.is_second = !self.is_second;
            self.left = self.length;
        }
        self.left -= 1;
        let own = self.normal(OWN_DEVIATION);
        let varied = |permille: i64| 1000 + permille * self.variation / 1000;
        let demand = varied(kind) * varied(self.scene) / 1000 * varied(own) / 1000;
        let permille = u64::try_from(demand.max(100)).unwrap_or(100);
        Span::from_ns(mean.as_ns() * permille / 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_frames_are_those_that_srtgen_prints() {
        // srtgen print=100 share=500 seed=1: the first twelve, and those from the 97th on.
        let printed = [
            26_740_000, 20_520_000, 19_440_000, 22_520_000, 18_620_000, 16_420_000, 26_840_000,
            16_880_000, 15_840_000, 21_740_000, 20_100_000, 18_200_000,
        ];
        let mut film = Film::of_seed(1);
        let frames: Vec<u64> = (0..100)
            .map(|_| film.next(Span::from_ms(20)).as_ns())
            .collect();
        assert_eq!(frames[..12], printed);
    }
}

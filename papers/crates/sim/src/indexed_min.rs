//! The least of a fixed number of keys that change one at a time: found at once, kept in a
//! logarithm of their number. With hundreds of CPUs, looking at each of them for every event would
//! be all that is done.

/// A tournament: every node of a binary tree holds the number of the least key below it, of equals
/// the first.
#[derive(Debug, Default)]
pub(crate) struct Least<K> {
    keys: Vec<K>,
    /// The leaves are the second half; a node's children are at twice its place.
    winners: Vec<usize>,
}

impl<K: Ord + Copy> Least<K> {
    pub(crate) fn new(count: usize, key: K) -> Self {
        let count = count.max(1);
        let leaves = count.next_power_of_two();
        let mut least = Self {
            keys: vec![key; count],
            winners: (0..2 * leaves)
                .map(|node| node.saturating_sub(leaves))
                .collect(),
        };
        for node in (1..leaves).rev() {
            least.play(node);
        }
        least
    }

    pub(crate) fn first(&self) -> (usize, K) {
        let winner = self.winners[1];
        (winner, self.keys[winner])
    }

    pub(crate) fn set(&mut self, number: usize, key: K) {
        self.keys[number] = key;
        let mut node = (number + self.winners.len() / 2) / 2;
        while node > 0 {
            self.play(node);
            node /= 2;
        }
    }

    fn play(&mut self, node: usize) {
        let (left, right) = (self.winners[2 * node], self.winners[2 * node + 1]);
        // The leaves behind the last key have none, and lose.
        let right_wins = self
            .keys
            .get(right)
            .is_some_and(|right| self.keys.get(left).is_none_or(|left| right < left));
        self.winners[node] = if right_wins { right } else { left };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(crate::tests::same_cases())]

        #[test]
        fn it_is_the_first_that_a_search_finds(
            count in 1..9_usize,
            changes in prop::collection::vec((0..8_usize, 0..5_u8), 0..40),
        ) {
            let mut keys = vec![2; count];
            let mut least = Least::new(count, 2);
            for (number, key) in changes {
                keys[number % count] = key;
                least.set(number % count, key);
                let found = (0..count).min_by_key(|&number| keys[number]).unwrap();
                prop_assert_eq!(least.first(), (found, keys[found]));
            }
        }
    }
}

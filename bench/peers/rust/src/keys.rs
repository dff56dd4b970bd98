//! The keys of bench/keys.c, byte for byte, and its random numbers.

use std::time::Duration;

const LEN: usize = 20;
const STRIDE: usize = 32;
const SEED: u64 = 88172645463325252;

fn random(state: &mut u64) -> u64 {
    let mut x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    x.wrapping_mul(0x2545F4914F6CDD1D)
}

/// All keys lie in one piece of memory.
pub struct Keys(String);

impl Keys {
    pub fn first(n: usize) -> Keys {
        Keys::numbered((0..n).map(|i| i as u64))
    }

    pub fn shuffled(n: usize) -> Keys {
        Keys::numbered(random_order(n).into_iter().map(u64::from))
    }

    fn numbered(numbers: impl ExactSizeIterator<Item = u64>) -> Keys {
        let mut text = String::with_capacity(numbers.len() * STRIDE);
        for i in numbers {
            let scattered = i % 1_000_000_000 * 387_420_489 % 1_000_000_000;
            text += &format!(
                "{:<STRIDE$}",
                format!("ns-{:03}/pod-{scattered:09}", i % 1000)
            );
        }
        Keys(text)
    }

    pub fn at(&self, i: usize) -> &str {
        &self.0[i * STRIDE..i * STRIDE + LEN]
    }
}

/// 0 to n - 1 in random order.
pub fn random_order(n: usize) -> Vec<u32> {
    let mut order = vec![0; n];
    let mut state = SEED;
    for i in 0..n {
        let j = (random(&mut state) % (i as u64 + 1)) as usize;
        order[i] = order[j];
        order[j] = i as u32;
    }
    order
}

/// n spans, from `low` to below `high`.
pub fn spans(n: usize, low: Duration, high: Duration) -> Vec<Duration> {
    let (low, high) = (low.as_nanos() as u64, high.as_nanos() as u64);
    let mut state = SEED;
    (0..n)
        .map(|_| Duration::from_nanos(low + random(&mut state) % (high - low)))
        .collect()
}

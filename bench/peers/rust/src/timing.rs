//! How bench/slices.c times the work of one thread, and what rows run on.

use crate::Size;
use std::time::Instant;

/// The runtime of one thread: nothing here is shared, and it has the least to do.
pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime")
}

/// Nanoseconds for each of n operations.
pub fn ns_each(start: Instant, n: usize) -> f64 {
    start.elapsed().as_nanos() as f64 / n as f64
}

/// The value below which the part p of the samples lies, as bench_percentile() has it.
pub fn percentile(samples: &mut [f64], p: f64) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[((samples.len() as f64 * p) as usize).min(samples.len() - 1)]
}

pub fn low(samples: &mut [f64]) -> f64 {
    percentile(samples, 0.05)
}

/// Slices of so many operations, each after a part that warms the caches.
pub fn in_slices(size: &Size, ops: usize, mut run: impl FnMut(usize)) -> f64 {
    let ops = (ops / size.slice_parts).max(1);
    let mut took: Vec<f64> = (0..size.slices)
        .map(|_| {
            run(ops / 2);
            let start = Instant::now();
            run(ops);
            ns_each(start, ops)
        })
        .collect();
    low(&mut took)
}

/// A course of n, as often as so few may be measured.
pub fn courses(size: &Size, n: usize, mut run: impl FnMut(usize) -> f64) -> f64 {
    let n = size.count(n);
    let mut took: Vec<f64> = (0..size.times(n)).map(|_| run(n)).collect();
    low(&mut took)
}

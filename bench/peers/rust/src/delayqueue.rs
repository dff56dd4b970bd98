//! tokio-util's DelayQueue: the rows of timers, those of bench/wheel.c.

use crate::keys::{random_order, spans};
use crate::timing::{courses, ns_each, runtime};
use crate::{COUNTS, Group, check, group};
use std::future::poll_fn;
use std::thread::sleep;
use std::time::{Duration, Instant};
use tokio_util::time::delay_queue::{DelayQueue, Key};

const SOON: Duration = Duration::from_millis(10);

pub fn groups() -> Vec<Group> {
    let rows = [
        ("wheel_insert", "ns"),
        ("wheel_cancel", "ns"),
        ("wheel_expire", "ns"),
    ];
    let mut list = vec![group(&rows, |size| {
        let (insert, cancel) = runtime().block_on(insert_and_cancel(size.keys));
        vec![insert, cancel, runtime().block_on(expire(size.keys))]
    })];
    for n in COUNTS {
        list.push(group(
            &[(&format!("wheel_insert@{n}"), "ns")],
            move |size| {
                vec![courses(size, n, |n| {
                    runtime().block_on(insert_and_cancel(n)).0
                })]
            },
        ));
    }
    list
}

/// Their times count from one reading of the clock; insert() would take one for each.
fn insert(queue: &mut DelayQueue<usize>, delays: &[Duration], keys: &mut Vec<Key>) {
    let base = tokio::time::Instant::now();
    for (i, delay) in delays.iter().enumerate() {
        keys.push(queue.insert_at(i, base + *delay));
    }
}

async fn insert_and_cancel(n: usize) -> (f64, f64) {
    let delays = spans(n, Duration::from_secs(1), Duration::from_secs(60));
    let order = random_order(n);
    let mut keys = Vec::with_capacity(n);
    let start = Instant::now();
    let mut queue = DelayQueue::new();
    insert(&mut queue, &delays, &mut keys);
    let inserted = ns_each(start, n);
    let shuffled: Vec<Key> = order.into_iter().map(|i| keys[i as usize]).collect();
    let start = Instant::now();
    for key in &shuffled {
        queue.remove(key);
    }
    let cancelled = ns_each(start, n);
    check(queue.is_empty(), "timers: some are left");
    (inserted, cancelled)
}

/// All are due before the first is asked for.
async fn expire(n: usize) -> f64 {
    let delays = spans(n, Duration::from_nanos(1), SOON);
    let mut queue = DelayQueue::new();
    insert(&mut queue, &delays, &mut Vec::with_capacity(n));
    sleep(2 * SOON);
    let start = Instant::now();
    let mut fired = 0;
    while poll_fn(|cx| queue.poll_expired(cx)).await.is_some() {
        fired += 1;
    }
    let took = ns_each(start, n);
    check(fired == n, "timers: not all fired");
    took
}

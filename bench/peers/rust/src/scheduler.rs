//! kube-rs's scheduler: a stream of requests in, a stream of messages out, each once and at
//! its time. Its table and its DelayQueue belong to one task.
//!
//! In line is what is due and has not been taken. A request that is dated before the
//! scheduler's own beginning is due at once; one that is dated now waits for the next
//! millisecond.

use crate::keys::{Keys, spans};
use crate::timing::{courses, in_slices, ns_each, percentile, runtime};
use crate::{COUNTS, Group, Size, check, fail, group};
use futures::{Stream, StreamExt, stream};
use kube_runtime::scheduler::{ScheduleRequest, Scheduler, scheduler};
use std::cell::Cell;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::thread::sleep;
use std::time::Duration;
use tokio::time::{Instant, timeout};

const CYCLE_KEYS: usize = 1024;
const CYCLES_1M: usize = 5000; // in a slice

pub fn groups() -> Vec<Group> {
    let cycle_1m = |size: &Size, n| cycle(size, n, n + n.min(spare(size)), CYCLES_1M);
    let mut list = vec![
        group(&[("cycle_empty", "ns")], |size| {
            vec![cycle(size, 0, CYCLE_KEYS, 20_000)]
        }),
        group(&[("cycle_1m", "ns")], move |size| {
            vec![cycle_1m(size, size.keys)]
        }),
        group(&[("dup_hot", "ns")], |size| {
            vec![duplicates(size, 1, 50_000)]
        }),
        group(&[("dup_1m", "ns")], |size| {
            vec![duplicates(size, size.keys, 8_000)]
        }),
        group(&[("bulk_add", "ns"), ("bulk_get_done", "ns")], bulk),
        group(&[("add_after", "ns")], |size| vec![add_after(size.keys)]),
        group(&[("fire_burst", "ms")], |size| {
            vec![runtime().block_on(fire_burst(size.keys))]
        }),
        group(&[("late_p50", "ns"), ("late_p99", "ns")], |size| {
            runtime().block_on(late(size))
        }),
    ];
    for n in COUNTS {
        list.push(group(&[(&format!("cycle@{n}"), "ns")], move |size| {
            vec![cycle_1m(size, size.count(n))]
        }));
        list.push(group(&[(&format!("add_after@{n}"), "ns")], move |size| {
            vec![courses(size, n, add_after)]
        }));
    }
    list
}

/// Keys beside those in line: no more than all slices use up.
fn spare(size: &Size) -> usize {
    size.slices * CYCLES_1M * 2
}

/// Requests come straight from here, without a channel, as those of a watcher do.
fn requests<'a, F>(
    left: &'a Cell<usize>,
    mut next: F,
) -> impl Stream<Item = ScheduleRequest<&'a str>>
where
    F: FnMut() -> ScheduleRequest<&'a str>,
{
    stream::poll_fn(move |_| match left.get() {
        0 => Poll::Pending,
        n => {
            left.set(n - 1);
            Poll::Ready(Some(next()))
        }
    })
}

/// Work that never sleeps, in the runtime that the queue asks for.
fn at_once<T>(mut work: impl FnMut(&mut Context<'_>) -> T) -> T {
    runtime().block_on(poll_fn(move |cx| Poll::Ready(work(cx))))
}

fn take<'a, R>(s: Pin<&mut Scheduler<&'a str, R>>, cx: &mut Context<'_>) -> &'a str
where
    R: Stream<Item = ScheduleRequest<&'a str>>,
{
    match s.poll_next(cx) {
        Poll::Ready(Some(key)) => key,
        _ => fail("a key was lost"),
    }
}

/// The numbers 0 to span - 1, then again and again those from `from` on.
fn in_turn(from: usize, span: usize) -> impl FnMut() -> usize {
    let mut next = 0;
    move || {
        let at = next;
        next = if at + 1 == span { from } else { at + 1 };
        at
    }
}

/// A key in, a key out; `others` are in line all the time. The last in line comes out first,
/// so that they stay there.
fn cycle(size: &Size, others: usize, span: usize, ops: usize) -> f64 {
    let keys = Keys::first(span);
    let left = Cell::new(others + 1);
    at_once(|cx| {
        let run_at = Instant::now();
        let mut number = in_turn(others, span);
        let mut s = pin!(scheduler(requests(&left, || ScheduleRequest {
            message: keys.at(number()),
            run_at
        })));
        take(s.as_mut(), cx);
        let ns = in_slices(size, ops, |n| {
            for _ in 0..n {
                left.set(1);
                take(s.as_mut(), cx);
            }
        });
        for _ in 0..others {
            take(s.as_mut(), cx);
        }
        check(
            s.poll_next(cx).is_pending(),
            "cycle: there are more keys than went in",
        );
        ns
    })
}

/// Keys that are held, as a controller holds what is due while all of its workers are busy.
fn duplicates(size: &Size, nkeys: usize, ops: usize) -> f64 {
    let keys = Keys::shuffled(nkeys);
    let left = Cell::new(nkeys);
    at_once(|cx| {
        let run_at = Instant::now();
        let mut number = in_turn(0, nkeys);
        let mut s = pin!(scheduler(requests(&left, || ScheduleRequest {
            message: keys.at(number()),
            run_at
        })));
        let mut take_in = |n| {
            left.set(n);
            check(
                s.as_mut().hold().poll_next_unpin(cx).is_pending(),
                "dup: the stream has ended",
            );
        };
        take_in(nkeys);
        let ns = in_slices(size, ops, take_in);
        let held = Cell::new(0);
        let look = |_: &&str| {
            held.set(held.get() + 1);
            false
        };
        let out = s.as_mut().hold_unless(look).poll_next_unpin(cx);
        check(
            out.is_pending() && held.get() == nkeys,
            "dup: a key did not merge",
        );
        ns
    })
}

/// One poll takes all requests in, and the first key out.
fn bulk(size: &Size) -> Vec<f64> {
    let n = size.keys;
    let keys = Keys::first(n);
    let left = Cell::new(n);
    at_once(|cx| {
        let run_at = Instant::now();
        let mut number = in_turn(0, n);
        let start = std::time::Instant::now();
        let mut s = pin!(scheduler(requests(&left, || ScheduleRequest {
            message: keys.at(number()),
            run_at
        })));
        take(s.as_mut(), cx);
        let added = ns_each(start, n);
        let start = std::time::Instant::now();
        for _ in 1..n {
            take(s.as_mut(), cx);
        }
        let got = ns_each(start, n);
        check(s.poll_next(cx).is_pending(), "bulk: keys are left");
        vec![added, got]
    })
}

fn add_after(n: usize) -> f64 {
    let keys = Keys::first(n);
    let delays = spans(n, Duration::from_secs(1), Duration::from_secs(60));
    let left = Cell::new(n);
    at_once(|cx| {
        let mut number = in_turn(0, n);
        let start = std::time::Instant::now();
        let mut s = pin!(scheduler(requests(&left, || {
            let i = number();
            ScheduleRequest {
                message: keys.at(i),
                run_at: Instant::now() + delays[i],
            }
        })));
        check(
            s.as_mut().poll_next(cx).is_pending(),
            "add_after: a key does not wait",
        );
        let took = ns_each(start, n);
        check(left.get() == 0, "add_after: requests are left");
        took
    })
}

/// The instant lies far enough away for all keys to be there before it. Time runs when it has
/// passed, so that the millisecond to which it is rounded up is not in it.
async fn fire_burst(n: usize) -> f64 {
    let keys = Keys::first(n);
    let mut ahead = n as u32 * Duration::from_micros(2);
    loop {
        check(
            ahead < Duration::from_secs(60),
            "burst: the keys cannot be added in time",
        );
        let due = Instant::now() + ahead;
        let left = Cell::new(n);
        let mut number = in_turn(0, n);
        let mut s = pin!(scheduler(requests(&left, || ScheduleRequest {
            message: keys.at(number()),
            run_at: due
        })));
        let early = poll_fn(|cx| Poll::Ready(s.as_mut().poll_next(cx).is_ready())).await;
        if Instant::now() >= due {
            ahead *= 2;
            continue;
        }
        check(!early, "burst: a key does not wait");
        sleep(due - Instant::now() + Duration::from_millis(2));
        let start = std::time::Instant::now();
        let got = timeout(Duration::from_secs(60), s.as_mut().take(n).count()).await;
        check(got == Ok(n), "burst: keys were lost");
        return start.elapsed().as_secs_f64() * 1e3;
    }
}

/// A key every 100 µs, from its time to its coming out.
async fn late(size: &Size) -> Vec<f64> {
    const BLOCK: u32 = 100;
    const PERIOD: Duration = Duration::from_micros(100);
    const LATE_KEYS: usize = 1024;
    let keys = Keys::first(LATE_KEYS);
    let mut number = in_turn(0, LATE_KEYS);
    let left = Cell::new(0);
    let due = Cell::new(Instant::now());
    let mut s = pin!(scheduler(requests(&left, || ScheduleRequest {
        message: keys.at(number()),
        run_at: due.get()
    })));
    let mut took = Vec::new();
    for _ in 0..size.late_blocks {
        let start = Instant::now();
        for i in 1..=BLOCK {
            due.set(start + i * PERIOD);
            left.set(1);
            check(s.next().await.is_some(), "late: the stream has ended");
            let now = Instant::now();
            check(now >= due.get(), "late: early");
            took.push((now - due.get()).as_nanos() as f64);
        }
    }
    vec![percentile(&mut took, 0.5), percentile(&mut took, 0.99)]
}

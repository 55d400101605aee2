//! Models of the hand-off, which loom runs through every interleaving of a few threads.
//!
//! `make test-loom` runs these models. A task's content is in loom's `UnsafeCell`,
//! which fails the model where two threads can use the content at once.

use loom::cell::UnsafeCell;
use loom::model;
use loom::thread::spawn;

use super::gate::Gate;
use super::ring::Ring;
use std::sync::Arc;

use super::sync::{AtomicUsize, Ordering};
use super::{Claim, Exchange, Task};

/// A task that counts how often it was run.
struct Counted(UnsafeCell<usize>);

// SAFETY: loom checks that one thread at a time uses the content.
unsafe impl Sync for Counted {}

impl Counted {
    fn new() -> Arc<Self> {
        Arc::new(Counted(UnsafeCell::new(0)))
    }

    fn count(&self) -> usize {
        // SAFETY: loom checks that one thread at a time uses the content.
        self.0.with(|count| unsafe { *count })
    }
}

impl Task for Counted {
    fn run(&self) -> bool {
        // SAFETY: loom checks that one thread at a time uses the content.
        self.0.with_mut(|count| unsafe { *count += 1 });
        true
    }
}

#[test]
fn each_number_leaves_the_ring_once_and_behind_what_was_written_before_it() {
    model(|| {
        let ring = Arc::new(Ring::new(2));
        let written = Arc::new([Counted(UnsafeCell::new(0)), Counted(UnsafeCell::new(0))]);
        let putters: Vec<_> = (0..2)
            .map(|k| {
                let (ring, written) = (ring.clone(), written.clone());
                spawn(move || {
                    written[k].run();
                    assert!(ring.push(k));
                })
            })
            .collect();
        let mut sum = 0;
        for _ in 0..2 {
            let number = loop {
                match ring.pop() {
                    Some(number) => break number,
                    None => loom::thread::yield_now(),
                }
            };
            assert_eq!(written[number].count(), 1);
            sum += number + 1;
        }
        assert_eq!(sum, 3);
        assert!(!ring.has_some());
        putters.into_iter().for_each(|putter| putter.join().unwrap());
    });
}

#[test]
fn two_takers_never_take_the_same_number_as_the_ring_goes_round() {
    model(|| {
        let ring = Arc::new(Ring::new(2));
        assert!(ring.push(1) && ring.push(2) && !ring.push(9));
        let takers: Vec<_> = (0..2)
            .map(|_| {
                let ring = ring.clone();
                spawn(move || ring.pop())
            })
            .collect();
        let again = ring.push(4);
        let mut taken: Vec<usize> = takers.into_iter().filter_map(|taker| taker.join().unwrap()).collect();
        while let Some(number) = ring.pop() {
            taken.push(number);
        }
        taken.sort();
        assert_eq!(taken, if again { vec![1, 2, 4] } else { vec![1, 2] });
    });
}

#[test]
fn a_taker_that_is_slow_to_give_its_place_up_delays_a_putter_and_loses_nothing() {
    bounded(3, || {
        let ring = Arc::new(Ring::new(2));
        assert!(ring.push(1) && ring.push(2));
        let slow = {
            let ring = ring.clone();
            spawn(move || ring.pop())
        };
        // Puts back whatever the other thread left, so that the ring goes round.
        let mut held = Vec::new();
        for _ in 0..2 {
            held.extend(ring.pop());
            while let Some(number) = held.pop() {
                while !ring.push(number) {
                    loom::thread::yield_now();
                }
            }
        }
        let mut taken: Vec<usize> = slow.join().unwrap().into_iter().collect();
        taken.extend(std::iter::from_fn(|| ring.pop()));
        taken.sort();
        assert_eq!(taken, [1, 2]);
    });
}

#[test]
fn no_wake_up_is_lost() {
    model(|| {
        let gate = Arc::new(Gate::new());
        let flag = Arc::new(AtomicUsize::new(0));
        let sleeper = {
            let (gate, flag) = (gate.clone(), flag.clone());
            spawn(move || gate.sleep(None, || flag.load(Ordering::Acquire) == 1))
        };
        flag.store(1, Ordering::Release);
        gate.open(1, || true);
        assert!(sleeper.join().unwrap());
    });
}

#[test]
fn finish_and_revoke_never_both_win() {
    model(|| {
        let claim = Arc::new(Claim::new());
        claim.hand_out();
        let thread = {
            let claim = claim.clone();
            spawn(move || claim.begin() && claim.finish())
        };
        let revoked = claim.revoke_running() || claim.revoke();
        assert!(revoked != thread.join().unwrap());
    });
}

/// The runner hands `tasks` tasks to `threads` threads, `rounds` times, and ends the
/// threads.
fn rounds(threads: usize, tasks: usize, rounds: usize, caller_works: bool) {
    let exchange = Arc::new(Exchange::<Counted>::new(tasks, 0));
    exchange.alive.store(threads, Ordering::Release);
    let thread_pool: Vec<_> = (0..threads)
        .map(|_| {
            let exchange = exchange.clone();
            spawn(move || exchange.serve())
        })
        .collect();
    let all: Vec<Arc<Counted>> = (0..tasks).map(|_| Counted::new()).collect();
    let mut received = 0;
    for round in 0..rounds {
        for task in &all {
            Exchange::<Counted>::put(&exchange.queued, task.clone());
        }
        exchange.work.open(tasks, || true);
        let mut left = tasks;
        while caller_works && let Some(task) = Exchange::<Counted>::take(&exchange.queued) {
            task.run();
            left -= 1;
        }
        assert!(exchange.await_arrivals(received + left, None));
        for _ in 0..left {
            received += 1;
            while Exchange::<Counted>::take(&exchange.done).is_none() {
                loom::thread::yield_now();
            }
        }
        for task in &all {
            assert_eq!(task.count(), round + 1);
        }
    }
    exchange.dismiss();
    thread_pool.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(exchange.alive.load(Ordering::Acquire), 0);
}

/// One round of `rounds` in which the runner puts each task and calls one thread for
/// it before it puts the next.
fn one_by_one(threads: usize, tasks: usize) {
    let exchange = Arc::new(Exchange::<Counted>::new(tasks, 0));
    exchange.alive.store(threads, Ordering::Release);
    let thread_pool: Vec<_> = (0..threads)
        .map(|_| {
            let exchange = exchange.clone();
            spawn(move || exchange.serve())
        })
        .collect();
    let all: Vec<Arc<Counted>> = (0..tasks).map(|_| Counted::new()).collect();
    for task in &all {
        Exchange::<Counted>::put(&exchange.queued, task.clone());
        exchange.work.open(1, || true);
    }
    assert!(exchange.await_arrivals(tasks, None));
    for task in &all {
        assert_eq!(task.count(), 1);
    }
    exchange.dismiss();
    thread_pool.into_iter().for_each(|thread| thread.join().unwrap());
}

fn bounded(preemptions: usize, check: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(check);
}

#[test]
fn a_thread_does_every_task_of_every_round_once() {
    bounded(2, || rounds(1, 2, 2, false));
}

#[test]
fn two_threads_share_the_tasks() {
    bounded(2, || rounds(2, 2, 1, false));
}

#[test]
fn one_wake_up_for_each_task_is_enough() {
    bounded(2, || one_by_one(2, 2));
}

#[test]
fn the_caller_works_too() {
    bounded(2, || rounds(1, 2, 2, true));
}

#[test]
fn the_end_reaches_a_thread_wherever_it_is() {
    bounded(3, || rounds(1, 1, 1, false));
}

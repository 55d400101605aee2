//! A bounded queue of numbers. Any thread may put numbers in and take them out.
//!
//! The algorithm is Vyukov's: each place carries the turn at which it may next be
//! written or read, so neither side waits for the other while there is something to
//! do. Nothing is locked and nothing is allocated. To put a number in *happens
//! before* to take it out, in the sense of the memory model: the taker sees what the
//! putter wrote before it.

use crossbeam_utils::CachePadded;

use super::sync::{AtomicUsize, Ordering};

struct RingPlace {
    turn: AtomicUsize,
    number: AtomicUsize,
}

pub(super) struct Ring {
    places: Box<[RingPlace]>,
    /// How many numbers were ever put in.
    tail: CachePadded<AtomicUsize>,
    /// How many numbers were ever taken out.
    head: CachePadded<AtomicUsize>,
}

impl Ring {
    /// A ring with room for `capacity` numbers.
    pub(super) fn new(capacity: usize) -> Self {
        let place = |turn| RingPlace { turn: AtomicUsize::new(turn), number: AtomicUsize::new(0) };
        Ring {
            // With one place, a full ring and an empty ring would look the same.
            places: (0..capacity.max(2)).map(place).collect(),
            tail: CachePadded::new(AtomicUsize::new(0)),
            head: CachePadded::new(AtomicUsize::new(0)),
        }
    }

    /// Puts `number` in; false where the ring is full.
    pub(super) fn push(&self, number: usize) -> bool {
        let mut at = self.tail.load(Ordering::Relaxed);
        loop {
            let place = &self.places[at % self.places.len()];
            let ahead = place.turn.load(Ordering::Acquire).wrapping_sub(at) as isize;
            if ahead == 0 {
                match self.tail.compare_exchange_weak(at, at + 1, Ordering::Relaxed, Ordering::Relaxed) {
                    Ok(_) => {
                        place.number.store(number, Ordering::Relaxed);
                        place.turn.store(at + 1, Ordering::Release);
                        return true;
                    }
                    Err(now) => at = now,
                }
            } else if ahead < 0 {
                return false;
            } else {
                at = self.tail.load(Ordering::Relaxed);
            }
        }
    }

    /// Takes the number that has been in the ring longest; `None` where there is none
    /// yet.
    pub(super) fn pop(&self) -> Option<usize> {
        let mut at = self.head.load(Ordering::Relaxed);
        loop {
            let place = &self.places[at % self.places.len()];
            let ahead = place.turn.load(Ordering::Acquire).wrapping_sub(at + 1) as isize;
            if ahead == 0 {
                match self.head.compare_exchange_weak(at, at + 1, Ordering::Relaxed, Ordering::Relaxed) {
                    Ok(_) => {
                        let number = place.number.load(Ordering::Relaxed);
                        place.turn.store(at + self.places.len(), Ordering::Release);
                        return Some(number);
                    }
                    Err(now) => at = now,
                }
            } else if ahead < 0 {
                return None;
            } else {
                at = self.head.load(Ordering::Relaxed);
            }
        }
    }

    /// Whether the next [`pop`](Self::pop) would find something.
    pub(super) fn has_some(&self) -> bool {
        let at = self.head.load(Ordering::Relaxed);
        let turn = self.places[at % self.places.len()].turn.load(Ordering::Acquire);
        // A turn behind `at` means that another thread has taken the number meanwhile.
        turn.wrapping_sub(at + 1) as isize >= 0
    }
}

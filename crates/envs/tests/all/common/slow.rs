//! A source whose chunks take their time, and note which threads they ran on:
//! work that is worth a thread.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use envcore::{
    Chunk, Failure, Frame, Options, ResetArgs, Result, RowsMut, Side, Source, SourceSpec, StepArgs,
};

/// The threads that have stepped or reset a slot.
pub type Threads = Arc<Mutex<HashSet<ThreadId>>>;

pub struct Slow {
    source: Arc<dyn Source>,
    /// How long each call spins.
    spin: Duration,
    /// As long as fewer threads were seen, each call sleeps, so that a busy machine lets the others
    /// run.
    wanted: usize,
    threads: Threads,
}

impl Slow {
    pub fn new(source: Arc<dyn Source>, spin: Duration, wanted: usize) -> (Arc<Self>, Threads) {
        let threads = Threads::default();
        (Arc::new(Slow { source, spin, wanted, threads: threads.clone() }), threads)
    }

    fn wrap(&self, chunk: Box<dyn Chunk>) -> Box<dyn Chunk> {
        Box::new(SlowChunk { chunk, spin: self.spin, wanted: self.wanted, threads: self.threads.clone() })
    }
}

impl Source for Slow {
    fn spec(&self) -> &SourceSpec {
        self.source.spec()
    }

    fn chunk(&self, first_slot: usize, seeds: &[i64]) -> Result<Box<dyn Chunk>> {
        Ok(self.wrap(self.source.chunk(first_slot, seeds)?))
    }

    fn vacant(&self, slot: usize) -> Result<Box<dyn Chunk>> {
        Ok(self.wrap(self.source.vacant(slot)?))
    }
}

struct SlowChunk {
    chunk: Box<dyn Chunk>,
    spin: Duration,
    wanted: usize,
    threads: Threads,
}

impl SlowChunk {
    fn spin(&self) {
        let mut threads = self.threads.lock().unwrap();
        threads.insert(std::thread::current().id());
        let is_enough = threads.len() >= self.wanted;
        drop(threads);
        if !is_enough {
            std::thread::sleep(Duration::from_millis(1));
        }
        let end = Instant::now() + self.spin;
        while Instant::now() < end {
            std::hint::spin_loop();
        }
    }
}

impl Chunk for SlowChunk {
    fn step(
        &mut self,
        slots: Range<usize>,
        skip: &[bool],
        actions: StepArgs<'_>,
        rows: &mut RowsMut<'_>,
        side: &mut Side,
    ) {
        self.spin();
        self.chunk.step(slots, skip, actions, rows, side);
    }

    fn reset(&mut self, resets: &[ResetArgs], rows: &mut RowsMut<'_>, side: &mut Side) {
        self.spin();
        self.chunk.reset(resets, rows, side);
    }

    fn check_options(&mut self, options: &Options) -> Result<()> {
        self.chunk.check_options(options)
    }

    fn save(&mut self, slot: usize) -> Result<Vec<u8>> {
        self.chunk.save(slot)
    }

    fn load(&mut self, slot: usize, state: &[u8]) -> Result<()> {
        self.chunk.load(slot, state)
    }

    fn render(&mut self, slot: usize) -> Result<Frame> {
        self.chunk.render(slot)
    }

    fn close(&mut self) -> Vec<(usize, Failure)> {
        self.chunk.close()
    }
}

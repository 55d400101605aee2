use super::*;

#[test]
fn what_is_dropped_is_lent_again_and_what_is_kept_is_not() {
    let pool = Pool::new(100);
    let kept = pool.take().unwrap();
    let address = pool.take().unwrap().as_ptr();
    for _ in 0..5000 {
        let lease = pool.take().unwrap();
        assert_eq!(lease.as_ptr(), address);
        assert_ne!(lease.as_ptr(), kept.as_ptr());
        assert_eq!(lease.as_ptr() as usize % ALIGN, 0);
    }
    assert_eq!(pool.allocations(), 2);
}

#[test]
fn a_block_in_parts_comes_back_with_its_last_part() {
    let pool = Pool::of_parts([800, 100, 100]);
    let [a, b, c] = pool.take_parts([800, 100, 100]).unwrap();
    assert!(a.shares_block_with(&c) && !a.shares_block_with(&pool.take().unwrap()));
    assert_eq!([&a, &b, &c].map(Lease::len), [800, 100, 100]);
    for (part, next) in [(&a, &b), (&b, &c)] {
        assert_eq!(part.as_ptr() as usize % ALIGN, 0);
        assert!(part.as_ptr() as usize + part.len() <= next.as_ptr() as usize);
    }
    let address = a.as_ptr();
    let raw = c.into_raw();
    drop(a);
    let other = pool.take_parts([800, 100, 100]).unwrap();
    assert_ne!(other[0].as_ptr(), address, "a part of it is still lent");
    // SAFETY: the pointers are those of `c`, taken back once.
    let c = unsafe { Lease::from_raw(raw) };
    assert_eq!(c.len(), 100);
    std::thread::spawn(move || drop((b, c))).join().unwrap();
    drop(other);
    let [a, ..] = pool.take_parts([800, 100, 100]).unwrap();
    let [other, ..] = pool.take_parts([800, 100, 100]).unwrap();
    assert!(a.as_ptr() == address || other.as_ptr() == address);
}

#[test]
fn parts_outlive_their_pool() {
    let [a, b] = Pool::of_parts([8, 8]).take_parts([8, 8]).unwrap();
    drop(a);
    // SAFETY: the part has as many bytes, and nobody else uses it.
    unsafe { b.as_ptr().write_bytes(7, 8) };
}

#[test]
fn a_large_block_is_of_zeros_whatever_was_in_its_memory_before() {
    for bytes in [LARGE - 1, LARGE, 3 * LARGE + 77] {
        for _ in 0..3 {
            let lease = Pool::new(bytes).take().unwrap();
            // SAFETY: the block has as many bytes, and nobody else uses it.
            let block = unsafe { std::slice::from_raw_parts_mut(lease.as_ptr(), bytes) };
            assert!(block.iter().all(|byte| *byte == 0));
            block.fill(7);
        }
    }
}

#[test]
fn blocks_idle_for_a_whole_window_are_freed() {
    let pool = Pool::new(8);
    drop((0..50).map(|_| pool.take().unwrap()).collect::<Vec<_>>());
    for _ in 0..3 * WINDOW {
        pool.take().unwrap();
    }
    assert!(pool.0.free_blocks.lock().unwrap().free.is_empty());
    assert_eq!(pool.allocations(), 50);
}

#[test]
fn a_loop_that_keeps_the_last_batches_allocates_them_once() {
    let pool = Pool::new(8);
    let mut rollout = Vec::new();
    for step in 0..10 * WINDOW {
        if step % 128 == 0 {
            rollout.clear();
        }
        rollout.push(pool.take().unwrap());
    }
    assert_eq!(pool.allocations(), 128);
}

#[test]
fn memory_that_there_is_not_is_an_error() {
    assert!(matches!(Pool::new(usize::MAX).take(), Err(Error::Memory(usize::MAX))));
    assert!(matches!(Pool::new(isize::MAX as usize - 64).take(), Err(Error::Memory(_))));
}

#[test]
fn a_lease_may_outlive_its_pool_and_come_back_from_another_thread() {
    let pool = Pool::new(8);
    let lease = pool.take().unwrap();
    drop(pool);
    std::thread::spawn(move || drop(lease)).join().unwrap();
}

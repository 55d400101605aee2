//! The rows of a leaf that is not of fixed shape.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, TryLockError};

use crate::space::Value;

/// Lends columns of texts, and keeps one that came back.
#[derive(Clone, Default)]
pub(super) struct ValuePool(Arc<Mutex<Vec<Value>>>);

impl ValuePool {
    /// A column of `rows` rows, which have old texts or none.
    pub(super) fn take(&self, rows: usize) -> ValueColumn {
        let mut values = self.with(std::mem::take).unwrap_or_default();
        values.resize_with(rows, || Value::None);
        ValueColumn { rows: values, pool: Some(self.clone()) }
    }

    /// `None` where another thread uses the pool, or did so when this process was forked.
    fn with<R>(&self, use_it: impl FnOnce(&mut Vec<Value>) -> R) -> Option<R> {
        match self.0.try_lock() {
            Ok(mut column) => Some(use_it(&mut column)),
            Err(TryLockError::Poisoned(column)) => Some(use_it(&mut column.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// A value per row. A column that is used again has its old texts in rows that are yet to be written, and
/// an env that shows the same text again has nothing to write.
pub struct ValueColumn {
    rows: Vec<Value>,
    pool: Option<ValuePool>,
}

impl ValueColumn {
    /// `rows` rows without a value.
    pub(super) fn none(rows: usize) -> Self {
        // `vec!` would clone each value by a call.
        ValueColumn { rows: std::iter::repeat_with(|| Value::None).take(rows).collect(), pool: None }
    }
}

impl Drop for ValueColumn {
    fn drop(&mut self) {
        if let Some(pool) = &self.pool {
            let mut rows = std::mem::take(&mut self.rows);
            // What is dropped here is what the pool had, most often no column.
            pool.with(|column| std::mem::swap(column, &mut rows));
        }
    }
}

impl Deref for ValueColumn {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        &self.rows
    }
}

impl DerefMut for ValueColumn {
    fn deref_mut(&mut self) -> &mut [Value] {
        &mut self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::Text;

    #[test]
    fn a_column_that_was_dropped_is_taken_again() {
        let pool = ValuePool::default();
        let mut first = pool.take(3);
        assert!(first.iter().all(|value| matches!(value, Value::None)));
        first[1] = Value::Text(Text::from("here"));
        let second = pool.take(3);
        let address = first.as_ptr();
        drop(first);
        let again = pool.take(2);
        assert_eq!(again.as_ptr(), address);
        assert!(matches!(&again[1], Value::Text(text) if text == "here"));
        drop((again, second));
        assert_eq!(pool.take(5).len(), 5);
    }

    #[test]
    fn a_column_outlives_its_pool_and_comes_back_from_another_thread() {
        let pool = ValuePool::default();
        let column = pool.take(2);
        let address = column.as_ptr() as usize;
        std::thread::spawn(move || drop(column)).join().unwrap();
        let column = pool.take(2);
        assert_eq!(column.as_ptr() as usize, address);
        drop(pool);
        drop(column);
    }
}

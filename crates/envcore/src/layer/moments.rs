//! Running means and variances.
//!
//! The formula, the order of operations and the start (mean 0, variance 1,
//! count 1e-4) are those of Gymnasium's `RunningMeanStd`, and sums are taken in
//! NumPy's order. So the numbers equal Gymnasium's bit for bit wherever Gymnasium
//! computes in `float64`. Gymnasium computes in `float32` for `float32` observations,
//! where a late batch does not move the mean any more; this module always computes in
//! `float64`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::buffer::check_machine_has;
use crate::error::{Error, Result};

/// The count that statistics begin with.
const FIRST_COUNT: f64 = 1e-4;

/// The number that is added to a variance before its root is taken, against division by 0.
pub(super) const EPSILON: f64 = 1e-8;

/// Mean and variance of each element of one leaf.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    /// How many values of each element have been seen; 1e-4 at first.
    pub count: f64,
    /// The mean of each element, in row-major order.
    pub mean: Vec<f64>,
    /// The population variance of each element, in row-major order.
    pub var: Vec<f64>,
}

/// Values that statistics can be made of.
pub(super) trait Real: Copy {
    fn real(self) -> f64;
}

macro_rules! real {
    ($($t:ty: $as:expr),*) => {$(
        impl Real for $t {
            #[inline]
            fn real(self) -> f64 {
                let convert: fn($t) -> f64 = $as;
                convert(self)
            }
        }
    )*};
}
real! {
    u8: f64::from, i8: f64::from, u16: f64::from, i16: f64::from, u32: f64::from, i32: f64::from,
    u64: |v| v as f64, i64: |v| v as f64, half::f16: half::f16::to_f64, f32: f64::from, f64: |v| v
}

/// Runs `$body` with `$T` as the Rust type of a dtype other than bool.
macro_rules! with_real {
    ($dtype:expr, $T:ident => $body:expr) => {
        with_real!(@ $dtype, $T => $body,
            U8 u8, I8 i8, U16 u16, I16 i16, U32 u32, I32 i32, U64 u64, I64 i64, F16 half::f16, F32 f32, F64 f64)
    };
    (@ $dtype:expr, $T:ident => $body:expr, $($dtype_name:ident $t:ty),*) => {
        match $dtype {
            $($crate::DType::$dtype_name => {
                type $T = $t;
                $body
            })*
            $crate::DType::Bool => unreachable!("bools are not normalised"),
        }
    };
}
pub(super) use with_real;

/// The sum of contiguous values in NumPy's order.
fn pairwise(values: &[f64]) -> f64 {
    let n = values.len();
    if n < 8 {
        return values.iter().fold(0.0, |sum, value| sum + value);
    }
    if n <= 128 {
        let (eights, rest) = values.split_at(n - n % 8);
        let mut r = [0.0; 8];
        r.copy_from_slice(&eights[..8]);
        for eight in eights[8..].chunks_exact(8) {
            r.iter_mut().zip(eight).for_each(|(r, value)| *r += value);
        }
        let sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
        return rest.iter().fold(sum, |sum, value| sum + value);
    }
    let half = n / 2 - n / 2 % 8;
    pairwise(&values[..half]) + pairwise(&values[half..])
}

impl Moments {
    pub(super) fn new(elements: usize) -> Result<Self> {
        let filled = |value: f64| {
            let bytes = elements.saturating_mul(size_of::<f64>());
            check_machine_has(bytes)?;
            let mut values = Vec::new();
            values.try_reserve_exact(elements).map_err(|_| Error::Memory(bytes))?;
            values.resize(elements, value);
            Ok::<_, Error>(values)
        };
        Ok(Moments { count: FIRST_COUNT, mean: filled(0.0)?, var: filled(1.0)? })
    }

    /// Updates the moments with `rows`, each of which has a value per element.
    pub(super) fn update<'a, T: Real + 'a>(&mut self, rows: impl Iterator<Item = &'a [T]> + Clone) {
        let n = rows.clone().count();
        let elements = self.mean.len();
        if n == 0 || elements == 0 {
            return;
        }
        let rows_n = n as f64;
        let (mean, var) = if elements == 1 {
            let mut values: Vec<f64> = rows.map(|row| row[0].real()).collect();
            let mean = pairwise(&values) / rows_n;
            values.iter_mut().for_each(|value| *value = (*value - mean) * (*value - mean));
            (vec![mean], vec![pairwise(&values) / rows_n])
        } else {
            let mut mean = vec![0.0; elements];
            for row in rows.clone() {
                mean.iter_mut().zip(row).for_each(|(sum, value)| *sum += value.real());
            }
            mean.iter_mut().for_each(|sum| *sum /= rows_n);
            let mut var = vec![0.0; elements];
            for row in rows {
                for ((sum, mean), value) in var.iter_mut().zip(&mean).zip(row) {
                    let delta = value.real() - mean;
                    *sum += delta * delta;
                }
            }
            var.iter_mut().for_each(|sum| *sum /= rows_n);
            (mean, var)
        };
        let total = self.count + rows_n;
        for k in 0..elements {
            let delta = mean[k] - self.mean[k];
            self.mean[k] += delta * rows_n / total;
            let both = self.var[k] * self.count + var[k] * rows_n;
            self.var[k] = (both + delta * delta * self.count * rows_n / total) / total;
        }
        self.count = total;
    }

    /// The divisor of each element's difference from its mean.
    pub(super) fn scale(&self) -> Vec<f64> {
        self.var.iter().map(|var| (var + EPSILON).sqrt()).collect()
    }

    fn check(&self, like: &Moments) -> Result<()> {
        let (theirs, ours) = (self.mean.len(), like.mean.len());
        if theirs != ours || self.var.len() != ours {
            return Err(Error::State(format!("these statistics are of {theirs} elements, not of {ours}")));
        }
        let fault = |what: &str, value: f64, must: &str| {
            Err(Error::State(format!("these are no statistics: {what} is {value}, and must be {must}")))
        };
        if !(self.count.is_finite() && self.count > 0.0) {
            return fault("the count", self.count, "finite and above 0");
        }
        if let Some(mean) = self.mean.iter().find(|mean| !mean.is_finite()) {
            return fault("a mean", *mean, "finite");
        }
        if let Some(var) = self.var.iter().find(|var| !(var.is_finite() && **var >= 0.0)) {
            return fault("a variance", *var, "finite and not below 0");
        }
        Ok(())
    }
}

struct Running {
    updates: bool,
    leaves: Vec<Option<Moments>>,
}

/// A handle on the statistics of a layer, to read, freeze and set them from outside.
/// It may be cloned, and outlives the layer.
#[derive(Clone)]
pub struct Statistics(Arc<Mutex<Running>>);

impl Statistics {
    /// Statistics for leaves of these numbers of elements; none for leaves without statistics.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub(super) fn new(elements: impl Iterator<Item = Option<usize>>) -> Result<Self> {
        let leaves =
            elements.map(|elements| elements.map(Moments::new).transpose()).collect::<Result<_>>()?;
        Ok(Statistics(Arc::new(Mutex::new(Running { updates: true, leaves }))))
    }

    fn lock(&self) -> MutexGuard<'_, Running> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `visit` with whether batches are to update the statistics, and with the
    /// statistics of each leaf.
    pub(super) fn visit<R>(&self, visit: impl FnOnce(bool, &mut [Option<Moments>]) -> R) -> R {
        let running = &mut *self.lock();
        visit(running.updates, &mut running.leaves)
    }

    /// Whether batches update the statistics; true unless set.
    pub fn updates(&self) -> bool {
        self.lock().updates
    }

    /// Freezes the statistics (false), as for an evaluation, or lets batches update them
    /// (true). The setting is not part of the vec env's state.
    pub fn set_updates(&self, updates: bool) {
        self.lock().updates = updates;
    }

    /// A copy of the statistics of each leaf; none for leaves that are not normalised.
    pub fn moments(&self) -> Vec<Option<Moments>> {
        self.lock().leaves.clone()
    }

    /// Errors where `moments` are those of other leaves.
    pub(super) fn check(&self, moments: &[Option<Moments>]) -> Result<()> {
        let running = self.lock();
        let (theirs, ours) = (moments.len(), running.leaves.len());
        if theirs != ours {
            return Err(Error::State(format!("these statistics are of {theirs} leaves, not of {ours}")));
        }
        running.leaves.iter().zip(moments).try_for_each(|pair| match pair {
            (Some(ours), Some(theirs)) => theirs.check(ours),
            (None, None) => Ok(()),
            _ => Err(Error::State("these statistics are of other leaves".into())),
        })
    }

    /// Replaces the statistics by `moments`, which may come from another vec env or a file.
    ///
    /// # Errors
    /// [`Error::State`] where `moments` are those of other leaves or make no sense. The
    /// statistics are unchanged then.
    pub fn set_moments(&self, moments: Vec<Option<Moments>>) -> Result<()> {
        self.check(&moments)?;
        self.put(moments);
        Ok(())
    }

    /// Sets `moments`, which passed the check.
    pub(super) fn put(&self, moments: Vec<Option<Moments>>) {
        self.lock().leaves = moments;
    }
}

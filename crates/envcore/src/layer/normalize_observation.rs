//! Observations with mean 0 and variance 1, by running statistics.
//!
//! Every real leaf becomes `float32` without bounds. Each element becomes
//! `(x - mean) / sqrt(var + 1e-8)`. The statistics already include the batch itself,
//! as in Gymnasium's `NormalizeObservation`; [`Moments`] has the details. Labels,
//! bools and leaves that are not of fixed shape stay as they are.
//!
//! An observation updates the statistics once, when it is new. Gymnasium's wrapper
//! refuses masked resets, because it would count the observations of slots that a
//! masked reset leaves alone twice. It also refuses SAME_STEP; this layer counts and
//! normalises the final observations of SAME_STEP like any other. Rows that show
//! nothing, because their env failed, are not counted and stay zeros.
//!
//! A `float32` leaf is changed in place. A row of any other leaf is written once, to
//! memory that belongs to the layer.

use crate::buffer::{Batch, Column, Fixed};
use crate::error::{Error, Result};
use crate::layer::moments::{Moments, Real, Statistics, with_real};
use crate::layer::{Layer, Shows, Transform, rows_of};
use crate::space::{Bounds, DType, Leaf, LeafKind, Tensor};
use crate::vec_config::AutoresetMode;
use crate::vec_env::{Spec, VecEnv};

/// Normalises observations; see the module.
pub struct NormalizeObservation {
    mode: AutoresetMode,
    statistics: Statistics,
    /// Scratch: rows that show something.
    shown: Vec<usize>,
    /// Scratch: rows that show something new.
    new: Vec<usize>,
    /// Scratch: rows whose finals show something.
    last: Vec<usize>,
}

/// The tensor of a leaf that is normalised.
fn real(leaf: &Leaf) -> Option<&Tensor> {
    leaf.as_fixed().filter(|tensor| !tensor.discrete && tensor.dtype != DType::Bool)
}

impl NormalizeObservation {
    /// Normalises the observations of `envs`; also gives a handle on the statistics.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where no leaf is real.
    pub fn over(envs: Box<dyn VecEnv>) -> Result<(Layer<Self>, Statistics)> {
        let spec = envs.spec();
        let leaves = spec.observation.leaves();
        if !leaves.iter().any(|leaf| real(leaf).is_some()) {
            return Err(Error::Unsupported(format!(
                "{}: no leaf of the observation holds quantities: there is nothing to normalise",
                spec.id
            )));
        }
        let statistics = Statistics::new(leaves.iter().map(|leaf| real(leaf).map(Tensor::elements)))?;
        let (mode, statistics_here) = (spec.autoreset, statistics.clone());
        let (shown, new, last) = (Vec::new(), Vec::new(), Vec::new());
        let transform = NormalizeObservation { mode, statistics: statistics_here, shown, new, last };
        Ok((Layer::new(envs, transform)?, statistics))
    }
}

fn fixed(column: &Column) -> &Fixed {
    column.as_fixed().expect("a leaf with statistics is of fixed shape")
}

fn normalise<T: Real>(moments: &Moments, scale: &[f64], from: &[T], to: &mut [f32]) {
    for (((to, from), mean), scale) in to.iter_mut().zip(from).zip(&moments.mean).zip(scale) {
        *to = ((from.real() - mean) / scale) as f32;
    }
}

/// Normalises `rows` of `column` into `fresh`, or in place where there is no `fresh`.
fn write(moments: &Moments, column: &mut Column, fresh: Option<&mut Fixed>, rows: &[usize]) {
    let Column::Fixed(column) = column else { return };
    let scale = moments.scale();
    let n = column.elements();
    match fresh {
        Some(fresh) => with_real!(column.dtype(), T => for &row in rows {
            let to = &mut fresh.as_mut_slice::<f32>()[row * n..(row + 1) * n];
            normalise::<T>(moments, &scale, column.row(row), to);
        }),
        None => {
            for &row in rows {
                for (k, value) in column.as_mut_slice::<f32>()[row * n..(row + 1) * n].iter_mut().enumerate()
                {
                    *value = ((value.real() - moments.mean[k]) / scale[k]) as f32;
                }
            }
        }
    }
}

impl Transform for NormalizeObservation {
    type Slot = ();
    type Shared = Vec<Option<Moments>>;

    fn describe(&self) -> String {
        "normalize_observation".into()
    }

    fn spec(&self, spec: &Spec) -> Spec {
        let normalised = |leaf: &Leaf| match real(leaf) {
            None => leaf.clone(),
            Some(tensor) => {
                let bounds = Bounds::of(DType::F32);
                let kind = LeafKind::Fixed(Tensor { dtype: DType::F32, bounds, ..tensor.clone() });
                Leaf { kind, ..leaf.clone() }
            }
        };
        Spec { observation: spec.observation.map(normalised), ..spec.clone() }
    }

    fn apply(&mut self, batch: &mut Batch, fresh: &mut [Option<Fixed>], fresh_finals: &mut [Option<Fixed>]) {
        let NormalizeObservation { shown, new, last, .. } = self;
        [&mut *shown, &mut *new, &mut *last].into_iter().for_each(Vec::clear);
        for (row, of) in rows_of(batch, self.mode).enumerate() {
            match of.shows {
                Shows::First | Shows::Next => {
                    shown.push(row);
                    new.push(row);
                }
                Shows::Again => shown.push(row),
                Shows::Nothing => fresh.iter_mut().flatten().for_each(|column| column.clear_row(row)),
            }
            if of.has_last {
                last.push(row);
            } else if of.over {
                fresh_finals.iter_mut().flatten().for_each(|column| column.clear_row(row));
            }
        }
        self.statistics.visit(|updates, leaves| {
            for (k, moments) in leaves.iter_mut().enumerate() {
                let Some(moments) = moments else { continue };
                let column = fixed(&batch.observation[k]);
                let finals = batch.finals.as_ref().map(|finals| fixed(&finals.observation[k]));
                if updates {
                    with_real!(column.dtype(), T => {
                        let new = new.iter().map(|&row| column.row::<T>(row));
                        let ended = finals.into_iter().flat_map(|finals| {
                            last.iter().map(|&row| finals.row::<T>(row))
                        });
                        moments.update(new.chain(ended));
                    });
                }
                write(moments, &mut batch.observation[k], fresh[k].as_mut(), shown);
                if let Some(finals) = &mut batch.finals {
                    write(moments, &mut finals.observation[k], fresh_finals[k].as_mut(), last);
                }
            }
        });
    }

    fn slot(&self, _slot: usize) {}

    fn check_slot(&self, (): &()) -> Result<()> {
        Ok(())
    }

    fn set_slot(&mut self, _slot: usize, (): ()) {}

    fn shared(&self) -> Self::Shared {
        self.statistics.moments()
    }

    fn check_shared(&self, saved: &Self::Shared) -> Result<()> {
        self.statistics.check(saved)
    }

    fn set_shared(&mut self, saved: Self::Shared) {
        self.statistics.put(saved);
    }
}

//! The columns of a message: which there are, and how long their arrays are.

use crate::buffer::{Batch, Column, Fixed};
use crate::caps::Caps;
use crate::net::wire::padded;
use crate::space::Space;
use crate::vec_config::AutoresetMode;
use crate::vec_env::Spec;

/// The bytes of a row of each column of a message of rows.
///
/// The columns are those of the observation and of the declared infos that have a fixed shape, the
/// rewards, what terminated, what was truncated, the kinds of the rows, and for each declared info
/// whether the row has it. In SAME_STEP a column follows that says which rows ended. For those
/// rows the final columns come next: observation, infos, and which infos there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::net) struct RowsLayout {
    pub(in crate::net) columns: Vec<usize>,
    pub(in crate::net) finals: Vec<usize>,
    pub(in crate::net) has_finals: bool,
}

impl RowsLayout {
    pub(in crate::net) fn of(spec: &Spec) -> Self {
        let has_finals = spec.autoreset == AutoresetMode::SameStep && spec.caps.contains(Caps::FINAL_OBS);
        let masks = spec.info.leaves().len();
        let mut seen = action_row_bytes(&spec.observation);
        seen.extend(action_row_bytes(&spec.info));
        let mut columns = seen.clone();
        columns.extend([8, 1, 1, 1]);
        columns.extend(std::iter::repeat_n(1, masks));
        let mut finals = Vec::new();
        if has_finals {
            columns.push(1);
            finals = seen;
            finals.extend(std::iter::repeat_n(1, masks));
        }
        RowsLayout { columns, finals, has_finals }
    }

    /// The bytes of the columns and of the final columns; `None` where they are too many to count.
    pub(in crate::net) fn bytes(&self, rows: usize, finals: usize) -> Option<(usize, usize)> {
        Some((padded(&self.columns, rows)?, padded(&self.finals, finals)?))
    }
}

/// The bytes of a row of each leaf of fixed shape.
pub(in crate::net) fn action_row_bytes(space: &Space) -> Vec<usize> {
    space.leaves().iter().filter_map(|leaf| leaf.as_fixed()).map(|tensor| tensor.row_bytes()).collect()
}

/// The columns of a batch, in the order of a message; `has_finals` as in the layout.
pub(in crate::net) fn columns(batch: &Batch, has_finals: bool) -> Vec<&Fixed> {
    let mut all: Vec<&Fixed> =
        batch.observation.iter().chain(&batch.infos.columns).filter_map(Column::as_fixed).collect();
    all.extend([&batch.reward, &batch.terminated, &batch.truncated, &batch.kinds]);
    all.extend(&batch.infos.masks);
    all.extend(batch.finals.iter().filter(|_| has_finals).map(|finals| &finals.ended));
    all
}

/// The same columns, for writing.
pub(in crate::net) fn columns_mut(batch: &mut Batch) -> Vec<&mut Fixed> {
    let mut all: Vec<&mut Fixed> =
        batch.observation.iter_mut().chain(&mut batch.infos.columns).filter_map(as_fixed_mut).collect();
    all.extend([&mut batch.reward, &mut batch.terminated, &mut batch.truncated, &mut batch.kinds]);
    all.extend(&mut batch.infos.masks);
    all.extend(batch.finals.iter_mut().map(|finals| &mut finals.ended));
    all
}

/// The final columns of a batch, in the order of a message.
pub(in crate::net) fn final_columns(batch: &Batch) -> Vec<&Fixed> {
    let Some(finals) = &batch.finals else { return Vec::new() };
    let columns = finals.observation.iter().chain(&finals.infos.columns);
    columns.filter_map(Column::as_fixed).chain(&finals.infos.masks).collect()
}

/// The same columns, for writing.
pub(in crate::net) fn final_columns_mut(batch: &mut Batch) -> Vec<&mut Fixed> {
    let Some(finals) = &mut batch.finals else { return Vec::new() };
    let columns = finals.observation.iter_mut().chain(&mut finals.infos.columns);
    columns.filter_map(as_fixed_mut).chain(&mut finals.infos.masks).collect()
}

fn as_fixed_mut(column: &mut Column) -> Option<&mut Fixed> {
    match column {
        Column::Fixed(fixed) => Some(fixed),
        Column::Values(_) => None,
    }
}

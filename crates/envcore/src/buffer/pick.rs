//! A request's actions, for code that passes on a part of them or reads them twice.

use crate::buffer::{Bytes, ColumnIn};
use crate::space::{DType, Value};

/// Some rows of a column of actions.
enum PickedRows<'a> {
    Neighbours(DType, Vec<usize>, Bytes<'a>),
    Gathered(DType, Vec<usize>, Vec<u8>),
    Values(Vec<Value>),
    Untouched(ColumnIn<'a>),
}

fn take<'a>(rows: &[usize], column: &ColumnIn<'a>) -> PickedRows<'a> {
    let (Some(&first), Some(&last)) = (rows.first(), rows.last()) else {
        return PickedRows::Untouched(*column);
    };
    let most = rows.iter().copied().max().unwrap_or(last);
    let count = rows.len();
    let contiguous = rows.windows(2).all(|pair| pair[0] + 1 == pair[1]);
    match *column {
        ColumnIn::Fixed { dtype, shape: [all, rest @ ..], bytes }
            if *all > most && bytes.len().is_multiple_of(*all) =>
        {
            let n = bytes.len() / all;
            let shape = [&[count], rest].concat();
            if contiguous {
                return PickedRows::Neighbours(dtype, shape, bytes.part(first * n..(first + count) * n));
            }
            let mut gathered = Vec::with_capacity(count * n);
            rows.iter().for_each(|row| bytes.part(row * n..(row + 1) * n).append_to(&mut gathered));
            PickedRows::Gathered(dtype, shape, gathered)
        }
        ColumnIn::Values(values) if values.len() > most => {
            PickedRows::Values(rows.iter().map(|&row| values[row].clone()).collect())
        }
        // There are too few rows, which the check of the actions reports.
        other => PickedRows::Untouched(other),
    }
}

/// Calls `use_them` with these rows of `columns`.
pub(crate) fn with_rows<R>(
    rows: &[usize],
    columns: &[ColumnIn<'_>],
    use_them: impl FnOnce(&[ColumnIn<'_>]) -> R,
) -> R {
    let taken: Vec<PickedRows<'_>> = columns.iter().map(|column| take(rows, column)).collect();
    let view = |taken| match taken {
        &PickedRows::Neighbours(dtype, ref shape, bytes) => ColumnIn::Fixed { dtype, shape, bytes },
        &PickedRows::Gathered(dtype, ref shape, ref bytes) => {
            ColumnIn::Fixed { dtype, shape, bytes: bytes.into() }
        }
        PickedRows::Values(values) => ColumnIn::Values(values),
        PickedRows::Untouched(column) => *column,
    };
    use_them(&taken.iter().map(view).collect::<Vec<_>>())
}

/// Calls `use_them`, which reads the columns more than once, with `columns`. Columns that
/// others may write in between are copied first.
pub(crate) fn with_private<R>(columns: &[ColumnIn<'_>], use_them: impl FnOnce(&[ColumnIn<'_>]) -> R) -> R {
    fn shared<'a>(column: &ColumnIn<'a>) -> Option<Bytes<'a>> {
        match *column {
            ColumnIn::Fixed { bytes, .. } if bytes.as_slice().is_none() => Some(bytes),
            _ => None,
        }
    }
    if columns.iter().all(|column| shared(column).is_none()) {
        return use_them(columns);
    }
    let copy = |bytes: Bytes<'_>| {
        let mut copy = Vec::new();
        bytes.append_to(&mut copy);
        copy
    };
    let copies: Vec<_> = columns.iter().map(|column| shared(column).map(copy)).collect();
    let mut private = columns.to_vec();
    for (column, copy) in private.iter_mut().zip(&copies) {
        if let (ColumnIn::Fixed { bytes, .. }, Some(copy)) = (column, copy) {
            *bytes = copy.into();
        }
    }
    use_them(&private)
}

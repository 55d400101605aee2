//! The spaces that a library declares, accepted only where they make sense.
//!
//! Headers with the same names and other layouts exist. This module finds out a library
//! that was built with one of them before any memory is laid out by the library's spaces.

use std::ffi::c_int;

use super::library::{LibenvHandle, LibenvLibrary};
use crate::abi::libenv::sys::{self, dtype, scalar_type, space_name};
use crate::error::{Error, Result};
use crate::space::{Bounds, DType, Leaf, LeafKind, Scalar, Space, Tensor};

/// More leaves than any real library has.
const MAX_LEAVES: c_int = 4096;

/// Room after what a library is to write, to see whether the library writes too much.
const SLACK: usize = 4;

/// A byte that no library leaves in place, because no name ends in it.
const POISON: u8 = 0xA5;

/// The three spaces of an instance.
pub(super) struct Spaces {
    pub(super) observation: Space,
    pub(super) action: Space,
    pub(super) info: Space,
}

impl Spaces {
    /// The spaces of `handle`, which has `num` envs.
    pub(super) fn of(library: &LibenvLibrary, handle: LibenvHandle, num: usize) -> Result<Self> {
        let read = |which, what| read(library, handle, which, what, num);
        let spaces = Spaces {
            observation: read(space_name::OBSERVATION, "observation")?,
            action: read(space_name::ACTION, "action")?,
            info: read(space_name::INFO, "info")?,
        };
        if spaces.action.leaves().is_empty() {
            return Err(library.misfit("its action space has no leaves"));
        }
        Ok(spaces)
    }
}

/// The tensor of a leaf; all leaves of a libenv space have one.
pub(super) fn tensor(leaf: &Leaf) -> &Tensor {
    match &leaf.kind {
        LeafKind::Fixed(tensor) => tensor,
        _ => unreachable!("libenv's leaves are of fixed shape"),
    }
}

fn read(
    library: &LibenvLibrary,
    handle: LibenvHandle,
    which: c_int,
    what: &str,
    num: usize,
) -> Result<Space> {
    let misfit = |why: String| library.misfit(format!("its {what} space: {why}"));
    let count = || {
        // SAFETY: the handle is the library's own; with NULL the function only counts.
        unsafe { (library.tensor_types)(handle, which, std::ptr::null_mut()) }
    };
    let announced = count();
    if !(0..=MAX_LEAVES).contains(&announced) {
        return Err(misfit(format!("{announced} leaves: from 0 to {MAX_LEAVES} make sense")));
    }
    if announced == 0 {
        return Ok(Space::empty());
    }
    let n = announced as usize;
    // SAFETY: a tensor type has integers and a union of numbers, for which any bytes
    // are valid.
    let poison: sys::TensorType = unsafe {
        let mut bytes = std::mem::MaybeUninit::<sys::TensorType>::uninit();
        bytes.as_mut_ptr().cast::<u8>().write_bytes(POISON, size_of::<sys::TensorType>());
        bytes.assume_init()
    };
    let mut types = vec![poison; n + SLACK];
    // SAFETY: there is room for as many as the library announced, and some more.
    let written = unsafe { (library.tensor_types)(handle, which, types.as_mut_ptr()) };
    let again = count();
    if again != announced || (written != announced && written != 0) {
        let other = if again == announced { written } else { again };
        return Err(misfit(format!("its number of leaves changes: {announced}, then {other}")));
    }
    if types[n..].iter().any(|spare| spare.name.iter().any(|&byte| byte as u8 != POISON)) {
        return Err(misfit(format!("it wrote more than the {n} leaves that it announced")));
    }
    let leaves = types[..n].iter().enumerate().map(|(k, found)| {
        let name = name(found).map_err(|why| misfit(format!("leaf {k}: {why}")))?;
        let leaf = leaf(found, num).map_err(|why| misfit(format!("leaf '{name}': {why}")))?;
        Ok((name, Space::from(leaf)))
    });
    // In libenv a dot is part of a name, because its spaces have no levels.
    let space = Space::dict(leaves.collect::<Result<Vec<_>>>()?);
    space.check("").map_err(|error| match error {
        Error::Space(why) => misfit(why.trim_start_matches(" space, ").into()),
        other => other,
    })?;
    Ok(space)
}

fn name(found: &sys::TensorType) -> Result<String, String> {
    let bytes = found.name.map(|byte| byte as u8);
    let Some(end) = bytes.iter().position(|&byte| byte == 0) else {
        return Err(format!("its name does not end within {} bytes", sys::MAX_NAME_LEN));
    };
    match std::str::from_utf8(&bytes[..end]) {
        Ok("") => Err("it has no name".into()),
        Ok(name) => Ok(name.into()),
        Err(_) => Err(format!("its name is no UTF-8: {:?}", String::from_utf8_lossy(&bytes[..end]))),
    }
}

fn leaf(found: &sys::TensorType, num: usize) -> Result<Leaf, String> {
    let dtype = match found.dtype {
        dtype::UINT8 => DType::U8,
        dtype::INT32 => DType::I32,
        dtype::FLOAT32 => DType::F32,
        other => return Err(format!("dtype {other} is none of uint8 (1), int32 (2), float32 (3)")),
    };
    let labels = match (found.scalar_type, dtype) {
        (scalar_type::REAL, DType::F32) => false,
        (scalar_type::DISCRETE, DType::U8 | DType::I32) => true,
        (scalar_type::REAL, _) => return Err(format!("it is real and of {dtype}: real is float32")),
        (scalar_type::DISCRETE, _) => {
            return Err(format!("it is discrete and of {dtype}: discrete is uint8 or int32"));
        }
        (other, _) => return Err(format!("scalar type {other} is neither real (1) nor discrete (2)")),
    };
    let shape = shape(found)?;
    let bytes = shape.iter().try_fold(dtype.size().max(1), |bytes, &extent| bytes.checked_mul(extent));
    if bytes.and_then(|bytes| bytes.checked_mul(num)).is_none_or(|bytes| bytes > isize::MAX as usize / 2) {
        return Err(format!("shape {shape:?} of {num} envs is too large"));
    }
    // SAFETY: every field of the union is a number for which any bits are valid, and
    // begins at the first byte; the dtype says which field is set.
    let (low, high) = unsafe {
        match dtype {
            DType::U8 => (Scalar::Int(found.low.uint8.into()), Scalar::Int(found.high.uint8.into())),
            DType::I32 => (Scalar::Int(found.low.int32.into()), Scalar::Int(found.high.int32.into())),
            _ => (Scalar::Real(found.low.float32.into()), Scalar::Real(found.high.float32.into())),
        }
    };
    let discrete = labels && !is_quantity(dtype, &shape, low, high);
    let unset = !labels && low == Scalar::Real(0.0) && high == Scalar::Real(0.0);
    // gym3 does not check the bounds of real leaves, so some libraries leave them at 0.
    let bounds = if unset { Bounds::of(dtype) } else { Bounds { low: vec![low], high: vec![high] } };
    Ok(Leaf::tensor(dtype, &shape, bounds, discrete))
}

fn shape(found: &sys::TensorType) -> Result<Vec<usize>, String> {
    let axes = usize::try_from(found.ndim).ok().filter(|axes| *axes <= sys::MAX_NDIM);
    let Some(axes) = axes else {
        return Err(format!("{} axes: from 0 to {} make sense", found.ndim, sys::MAX_NDIM));
    };
    let extents = &found.shape[..axes];
    extents
        .iter()
        .map(|&extent| {
            usize::try_from(extent).map_err(|_| format!("shape {extents:?} has a negative extent"))
        })
        .collect()
}

/// Whether a discrete leaf holds quantities rather than labels. libenv has no other
/// form for pixels, and Gymnasium has no more labels than an int32 can count.
fn is_quantity(dtype: DType, shape: &[usize], low: Scalar, high: Scalar) -> bool {
    let (Scalar::Int(low), Scalar::Int(high)) = (low, high) else { return false };
    match dtype {
        DType::U8 => !shape.is_empty() && (low, high) == (0, 255),
        _ => high - low >= i128::from(i32::MAX),
    }
}

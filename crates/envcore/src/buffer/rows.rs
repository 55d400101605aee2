//! Windows through which envs write their rows of a batch.
//!
//! A [`RowsMut`] is a range of consecutive rows of a draft. The windows of one draft never
//! overlap, so chunks may write their rows from different threads. A [`Row`] writes one
//! row leaf by leaf, directly into the batch.
//!
//! Above 400 lines because a fifth of them are the tests of rows that another process wrote.

use std::marker::PhantomData;

use crate::buffer::batch::RowKind;
use crate::buffer::column::{Column, expect_bools};
use crate::buffer::lease::Part;
use crate::buffer::place::{Place, Places};
use crate::buffer::row::Row;
use crate::space::{DType, Element, Value};

/// Consecutive rows of a batch, for writing; row numbers count from the
/// window's first row.
pub struct RowsMut<'a> {
    pub(super) places: &'a Places,
    pub(super) start: usize,
    pub(super) len: usize,
    /// Keeps the draft mutably borrowed.
    pub(super) draft: PhantomData<&'a mut Column>,
}

macro_rules! slice_of {
    ($(#[$doc:meta])* $name:ident, $ty:ty) => {
        $(#[$doc])*
        pub fn $name(&mut self) -> &mut [$ty] {
            let place = self.places.$name.expect("a draft has all its places");
            // SAFETY: the column has rows start..start + len, with one element of this type
            // each, and they belong to this window alone.
            unsafe {
                std::slice::from_raw_parts_mut(place.ptr.cast::<$ty>().add(self.start), self.len)
            }
        }
    };
}

impl<'a> RowsMut<'a> {
    pub(super) fn whole(places: &'a Places, rows: usize) -> Self {
        RowsMut { places, start: 0, len: rows, draft: PhantomData }
    }

    pub(super) fn places(&self) -> &'a Places {
        self.places
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the window has no rows.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number in the batch of this window's first row.
    pub fn start(&self) -> usize {
        self.start
    }

    /// The first `n` rows and the others, as separate windows.
    ///
    /// # Panics
    /// Where there are fewer than `n` rows.
    pub fn split_at(self, n: usize) -> (RowsMut<'a>, RowsMut<'a>) {
        assert!(n <= self.len);
        let window = |start, len| RowsMut { places: self.places, start, len, draft: PhantomData };
        (window(self.start, n), window(self.start + n, self.len - n))
    }

    /// The same rows, for a shorter lifetime.
    pub fn reborrow(&mut self) -> RowsMut<'_> {
        RowsMut { places: self.places, start: self.start, len: self.len, draft: PhantomData }
    }

    /// Rows `from..from + len`, for a shorter lifetime.
    pub fn range(&mut self, from: usize, len: usize) -> RowsMut<'_> {
        assert!(from <= self.len && len <= self.len - from);
        RowsMut { places: self.places, start: self.start + from, len, draft: PhantomData }
    }

    slice_of!(
        /// The rewards.
        reward, f64
    );
    slice_of!(
        /// Whether the episode ended in a terminal state.
        terminated, bool
    );
    slice_of!(
        /// Whether the episode was cut.
        truncated, bool
    );
    /// Sets what row `row` is.
    pub fn set_kind(&mut self, row: usize, kind: RowKind) {
        assert!(row < self.len);
        let place = self.places.kind.expect("a draft has all its places");
        // SAFETY: the column has a byte for each row, and `row` belongs to this window.
        unsafe { place.ptr.add(self.start + row).write(kind as u8) }
    }

    /// The addresses at which the terminations, truncations and kinds of these rows will lie in the next
    /// step, a byte a row. `None` unless the rows are in memory that none of a core's own caches has.
    ///
    /// The addresses may be past the end of the memory. A kernel does well to
    /// [ask for](crate::simd::prefetch_line) these lines, because they are cleared before the next step
    /// begins. It does well to ask for the rows that it writes a little later, too.
    #[must_use]
    pub fn next_flags(&self) -> Option<[*const u8; 3]> {
        let rows = self.places.next_step?;
        let places = [self.places.terminated, self.places.truncated, self.places.kind];
        Some(places.map(|place| {
            let place = place.expect("a draft has all its places");
            place.ptr.cast_const().wrapping_add(rows + self.start)
        }))
    }

    /// The columns that a step writes, which a kernel writes whole.
    pub fn columns(&mut self) -> StepColumns<'_> {
        let place = |place: Option<Place>| place.expect("a draft has all its places").ptr;
        let (places, start, len) = (self.places, self.start, self.len);
        // SAFETY: as in `reward`, `terminated` and `truncated`; the columns are different
        // blocks.
        unsafe {
            let reward = place(places.reward).cast::<f64>().add(start);
            let terminated = place(places.terminated).cast::<bool>().add(start);
            let truncated = place(places.truncated).cast::<bool>().add(start);
            StepColumns {
                reward: std::slice::from_raw_parts_mut(reward, len),
                terminated: std::slice::from_raw_parts_mut(terminated, len),
                truncated: std::slice::from_raw_parts_mut(truncated, len),
                observation: Observations { few: FewPlaces::of(&places.observation), places, start, len },
            }
        }
    }

    /// What each row is, as the number of its [`RowKind`], and the columns that a step writes.
    pub(crate) fn with_kinds(&mut self) -> (&mut [u8], StepColumns<'_>) {
        let kinds = self.places.kind.expect("a draft has all its places");
        // SAFETY: the column has a byte for each of these rows, which belong to this window alone and
        // to no other column.
        let kinds = unsafe { std::slice::from_raw_parts_mut(kinds.ptr.add(self.start), self.len) };
        (kinds, self.columns())
    }

    /// The columns that a step writes, and those of the infos, for a kernel that writes these of every
    /// row.
    pub fn columns_and_infos(&mut self) -> (InfoColumns<'_>, StepColumns<'_>) {
        let infos = InfoColumns { places: self.places, start: self.start, len: self.len };
        (infos, self.columns())
    }

    /// The columns that a step writes, and the infos.
    pub(crate) fn with_infos(&mut self) -> (InfosMut<'_>, StepColumns<'_>) {
        (InfosMut::new(self.places, self.start, self.len), self.columns())
    }

    /// Whether observations and infos have so few leaves as the writers of `row::<true>` require.
    pub(crate) fn has_few_leaves(&self) -> bool {
        self.places.observation.len() <= Observations::FEW && self.places.info.len() <= InfosMut::FEW
    }

    /// Sets row `row`'s reward and flags.
    #[inline]
    pub fn set(&mut self, row: usize, reward: f64, terminated: bool, truncated: bool) {
        self.reward()[row] = reward;
        self.terminated()[row] = terminated;
        self.truncated()[row] = truncated;
    }

    /// Makes `rows` those of resets, all but the observation: no reward, no end, no infos.
    pub(crate) fn begin(&mut self, rows: impl Iterator<Item = usize> + Clone) {
        let (kinds, StepColumns { reward, terminated, truncated, .. }) = self.with_kinds();
        for row in rows.clone() {
            (reward[row], terminated[row], truncated[row]) = (0.0, false, false);
            kinds[row] = RowKind::Reset as u8;
        }
        for place in self.places.info.iter().chain(&self.places.info_mask) {
            for row in rows.clone() {
                assert!(row < self.len);
                // SAFETY: `row` belongs to this window.
                unsafe { place.clear_row(self.start + row) }
            }
        }
    }

    /// A writer of row `row`'s observation.
    pub fn observation(&mut self, row: usize) -> Row<'_> {
        assert!(row < self.len);
        let (places, row) = (&self.places.observation, self.start + row);
        Row { places, masks: None, leaf: 0, row, draft: PhantomData }
    }

    /// A writer of row `row`'s declared infos, which marks each leaf that it writes.
    pub fn info(&mut self, row: usize) -> Row<'_> {
        assert!(row < self.len);
        let (places, masks) = (&self.places.info, Some(&self.places.info_mask[..]));
        Row { places, masks, leaf: 0, row: self.start + row, draft: PhantomData }
    }

    /// The place of a leaf of the observations or infos.
    fn place_of(&self, part: Part) -> Place {
        match part {
            Part::Observation(leaf) => self.places.observation[leaf],
            Part::Info(leaf) => self.places.info[leaf],
            other => panic!("{other:?} is no leaf"),
        }
    }

    /// Whether row `row` has the observation or info `part`. Each has its observation.
    pub(crate) fn is_told(&mut self, part: Part, row: usize) -> bool {
        assert!(row < self.len);
        let Part::Info(leaf) = part else { return true };
        let mask = self.places.info_mask[leaf];
        // SAFETY: each info leaf has a mask column of bools with that row, and the row belongs
        // to this window.
        unsafe { *mask.ptr.cast::<bool>().add(self.start + row) }
    }

    /// All elements of `part`, a leaf of the observations or infos, in row-major order, rows
    /// first.
    ///
    /// # Panics
    /// Where there is no such leaf, or the leaf is not of fixed shape and `T`s.
    pub(crate) fn elements_of<T: Element>(&mut self, part: Part) -> &[T] {
        let place = self.place_of(part);
        assert!(place.fixed && place.dtype == T::DTYPE, "{part:?} is not of {}", T::DTYPE);
        let count = self.len * place.elements;
        // SAFETY: as in `Observations::leaf`; bools are checked.
        unsafe {
            let first = place.ptr.cast::<T>().add(self.start * place.elements);
            let bytes = std::slice::from_raw_parts(first.cast::<u8>(), size_of::<T>() * count);
            if T::DTYPE == DType::Bool {
                expect_bools(bytes);
            }
            std::slice::from_raw_parts(first, count)
        }
    }

    /// Row `row` of `part`, a leaf of the observations or infos.
    ///
    /// # Panics
    /// Where there is no such leaf, or the leaf is of fixed shape.
    pub(crate) fn value_of(&mut self, part: Part, row: usize) -> &Value {
        let place = self.place_of(part);
        assert!(row < self.len && !place.fixed, "{part:?} has no loose row {row}");
        // SAFETY: the column has a `Value` for that row, which belongs to this window alone.
        unsafe { &*place.ptr.cast::<Value>().add(self.start + row) }
    }

    /// Moves row `row`'s observation and infos to the finals, as the last ones of their
    /// episode, so that the row is free for the next episode's first. Only the first `infos`
    /// leaves of the infos have been written in this draft.
    pub(crate) fn finish(&mut self, row: usize, infos: usize) {
        assert!(row < self.len);
        let row = self.start + row;
        let finals = self.places.finals.as_ref().expect("finals are drafted in SAME_STEP");
        for (from, to) in self.places.observation.iter().zip(&finals.observation) {
            // SAFETY: `row` belongs to this window, and the places are of one leaf.
            unsafe { from.copy_row(row, *to, row) }
        }
        let columns = self.places.info.iter().zip(&finals.info).take(infos);
        for (from, to) in columns.chain(self.places.info_mask.iter().zip(&finals.info_mask).take(infos)) {
            // SAFETY: `row` belongs to this window, and the places are of one leaf.
            unsafe {
                from.copy_row(row, *to, row);
                from.clear_row(row);
            }
        }
        let ended = finals.ended.expect("finals have all their places");
        // SAFETY: the column has that row, a bool, and it belongs to this window.
        unsafe { *ended.ptr.cast::<bool>().add(row) = true }
    }

    /// Removes row `row`'s infos.
    #[inline]
    pub(crate) fn clear_info(&mut self, row: usize) {
        InfosMut::new(self.places, self.start, self.len).clear(row);
    }

    /// Sets row `row`'s observation to zeros, and removes the row's infos.
    pub(crate) fn clear_seen(&mut self, row: usize) {
        assert!(row < self.len);
        for place in &self.places.observation {
            // SAFETY: `row` belongs to this window.
            unsafe { place.clear_row(self.start + row) }
        }
        self.clear_info(row);
    }

    /// Makes row `row` like one of a new draft, except for its observation: a row of a step
    /// that has no infos and has not ended.
    pub(crate) fn renew(&mut self, row: usize) {
        self.set_kind(row, RowKind::Step);
        self.clear_info(row);
        if let Some(finals) = &self.places.finals {
            let row = self.start + row;
            for place in finals.ended.iter().chain(&finals.info).chain(&finals.info_mask) {
                // SAFETY: `row` belongs to this window (`clear_info` checked).
                unsafe { place.clear_row(row) }
            }
        }
    }

    /// Sets row `row` to all zeros.
    pub(crate) fn clear(&mut self, row: usize) {
        self.clear_seen(row);
        self.set(row, 0.0, false, false);
    }
}

/// The columns of a window's rows.
pub struct StepColumns<'a> {
    /// The rewards.
    pub reward: &'a mut [f64],
    /// Whether the episode ended in a terminal state.
    pub terminated: &'a mut [bool],
    /// Whether the episode was cut.
    pub truncated: &'a mut [bool],
    /// The observations.
    pub observation: Observations<'a>,
}

/// The infos of a window's rows, column by column.
pub struct InfoColumns<'a> {
    places: &'a Places,
    start: usize,
    len: usize,
}

impl InfoColumns<'_> {
    /// All elements of leaf `leaf`, in row-major order, rows first. Every row counts as told.
    ///
    /// # Panics
    /// Where there is no such leaf, or the leaf is not of fixed shape and `T`s.
    pub fn leaf<T: Element>(&mut self, leaf: usize) -> &mut [T] {
        let (place, mask) = (self.places.info[leaf], self.places.info_mask[leaf]);
        assert!(place.fixed && place.dtype == T::DTYPE, "info {leaf} is not of {}", T::DTYPE);
        // SAFETY: the column has rows start..start + len of `elements` elements of T, and the mask column
        // a bool for each of these rows. They belong to this window alone, which is borrowed as long. No
        // other slice of the columns is alive, because this value is borrowed as long, too.
        unsafe {
            mask.ptr.add(self.start).write_bytes(1, self.len);
            let first = place.ptr.cast::<T>().add(self.start * place.elements);
            std::slice::from_raw_parts_mut(first, self.len * place.elements)
        }
    }
}

/// Copies of the first leaves' places. The compiler can tell that no row that is written changes a
/// copy, and so checks the copies once for all rows.
struct FewPlaces<const FEW: usize> {
    places: [Place; FEW],
    count: usize,
}

impl<const FEW: usize> FewPlaces<FEW> {
    #[inline(always)]
    fn of(places: &[Place]) -> Self {
        let mut few = [Place::nowhere(DType::U8, 0); FEW];
        few.iter_mut().zip(places).for_each(|(few, place)| *few = *place);
        FewPlaces { places: few, count: places.len().min(FEW) }
    }

    #[inline(always)]
    fn all(&self) -> &[Place] {
        &self.places[..self.count]
    }
}

/// The infos of a window's rows.
pub(crate) struct InfosMut<'a> {
    places: &'a Places,
    few: FewPlaces<{ InfosMut::FEW }>,
    few_masks: FewPlaces<{ InfosMut::FEW }>,
    start: usize,
    len: usize,
    draft: PhantomData<&'a mut Column>,
}

impl<'a> InfosMut<'a> {
    /// How many leaves the writers of `row::<true>` have at most.
    const FEW: usize = 2;

    #[inline]
    fn new(places: &'a Places, start: usize, len: usize) -> Self {
        let (few, few_masks) = (FewPlaces::of(&places.info), FewPlaces::of(&places.info_mask));
        InfosMut { places, few, few_masks, start, len, draft: PhantomData }
    }

    /// The number in the batch of the window's first row.
    pub(crate) fn start(&self) -> usize {
        self.start
    }

    /// The same infos, for a shorter lifetime.
    pub(crate) fn reborrow(&mut self) -> InfosMut<'_> {
        InfosMut::new(self.places, self.start, self.len)
    }

    /// Removes row `row`'s infos.
    #[inline]
    pub(crate) fn clear(&mut self, row: usize) {
        assert!(row < self.len);
        for place in self.places.info.iter().chain(&self.places.info_mask) {
            // SAFETY: `row` belongs to this window.
            unsafe { place.clear_row(self.start + row) }
        }
    }

    /// A writer of row `row`'s infos. `FEW` says that there are few.
    #[inline(always)]
    pub(crate) fn row<const FEW: bool>(&mut self, row: usize) -> Row<'_> {
        assert!(row < self.len);
        let (places, masks) = match FEW {
            true => (self.few.all(), self.few_masks.all()),
            false => (&self.places.info[..], &self.places.info_mask[..]),
        };
        Row { places, masks: Some(masks), leaf: 0, row: self.start + row, draft: PhantomData }
    }
}

/// The observations of a window's rows.
pub struct Observations<'a> {
    places: &'a Places,
    few: FewPlaces<{ Observations::FEW }>,
    start: usize,
    len: usize,
}

impl Observations<'_> {
    /// How many leaves the writers of `row::<true>` have at most.
    const FEW: usize = 4;

    /// All elements of leaf `leaf`, in row-major order, rows first. Bools are false at first.
    ///
    /// # Panics
    /// Where there is no such leaf, or the leaf is not of fixed shape and `T`s.
    pub fn leaf<T: Element>(&mut self, leaf: usize) -> &mut [T] {
        let place = self.places.observation[leaf];
        assert!(place.fixed && place.dtype == T::DTYPE, "leaf {leaf} is not of {}", T::DTYPE);
        // SAFETY: the column has rows start..start + len of `elements` elements of T. They
        // belong to this window alone, which is borrowed as long. Bytes that are no valid bools may be
        // there until they are cleared.
        unsafe {
            let first = place.ptr.cast::<T>().add(self.start * place.elements);
            if T::DTYPE == DType::Bool {
                first.write_bytes(0, self.len * place.elements);
            }
            std::slice::from_raw_parts_mut(first, self.len * place.elements)
        }
    }

    /// A writer of row `row`'s observation. `FEW` says that observations have few leaves.
    #[inline(always)]
    pub(crate) fn row<const FEW: bool>(&mut self, row: usize) -> Row<'_> {
        assert!(row < self.len);
        let places = if FEW { self.few.all() } else { &self.places.observation };
        Row { places, masks: None, leaf: 0, row: self.start + row, draft: PhantomData }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::{BatchPool, Fixed, Layout};
    use crate::space::{Leaf, Space};
    use crate::{Slots, buffer::Draft};

    fn draft(pool: &mut BatchPool) -> Draft {
        pool.draft(Slots::All, 2, None).unwrap()
    }

    fn pool_with(finals: bool) -> BatchPool {
        let observation = Leaf::real::<bool>(&[3]).named("awake");
        let info = Space::from(Leaf::real::<bool>(&[]).named("asked"));
        BatchPool::new(&Layout { observation: observation.into(), info, finals, capacity: 2 }).unwrap()
    }

    fn pool() -> BatchPool {
        pool_with(true)
    }

    /// Every place of a draft whose column is of bools.
    fn bools(places: &Places) -> Vec<Place> {
        let finals = places.finals.as_ref().unwrap();
        let leaves = places.observation.iter().chain(&places.info).chain(&places.info_mask);
        let finals =
            finals.ended.iter().chain(&finals.observation).chain(&finals.info).chain(&finals.info_mask);
        leaves.chain(&places.terminated).chain(&places.truncated).chain(finals).copied().collect()
    }

    #[test]
    fn bytes_that_another_process_wrote_are_bools_before_anyone_sees_them() {
        let mut pool = pool();
        let count = bools(draft(&mut pool).rows_mut().places()).len();
        for k in 0..count {
            let (mut from, to) = (draft(&mut pool), draft(&mut pool));
            let place = bools(from.rows_mut().places())[k];
            let ended = from.rows_mut().places().finals.as_ref().unwrap().ended.unwrap();
            // SAFETY: both columns have a second row, and there is no reference to it.
            unsafe {
                ended.ptr.add(1).write(1);
                place.ptr.add(place.elements).write(7);
            }
            // SAFETY: the drafts are alive, and only this test uses them.
            unsafe {
                assert!(from.window().row_status(0).is_sound);
                assert!(!from.window().row_status(1).is_sound, "place {k}");
                from.window().set_kind(1, 99);
                from.window().copy_row(1, to.window(), 1);
            }
            let batch = pool.finish(to);
            let finals = batch.finals.as_ref().unwrap();
            let columns = batch.observation.iter().chain(&batch.infos.columns);
            let columns = columns.chain(&finals.observation).chain(&finals.infos.columns);
            let columns = columns.filter_map(Column::as_fixed).chain(&batch.infos.masks);
            let columns = columns.chain(&finals.infos.masks).chain([&finals.ended]);
            let columns: Vec<&Fixed> = columns.chain([&batch.terminated, &batch.truncated]).collect();
            assert_eq!(columns.len(), count);
            let bytes: Vec<u8> = columns.iter().flat_map(|column| column.bytes().to_vec()).collect();
            assert!(bytes.iter().all(|byte| *byte <= 1), "place {k}: {bytes:?}");
            assert!(bytes.contains(&1));
            assert_eq!(batch.kind(1), RowKind::Failed);
        }
    }

    #[test]
    fn bytes_that_the_last_user_of_a_block_left_are_never_seen_as_bools() {
        let mut pool = pool_with(false);
        let soiled = |pool: &mut BatchPool| {
            let mut draft = draft(pool);
            let place = draft.rows_mut().places().observation[0];
            // SAFETY: the column has two rows of three bytes, and there is no reference to them.
            unsafe { place.ptr.write_bytes(7, 6) }
            draft
        };
        let used = soiled(&mut pool);
        drop(pool.finish(used));
        let mut draft = draft(&mut pool);
        assert_eq!(draft.rows_mut().observation(0).fixed::<bool>(), [false; 3]);
        let batch = pool.finish(draft);
        let column = batch.observation[0].as_fixed().unwrap();
        assert_eq!(column.bytes(), [0, 0, 0, 7, 7, 7], "the block came back");
        assert_eq!(column.row::<bool>(0), [false; 3]);
        let reads: [&dyn Fn(); 2] =
            [&|| drop(column.row::<bool>(1).to_vec()), &|| drop(column.as_slice::<bool>().to_vec())];
        for read in reads {
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(read));
            assert!(outcome.is_err(), "nobody wrote the second row");
        }
        let mut whole = soiled(&mut pool);
        let mut rows = whole.rows_mut();
        let part = Part::Observation(0);
        assert!(
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| rows.elements_of::<bool>(part).len()))
                .is_err()
        );
        assert_eq!(rows.columns().observation.leaf::<bool>(0), [false; 6]);
        assert_eq!(rows.elements_of::<bool>(part), [false; 6]);
    }

    #[test]
    fn a_row_that_is_cleared_says_so_and_nothing_else() {
        let mut pool = pool();
        let mut draft = draft(&mut pool);
        draft.rows_mut().observation(1).fixed::<bool>().fill(true);
        draft.rows_mut().info(1).scalar(true);
        draft.rows_mut().set(1, 2.5, true, true);
        draft.rows_mut().finish(1, 1);
        // SAFETY: the draft is alive, and only this test uses it.
        unsafe {
            assert!(draft.window().row_status(1).ended);
            draft.window().clear_row(1, RowKind::Failed as u8);
        }
        let batch = pool.finish(draft);
        assert_eq!(batch.kind(1), RowKind::Failed);
        assert_eq!(batch.reward.as_slice::<f64>(), [0.0; 2]);
        let finals = batch.finals.as_ref().unwrap();
        let flags = [&batch.terminated, &batch.truncated, &finals.ended, &batch.infos.masks[0]];
        assert!(flags.iter().all(|flags| !flags.as_slice::<bool>()[1]));
        assert_eq!(batch.observation[0].as_fixed().unwrap().row::<bool>(1), [false; 3]);
    }
}

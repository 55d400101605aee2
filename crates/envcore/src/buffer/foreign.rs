//! Batches across a C boundary: the addresses of rows for foreign code, and rows at
//! addresses that a host gives.

// Each side of the boundary is a feature of this crate.
#![cfg_attr(not(all(feature = "export", feature = "load")), allow(dead_code))]

use std::ffi::c_void;

use crate::buffer::act_row::ActReader;
use crate::buffer::column::are_bools;
use crate::buffer::place::{Place, Places};
use crate::buffer::rows::RowsMut;
use crate::space::{DType, Space, Value};

/// The addresses of the first of some rows in each column.
#[derive(Default)]
pub(crate) struct Addresses {
    /// Null for a leaf that is not of fixed shape; the same is true of `info`.
    pub(crate) observation: Vec<*mut c_void>,
    pub(crate) reward: *mut f64,
    pub(crate) terminated: *mut u8,
    pub(crate) truncated: *mut u8,
    pub(crate) info: Vec<*mut c_void>,
    pub(crate) info_mask: Vec<*mut u8>,
}

// SAFETY: the struct only holds addresses and does not follow them.
unsafe impl Send for Addresses {}

/// Dtype and elements of a leaf; `None` where it is not of fixed shape.
pub(crate) type LeafLayout = Option<(DType, usize)>;

/// Whether `places` have these leaves.
pub(super) fn are_of(places: &[Place], leaves: &[LeafLayout]) -> bool {
    let layout = |place: &Place| place.dtype().map(|dtype| (dtype, place.elements));
    places.len() == leaves.len() && places.iter().zip(leaves).all(|(place, leaf)| layout(place) == *leaf)
}

impl RowsMut<'_> {
    /// Whether these rows have these leaves of the observation, and infos that begin with
    /// these. A runner's own info leaves follow those of the source.
    pub(crate) fn are_of(&self, observation: &[LeafLayout], info: &[LeafLayout]) -> bool {
        let own = self.places().info.get(..info.len());
        are_of(&self.places().observation, observation) && own.is_some_and(|own| are_of(own, info))
    }

    /// The addresses of these rows, for code that writes them during a call that borrows
    /// the rows. That code may write bytes that are no valid `bool`s, so
    /// [`make_bools`](Self::make_bools) must be called before anyone reads the rows.
    pub(crate) fn addresses(&mut self, to: &mut Addresses) {
        let start = self.start();
        let at = |place: &Place| place.row(start);
        let places = self.places();
        to.observation.clear();
        to.observation.extend(places.observation.iter().map(at));
        to.info.clear();
        to.info.extend(places.info.iter().map(at));
        to.info_mask.clear();
        to.info_mask.extend(places.info_mask.iter().map(|place| at(place).cast::<u8>()));
        let only = |place: &Option<Place>| at(place.as_ref().expect("a draft has all its places"));
        to.reward = only(&places.reward).cast();
        to.terminated = only(&places.terminated).cast();
        to.truncated = only(&places.truncated).cast();
    }

    /// A flag of row `row` that foreign code wrote and that is neither 0 nor 1: the flag's name
    /// in `corral.h` and what was written. Those of the episode's end are looked at where
    /// `has_ends` is true. To be asked before `make_bools`.
    pub(crate) fn odd_flag(&mut self, row: usize, has_ends: bool) -> Option<(String, u8)> {
        let start = self.start();
        assert!(row < self.len(), "a row of another window");
        let places = self.places();
        let odd = |place: &Place| {
            let first = place.row(start + row).cast::<u8>().cast_const();
            // SAFETY: the row is within the window (checked) and has `elements` bytes, which
            // belong to this window alone.
            let bytes = unsafe { std::slice::from_raw_parts(first, place.elements) };
            bytes.iter().copied().find(|byte| *byte > 1)
        };
        let ends = places.terminated.iter().map(|place| ("terminated", place));
        let ends = ends.chain(places.truncated.iter().map(|place| ("truncated", place)));
        for (name, place) in ends.filter(|_| has_ends) {
            if let Some(byte) = odd(place) {
                return Some((name.into(), byte));
            }
        }
        let leaves = [("observation", &places.observation), ("info", &places.info)];
        for (name, places) in leaves.into_iter().chain([("info_mask", &places.info_mask)]) {
            let bools = places.iter().enumerate().filter(|(_, place)| place.dtype() == Some(DType::Bool));
            if let Some((leaf, byte)) = bools.filter_map(|(leaf, place)| Some((leaf, odd(place)?))).next() {
                return Some((format!("{name}[{leaf}]"), byte));
            }
        }
        None
    }

    /// Makes every byte of a `bool` column a valid `bool`: what is not 0 becomes 1.
    pub(crate) fn make_bools(&mut self) {
        let (start, len) = (self.start(), self.len());
        let places = self.places();
        let flags = places.terminated.iter().chain(&places.truncated).chain(&places.info_mask);
        let leaves = places.observation.iter().chain(&places.info);
        for place in flags.chain(leaves.filter(|place| place.dtype() == Some(DType::Bool))) {
            let first = place.row(start).cast::<u8>();
            // SAFETY: the column has rows start..start + len of `elements` bytes, which belong
            // to this window alone. The foreign code has written what it was told to write
            // (`addresses`).
            let bytes = unsafe { std::slice::from_raw_parts_mut(first, len * place.elements) };
            // As a rule there is nothing to write, and to look is quicker.
            if !are_bools(bytes) {
                bytes.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
            }
        }
    }
}

impl Place {
    /// The address of row `row`, which is within the column or just past its end; null where
    /// the leaf is not of fixed shape.
    fn row(&self, row: usize) -> *mut c_void {
        match self.dtype() {
            Some(dtype) => self.ptr.wrapping_add(row * self.elements * dtype.size()).cast(),
            None => std::ptr::null_mut(),
        }
    }
}

/// The values of a leaf that is not of fixed shape, which has no place in a host's memory.
struct Loose {
    leaf: usize,
    values: Vec<Value>,
}

impl Loose {
    fn of(space: &Space) -> Vec<Loose> {
        let loose = space.leaves().iter().enumerate().filter(|(_, leaf)| leaf.as_fixed().is_none());
        loose.map(|(leaf, _)| Loose { leaf, values: Vec::new() }).collect()
    }

    /// Makes `places` point to values for `len` rows.
    fn fit(loose: &mut [Loose], places: &mut [Place], len: usize) {
        for Loose { leaf, values } in loose {
            if values.len() < len {
                values.resize(len, Value::None);
                places[*leaf] = Place::of_values(values.as_mut_ptr());
            }
        }
    }
}

fn places_of(space: &Space) -> Vec<Place> {
    let place = |leaf: &crate::Leaf| match leaf.as_fixed() {
        Some(tensor) => Place::nowhere(tensor.dtype, tensor.elements()),
        None => Place::of_values(std::ptr::null_mut()),
    };
    space.leaves().iter().map(place).collect()
}

/// Rows in a host's memory.
pub(crate) struct HostRows {
    places: Places,
    observation: Vec<Loose>,
    info: Vec<Loose>,
}

impl HostRows {
    pub(crate) fn new(observation: &Space, info: &Space) -> Self {
        let flags = || Place::nowhere(DType::Bool, 1);
        let places = Places {
            observation: places_of(observation),
            reward: Some(Place::nowhere(DType::F64, 1)),
            terminated: Some(flags()),
            truncated: Some(flags()),
            info: places_of(info),
            info_mask: info.leaves().iter().map(|_| flags()).collect(),
            ..Places::default()
        };
        HostRows { places, observation: Loose::of(observation), info: Loose::of(info) }
    }

    /// How many leaves the observation and the infos have.
    pub(crate) fn leaves(&self) -> (usize, usize) {
        (self.places.observation.len(), self.places.info.len())
    }

    /// `len` rows at these addresses.
    ///
    /// # Safety
    /// For every leaf of fixed shape there must be an address with `len` rows of initialised
    /// elements of the leaf's dtype, aligned for the dtype. The same is required of rewards,
    /// flags and masks. Nobody else may use any of this memory while the rows are used.
    pub(crate) unsafe fn at(&mut self, addresses: &Addresses, len: usize) -> RowsMut<'_> {
        let places = &mut self.places;
        let put = |places: &mut [Place], from: &[*mut c_void]| {
            let fixed = places.iter_mut().zip(from).filter(|(place, _)| place.dtype().is_some());
            fixed.for_each(|(place, address)| place.ptr = address.cast());
        };
        put(&mut places.observation, &addresses.observation);
        put(&mut places.info, &addresses.info);
        for (place, address) in places.info_mask.iter_mut().zip(&addresses.info_mask) {
            place.ptr = *address;
        }
        let put = |place: &mut Option<Place>, address: *mut u8| {
            place.as_mut().expect("`new` made it").ptr = address;
        };
        put(&mut places.reward, addresses.reward.cast());
        put(&mut places.terminated, addresses.terminated);
        put(&mut places.truncated, addresses.truncated);
        Loose::fit(&mut self.observation, &mut places.observation, len);
        Loose::fit(&mut self.info, &mut places.info, len);
        RowsMut::whole(&self.places, len)
    }

    /// Takes what was written to leaves of the observation and of the infos that are not of
    /// fixed shape. `each` gets whether the leaf is an info, the leaf, the row, the value.
    pub(crate) fn take_loose(&mut self, mut each: impl FnMut(bool, usize, usize, Value)) {
        for (is_info, loose) in [(false, &mut self.observation), (true, &mut self.info)] {
            for Loose { leaf, values } in loose {
                for (row, value) in values.iter_mut().enumerate() {
                    match std::mem::take(value) {
                        Value::None => {}
                        value => each(is_info, *leaf, row, value),
                    }
                }
            }
        }
    }
}

/// Actions in a host's memory.
pub(crate) struct HostActions {
    places: Vec<Place>,
    loose: Vec<Loose>,
    slots: usize,
}

// SAFETY: the structs only hold addresses; `HostRows::at` and `HostActions::at` say who
// may follow them.
unsafe impl Send for HostActions {}

impl HostActions {
    pub(crate) fn new(space: &Space, slots: usize) -> Self {
        HostActions { places: places_of(space), loose: Loose::of(space), slots }
    }

    /// Sets the action of `slot` in `leaf`, which is not of fixed shape.
    pub(crate) fn set_loose(&mut self, leaf: usize, slot: usize, value: Value) {
        Loose::fit(&mut self.loose, &mut self.places, self.slots);
        if let Some(loose) = self.loose.iter_mut().find(|loose| loose.leaf == leaf) {
            loose.values[slot] = value;
        }
    }

    /// How many leaves actions have.
    pub(crate) fn leaves(&self) -> usize {
        self.places.len()
    }

    /// The leaves that are not of fixed shape.
    pub(crate) fn loose(&self) -> impl Iterator<Item = usize> + use<> {
        self.loose.iter().map(|loose| loose.leaf).collect::<Vec<_>>().into_iter()
    }

    /// A reader of the actions at these addresses.
    ///
    /// # Safety
    /// For every leaf of fixed shape there must be an address with a row for each slot of
    /// initialised elements of the leaf's dtype, aligned for the dtype. Nobody may write the
    /// elements while they are read.
    pub(crate) unsafe fn at(&mut self, addresses: &[*const c_void]) -> ActReader<'_> {
        Loose::fit(&mut self.loose, &mut self.places, self.slots);
        let fixed = self.places.iter_mut().zip(addresses).filter(|(place, _)| place.dtype().is_some());
        fixed.for_each(|(place, address)| place.ptr = address.cast_mut().cast());
        // SAFETY: the caller guarantees the addresses; the struct has a value for each slot.
        unsafe { ActReader::over(&self.places, 0, self.slots) }
    }
}

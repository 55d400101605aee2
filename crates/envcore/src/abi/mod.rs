//! C ABIs: environments for hosts of other languages, and foreign libraries as sources. Each
//! ABI has a module with `sys` (its layout), `export` and `load`.

#![allow(unsafe_code)]

#[cfg(feature = "load")]
mod elf;
pub mod env_c_api;
#[cfg(feature = "export")]
mod handle;
pub mod libenv;
#[cfg(feature = "load")]
mod library;
#[cfg(feature = "export")]
mod options;
pub mod plugin;

#[cfg(feature = "load")]
pub use elf::exports;

/// Puts C interfaces to environments into a `cdylib`, so that hosts of other
/// languages can load it: libenv's (gym3), DeepMind's EnvCApi and Corral's own.
///
/// ```ignore
/// envcore::export_envs! {
///     "Walk-v0" => Walk,
///     "Run-v0" => Run { about: "Run as far as you can.", steps: 200, solved_at: 90.0, fps: 50 },
/// }
/// ```
///
/// This macro is called once per library, at its root. The items in braces are methods of
/// [`Entry`](crate::Entry). The table itself is `CORRAL_ENVS`.
#[macro_export]
macro_rules! export_envs {
    ($($id:literal => $env:ty $({ $($key:ident : $value:expr),* $(,)? })?),+ $(,)?) => {
        /// The environments that this library exports.
        pub static CORRAL_ENVS: &[$crate::Entry] =
            &[$($crate::Entry::new::<$env>($id, "")$($(.$key($value))*)?),+];
        $crate::export_table!(CORRAL_ENVS);
    };
}

/// Exports a table that is declared elsewhere, as [`export_envs!`] does its own.
#[macro_export]
macro_rules! export_table {
    ($table:expr) => {
        $crate::export_plugin!($table);
        $crate::export_libenv!($table);
        $crate::export_env_c_api!($table);
    };
    ($table:expr, $name:expr) => {
        $crate::export_plugin!($table);
        $crate::export_libenv!($table);
        $crate::export_env_c_api!($table, $name);
    };
}

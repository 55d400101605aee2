//! DeepMind's EnvCApi, version 1.4: one context is one env, which a host starts,
//! advances and looks at by a table of functions.

#[cfg(feature = "export")]
pub mod export;
#[cfg(feature = "load")]
pub mod load;
pub mod sys;

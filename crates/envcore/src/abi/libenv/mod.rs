//! libenv, version 1: the C ABI of OpenAI's gym3 and procgen.

#[cfg(feature = "export")]
pub mod export;
#[cfg(all(feature = "load", unix))]
pub mod load;
pub mod sys;

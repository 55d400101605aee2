//! libenv, version 1: the C ABI of OpenAI's gym3 and procgen.

pub mod sys;

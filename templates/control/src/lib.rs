//! The environments of `my_env`. Each is a file of its own and a line below.

mod walk;

pub use walk::{Observation, Push, Walk, WalkConfig};

// By id: what `about` says stands in `corral list`, `steps` is the usual time
// limit. Also: `solved_at: 0.5` (a mean return), `fps: 30` (for videos).
envcore::export_envs! {
    "Walk-v0" => Walk { about: "Reach a goal on a windy square, by pushes.", steps: 100 },
}

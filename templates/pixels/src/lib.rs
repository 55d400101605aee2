//! The environments of `my_env`. Each is a file of its own and a line below.

mod walk;

pub use walk::{SIDE, Screen, Walk, WalkConfig};

// By id: what `about` says stands in `corral list`, `steps` is the usual time
// limit. Also: `solved_at: 9.0` (a mean return), `fps: 30` (for videos).
envcore::export_envs! {
    "Walk-v0" => Walk { about: "Catch ten falling balls, seen as pixels.", steps: 1000, fps: 30 },
}

//! Classic control: Gymnasium's own dynamics, bit for bit.
//!
//! Licence: the equations are those of Gymnasium (Farama Foundation, MIT), the code is Corral's own.

mod acrobot;
mod cart_pole;
mod hills;
pub mod lanes;
mod mountain_car;
mod mountain_car_continuous;
mod numpy_f32;
mod pendulum;
mod start;

pub use acrobot::{Acrobot, AcrobotConfig, AcrobotEquations};
pub use cart_pole::{CartLanes, CartPole, CartPoleConfig};
pub use mountain_car::{MountainCar, MountainCarConfig};
pub use mountain_car_continuous::{MountainCarContinuous, MountainCarContinuousConfig};
pub use pendulum::{Pendulum, PendulumConfig};

use crate::Entry;

/// The family's table.
pub const TABLE: &[Entry] = &[
    Entry::new::<CartPole>(
        "CartPole-v1",
        "Balance a pole on a cart that is pushed left or right; Gymnasium's own trajectories.",
    )
    .by_field::<CartPole, 4>()
    .steps(500)
    .solved_at(475.0)
    .fps(50),
    Entry::new::<Pendulum>(
        "Pendulum-v1",
        "Swing a pendulum up and hold it there by a torque; Gymnasium's own trajectories.",
    )
    .by_field::<Pendulum, 3>()
    .steps(200)
    .fps(30),
    Entry::new::<MountainCar>(
        "MountainCar-v0",
        "Rock a weak car out of a valley: left, nothing or right; Gymnasium's own trajectories.",
    )
    .by_field::<MountainCar, 2>()
    .steps(200)
    .solved_at(-110.0)
    .fps(30),
    Entry::new::<MountainCarContinuous>(
        "MountainCarContinuous-v0",
        "Rock a weak car out of a valley by any force; Gymnasium's own trajectories.",
    )
    .by_field::<MountainCarContinuous, 3>()
    .steps(999)
    .solved_at(90.0)
    .fps(30),
    Entry::new::<Acrobot>(
        "Acrobot-v1",
        "Swing two links above a line by the joint between them; Gymnasium's own trajectories.",
    )
    .by_field::<Acrobot, 5>()
    .steps(500)
    .solved_at(-100.0)
    .fps(15),
];

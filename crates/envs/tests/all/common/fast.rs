//! CartPole with `fast=True` as a plain env: the kernel over one cart.

use envcore::{ByField, Caps, Discrete, Env, Options, Record, Result, Space, Step, simd};
use envs::classic::{CartPole, CartPoleConfig, Carts};

pub struct FastCartPole {
    env: CartPole,
    config: CartPoleConfig,
}

impl Env for FastCartPole {
    type Config = CartPoleConfig;
    type Obs = [f32; 4];
    type Act = Discrete<2>;
    type Info = ();

    const CAPS: Caps = CartPole::CAPS;

    fn build(config: &CartPoleConfig, seed: i64) -> Result<Self> {
        Ok(FastCartPole { env: CartPole::build(config, seed)?, config: config.clone() })
    }

    fn observation_space(config: &CartPoleConfig) -> Result<Space> {
        CartPole::observation_space(config)
    }

    fn step(&mut self, a: &Discrete<2>) -> Result<(Step<Self>, Record)> {
        assert!(!self.config.sutton_barto_reward);
        let mut fields = self.env.fields().map(|number| [number]);
        let (mut observation, mut reward) = ([0.0; 4], [0.0]);
        let (mut terminated, mut truncated) = ([false], [false]);
        simd::dispatch_wide(Carts {
            fields: fields.each_mut().map(|field| &mut field[..]),
            actions: &[a.0],
            reward_of: [1.0, 1.0],
            observation: &mut observation,
            reward: &mut reward,
            terminated: &mut terminated,
            truncated: &mut truncated,
        });
        self.env.set_fields(fields.map(|[number]| number));
        Ok((Step::new(*a, observation, reward[0], ()).terminated_if(terminated[0]), Record::empty()))
    }

    fn reset(&mut self, is_done: Option<&Vec<i8>>) -> Result<[f32; 4]> {
        self.env.reset(is_done)
    }

    fn reset_with_index(&mut self, ix: usize) -> Result<[f32; 4]> {
        self.env.reset_with_index(ix)
    }

    fn set_options(&mut self, options: &Options) -> Result<()> {
        self.env.set_options(options)
    }
}

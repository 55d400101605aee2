//! Blackjack-v1: hold cards that sum to more than the dealer's, and to 21 at
//! most.
//!
//! The rules are those of Gymnasium 1.4's `gymnasium/envs/toy_text/blackjack.py`
//! (example 5.1 of Sutton and Barto's book), with a draw for a draw, so that from
//! the same seed the same trajectory comes out. Cards are drawn from an endless
//! deck: 1 is an ace, and a ten is four times as likely as any other. An ace counts
//! 11 where the sum stays within 21: it is usable.
//!
//! Observation: a tuple of the player's sum, the dealer's open card, and whether
//! the player has a usable ace. Action: 0 stick, 1 take a card. Reward: −1 for a
//! sum above 21; after sticking, when the dealer has taken cards up to 17 or more,
//! 1, 0 or −1 for a win, a draw or a loss. An ace and a ten as the first two cards
//! are a natural. With `sab`, Sutton and Barto's rule, a natural wins against any
//! hand of the dealer's but a natural; without `sab`, `natural` makes a win by it
//! worth 1.5. Terminated: after sticking, and above 21. There is no time limit.
//! Index ix is the episode of seed ix.
//!
//! Versions: v1 is Gymnasium's, which treats naturals as the book does; its v0 did not.

mod draw;
mod env;

pub use env::{Blackjack, BlackjackConfig};

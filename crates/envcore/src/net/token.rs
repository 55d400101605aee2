//! The secret that a client must show.

use std::fmt;

use subtle::ConstantTimeEq;

use crate::error::{Error, Result};

/// The least number of characters: fewer are guessed.
const LEAST: usize = 16;
/// The most, which fit into INIT.
const MOST: usize = 4096;

/// A secret. It is compared in a time that does not depend on where it differs, and never
/// printed.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// The secret `text`, without white space around it.
    ///
    /// # Errors
    /// [`Error::Argument`] for fewer than 16 characters, or more than 4096.
    pub fn new(text: &str) -> Result<Self> {
        let text = text.trim();
        let count = text.chars().count();
        if !(LEAST..=MOST).contains(&count) {
            return Err(Error::Argument(format!(
                "a token has from {LEAST} to {MOST} characters, and this one has {count}"
            )));
        }
        Ok(Token(text.into()))
    }

    /// Whether `shown` is this secret.
    pub(super) fn is(&self, shown: &str) -> bool {
        self.0.as_bytes().ct_eq(shown.as_bytes()).into()
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(<secret>)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_itself_and_nothing_else_and_is_not_printed() {
        let token = Token::new(" 0123456789abcdef\n").unwrap();
        assert!(token.is("0123456789abcdef"));
        for other in ["", "0123456789abcdeg", "0123456789abcde", "0123456789abcdef0", " 0123456789abcdef"] {
            assert!(!token.is(other), "{other}");
        }
        assert_eq!(format!("{token:?}"), "Token(<secret>)");
        assert!(Token::new("short").unwrap_err().to_string().contains("has 5"));
    }
}

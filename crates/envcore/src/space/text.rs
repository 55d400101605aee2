//! Text that its copies share.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Text whose clones share its letters, so that an env can show the same text at every step
/// without an allocation.
///
/// ```
/// use envcore::Text;
///
/// const GOAL: Text = Text::from_static("get to the goal");
/// let key = Text::from(format!("get the {} key", "red"));
/// assert_eq!(&*key, "get the red key");
/// assert!(key.is_shared_with(&key.clone()) && !key.is_shared_with(&GOAL));
/// ```
#[derive(Clone)]
pub struct Text(Letters);

#[derive(Clone)]
enum Letters {
    Static(&'static str),
    Counted(Arc<str>),
}

impl Text {
    /// Text that the program holds.
    pub const fn from_static(text: &'static str) -> Self {
        Text(Letters::Static(text))
    }

    /// The letters.
    #[inline]
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Letters::Static(text) => text,
            Letters::Counted(text) => text,
        }
    }

    /// Whether both texts lie in the same memory; then they are equal.
    #[inline]
    pub fn is_shared_with(&self, other: &Text) -> bool {
        std::ptr::eq(self.as_str(), other.as_str())
    }
}

impl Default for Text {
    fn default() -> Self {
        Text::from_static("")
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Text(Letters::Counted(text.into()))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Text(Letters::Counted(text.into()))
    }
}

impl From<Text> for String {
    fn from(text: Text) -> Self {
        text.as_str().to_owned()
    }
}

/// Equality by content.
impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Text {}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from).map(Text::from)
    }
}

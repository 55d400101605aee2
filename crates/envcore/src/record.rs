//! Records, which a step tells beside its info.

use std::borrow::Cow;

use crate::space::Value;

/// Named scalars, arrays and texts of one step, which are added to the infos.
///
/// Keys that [`Env::record_space`](crate::Env::record_space) declares become columns; others
/// become undeclared infos. An empty record costs nothing. Each entry costs an allocation,
/// so an env that reports something at every step should put it into its `Info`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record(Vec<(Cow<'static, str>, Value)>);

impl Record {
    /// A record without entries.
    pub const fn empty() -> Self {
        Record(Vec::new())
    }

    /// Sets `key`, and replaces an earlier value.
    pub fn insert(&mut self, key: impl Into<Cow<'static, str>>, value: impl Into<Value>) {
        let (key, value) = (key.into(), value.into());
        match self.0.iter_mut().find(|(k, _)| *k == key) {
            Some(entry) => entry.1 = value,
            None => self.0.push((key, value)),
        }
    }

    /// This record with one more entry.
    pub fn with(mut self, key: impl Into<Cow<'static, str>>, value: impl Into<Value>) -> Self {
        self.insert(key, value);
        self
    }

    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, v)| v)
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All entries, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(k, v)| (k.as_ref(), v))
    }

    /// Sets every entry of `later`, which replaces earlier values.
    pub fn merge(&mut self, later: Record) {
        for (key, value) in later.0 {
            self.insert(key, value);
        }
    }
}

impl IntoIterator for Record {
    type Item = (Cow<'static, str>, Value);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

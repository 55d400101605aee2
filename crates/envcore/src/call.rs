//! Calls of an env by name: its methods and properties.

use std::borrow::Cow;

use crate::error::{Error, Result};
use crate::space::{Options, Value};

/// What is asked of a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum CallKind {
    /// Call the method of that name; of a property, give the value.
    #[default]
    Call,
    /// Give the property's value.
    Get,
    /// Set the property to the only argument.
    Set,
    /// Give the names of the properties below this one ("" for the root): a map of each
    /// to whether it can be set. The properties of an [`Env`](crate::Env) all lie below
    /// the root.
    List,
}

/// Something that an env knows by name: a method to call, a property to get or set.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Call {
    /// What is asked.
    pub kind: CallKind,
    /// The method or property.
    pub name: String,
    /// Arguments by place.
    pub args: Vec<Value>,
    /// Arguments by name.
    pub kwargs: Options,
}

impl Call {
    /// A call of a method without arguments.
    pub fn new(name: impl Into<String>) -> Self {
        Call { name: name.into(), ..Call::default() }
    }

    /// Sets property `name` to `value`.
    pub fn set(name: impl Into<String>, value: impl Into<Value>) -> Self {
        Call { kind: CallKind::Set, args: vec![value.into()], ..Call::new(name) }
    }

    /// Gets property `name`.
    pub fn get(name: impl Into<String>) -> Self {
        Call { kind: CallKind::Get, ..Call::new(name) }
    }

    /// Argument `k`.
    ///
    /// # Errors
    /// [`Error::ArgumentType`] where there is none, or it is no `T`.
    pub fn arg<'a, T: TryFrom<&'a Value, Error = Error>>(&'a self, k: usize) -> Result<T> {
        let missing = || Error::ArgumentType(format!("'{}' has no argument {k}", self.name));
        let wrong = |error| Error::ArgumentType(format!("'{}': argument {k}: {error}", self.name));
        T::try_from(self.args.get(k).ok_or_else(missing)?).map_err(wrong)
    }

    /// The answer for a property that lies at `place`: sets it where that is asked,
    /// else gives its value.
    ///
    /// # Errors
    /// [`Error::ArgumentType`] where the argument is no `T`.
    pub fn property<T>(&self, place: &mut T) -> Result<Value>
    where
        T: Clone + Into<Value> + for<'a> TryFrom<&'a Value, Error = Error>,
    {
        if self.kind == CallKind::Set {
            *place = self.arg(0)?;
            return Ok(Value::None);
        }
        Ok(place.clone().into())
    }

    /// The error of an env that knows nothing of this name.
    pub fn unknown(&self) -> Error {
        Error::UnknownName(format!("there is nothing called '{}'", self.name))
    }
}

/// A property of an env, which [`Env::call`](crate::Env::call) gets and sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Property {
    /// Its name.
    pub name: Cow<'static, str>,
    /// Whether it can be set.
    pub writable: bool,
}

impl Property {
    /// One that can be got and set.
    pub const fn writable(name: &'static str) -> Self {
        Property { name: Cow::Borrowed(name), writable: true }
    }

    /// One that can be got.
    pub const fn read_only(name: &'static str) -> Self {
        Property { name: Cow::Borrowed(name), writable: false }
    }
}

/// What `call` is to an env `id` that has `properties`: a call of a property's name
/// gets it.
///
/// # Errors
/// [`Error::UnknownName`], [`Error::Unsupported`] for a property that cannot be
/// set, [`Error::Argument`] for arguments that make no sense.
pub(crate) fn settle<'a>(id: &str, properties: &[Property], call: &'a Call) -> Result<Cow<'a, Call>> {
    let name = &call.name;
    let property = properties.iter().find(|property| property.name == *name);
    match (call.kind, property) {
        (CallKind::Call, None) | (CallKind::List, _) => return Ok(Cow::Borrowed(call)),
        (CallKind::Get | CallKind::Set, None) => {
            let names: Vec<&str> = properties.iter().map(|property| property.name.as_ref()).collect();
            let there =
                if names.is_empty() { "has none".into() } else { format!("has {}", names.join(", ")) };
            return Err(Error::UnknownName(format!("{id}: there is no property '{name}' (it {there})")));
        }
        (CallKind::Set, Some(property)) if !property.writable => {
            return Err(Error::Unsupported(format!("{id}: property '{name}' can be read, not set")));
        }
        _ => {}
    }
    let count = usize::from(call.kind == CallKind::Set);
    if call.args.len() != count || !call.kwargs.is_empty() {
        let given = call.args.len() + call.kwargs.iter().count();
        return Err(Error::Argument(format!("{id}: property '{name}' was given {given} arguments")));
    }
    Ok(match call.kind {
        CallKind::Call => Cow::Owned(Call::get(name.clone())),
        _ => Cow::Borrowed(call),
    })
}

/// The names of `properties`, and whether each can be set.
pub(crate) fn listed(properties: &[Property]) -> Value {
    let mut names = Options::new();
    properties.iter().for_each(|property| names.set(property.name.as_ref(), property.writable));
    Value::Map(names)
}

/// The error of an env that answers no calls.
pub(crate) fn no_calls(id: &str, call: &Call) -> Error {
    Error::Unsupported(format!("{id} has nothing to call by name ('{}')", call.name))
}

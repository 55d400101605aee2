//! Calls of an env's methods and properties by name.

use std::borrow::Cow;

use crate::error::{Error, Result};
use crate::frame::ANSI;
use crate::space::{Options, Value};

/// What a call by name does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum CallKind {
    /// Calls the method of that name; of a property, gives the value.
    #[default]
    Call,
    /// Gives the property's value.
    Get,
    /// Sets the property to the only argument.
    Set,
    /// Gives the names of the properties below this one ("" for the root), as a map of each
    /// name to whether the property can be set. All properties of an [`Env`](crate::Env) are
    /// below the root.
    List,
}

/// A call of an env by name: a method to call, or a property to get or set.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Call {
    /// What the call does.
    pub kind: CallKind,
    /// The name of the method or property.
    pub name: String,
    /// Positional arguments.
    pub args: Vec<Value>,
    /// Named arguments.
    pub kwargs: Options,
}

impl Call {
    /// A call of a method without arguments.
    pub fn new(name: impl Into<String>) -> Self {
        Call { name: name.into(), ..Call::default() }
    }

    /// A call that sets property `name` to `value`.
    pub fn set(name: impl Into<String>, value: impl Into<Value>) -> Self {
        Call { kind: CallKind::Set, args: vec![value.into()], ..Call::new(name) }
    }

    /// A call that gets property `name`.
    pub fn get(name: impl Into<String>) -> Self {
        Call { kind: CallKind::Get, ..Call::new(name) }
    }

    /// Whether this call asks for the env as text.
    pub(crate) fn is_ansi(&self) -> bool {
        self.kind == CallKind::Call && self.name == ANSI
    }

    /// Argument `k`.
    ///
    /// # Errors
    /// [`Error::ArgumentType`] where there is no such argument, or it is no `T`.
    pub fn arg<'a, T: TryFrom<&'a Value, Error = Error>>(&'a self, k: usize) -> Result<T> {
        let missing = || Error::ArgumentType(format!("'{}' has no argument {k}", self.name));
        let wrong = |error| Error::ArgumentType(format!("'{}': argument {k}: {error}", self.name));
        T::try_from(self.args.get(k).ok_or_else(missing)?).map_err(wrong)
    }

    /// Answers this call for a property whose value is at `place`: sets the value if the call
    /// asks for that, else gives it.
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

    /// The error of an env that has nothing of this name.
    pub fn unknown(&self) -> Error {
        Error::UnknownName(format!("there is nothing called '{}'", self.name))
    }
}

/// A property of an env, which [`Env::call`](crate::Env::call) gets and sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Property {
    /// The property's name.
    pub name: Cow<'static, str>,
    /// Whether the property can be set.
    pub writable: bool,
}

impl Property {
    /// A property that can be read and set.
    pub const fn writable(name: &'static str) -> Self {
        Property { name: Cow::Borrowed(name), writable: true }
    }

    /// A property that can only be read.
    pub const fn read_only(name: &'static str) -> Self {
        Property { name: Cow::Borrowed(name), writable: false }
    }
}

/// What `call` means to an env `id` that has `properties`: a call of a property's name
/// becomes one that gets the property.
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

/// The names of `properties` with whether each can be set.
pub(crate) fn listed(properties: &[Property]) -> Value {
    let mut names = Options::new();
    properties.iter().for_each(|property| names.set(property.name.as_ref(), property.writable));
    Value::Map(names)
}

/// The error of an env that answers no calls.
pub(crate) fn no_calls(id: &str, call: &Call) -> Error {
    Error::Unsupported(format!("{id} has nothing to call by name ('{}')", call.name))
}

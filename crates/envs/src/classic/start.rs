//! Reset options of the classic envs: two numbers that say where an episode may start.

use envcore::{Error, Options, Result, Value};

/// The numbers `names` as `options` leave them, from what they are `now`.
///
/// # Errors
/// [`Error::UnknownOption`] or [`Error::OptionValue`], which name the option.
pub(super) fn numbers(
    id: &str,
    names: [&str; 2],
    mut now: (f64, f64),
    options: &Options,
) -> Result<(f64, f64)> {
    for (name, value) in options.iter() {
        let number = match value {
            Value::Float(v) if v.is_finite() => *v,
            Value::Int(v) => *v as f64,
            other => {
                let why = format!("{id}: reset option '{name}' is {other:?}, not a finite number");
                return Err(Error::OptionValue(why));
            }
        };
        match names.iter().position(|known| *known == name) {
            Some(0) => now.0 = number,
            Some(_) => now.1 = number,
            None => {
                let [first, second] = names;
                return Err(Error::UnknownOption(format!(
                    "{id}: unknown reset option '{name}'; valid: {first} (now {}), {second} (now {})",
                    now.0, now.1
                )));
            }
        }
    }
    Ok(now)
}

/// `low` and `high`, between which state variables start, as `options` leave them.
///
/// # Errors
/// Those of [`numbers`], and [`Error::OptionValue`] for an empty or infinite range.
pub(super) fn bounds(id: &str, now: (f64, f64), options: &Options) -> Result<(f64, f64)> {
    let (low, high) = numbers(id, ["low", "high"], now, options)?;
    if low > high {
        return Err(Error::OptionValue(format!("{id}: low {low} is above high {high}")));
    }
    if !(high - low).is_finite() {
        return Err(Error::OptionValue(format!("{id}: low and high are too far apart")));
    }
    Ok((low, high))
}

//! Objects that the core passes on and does not open.

use std::any::Any;
use std::sync::Arc;

/// An opaque object, such as a Python object wrapped by the bindings.
pub type Object = Arc<dyn Any + Send + Sync>;

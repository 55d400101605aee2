//! `abi::libenv::sys` against a C compiler's view of `libenv.h`.

use std::mem::{offset_of, size_of};
use std::path::Path;
use std::process::Command;

use envcore::abi::libenv::sys;

/// What each line of the C program's output must be.
fn ours() -> Vec<(String, usize)> {
    let mut told = Vec::new();
    let mut tell = |what: &str, number: usize| told.push((what.to_string(), number));
    macro_rules! layout {
        ($($c:literal, $rust:ty { $($member:ident),* };)*) => {$(
            tell(&format!("sizeof({})", $c), size_of::<$rust>());
            $(tell(&format!("offsetof({}, {})", $c, stringify!($member)), offset_of!($rust, $member));)*
        )*};
    }
    layout! {
        "union libenv_value", sys::Value { uint8, int32, float32 };
        "struct libenv_tensortype", sys::TensorType { name, scalar_type, dtype, shape, ndim, low, high };
        "struct libenv_option", sys::Option { name, dtype, count, data };
        "struct libenv_options", sys::Options { items, count };
        "struct libenv_buffers", sys::Buffers { ob, rew, first, info, ac };
    }
    macro_rules! numbers {
        ($($c:literal = $rust:expr;)*) => {$( tell($c, $rust as usize); )*};
    }
    numbers! {
        "LIBENV_VERSION" = sys::VERSION;
        "LIBENV_MAX_NAME_LEN" = sys::MAX_NAME_LEN;
        "LIBENV_MAX_NDIM" = sys::MAX_NDIM;
        "LIBENV_DTYPE_UINT8" = sys::dtype::UINT8;
        "LIBENV_DTYPE_INT32" = sys::dtype::INT32;
        "LIBENV_DTYPE_FLOAT32" = sys::dtype::FLOAT32;
        "LIBENV_SCALAR_TYPE_REAL" = sys::scalar_type::REAL;
        "LIBENV_SCALAR_TYPE_DISCRETE" = sys::scalar_type::DISCRETE;
        "LIBENV_SPACE_OBSERVATION" = sys::space_name::OBSERVATION;
        "LIBENV_SPACE_ACTION" = sys::space_name::ACTION;
        "LIBENV_SPACE_INFO" = sys::space_name::INFO;
        // Our declarations have `int` where the header has enums.
        "sizeof(enum libenv_dtype)" = size_of::<std::ffi::c_int>();
        "sizeof(enum libenv_scalar_type)" = size_of::<std::ffi::c_int>();
        "sizeof(enum libenv_space_name)" = size_of::<std::ffi::c_int>();
        "sizeof(bool)" = size_of::<bool>();
    }
    told
}

#[test]
fn our_declarations_are_the_headers() {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/corral/include");
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (code, program) = (dir.join("libenv_layout.c"), dir.join("libenv_layout"));
    let ours = ours();
    let prints = ours.iter().map(|(what, _)| format!("    printf(\"%zu\\n\", (size_t)({what}));\n"));
    let body: String = prints.collect();
    let text = format!("#include \"libenv.h\"\nint main(void) {{\n{body}    return 0;\n}}\n");
    std::fs::write(&code, text).unwrap();
    let mut compiler = Command::new("cc");
    compiler.arg("-I").arg(include).arg(&code).arg("-o").arg(&program);
    let built = match compiler.output() {
        Ok(built) => built,
        Err(error) => {
            println!("skipped: there is no C compiler to ask (cc: {error})");
            return;
        }
    };
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let told = Command::new(&program).output().unwrap();
    let told = String::from_utf8(told.stdout).unwrap();
    let theirs: Vec<usize> = told.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(theirs.len(), ours.len());
    for ((what, ours), theirs) in ours.iter().zip(theirs) {
        assert_eq!(*ours, theirs, "{what}");
    }
}

//! Our declarations of libenv are a C compiler's view of `libenv.h`.

#![cfg(unix)]

use std::fmt::Write;
use std::mem::{align_of, offset_of};
use std::path::Path;
use std::process::Command;

use envcore::abi::libenv::sys;

/// What a C compiler says of these expressions.
fn c_says(expressions: &[String]) -> Vec<i64> {
    let mut program =
        String::from("#include <stdio.h>\n#include <stddef.h>\n#include \"libenv.h\"\nint main(void) {\n");
    for expression in expressions {
        writeln!(program, "    printf(\"%ld\\n\", (long)({expression}));").unwrap();
    }
    program += "    return 0;\n}\n";
    let dir = std::env::temp_dir().join(format!("corral-libenv-layout-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let (source, binary) = (dir.join("layout.c"), dir.join("layout"));
    std::fs::write(&source, program).unwrap();
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/corral/include");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let compiled = Command::new(compiler)
        .args(["-DNO_PROTOTYPE", "-Wall", "-Werror", "-I"])
        .arg(include)
        .arg(&source)
        .arg("-o")
        .arg(&binary)
        .output()
        .expect("a C compiler");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let output = Command::new(&binary).output().unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
    String::from_utf8(output.stdout).unwrap().lines().map(|line| line.parse().unwrap()).collect()
}

macro_rules! layout {
    ($($ours:ty = $theirs:literal { $($field:ident)* })*) => {{
        let mut all: Vec<(String, i64)> = Vec::new();
        $(
            all.push((format!("sizeof({})", $theirs), size_of::<$ours>() as i64));
            all.push((format!("_Alignof({})", $theirs), align_of::<$ours>() as i64));
            $(all.push((
                format!("offsetof({}, {})", $theirs, stringify!($field)),
                offset_of!($ours, $field) as i64,
            ));)*
        )*
        all
    }};
}

#[test]
fn our_declarations_are_the_headers() {
    let mut all = layout! {
        sys::Value = "union libenv_value" { uint8 int32 float32 }
        sys::TensorType = "struct libenv_tensortype" { name scalar_type dtype shape ndim low high }
        sys::Option = "struct libenv_option" { name dtype count data }
        sys::Options = "struct libenv_options" { items count }
        sys::Buffers = "struct libenv_buffers" { ob rew first info ac }
    };
    let constants = [
        ("LIBENV_VERSION", sys::VERSION as i64),
        ("LIBENV_MAX_NAME_LEN", sys::MAX_NAME_LEN as i64),
        ("LIBENV_MAX_NDIM", sys::MAX_NDIM as i64),
        ("LIBENV_DTYPE_UINT8", sys::dtype::UINT8.into()),
        ("LIBENV_DTYPE_INT32", sys::dtype::INT32.into()),
        ("LIBENV_DTYPE_FLOAT32", sys::dtype::FLOAT32.into()),
        ("LIBENV_SCALAR_TYPE_REAL", sys::scalar_type::REAL.into()),
        ("LIBENV_SCALAR_TYPE_DISCRETE", sys::scalar_type::DISCRETE.into()),
        ("LIBENV_SPACE_OBSERVATION", sys::space_name::OBSERVATION.into()),
        ("LIBENV_SPACE_ACTION", sys::space_name::ACTION.into()),
        ("LIBENV_SPACE_INFO", sys::space_name::INFO.into()),
        ("sizeof(enum libenv_dtype)", size_of::<std::ffi::c_int>() as i64),
    ];
    all.extend(constants.map(|(name, value)| (name.to_string(), value)));
    let expressions: Vec<String> = all.iter().map(|(expression, _)| expression.clone()).collect();
    let theirs = c_says(&expressions);
    assert_eq!(theirs.len(), all.len());
    for ((expression, ours), theirs) in all.iter().zip(theirs) {
        assert_eq!(*ours, theirs, "{expression}");
    }
    // What gym3 0.3.3 was measured to have.
    assert_eq!([size_of::<sys::TensorType>(), size_of::<sys::Option>()], [212, 144]);
    assert_eq!([size_of::<sys::Options>(), size_of::<sys::Buffers>()], [16, 40]);
}

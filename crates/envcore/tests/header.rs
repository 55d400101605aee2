//! `corral.h` is made of the plugin's declarations: this makes it anew and holds
//! the committed one to it. `make headers` writes it.

use std::path::Path;

use cbindgen::{Builder, Config, DocumentationStyle, EnumConfig, ExportConfig, Language, Style};

const INTRODUCTION: &str = "\
/* Corral's plugin interface, version 5: a shared library of reinforcement-learning
 * environments that Corral runs in batches.
 *
 * A plugin exports one function,
 *
 *     const corral_plugin *corral_plugin_entry(void);
 *
 * which returns a table that stays valid for ever. `corral.load(\"library.so\")`
 * does the rest: threads, autoresets, time limits, statistics, NumPy arrays.
 * An example in C is in Corral's repository, tests/abi/c/counter.c.
 *
 * Made from crates/envcore/src/abi/plugin/sys.rs by `make headers`: do not edit.
 */";

const ENTRANCE: &str = "\
/* The key of the info that a row's events are: a list of lists, each of a name
 * (a text) and a list of values. */
#define CORRAL_EVENTS \"events\"

#if defined(_WIN32)
#define CORRAL_API __declspec(dllexport)
#else
#define CORRAL_API __attribute__((__visibility__(\"default\")))
#endif

/* What a plugin exports. */
CORRAL_API const corral_plugin *corral_plugin_entry(void);

#ifdef __cplusplus
}  /* extern \"C\" */
#endif";

const NAMES: [(&str, &str); 13] = [
    ("Value", "corral_value"),
    ("ValueData", "corral_value_data"),
    ("Field", "corral_field"),
    ("Bound", "corral_bound"),
    ("Leaf", "corral_leaf"),
    ("Node", "corral_node"),
    ("Space", "corral_space"),
    ("Spec", "corral_spec"),
    ("Entry", "corral_entry"),
    ("Reset", "corral_reset"),
    ("Rows", "corral_rows"),
    ("Report", "corral_report"),
    ("Plugin", "corral_plugin"),
];

fn generated() -> String {
    let names = NAMES.iter();
    let mut config = Config {
        language: Language::C,
        style: Style::Both,
        pragma_once: false,
        include_guard: Some("CORRAL_H".into()),
        header: Some(INTRODUCTION.into()),
        trailer: Some(ENTRANCE.into()),
        no_includes: true,
        sys_includes: vec!["stddef.h".into(), "stdint.h".into()],
        after_includes: Some(
            "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n\
             // `slot` for \"no slot\": a failure of the whole call.\n\
             #define CORRAL_NO_SLOT SIZE_MAX"
                .into(),
        ),
        documentation_style: DocumentationStyle::C99,
        line_length: 100,
        tab_width: 4,
        usize_is_size_t: true,
        export: ExportConfig {
            rename: names.map(|(from, to)| ((*from).to_string(), (*to).to_string())).collect(),
            exclude: vec!["CORRAL_PLUGIN_SYMBOL".into(), "CORRAL_NO_SLOT".into()],
            ..ExportConfig::default()
        },
        enumeration: EnumConfig::default(),
        ..Config::default()
    };
    config.export.include = NAMES.iter().map(|(from, _)| (*from).to_string()).collect();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/abi/plugin/sys.rs");
    let bindings = Builder::new().with_config(config).with_src(source).generate().unwrap();
    let mut text = Vec::new();
    bindings.write(&mut text);
    String::from_utf8(text).unwrap()
}

#[test]
fn the_header_is_what_the_declarations_make() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/corral/include/corral.h");
    let text = generated();
    if std::env::var_os("CORRAL_WRITE_HEADERS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &text).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == text, "python/corral/include/corral.h is not current: run `make headers`");
}

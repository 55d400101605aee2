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
 * does the rest: threads, autoresets, time limits, statistics, NumPy arrays. What
 * each function must do is said at its place in `corral_plugin`, at the end.
 *
 *     INCLUDE=$(python -c \"import corral; print(corral.include_dir())\")
 *     cc -std=c99 -O2 -shared -fPIC -I\"$INCLUDE\" walk.c -o walk.so
 *     corral check walk.so
 *
 * builds a plugin and plays it. A whole one, walk.c, whose env walks from a random
 * place between -3 and 3 to 5:
 *
 *     #include <corral.h>
 *     #include <stdlib.h>
 *     typedef struct { uint64_t stream; int32_t at; } slot;  // one env
 *     static const corral_bound LOW = {.integer = -5}, HIGH = {.integer = 5};
 *     static const corral_bound LEFT = {.integer = 0}, RIGHT = {.integer = 1};
 *     static const corral_leaf AT = {.kind = CORRAL_LEAF_FIXED, .dtype = CORRAL_INT32,
 *                                    .num_low = 1, .low = &LOW, .num_high = 1, .high = &HIGH};
 *     static const corral_leaf MOVE = {.kind = CORRAL_LEAF_FIXED, .dtype = CORRAL_INT64, .discrete = 1,
 *                                      .num_low = 1, .low = &LEFT, .num_high = 1, .high = &RIGHT};
 *     static const corral_spec SPEC = {.size = sizeof(corral_spec), .caps = CORRAL_CAP_ENV,
 *         .observation = {.num_leaves = 1, .leaves = &AT}, .action = {.num_leaves = 1, .leaves = &MOVE}};
 *     static void *make(size_t env, const corral_value *options, const corral_report *report) {
 *         (void)env;
 *         if (options == NULL || options->length == 0) return (void *)&SPEC;
 *         report->fail(report->context, CORRAL_NO_SLOT, CORRAL_ERROR_UNKNOWN_OPTION, 0, \"Walk takes none\", 15);
 *         return NULL;
 *     }
 *     static const corral_spec *spec(void *source) { return source; }
 *     static void free_source(void *source) { (void)source; }
 *     static void *chunk(void *source, const int64_t *seeds, size_t n, const corral_report *report) {
 *         slot *slots = calloc(n, sizeof(slot));
 *         (void)source;
 *         if (slots == NULL) report->fail(report->context, CORRAL_NO_SLOT, CORRAL_ERROR_MEMORY, 0, \"\", 0);
 *         for (size_t k = 0; slots != NULL && seeds != NULL && k < n; k++) slots[k].stream = (uint64_t)seeds[k];
 *         return slots;
 *     }
 *     static int32_t reset(void *chunk_, const corral_reset *resets, size_t n, const corral_rows *rows,
 *                          const corral_report *report) {
 *         (void)report;
 *         for (const corral_reset *r = resets; r < resets + n; r++) {
 *             slot *s = (slot *)chunk_ + r->slot;
 *             uint64_t index = (uint64_t)r->value, *from = r->how == CORRAL_BEGIN_INDEX ? &index : &s->stream;
 *             if (r->rebuild) s->stream = (uint64_t)r->rebuild_seed;
 *             if (r->how == CORRAL_BEGIN_SEED) s->stream = (uint64_t)r->value;
 *             if (r->how != CORRAL_BEGIN_KEEP) {
 *                 *from = *from * 6364136223846793005u + 1442695040888963407u;
 *                 s->at = (int32_t)((*from >> 33) % 7) - 3;
 *             }
 *             ((int32_t *)rows->observation[0])[r->row] = s->at;
 *         }
 *         return 0;
 *     }
 *     static int32_t step(void *chunk_, size_t first, size_t n, const uint8_t *skip,
 *                         const void *const *actions, const corral_rows *rows, const corral_report *report) {
 *         (void)report;
 *         for (size_t row = 0; row < n; row++) {
 *             slot *s = (slot *)chunk_ + first + row;
 *             if (skip[first + row]) continue;
 *             s->at += ((const int64_t *)actions[0])[first + row] == 1 ? 1 : -1;
 *             ((int32_t *)rows->observation[0])[row] = s->at;
 *             rows->reward[row] = s->at == 5;
 *             rows->terminated[row] = s->at == 5 || s->at == -5;
 *             rows->truncated[row] = 0;
 *         }
 *         return 0;
 *     }
 *     static const corral_entry WALK = {.id = \"Walk-v0\", .about = \"Go to 5.\", .max_episode_steps = 100,
 *                                       .reward_threshold = 0.9};
 *     static const corral_plugin PLUGIN = {
 *         .abi_version = CORRAL_ABI_VERSION, .entry_size = sizeof(corral_entry),
 *         .size = sizeof(corral_plugin), .name = \"walking\", .num_envs = 1, .envs = &WALK,
 *         .make = make, .spec = spec, .free_source = free_source, .chunk = chunk, .reset = reset,
 *         .step = step, .free_chunk = free};
 *     const corral_plugin *corral_plugin_entry(void) { return &PLUGIN; }
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

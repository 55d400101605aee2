//! What the server says of itself: its metadata, the schemas of its messages, and its routes.

use serde_json::{Map, Value as Json, json};

use super::{ACTION, METADATA, OBSERVATION};
use crate::space::{LeafKind, Scalar, Space, Tensor, Tree, Value};
use crate::vec_env::Spec;

/// The version of the protocol's HTTP interface.
const VERSION: &str = "1.0.0";

/// JSON-RPC's code for a method that there is not.
const NO_METHOD: i32 = -32601;

/// The texts of pages that never change.
pub(super) struct Pages {
    pub(super) metadata: String,
    pub(super) schema: String,
    pub(super) openapi: String,
}

impl Pages {
    pub(super) fn of(spec: &Spec, description: &str, version: &str) -> Self {
        let metadata = json!({
            "name": spec.id,
            "description": description,
            "readme_content": null,
            "version": version,
            "author": null,
            "documentation_url": null,
        });
        let metadata_field = json!({"type": "object", "additionalProperties": true});
        let mut action = fields(&spec.action, ACTION);
        action.insert(METADATA.into(), metadata_field.clone());
        let mut observation = fields(&spec.observation, OBSERVATION);
        observation.insert(METADATA.into(), metadata_field);
        observation.insert("done".into(), json!({"type": "boolean", "default": false}));
        observation.insert("reward".into(), nullable("number"));
        let action = object("Action", action, &names(&spec.action, ACTION));
        let observation = object("Observation", observation, &names(&spec.observation, OBSERVATION));
        let count = json!({"type": "integer", "minimum": 0, "default": 0});
        let state = [("episode_id".to_string(), nullable("string")), ("step_count".to_string(), count)];
        let state = object("State", state.into_iter().collect(), &[]);
        let openapi = openapi(&spec.id, description, &action);
        let schema = json!({"action": action, "observation": observation, "state": state});
        Pages { metadata: metadata.to_string(), schema: schema.to_string(), openapi: openapi.to_string() }
    }
}

/// The answer to any request of MCP, whose id is `id`: these envs have no tools.
pub(super) fn no_tools(id: Option<&Value>) -> String {
    let id = match id {
        Some(Value::Int(number)) => json!(number),
        Some(Value::Text(text)) => json!(text.as_str()),
        _ => Json::Null,
    };
    let error = json!({"code": NO_METHOD, "message": "these envs have no tools of MCP"});
    json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string()
}

fn object(title: &str, properties: Map<String, Json>, required: &[String]) -> Json {
    json!({"title": title, "type": "object", "properties": properties, "required": required})
}

fn nullable(kind: &str) -> Json {
    json!({"anyOf": [{"type": kind}, {"type": "null"}], "default": null})
}

/// The fields of a space: its keys, or `single` where it is no dict.
fn names(space: &Space, single: &str) -> Vec<String> {
    match space.tree() {
        Tree::Dict(branches) => branches.iter().map(|(key, _)| key.clone()).collect(),
        _ => vec![single.into()],
    }
}

fn fields(space: &Space, single: &str) -> Map<String, Json> {
    match space.tree() {
        Tree::Dict(branches) => {
            branches.iter().map(|(key, branch)| (key.clone(), branch_schema(space, branch))).collect()
        }
        tree => [(single.to_string(), branch_schema(space, tree))].into_iter().collect(),
    }
}

fn branch_schema(space: &Space, tree: &Tree) -> Json {
    match tree {
        Tree::Leaf(leaf) => match &space.leaves()[*leaf].kind {
            LeafKind::Fixed(tensor) => tensor_schema(tensor),
            LeafKind::Ragged { dtype, max_shape } => {
                let element = json!({"type": if dtype.is_float() { "number" } else { "integer" }});
                max_shape.iter().rev().fold(element, |items, most| match *most {
                    usize::MAX => json!({"type": "array", "items": items}),
                    most => json!({"type": "array", "items": items, "maxItems": most}),
                })
            }
            LeafKind::Text { max_len: usize::MAX } => json!({"type": "string"}),
            LeafKind::Text { max_len } => json!({"type": "string", "maxLength": max_len}),
            LeafKind::Object => json!({}),
        },
        Tree::Dict(branches) => {
            let inner = branches.iter().map(|(key, branch)| (key.clone(), branch_schema(space, branch)));
            let keys: Vec<&String> = branches.iter().map(|(key, _)| key).collect();
            json!({"type": "object", "properties": inner.collect::<Map<_, _>>(), "required": keys})
        }
        Tree::Tuple(branches) => {
            let items: Vec<Json> = branches.iter().map(|branch| branch_schema(space, branch)).collect();
            let n = items.len();
            json!({"type": "array", "prefixItems": items, "minItems": n, "maxItems": n})
        }
    }
}

fn tensor_schema(tensor: &Tensor) -> Json {
    let kind = match tensor.dtype {
        crate::DType::Bool => "boolean",
        dtype if dtype.is_float() => "number",
        _ => "integer",
    };
    let mut element = json!({"type": kind});
    if tensor.bounds.is_uniform() && kind != "boolean" {
        let (low, high) = tensor.bounds.at(0);
        for (name, bound) in [("minimum", low), ("maximum", high)] {
            match bound {
                Scalar::Int(bound) => {
                    if let Ok(bound) = i64::try_from(bound) {
                        element[name] = json!(bound);
                    }
                }
                Scalar::Real(bound) if bound.is_finite() => element[name] = json!(bound),
                Scalar::Real(_) => {}
            }
        }
    }
    tensor.shape.iter().rev().fold(
        element,
        |items, extent| json!({"type": "array", "items": items, "minItems": extent, "maxItems": extent}),
    )
}

fn openapi(id: &str, description: &str, action: &Json) -> Json {
    let answer = |what: &str| json!({"200": {"description": what}});
    let get = |what: &str| json!({"get": {"summary": what, "responses": answer(what)}});
    let post = |what: &str, body: Json| {
        let body = json!({"content": {"application/json": {"schema": body}}});
        json!({"post": {"summary": what, "requestBody": body, "responses": answer(what)}})
    };
    let seed = json!({"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}]});
    let reset = json!({"type": "object", "properties": {
        "seed": seed, "episode_id": nullable("string"), "options": {"type": "object"},
    }});
    let step = json!({"type": "object", "properties": {"action": action}, "required": ["action"]});
    json!({
        "openapi": "3.1.0",
        "info": {"title": id, "description": description, "version": VERSION},
        "paths": {
            "/reset": post("Begin an episode in an env of its own", reset),
            "/step": post("Play the first step of an episode in an env of its own", step),
            "/state": get("The state of an env that is new"),
            "/metadata": get("What the env is"),
            "/schema": get("JSON schemas of actions, observations and states"),
            "/health": get("Whether the server is up"),
            "/mcp": post("MCP, of which there are no tools", json!({"type": "object"})),
        },
    })
}

//! Tool schemas: read from any provider's shape, written in the form that models receive.
//!
//! A tool has the shape of OpenAI (`{"type": "function", "function": {…}}`, or flat), of Anthropic (`{"name",
//! "description", "input_schema"}`), of Gemini (`{"functionDeclarations": […]}`) or of Bedrock (`{"toolSpec": {…}}`).
//! Models do not receive that JSON: OpenAI writes TypeScript ([`namespace`]), Anthropic and Gemini a form that costs a
//! fixed factor more than compact JSON. Any other tool, one that runs at the provider, is counted by its JSON text and
//! makes the count an estimate.

pub mod namespace;
mod value;

pub use value::Value;

use std::borrow::Cow;

use crate::error::Result;
use crate::node::{Kind, Node, write_json_string};

/// A function that a model may call.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// The name.
    pub name: String,
    /// The description; may be empty.
    pub description: String,
    /// The JSON schema of its arguments.
    pub parameters: Value,
    /// Whether the schema was given as `parameters_json_schema`, which Gemini passes to the model verbatim.
    pub is_raw_schema: bool,
}

/// One tool of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// The original tool as compact JSON.
    pub json: String,
    /// The function, if the tool is one.
    pub function: Option<Function>,
    /// Whether the provider shows it to the model only after a search (`defer_loading`).
    pub is_deferred: bool,
}

impl Function {
    /// Whether it takes no arguments.
    #[must_use]
    pub fn is_parameterless(&self) -> bool {
        self.parameters.get("properties").is_none_or(|properties| properties.members().is_empty())
    }

    /// Name, description and schema as compact JSON, independent of the original shape.
    #[must_use]
    pub fn canonical_json(&self) -> String {
        let mut out = String::from("{\"name\":");
        write_json_string(&self.name, &mut out);
        out.push_str(",\"description\":");
        write_json_string(&self.description, &mut out);
        out.push_str(",\"input_schema\":");
        self.parameters.write_json(&mut out);
        out.push('}');
        out
    }

    /// The element that Claude reads: JSON as Python writes it.
    #[must_use]
    pub fn claude_text(&self) -> String {
        let mut out = String::from("<function>{\"description\": ");
        write_json_string(&self.description, &mut out);
        out.push_str(", \"name\": ");
        write_json_string(&self.name, &mut out);
        out.push_str(", \"parameters\": ");
        self.parameters.write_spaced_json(&mut out);
        out.push_str("}</function>\n");
        out
    }

    /// The texts that Gemini charges for. Name, description, and the strings of the schema (or the schema as JSON).
    #[must_use]
    pub fn gemini_texts(&self) -> Vec<Cow<'_, str>> {
        self.texts_with(|schema, texts| schema.each_string(&mut |text| texts.push(Cow::Borrowed(text))))
    }

    /// The texts that Google's own program counts ([`framing::strings`](super::framing::strings)); a
    /// `parameters_json_schema` as JSON, as the Gemini API charges it.
    #[must_use]
    pub fn google_texts(&self) -> Vec<Cow<'_, str>> {
        self.texts_with(schema_texts)
    }

    fn texts_with<'t>(&'t self, of_schema: impl Fn(&'t Value, &mut Vec<Cow<'t, str>>)) -> Vec<Cow<'t, str>> {
        let mut texts = vec![Cow::Borrowed(&*self.name), Cow::Borrowed(&*self.description)];
        if self.is_raw_schema {
            let mut schema = String::new();
            self.parameters.write_spaced_json(&mut schema);
            texts.push(Cow::Owned(schema));
        } else {
            of_schema(&self.parameters, &mut texts);
        }
        texts
    }
}

/// The texts of a JSON schema that Google's own program counts.
fn schema_texts<'s>(schema: &'s Value, texts: &mut Vec<Cow<'s, str>>) {
    let own = ["format", "description"].iter().filter_map(|key| schema.get(key)?.as_str());
    texts.extend(own.map(Cow::Borrowed));
    for key in ["enum", "required"] {
        let listed = schema.get(key).map_or(&[][..], Value::items);
        texts.extend(listed.iter().filter_map(Value::as_str).map(Cow::Borrowed));
    }
    schema.get("items").into_iter().for_each(|items| schema_texts(items, texts));
    for (name, property) in schema.get("properties").map_or(&[][..], Value::members) {
        texts.push(Cow::Borrowed(name));
        schema_texts(property, texts);
    }
    if let Some(example) = schema.get("example") {
        example.each_key_and_string(&mut |text| texts.push(Cow::Borrowed(text)));
    }
}

/// Reads the `tools` of a request: an array node in any provider's shape. O(bytes).
///
/// # Errors
/// `not_a_list`, and those of [`Node::write_json`], under `tools[i]`.
pub fn read_tools<N: Node>(tools: &N) -> Result<Vec<Tool>> {
    if tools.kind() != Kind::Array {
        let detail = "tools must be a list of objects";
        return Err(crate::error::Error::message("not_a_list", "tools", detail));
    }
    let mut read = Vec::new();
    tools.each_item(|i, tool| {
        read_tool(tool, &mut read).map_err(|error| error.under(&format!("tools[{i}]")))
    })?;
    Ok(read)
}

fn read_tool<N: Node>(node: &N, read: &mut Vec<Tool>) -> Result<()> {
    let mut json = String::new();
    node.write_json(&mut json)?;
    let tool = Value::read(node)?;
    let declarations = tool.get("functionDeclarations").or_else(|| tool.get("function_declarations"));
    if let Some(Value::Array(declarations)) = declarations {
        for declaration in declarations {
            let mut json = String::new();
            declaration.write_json(&mut json);
            read.push(Tool { json, function: function(declaration), is_deferred: false });
        }
        return Ok(());
    }
    if let [(only, _)] = tool.members()
        && only == "cachePoint"
    {
        // A mark of Bedrock for the prompt cache, which costs nothing.
        return Ok(());
    }
    let held = ["function", "toolSpec"].into_iter().find_map(|key| tool.get(key));
    let inner = held.filter(|inner| matches!(inner, Value::Object(_))).unwrap_or(&tool);
    let is_deferred = tool.get("defer_loading") == Some(&Value::Bool(true));
    read.push(Tool { json, function: function(inner), is_deferred });
    Ok(())
}

/// The function of a declaration; `None` for tools that run at the provider.
fn function(declaration: &Value) -> Option<Function> {
    const SCHEMAS: [&str; 4] =
        ["parameters", "input_schema", "parametersJsonSchema", "parameters_json_schema"];
    let name = declaration.get("name")?.as_str()?;
    let kind = declaration.get("type").and_then(Value::as_str);
    let of_bedrock = declaration.get("inputSchema").and_then(|schema| schema.get("json"));
    let schema = SCHEMAS.iter().find_map(|key| Some((*key, declaration.get(key)?)));
    let schema = schema.or_else(|| Some(("inputSchema", of_bedrock?)));
    if schema.is_none() && kind.is_some_and(|kind| kind != "function" && kind != "custom") {
        return None;
    }
    Some(Function {
        name: name.to_owned(),
        description: declaration.get("description").and_then(Value::as_str).unwrap_or_default().to_owned(),
        parameters: schema.map_or(Value::Null, |(_, schema)| schema.clone()),
        is_raw_schema: schema.is_some_and(|(key, _)| key == "parameters_json_schema"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::with_document;

    pub(super) fn read(json: &str) -> Vec<Tool> {
        with_document(json.as_bytes(), |node| read_tools(&node).unwrap()).unwrap()
    }

    #[test]
    fn every_provider_s_shape_is_the_same_function() {
        let schema = r#"{"type":"object","properties":{"a":{"type":"string"}}}"#;
        let mark = r#"{"cachePoint":{"type":"default"}}"#;
        let shapes = [
            format!(
                r#"[{{"type":"function","function":{{"name":"f","description":"d","parameters":{schema}}}}}]"#
            ),
            format!(r#"[{{"type":"function","name":"f","description":"d","parameters":{schema}}}]"#),
            format!(r#"[{{"name":"f","description":"d","input_schema":{schema}}}]"#),
            format!(
                r#"[{{"functionDeclarations":[{{"name":"f","description":"d","parameters":{schema}}}]}}]"#
            ),
            format!(
                r#"[{{"functionDeclarations":[{{"name":"f","description":"d","parametersJsonSchema":{schema}}}]}}]"#
            ),
            format!(
                r#"[{{"toolSpec":{{"name":"f","description":"d","inputSchema":{{"json":{schema}}}}}}},{mark}]"#
            ),
        ];
        let functions: Vec<_> = shapes.iter().map(|shape| read(shape).remove(0).function.unwrap()).collect();
        assert!(functions.iter().all(|function| *function == functions[0]));
        assert_eq!(
            functions[0].canonical_json(),
            format!(r#"{{"name":"f","description":"d","input_schema":{schema}}}"#)
        );
        assert_eq!(
            functions[0].claude_text(),
            "<function>{\"description\": \"d\", \"name\": \"f\", \"parameters\": {\"type\": \"object\", \"properties\": \
             {\"a\": {\"type\": \"string\"}}}}</function>\n"
        );
        assert!(!functions[0].is_parameterless());
        assert_eq!(functions[0].gemini_texts(), ["f", "d", "object", "string"]);
        let raw =
            format!(r#"[{{"function_declarations":[{{"name":"f","parameters_json_schema":{schema}}}]}}]"#);
        let spaced = r#"{"type": "object", "properties": {"a": {"type": "string"}}}"#;
        assert_eq!(read(&raw)[0].function.as_ref().unwrap().gemini_texts(), ["f", "", spaced]);
    }

    #[test]
    fn tools_of_the_provider_are_no_functions() {
        let tools = read(
            r#"[{"type":"web_search_20250305","name":"web_search"},{"type":"web_search"},{"name":"g"}]"#,
        );
        assert_eq!(
            tools.iter().map(|tool| tool.function.is_some()).collect::<Vec<_>>(),
            [false, false, true]
        );
        assert!(tools[2].function.as_ref().unwrap().is_parameterless());
    }
}

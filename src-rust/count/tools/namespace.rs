//! OpenAI's form of functions: a TypeScript namespace with a type for each function.
//!
//! ```text
//! namespace functions {
//!
//! // Current weather.
//! type get_weather = (_: {
//! // Name of the city
//! city: string,
//! unit?: "celsius" | "fahrenheit", // default: celsius
//! }) => any;
//!
//! } // namespace functions
//! ```
//!
//! The form is undocumented. The rules below were fitted to the tokens that OpenAI reported for recorded requests
//! (2026-11): lines of a description are stripped and empty ones dropped, `$ref` is expanded, properties without a
//! TypeScript equivalent (formats, bounds, titles) are omitted. With the constants of [`crate::count::framing`] the
//! text explains every recorded chat request to within one token.

use super::{Function, Value};

/// Longest output; types beyond it become `any`. Nested references let a short schema describe an exponentially large
/// type.
const MAX_BYTES: usize = 1 << 20;

/// Deepest type that is expanded.
const MAX_DEPTH: usize = 64;

/// The namespace of these functions.
#[must_use]
pub fn render<'a>(functions: impl IntoIterator<Item = &'a Function>) -> String {
    let mut out = String::from("namespace functions {\n");
    for function in functions {
        out.push('\n');
        comment(&function.description, &mut out);
        out.push_str("type ");
        out.push_str(&function.name);
        if function.is_parameterless() {
            out.push_str(" = () => any;\n");
        } else {
            out.push_str(" = (_: ");
            if let Some(description) = function.parameters.get("description").and_then(Value::as_str) {
                comment(description, &mut out);
            }
            out.push_str("{\n");
            let mut writer = Writer { out, root: &function.parameters, references: Vec::new() };
            writer.properties(&function.parameters, 0);
            out = writer.out;
            out.push_str("}) => any;\n");
        }
    }
    out.push_str("\n} // namespace functions");
    out
}

/// Writes a description as comment lines.
fn comment(description: &str, out: &mut String) {
    for line in description.lines().map(str::trim).filter(|line| !line.is_empty()) {
        out.push_str("// ");
        out.push_str(line);
        out.push('\n');
    }
}

struct Writer<'a> {
    out: String,
    root: &'a Value,
    /// The references under expansion; a recursive one becomes `any`.
    references: Vec<&'a str>,
}

impl<'a> Writer<'a> {
    fn properties(&mut self, schema: &'a Value, depth: usize) {
        let required = schema.get("required").map_or(&[][..], Value::items);
        let properties = schema.get("properties").map_or(&[][..], Value::members);
        for (name, property) in properties {
            if let Some(description) = property.get("description").and_then(Value::as_str) {
                comment(description, &mut self.out);
            }
            self.out.push_str(name);
            let is_required = required.iter().any(|required| required.as_str() == Some(name));
            self.out.push_str(if is_required { ": " } else { "?: " });
            self.value_type(property, depth);
            self.out.push(',');
            if let Some(default) = property.get("default") {
                self.out.push_str(" // default: ");
                match default {
                    Value::String(text) => self.out.push_str(text),
                    other => other.write_json(&mut self.out),
                }
            }
            self.out.push('\n');
        }
    }

    fn value_type(&mut self, schema: &'a Value, depth: usize) {
        if depth > MAX_DEPTH || self.out.len() > MAX_BYTES {
            self.out.push_str("any");
        } else if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            self.reference(reference, depth);
        } else if let Some(choices) = ["anyOf", "oneOf"].iter().find_map(|key| schema.get(key)) {
            self.joined(choices.items(), " | ", depth);
        } else if let Some(parts) = schema.get("allOf") {
            self.joined(parts.items(), " & ", depth);
        } else if let Some(values) = schema.get("enum") {
            self.literals(values.items());
        } else if let Some(value) = schema.get("const") {
            value.write_json(&mut self.out);
        } else {
            match schema.get("type") {
                Some(Value::Array(names)) => {
                    for (i, name) in names.iter().enumerate() {
                        if i > 0 {
                            self.out.push_str(" | ");
                        }
                        self.named_type(name.as_str(), schema, depth);
                    }
                }
                name => self.named_type(name.and_then(Value::as_str), schema, depth),
            }
        }
    }

    fn named_type(&mut self, name: Option<&str>, schema: &'a Value, depth: usize) {
        let has_properties =
            schema.get("properties").is_some_and(|properties| !properties.members().is_empty());
        match name {
            Some("string") => self.out.push_str("string"),
            Some("integer" | "number") => self.out.push_str("number"),
            Some("boolean") => self.out.push_str("boolean"),
            Some("null") => self.out.push_str("null"),
            Some("array") => self.list_type(schema.get("items"), depth),
            Some("object") | None if has_properties => {
                self.out.push_str("{\n");
                self.properties(schema, depth + 1);
                self.out.push('}');
            }
            Some("object") => self.out.push_str("object"),
            _ => self.out.push_str("any"),
        }
    }

    fn list_type(&mut self, items: Option<&'a Value>, depth: usize) {
        let Some(items) = items else {
            self.out.push_str("any[]");
            return;
        };
        let from = self.out.len();
        self.value_type(items, depth + 1);
        if self.out[from..].contains(" | ") {
            self.out.insert(from, '(');
            self.out.push(')');
        }
        self.out.push_str("[]");
    }

    fn reference(&mut self, reference: &'a str, depth: usize) {
        let step = |value: &'a Value, key: &str| value.get(key);
        let path = reference.trim_start_matches(['#', '/']).split('/');
        let target = path.filter(|key| !key.is_empty()).try_fold(self.root, step);
        match target {
            Some(target) if !self.references.contains(&reference) => {
                self.references.push(reference);
                self.value_type(target, depth + 1);
                self.references.pop();
            }
            _ => self.out.push_str("any"),
        }
    }

    fn joined(&mut self, schemas: &'a [Value], separator: &str, depth: usize) {
        for (i, schema) in schemas.iter().enumerate() {
            if i > 0 {
                self.out.push_str(separator);
            }
            self.value_type(schema, depth + 1);
        }
    }

    fn literals(&mut self, values: &[Value]) {
        for (i, value) in values.iter().enumerate() {
            if i > 0 {
                self.out.push_str(" | ");
            }
            value.write_json(&mut self.out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::tools::tests::read;

    fn rendered(json: &str) -> String {
        let tools = read(json);
        render(tools.iter().filter_map(|tool| tool.function.as_ref()))
    }

    #[test]
    fn functions_become_types() {
        let text = rendered(
            r##"[{"name": "get_weather", "description": " Current weather.\n\n  In a city ", "parameters": {
                "type": "object", "required": ["city"], "properties": {
                    "city": {"type": "string", "description": "Name of the city"},
                    "unit": {"enum": ["C", "F"], "default": "C"},
                    "days": {"type": ["integer", "null"], "default": null},
                    "tags": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
                    "at": {"$ref": "#/$defs/At"}, "extra": {"type": "object"}, "more": {"type": "array"}},
                "$defs": {"At": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}}}},
               {"name": "now", "parameters": {"type": "object", "properties": {}}}]"##,
        );
        let expected = "namespace functions {\n\n\
            // Current weather.\n// In a city\ntype get_weather = (_: {\n// Name of the city\ncity: string,\n\
            unit?: \"C\" | \"F\", // default: C\ndays?: number | null, // default: null\n\
            tags?: (string | null)[],\nat?: {\nx: number,\n},\nextra?: object,\nmore?: any[],\n}) => any;\n\n\
            type now = () => any;\n\n} // namespace functions";
        assert_eq!(text, expected);
    }

    #[test]
    fn endless_types_end() {
        let text = rendered(
            r##"[{"name": "f", "parameters": {"properties": {"t": {"$ref": "#/$defs/T"}, "u": {"$ref": "#/no"}},
               "$defs": {"T": {"properties": {"next": {"$ref": "#/$defs/T"}}}}}}]"##,
        );
        assert!(text.contains("t?: {\nnext?: any,\n},\nu?: any,\n"), "{text}");
        // Every definition refers twice to the next: fully expanded, 2^40 types.
        let definitions: Vec<String> = (0..40)
            .map(|i| {
                let next = format!("{{\"$ref\": \"#/$defs/D{}\"}}", i + 1);
                format!("\"D{i}\": {{\"properties\": {{\"a\": {next}, \"b\": {next}}}}}")
            })
            .collect();
        let schema = definitions.join(", ");
        let text = rendered(&format!(
            r##"[{{"name": "f", "parameters": {{"properties": {{"d": {{"$ref": "#/$defs/D0"}}}}, "$defs": {{{schema}}}}}}}]"##
        ));
        assert!(text.len() < 2 * MAX_BYTES);
    }
}

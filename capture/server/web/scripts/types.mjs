// Writes src/api/generated.ts from the OpenAPI document of a running server, so that a changed route or field causes a
// type error here.
//
//   node scripts/types.mjs FILE|-            the document as a file
//   node scripts/types.mjs --check FILE|-    exits with 1 if generated.ts is out of date
//
// The second line of the output contains a hash of the routes and schemas, so that a test without node notices changes.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const args = process.argv.slice(2);
const check = args[0] === "--check";
const source = args[check ? 1 : 0];
if (source === undefined) {
  console.error("usage: node scripts/types.mjs [--check] FILE|-");
  process.exit(2);
}
const document = JSON.parse(readFileSync(source === "-" ? 0 : source, "utf8"));
const target = fileURLToPath(new URL("../src/api/generated.ts", import.meta.url));

// Independent of the order of fields: an object becomes the list of its fields, sorted by name.
const sorted = (value) => {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== "object") return value;
  const keys = Object.keys(value).sort();
  return keys.map((name) => [name, sorted(value[name])]);
};
const { paths, components } = document;
const hash = createHash("sha256")
  .update(JSON.stringify(sorted({ paths, components })))
  .digest("hex");

const name = (reference) => reference.split("/").at(-1);
const key = (text) => (/^[A-Za-z_$][\w$]*$/.test(text) ? text : JSON.stringify(text));
const comment = (schema, indent) => {
  const text = schema?.description?.replaceAll("*/", "*\\/");
  if (text === undefined) return "";
  const lines = text.split("\n").map((line) => line.trimEnd());
  if (lines.length === 1) return `${indent}/** ${lines[0]} */\n`;
  return `${indent}/**\n${lines.map((line) => `${indent} * ${line}`.trimEnd()).join("\n")}\n${indent} */\n`;
};
const union = (parts) => [...new Set(parts)].join(" | ");
const grouped = (text) => (/[|&]/.test(text) ? `(${text})` : text);

function type(schema, indent) {
  if (schema === undefined || schema === true) return "unknown";
  const alternatives = schema.anyOf ?? schema.oneOf;
  const parts = [];
  if (schema.$ref !== undefined) parts.push(name(schema.$ref));
  if (alternatives !== undefined) parts.push(grouped(union(alternatives.map((part) => type(part, indent)))));
  if (schema.allOf !== undefined) parts.push(...schema.allOf.map((part) => type(part, indent)));
  if (schema.const !== undefined) parts.push(JSON.stringify(schema.const));
  else if (schema.enum !== undefined) parts.push(grouped(union(schema.enum.map((value) => JSON.stringify(value)))));
  else if (schema.type !== undefined) {
    const kinds = [schema.type].flat().map((kind) => plain(kind, schema, indent));
    const text = union(kinds);
    if (parts.length === 0 || text !== "Record<string, unknown>") parts.push(parts.length > 0 ? grouped(text) : text);
  }
  const told = parts.filter((part) => part !== "unknown");
  return told.length === 0 ? "unknown" : told.join(" & ");
}

function plain(kind, schema, indent) {
  switch (kind) {
    case "null":
    case "boolean":
    case "string":
      return kind;
    case "integer":
    case "number":
      return "number";
    case "array":
      if (schema.prefixItems !== undefined) return `[${schema.prefixItems.map((item) => type(item, indent)).join(", ")}]`;
      return `${grouped(type(schema.items, indent))}[]`;
    case "object": {
      if (schema.properties === undefined) {
        const values = schema.additionalProperties || Object.values(schema.patternProperties ?? {})[0];
        return `Record<string, ${values === undefined || values === false ? "unknown" : type(values, indent)}>`;
      }
      const inner = `${indent}  `;
      const required = new Set(schema.required ?? []);
      const fields = Object.entries(schema.properties).map(
        ([field, value]) => `${comment(value, inner)}${inner}${key(field)}${required.has(field) ? "" : "?"}: ${type(value, inner)};`,
      );
      return `{\n${fields.join("\n")}\n${indent}}`;
    }
    default:
      throw new Error(`a type this generator does not know: ${kind}`);
  }
}

function route(path, method, operation, shared) {
  const parameters = [...(shared ?? []), ...(operation.parameters ?? [])];
  const of = (place) =>
    parameters
      .filter((parameter) => parameter.in === place)
      .map((parameter) => `${key(parameter.name)}${parameter.required ? "" : "?"}: ${type(parameter.schema, "    ")}`);
  const record = (fields) => (fields.length === 0 ? "Record<never, never>" : `{ ${fields.join("; ")} }`);
  const good = Object.entries(operation.responses).find(([status]) => status.startsWith("2"))?.[1];
  const answer = good?.content === undefined ? "undefined" : type(Object.values(good.content)[0].schema, "    ");
  const body = operation.requestBody?.content?.["application/json"]?.schema;
  return [
    `  /** ${operation.summary ?? operation.description ?? ""} */`,
    `  ${JSON.stringify(`${method.toUpperCase()} ${path}`)}: {`,
    `    path: ${record(of("path"))};`,
    `    query: ${record(of("query"))};`,
    `    body: ${body === undefined ? "undefined" : type(body, "    ")};`,
    `    answer: ${answer};`,
    "  };",
  ].join("\n");
}

// The meanings of an enumeration's values as a constant: `FINDING_KINDS` for `FindingKind`.
function facts(title, values) {
  if (values === undefined) return "";
  const constant = `${title.replace(/(?<=[a-z])(?=[A-Z])/g, "_").toUpperCase()}S`;
  const rows = Object.entries(values).map(([value, of]) => {
    const fields = Object.entries(of).map(([name, fact]) => `${key(name)}: ${JSON.stringify(fact)}`);
    return `  ${key(value)}: { ${fields.join(", ")} },`;
  });
  const known = new Set(Object.values(values).flatMap((of) => Object.keys(of)));
  const fields = [...known].map((name) => `${key(name)}: ${name === "need" ? "Need | null" : "string"}`);
  return `\n\nexport const ${constant}: Record<${title}, { ${fields.join("; ")} }> = {\n${rows.join("\n")}\n};`;
}

const methods = ["get", "put", "post", "delete", "patch"];
const routes = Object.entries(document.paths).flatMap(([path, operations]) =>
  methods.filter((method) => method in operations).map((method) => route(path, method, operations[method], operations.parameters)),
);
const schemas = Object.entries(document.components.schemas)
  .sort(([left], [right]) => (left < right ? -1 : 1))
  .map(([title, schema]) => `${comment(schema, "")}export type ${title} = ${type(schema, "")};${facts(title, schema["x-facts"])}`);

const text = `// Generated from /openapi.json by scripts/types.mjs. Do not edit.
// SHA-256 of its paths and components: ${hash}

${schemas.join("\n\n")}

/** Every route: its parameters, its body and what it answers. */
export interface Routes {
${routes.join("\n")}
}
`;

if (check) {
  if (readFileSync(target, "utf8") !== text) {
    console.error("src/api/generated.ts is not what the server's /openapi.json says: run `node scripts/types.mjs`");
    process.exit(1);
  }
} else {
  writeFileSync(target, text);
}

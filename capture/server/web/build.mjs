// Builds dist/ from src/ and static/. The same sources give the same bytes: no source maps, no dates, no hashes.
//
// dist/SHA256SUMS has a line for each source file of the bundle and for each file in dist/, so that a test without node
// notices if one was changed without the other. The server does not use or contain it.

import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

/** Maximum size of the whole bundle as browsers receive it, compressed, bytes. */
const LIMIT = 110_000;
/** The sources of the bundle: files, and folders with all their contents. */
const SOURCES = ["build.mjs", "package-lock.json", "package.json", "src", "static", "tsconfig.json"];
const SUMS = "SHA256SUMS";

const at = (path) => fileURLToPath(new URL(path, import.meta.url));
const dist = process.argv[2] ?? at("dist");
rmSync(dist, { recursive: true, force: true });
mkdirSync(dist, { recursive: true });

const shared = {
  bundle: true,
  minify: true,
  legalComments: "none",
  charset: "utf8",
  target: ["chrome123", "firefox125", "safari17.5"],
  logLevel: "warning",
};
await build({
  ...shared,
  entryPoints: { app: at("src/main.tsx") },
  outdir: dist,
  format: "esm",
  jsx: "automatic",
  jsxImportSource: "preact",
});
await build({ ...shared, entryPoints: { sw: at("src/sw.ts") }, outdir: dist, format: "iife" });
for (const file of readdirSync(at("static")).sort()) copyFileSync(at(`static/${file}`), `${dist}/${file}`);

// Ship the licenses of the bundled packages with the bundle.
const packages = ["preact", "@preact/signals", "@preact/signals-core"];
const licenses = packages.map((name) => `${name}\n\n${readFileSync(at(`node_modules/${name}/LICENSE`), "utf8").trim()}\n`);
writeFileSync(`${dist}/licenses.txt`, licenses.join(`\n${"-".repeat(72)}\n\n`));

let sum = 0;
for (const file of readdirSync(dist).sort()) {
  const bytes = readFileSync(`${dist}/${file}`);
  const sent = Math.min(bytes.length, gzipSync(bytes, { level: 9 }).length);
  sum += sent;
  console.log(`${String(bytes.length).padStart(8)} ${String(sent).padStart(8)}  ${file}`);
}
console.log(`${String(sum).padStart(17)}  in all, compressed`);
if (sum > LIMIT) {
  console.error(`the bundle has ${sum} bytes compressed; at most ${LIMIT} are allowed`);
  process.exit(1);
}

/** The paths of the files at and below a path. */
const below = (path) => (statSync(at(path)).isDirectory() ? readdirSync(at(path)).flatMap((name) => below(`${path}/${name}`)) : [path]);
const line = (path, file) => `${createHash("sha256").update(readFileSync(file)).digest("hex")}  ${path}\n`;
const lines = [...readdirSync(dist).map((name) => [`dist/${name}`, `${dist}/${name}`]), ...SOURCES.flatMap(below).map((path) => [path, at(path)])];
lines.sort(([left], [right]) => (left < right ? -1 : 1));
writeFileSync(`${dist}/${SUMS}`, lines.map(([path, file]) => line(path, file)).join(""));

// Builds the console once, into the package: what is served is committed, and a test compares digests with these sources.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

const BUILT = new URL("../src/curador/server/console/", import.meta.url).pathname;
const HERE = new URL(".", import.meta.url).pathname;

// A font and a library without bundled code of their own are not seen by Vite's list of licences.
const FONT = "@fontsource-variable/inter";

/** Every file below a folder, as sorted paths with "/". */
function filesBelow(folder, within = "") {
  return readdirSync(join(folder, within), { withFileTypes: true })
    .flatMap((one) => {
      const path = within ? `${within}/${one.name}` : one.name;
      return one.isDirectory() ? filesBelow(folder, path) : [path];
    })
    .sort();
}

/** What the sources are: package files, the page and everything in src. */
function sourceFiles() {
  const top = ["index.html", "package-lock.json", "package.json", "vite.config.js"];
  return [...top, ...filesBelow(HERE, "src")].sort();
}

function digest(folder, path) {
  return createHash("sha256").update(readFileSync(join(folder, path))).digest("hex");
}

/** Writes the licences and manifest.json: the digest of every source and of every built file. */
function writeManifest() {
  return {
    name: "manifest",
    closeBundle() {
      const licences = join(BUILT, "licences.md");
      const font = readFileSync(join(HERE, "node_modules", FONT, "LICENSE"), "utf8");
      writeFileSync(licences, `${readFileSync(licences, "utf8").trim()}\n\n## ${FONT}\n\n${font.trim()}\n`);
      const all = (folder, names) => Object.fromEntries(names.map((name) => [name, digest(folder, name)]));
      const built = filesBelow(BUILT).filter((name) => name !== "manifest.json");
      const manifest = { version: 1, sources: all(HERE, sourceFiles()), files: all(BUILT, built) };
      writeFileSync(join(BUILT, "manifest.json"), `${JSON.stringify(manifest, null, 1)}\n`);
    },
  };
}

export default defineConfig({
  base: "./",
  plugins: [
    // "tree" makes elements one by one, never by innerHTML: the page lives under require-trusted-types-for 'script'.
    svelte({ compilerOptions: { fragments: "tree" } }),
    writeManifest(),
  ],
  build: {
    outDir: BUILT,
    emptyOutDir: true,
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    license: { fileName: "licences.md" },
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
  },
});

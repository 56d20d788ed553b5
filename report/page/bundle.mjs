// Bundles source/ with the packages that it imports: bundle.mjs FOLDER HASH writes report.js and report.css there.
import {readFileSync, writeFileSync} from "node:fs";
import {build} from "esbuild";

const [folder, hash] = process.argv.slice(2);
const target = ["chrome109", "firefox115", "safari16.4"];

async function bundle(entry, name) {
  const {metafile} = await build({
    entryPoints: [entry], outfile: `${folder}/${name}`, bundle: true, minify: true, format: "iife", target, metafile: true,
    legalComments: "none", logLevel: "warning"});
  const {inputs} = Object.values(metafile.outputs)[0];
  return Object.keys(inputs).filter((path) => inputs[path].bytesInOutput > 0);
}

const inputs = [...await bundle("source/main.ts", "report.js"), ...await bundle("source/main.css", "report.css")];
const names = [...new Set(inputs.flatMap((path) => path.match(/^node_modules\/([^/]+)\//)?.slice(1) ?? []))].sort();
// Packages by what their licences say: most of d3's say the same.
const byText = new Map();
for (const name of names) {
  const text = readFileSync(`node_modules/${name}/LICENSE`, "utf8").trim().replace(/\r/g, "");
  const {version, license} = JSON.parse(readFileSync(`node_modules/${name}/package.json`, "utf8"));
  byText.set(text, [...byText.get(text) ?? [], `${name} ${version} (${license})`]);
}
const licences = [...byText].map(([text, packages]) => packages.join(", ") + "\n\n" + text).join("\n\n\n");
if (licences.includes("*/")) throw new Error("a licence ends the comment that it stands in");
const comment = `/* Bundled from report/page, sources ${hash}, with these packages:\n\n${licences}\n*/\n`;
writeFileSync(`${folder}/report.js`, comment + readFileSync(`${folder}/report.js`, "utf8"));

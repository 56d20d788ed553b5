// Bundles tests/*.test.ts, as node does not read TypeScript, and runs them by node's own test runner.
import {spawnSync} from "node:child_process";
import {mkdtempSync, readdirSync, rmSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {build} from "esbuild";

const folder = mkdtempSync(join(tmpdir(), "report-page-tests-"));
const tests = readdirSync("tests").filter((name) => name.endsWith(".test.ts")).map((name) => "tests/" + name);
await build({entryPoints: tests, outdir: folder, bundle: true, platform: "node", format: "esm", outExtension: {".js": ".mjs"}, logLevel: "warning"});
const {status} = spawnSync(process.execPath, ["--test", "--test-reporter=spec", ...readdirSync(folder).map((name) => join(folder, name))], {stdio: "inherit"});
rmSync(folder, {recursive: true});
process.exit(status ?? 1);

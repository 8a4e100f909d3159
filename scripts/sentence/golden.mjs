// Writes pieces and vectors of texts as the reference implementation computes them: golden.mjs PACKAGES FILE
//
// FILE has one JSON object a line. Its member "text" is read; the others are written. A vector is written as 512 int16
// in base64, each 32767 times the value.
import { readFileSync, writeFileSync } from "node:fs";
import { readModel, requireFrom } from "./model.mjs";

const [packages, file] = process.argv.slice(2);
const require = requireFrom(packages);
const tf = require("@tensorflow/tfjs");
const { Tokenizer } = require("@tensorflow-models/universal-sentence-encoder/dist/tokenizer/index.js");

const { topology, specifications, weights, vocabulary } = readModel(packages);
const weightData = weights.buffer.slice(weights.byteOffset, weights.byteOffset + weights.length);
const load = async () => ({ modelTopology: topology, weightSpecs: specifications, weightData });
const model = await tf.loadGraphModel({ load });
const tokenizer = new Tokenizer(vocabulary);

async function reference(text) {
  const pieces = tokenizer.encode(text);
  const indices = tf.tensor2d(pieces.map((_, i) => [0, i]), [pieces.length, 2], "int32");
  const result = await model.executeAsync({ indices, values: tf.tensor1d(pieces, "int32") });
  const vector = Buffer.from(Int16Array.from(await result.data(), (x) => Math.round(32767 * x)).buffer);
  return JSON.stringify({ text, pieces: pieces.slice(0, 128), vector: vector.toString("base64") });
}

const lines = [];
for (const line of readFileSync(file, "utf8").split("\n").filter(Boolean)) {
  lines.push(await reference(JSON.parse(line).text));
}
writeFileSync(file, lines.join("\n") + "\n");

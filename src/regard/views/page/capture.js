"use strict";
// What was captured, unpacked when it is asked for; words of subwords, and marks hidden with their weight shown.
// src/regard/views/page.py packs it. Everything that came from a person or a model is put in as text, never as markup.

const FULL = 65535;
const AXES = { cross: ["target", "source"], encoder: ["source", "source"], decoder: ["target", "before"] };
const KINDS = { cross: "written to read", encoder: "among what is read", decoder: "among what is written" };

function bytes(text) {
  const raw = atob(text);
  const found = new Uint8Array(raw.length);
  for (let at = 0; at < raw.length; at += 1) found[at] = raw.charCodeAt(at);
  return new Uint16Array(found.buffer);
}

/** { rows, columns, data } of a packed matrix; what was left out counts as nothing. */
function unpacked(packed) {
  const { rows, columns } = packed;
  const weights = bytes(packed.weights);
  const data = new Float32Array(rows * columns);
  if (!packed.at) {
    for (let at = 0; at < data.length; at += 1) data[at] = weights[at] / FULL;
  } else {
    const places = bytes(packed.at);
    const kept = places.length / Math.max(1, rows);
    for (let at = 0; at < places.length; at += 1) {
      data[Math.floor(at / kept) * columns + places[at]] = weights[at] / FULL;
    }
  }
  return { rows, columns, data };
}

function mean(matrices) {
  const { rows, columns } = matrices[0];
  const data = new Float32Array(rows * columns);
  for (const each of matrices) for (let at = 0; at < data.length; at += 1) data[at] += each.data[at] / matrices.length;
  return { rows, columns, data };
}

class Capture {
  constructor(record) {
    this.record = record;
    this.name = record.name;
    // Of a model that does not attend its attribution can still be seen, as what is written to what is read.
    this.kinds = Object.keys(KINDS).filter((kind) => record.weights[kind] || (kind === "cross" && record.attribution.source));
    this.known = new Map();
  }

  layers(kind) {
    return (this.record.weights[kind] || []).length;
  }

  heads(kind, layer) {
    return this.record.weights[kind][layer].length;
  }

  one(kind, layer, head) {
    const key = `${kind} ${layer} ${head}`;
    if (!this.known.has(key)) {
      if (this.known.size > 60) this.known.clear(); // long inputs: a few at a time
      this.known.set(key, unpacked(this.record.weights[kind][layer][head]));
    }
    return this.known.get(key);
  }

  /** Why nothing can be shown of these choices; nothing if it can. */
  lacks({ kind, layer, head }) {
    if (!this.kinds.includes(kind)) return "This model has no attention of this kind.";
    const names = { best: "aligned", rollout: "rollout", attribution: "attribution" };
    if (layer in names) {
      const found = this.record[names[layer]];
      return found && (layer !== "attribution" || found.source) ? "" : "This was not captured of it.";
    }
    if (!this.layers(kind)) return "This model does not attend.";
    if (layer !== "mean" && layer >= this.layers(kind)) return `Layers of this model: ${this.layers(kind)}.`;
    const heads = this.heads(kind, layer === "mean" ? 0 : layer);
    return head !== "mean" && head >= heads ? `Heads of this model: ${heads}.` : "";
  }

  /** layer and head: a number, or "mean"; "best" and "rollout" are layers of attention to the source. */
  matrix(kind, layer, head) {
    if (layer === "best") return unpacked(this.record.aligned);
    if (layer === "rollout") return unpacked(this.record.rollout);
    const key = `${kind} ${layer} ${head}`;
    if (head !== "mean" && layer !== "mean") return this.one(kind, layer, head);
    if (!this.known.has(key)) {
      const layers = layer === "mean" ? [...Array(this.layers(kind)).keys()] : [layer];
      const parts = layers.map((at) => {
        const heads = head === "mean" ? [...Array(this.heads(kind, at)).keys()] : [Math.min(head, this.heads(kind, at) - 1)];
        return mean(heads.map((each) => this.one(kind, at, each)));
      });
      this.known.set(key, mean(parts));
    }
    return this.known.get(key);
  }

}

/** The size of gradient times input, the largest of each row full. A word is explained by what explains its pieces: they
 * are added up, with their signs. */
function attributed(values, rows, columns) {
  const data = new Float32Array(rows.length * columns.length);
  rows.forEach((row, down) => {
    const sums = columns.map((column) => {
      let total = 0;
      for (const piece of row.pieces) for (const at of column.pieces) total += values[piece][at];
      return Math.abs(total);
    });
    const most = Math.max(1e-30, ...sums);
    sums.forEach((sum, across) => {
      data[down * columns.length + across] = sum / most;
    });
  });
  const labels = (side) => side.map((place) => place.label);
  return { rows: labels(rows), columns: labels(columns), data, hidden: new Float32Array(rows.length) };
}

/** The places of an axis that are shown: their labels, and for each the pieces it is made of. */
function places(axis, words, marks) {
  const found = [];
  axis.labels.forEach((label, at) => {
    if (axis.special[at] && !marks) return;
    const word = axis.words[at];
    if (words && found.length && found[found.length - 1].word === word) {
      found[found.length - 1].pieces.push(at);
    } else {
      found.push({ word, label: words ? axis.word_labels[word] : label.replace("▁", "·"), pieces: [at] });
    }
  });
  return found;
}

/** What is shown of a matrix: looks at a word's pieces are summed, looks from them averaged. */
function folded(matrix, rows, columns) {
  const data = new Float32Array(rows.length * columns.length);
  const hidden = new Float32Array(rows.length);
  rows.forEach((row, down) => {
    let seen = 0;
    let all = 0;
    for (const piece of row.pieces) {
      for (let at = 0; at < matrix.columns; at += 1) all += matrix.data[piece * matrix.columns + at];
    }
    columns.forEach((column, across) => {
      let total = 0;
      for (const piece of row.pieces) for (const at of column.pieces) total += matrix.data[piece * matrix.columns + at];
      data[down * columns.length + across] = total / row.pieces.length;
      seen += total;
    });
    hidden[down] = (all - seen) / row.pieces.length;
  });
  return { rows: rows.map((row) => row.label), columns: columns.map((column) => column.label), data, hidden };
}

/** What is shown of a capture, by the choices of the controls. */
function shown(capture, state) {
  const [looks, seen] = AXES[state.kind];
  const rows = places(capture.record[looks], state.words, state.marks);
  const columns = places(capture.record[seen], state.words, state.marks);
  if (state.layer === "attribution") return attributed(capture.record.attribution.source, rows, columns);
  return folded(capture.matrix(state.kind, state.layer, state.head), rows, columns);
}

/** As docs/seeing.md has it, without what the page does not know. */
function exported(capture) {
  const { record } = capture;
  const axis = (each) => ({ unit: each.unit, labels: each.labels, special: each.special });
  const rounded = (value) => Math.round(value * 1e6) / 1e6;
  const lines = (matrix) =>
    [...Array(matrix.rows).keys()].map((row) =>
      Array.from(matrix.data.subarray(row * matrix.columns, (row + 1) * matrix.columns), rounded));
  const weights = {};
  for (const kind of Object.keys(record.weights)) {
    weights[kind] = record.weights[kind].map((heads) => heads.map((head) => lines(unpacked(head))));
  }
  const choice = record.choice && { layer: record.choice[0], head: record.choice[1], shifted: record.choice[2], guessed: record.choice[3] };
  return {
    format: "regard attention 1",
    model: record.name,
    source: axis(record.source),
    target: axis(record.target),
    before: axis(record.before),
    choice,
    weights,
    hidden: {},
    attribution: record.attribution,
    aligned: record.aligned && lines(unpacked(record.aligned)),
    shown: record.shown,
  };
}

// The displayed part of a matrix: tokens merged into words, special tokens hidden and their weight summed.

import { AXES } from "./capture.js";
import { tokenLabel } from "./labels.js";

/** The visible positions of an axis: of each its label and its tokens. */
export function visiblePositions(axis, mergeWords, showSpecial) {
  const positions = [];
  axis.labels.forEach((label, index) => {
    if (axis.special[index] && !showSpecial) return;
    const word = axis.words[index];
    const last = positions[positions.length - 1];
    if (mergeWords && last?.word === word) {
      last.tokens.push(index);
    } else {
      positions.push({ word, label: mergeWords ? axis.word_labels[word] : tokenLabel(label), tokens: [index] });
    }
  });
  return positions;
}

function labels(positions) {
  return positions.map((position) => position.label);
}

/** Weights between words: the sum over the tokens of a column, the mean over the tokens of a row. */
export function mergeWeights(matrix, rows, columns) {
  const data = new Float32Array(rows.length * columns.length);
  const hidden = new Float32Array(rows.length);
  rows.forEach((row, rowIndex) => {
    let visible = 0;
    let all = 0;
    for (const query of row.tokens) {
      for (let key = 0; key < matrix.columns; key += 1) all += matrix.data[query * matrix.columns + key];
    }
    columns.forEach((column, columnIndex) => {
      let sum = 0;
      for (const query of row.tokens) {
        for (const key of column.tokens) sum += matrix.data[query * matrix.columns + key];
      }
      data[rowIndex * columns.length + columnIndex] = sum / row.tokens.length;
      visible += sum;
    });
    hidden[rowIndex] = (all - visible) / row.tokens.length;
  });
  return { rows: labels(rows), columns: labels(columns), data, hidden };
}

/** The absolute value of gradient times input, scaled so that the largest of each row is 1. Values of the tokens of a
 * word are added up with their signs, since log-probabilities add up. */
function mergeAttribution(values, rows, columns) {
  const data = new Float32Array(rows.length * columns.length);
  rows.forEach((row, rowIndex) => {
    const sums = columns.map((column) => {
      let sum = 0;
      for (const query of row.tokens) for (const key of column.tokens) sum += values[query][key];
      return Math.abs(sum);
    });
    const largest = Math.max(1e-30, ...sums);
    sums.forEach((sum, columnIndex) => {
      data[rowIndex * columns.length + columnIndex] = sum / largest;
    });
  });
  return { rows: labels(rows), columns: labels(columns), data, hidden: new Float32Array(rows.length) };
}

/** The matrix that is selected in the controls: { rows, columns, data, hidden }, rows and columns as labels. */
export function selectedMatrix(capture, { kind, layer, head, special }, mergeWords) {
  const [rows, columns] = AXES[kind].map((axis) => visiblePositions(capture.record[axis], mergeWords, special));
  if (layer === "attribution") return mergeAttribution(capture.record.attribution.source, rows, columns);
  return mergeWeights(capture.matrix(kind, layer, head), rows, columns);
}

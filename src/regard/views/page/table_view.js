// The weights as a table, for screen readers, and for reading off numbers.

import { element } from "./dom.js";
import { truncate } from "./labels.js";

const MAX_SIDE = 80; // rows and columns of a table with all weights
const MAX_PER_ROW = 5; // weights of each row of a larger matrix

function header(scope, label) {
  const cell = element("th", "", label);
  cell.scope = scope;
  return cell;
}

function largestWeights({ rows, columns, data }) {
  return rows.map((label, row) => {
    const line = element("tr");
    const weights = columns.map((column, index) => [column, data[row * columns.length + index]]);
    const largest = weights.sort((first, second) => second[1] - first[1]).slice(0, MAX_PER_ROW);
    const cells = largest.map(([column, weight]) => element("td", "", `${truncate(column)} ${weight.toFixed(3)}`));
    line.append(header("row", truncate(label)), ...cells);
    return line;
  });
}

function allWeights({ rows, columns, data, hidden }) {
  const anyHidden = hidden.some((weight) => weight > 0.0005);
  const first = element("tr");
  const names = [...columns.map(truncate), ...(anyHidden ? ["(hidden special tokens)"] : [])];
  first.append(element("td"), ...names.map((name) => header("col", name)));
  const lines = rows.map((label, row) => {
    const line = element("tr");
    const weights = data.subarray(row * columns.length, (row + 1) * columns.length);
    const cells = Array.from(weights, (weight) => element("td", "", weight.toFixed(3)));
    line.append(header("row", truncate(label)), ...cells);
    if (anyHidden) line.append(element("td", "muted", hidden[row].toFixed(3)));
    return line;
  });
  return [first, ...lines];
}

export class TableView {
  constructor(container) {
    this.box = element("div", "scroll");
    container.append(this.box);
  }

  show({ matrix }) {
    const large = matrix.rows.length > MAX_SIDE || matrix.columns.length > MAX_SIDE;
    const caption = large ? "The five largest weights of each row" : "Weights; rows attend to columns";
    const table = element("table", "numbers");
    table.append(element("caption", "", caption), ...(large ? largestWeights(matrix) : allWeights(matrix)));
    this.box.replaceChildren(table);
  }
}

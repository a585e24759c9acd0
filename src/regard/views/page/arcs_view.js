// Two lines of words, keys above and queries below, with an arc for every weight. A word in focus shows its arcs alone.

import { currentTheme, weightColor } from "./colors.js";
import { element, showStatus, svgElement } from "./dom.js";
import { hiddenWeightText, isolate, labelMeasure, truncate } from "./labels.js";

const MIN_WEIGHT = 0.04; // of an arc
const MIN_REPORTED_WEIGHT = 0.01;
const MAX_REPORTED = 4;
const HEIGHT = 240;

/** The centers of words that stand side by side. */
function wordCenters(labels) {
  const textWidth = labelMeasure();
  let x = 10;
  return labels.map((label) => {
    const width = Math.max(18, textWidth(truncate(label)) + 14);
    x += width;
    return x - width / 2;
  });
}

/** The largest weights of a row, or of a column, in words. */
function describeWeights(matrix, axis, index) {
  const { rows, columns, data } = matrix;
  const weights = axis === "row"
    ? columns.map((label, column) => [label, data[index * columns.length + column]])
    : rows.map((label, row) => [label, data[row * columns.length + index]]);
  weights.sort((first, second) => second[1] - first[1]);
  const largest = weights.slice(0, MAX_REPORTED).filter(([, weight]) => weight >= MIN_REPORTED_WEIGHT);
  const list = largest.map(([label, weight]) => `${isolate(truncate(label))} ${weight.toFixed(3)}`).join(", ");
  const name = isolate(truncate((axis === "row" ? rows : columns)[index]));
  const rest = axis === "row" ? hiddenWeightText(matrix, index) : "";
  return `${name} ${axis === "row" ? "→" : "←"} ${list || "nothing"}${rest}`;
}

export class ArcsView {
  constructor(container) {
    this.box = element("div", "scroll");
    container.append(this.box);
  }

  show({ matrix, isMatch }) {
    const keys = wordCenters(matrix.columns);
    const queries = wordCenters(matrix.rows);
    const width = Math.max(200, ...keys, ...queries) + 60;
    const svg = svgElement("svg", {
      viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "group",
      "aria-label": "Arcs from target tokens, below, to the source tokens they attend to, above",
    });
    const arcs = [];
    matrix.data.forEach((weight, index) => {
      if (weight < MIN_WEIGHT) return;
      const row = Math.floor(index / matrix.columns.length);
      const column = index % matrix.columns.length;
      const path = svgElement("path", {
        d: `M ${queries[row]} 196 C ${queries[row]} 120, ${keys[column]} 120, ${keys[column]} 44`,
        class: "arc",
        "stroke-width": (1 + 4 * weight).toFixed(2),
        "stroke-opacity": Math.max(0.08, weight).toFixed(3),
      });
      arcs.push({ row, column, path });
      svg.append(path);
    });
    const focus = (axis, index) => {
      for (const arc of arcs) arc.path.classList.toggle("faded", arc[axis] !== index);
      showStatus(describeWeights(matrix, axis, index));
    };
    const unfocus = () => {
      for (const arc of arcs) arc.path.classList.remove("faded");
    };
    const addWord = (label, x, y, axis, index) => {
      const className = isMatch(label) ? "word highlighted" : "word";
      const text = svgElement("text", { x, y, class: className, "text-anchor": "middle", tabindex: 0 });
      text.textContent = truncate(label);
      for (const name of ["pointerenter", "focus"]) text.addEventListener(name, () => focus(axis, index));
      for (const name of ["pointerleave", "blur"]) text.addEventListener(name, unfocus);
      svg.append(text);
    };
    matrix.columns.forEach((label, index) => addWord(label, keys[index], 34, "column", index));
    matrix.rows.forEach((label, index) => addWord(label, queries[index], 216, "row", index));
    this.box.replaceChildren(svg);
  }

  /** A copy that does not need the page's style sheet. */
  toSvg() {
    const svg = this.box.querySelector("svg").cloneNode(true);
    const theme = currentTheme();
    svg.prepend(svgElement("rect", { width: "100%", height: "100%", fill: theme.paper }));
    svg.setAttribute("font-family", "sans-serif");
    svg.setAttribute("font-size", 13);
    for (const arc of svg.querySelectorAll("path")) {
      arc.setAttribute("fill", "none");
      arc.setAttribute("stroke", weightColor(1, theme));
    }
    for (const text of svg.querySelectorAll("text")) text.setAttribute("fill", theme.ink);
    return svg;
  }
}

// The hypotheses of a beam search as a tree: common prefixes are drawn once. A token in focus shows its attention.

import { mergeWeights, visiblePositions } from "./aggregate.js";
import { decodeMatrix } from "./capture.js";
import { currentTheme, weightColor } from "./colors.js";
import { element, showStatus, svgElement } from "./dom.js";
import { isolate, labelMeasure, showWords, tokenLabel, truncate, wordLine } from "./labels.js";

const ROW_HEIGHT = 30;
const TOP = 24;
const TOKEN_GAP = 26;

/** The prefix tree of hypotheses. Each node has its token, and the first hypothesis and step it occurs in. */
function prefixTree(hypotheses) {
  const root = { token: "", label: "", children: [], depth: 0, hypothesis: 0, step: -1 };
  hypotheses.forEach(({ labels }, hypothesis) => {
    let node = root;
    labels.forEach((token, step) => {
      let child = node.children.find((each) => each.token === token);
      if (!child) {
        const label = truncate(tokenLabel(token));
        child = { token, label, children: [], depth: node.depth + 1, hypothesis, step };
        node.children.push(child);
      }
      node = child;
    });
    node.finished = hypothesis;
  });
  return root;
}

/** Set x and y of every node, tokens of a step below each other. Returns the size of the tree. */
function layOut(root, textWidth) {
  const widths = []; // of each depth
  const measure = (node) => {
    const width = node.depth ? textWidth(node.label) + TOKEN_GAP : 0;
    widths[node.depth] = Math.max(widths[node.depth] || 0, width);
    node.children.forEach(measure);
  };
  measure(root);
  const offsets = widths.map((_, depth) => widths.slice(0, depth).reduce((sum, width) => sum + width, 10));
  let rows = 0;
  const setPosition = (node) => {
    node.children.forEach(setPosition);
    node.x = offsets[node.depth];
    if (node.children.length) {
      node.y = node.children[0].y;
    } else {
      node.y = TOP + ROW_HEIGHT * rows;
      rows += 1;
    }
  };
  setPosition(root);
  return { width: offsets[offsets.length - 1] + widths[widths.length - 1] + 90, height: TOP + ROW_HEIGHT * rows };
}

export class BeamView {
  constructor(container) {
    this.box = element("div", "scroll");
    this.source = wordLine();
    container.append(this.source, this.box);
  }

  show({ isMatch, capture }) {
    this.beam = capture.record.beam;
    this.words = visiblePositions(capture.record.source, true, false);
    this.isMatch = isMatch;
    this.textWidth = labelMeasure();
    const root = prefixTree(this.beam);
    const { width, height } = layOut(root, this.textWidth);
    this.svg = svgElement("svg", {
      width, height, viewBox: `0 0 ${width} ${height}`, role: "group",
      "aria-label": "Outputs of the beam, which share their beginnings",
    });
    this.drawChildren(root);
    const legend = "The model's own search. At the end of each output its score, by which the best is chosen: "
      + "the nearer to 0, the better.";
    this.box.replaceChildren(this.svg, element("p", "muted", legend));
    if (root.children.length) this.showAttention(root.children[0]);
  }

  probability({ hypothesis, step }) {
    return Math.exp(this.beam[hypothesis].token_scores[step]);
  }

  drawChildren(node) {
    for (const child of node.children) {
      if (node.depth) this.drawEdge(node, child);
      this.drawToken(child);
      this.drawChildren(child);
    }
  }

  drawEdge(node, child) {
    const probability = this.probability(child);
    const start = node.x + this.textWidth(node.label) + 4;
    this.svg.append(svgElement("path", {
      d: `M ${start} ${node.y} C ${child.x - 12} ${node.y}, ${start + 6} ${child.y}, ${child.x - 4} ${child.y}`,
      class: "arc",
      "stroke-width": (0.5 + 3 * probability).toFixed(2),
      "stroke-opacity": Math.max(0.25, probability).toFixed(2),
    }));
  }

  drawToken(node) {
    const y = node.y + 4;
    const className = this.isMatch(node.token) ? "word highlighted" : "word";
    const text = svgElement("text", { x: node.x, y, class: className, tabindex: 0 });
    text.textContent = node.label;
    for (const name of ["pointerenter", "focus"]) text.addEventListener(name, () => this.showAttention(node));
    this.svg.append(text);
    if (node.finished === undefined) return;
    const score = svgElement("text", { x: node.x + this.textWidth(node.label) + 10, y, class: "score" });
    score.textContent = this.beam[node.finished].score.toFixed(2);
    this.svg.append(score);
  }

  /** The attention of a token over the words of the source. */
  showAttention(node) {
    const weights = decodeMatrix(this.beam[node.hypothesis].alignment_weights);
    const { data } = mergeWeights(weights, [{ label: node.token, tokens: [node.step] }], this.words);
    const theme = currentTheme();
    showWords(this.source, this.words.map(({ label }, index) => {
      const word = element("span", data[index] > 0.5 ? "word strong" : "word", truncate(label));
      word.style.backgroundColor = weightColor(data[index], theme);
      return word;
    }));
    const best = data.indexOf(Math.max(...data));
    const source = `${isolate(truncate(this.words[best].label))} ${data[best].toFixed(3)}`;
    showStatus(`${isolate(node.label)}: probability ${this.probability(node).toFixed(3)}, from ${source}`);
  }
}

// All layers and heads as thumbnails; the lower the entropy of a head, the stronger its frame.

import { currentTheme, weightChannel, weightColor } from "./colors.js";
import { element, showStatus } from "./dom.js";

const SIDE = 64; // pixels of a thumbnail

/** A thumbnail of a matrix. A pixel shows the largest of the weights that fall on it. */
function drawThumbnail(canvas, matrix, theme) {
  canvas.width = SIDE;
  canvas.height = SIDE;
  const context = canvas.getContext("2d");
  const pixels = context.createImageData(SIDE, SIDE);
  const span = (pixel, length) => {
    const first = Math.floor(pixel * length / SIDE);
    return [first, Math.max(first + 1, Math.floor((pixel + 1) * length / SIDE))];
  };
  for (let y = 0; y < SIDE; y += 1) {
    const [firstRow, endRow] = span(y, matrix.rows);
    for (let x = 0; x < SIDE; x += 1) {
      const [firstColumn, endColumn] = span(x, matrix.columns);
      let weight = 0;
      for (let row = firstRow; row < endRow; row += 1) {
        for (let column = firstColumn; column < endColumn; column += 1) {
          weight = Math.max(weight, matrix.data[row * matrix.columns + column] || 0);
        }
      }
      const pixel = 4 * (y * SIDE + x);
      for (let channel = 0; channel < 3; channel += 1) {
        pixels.data[pixel + channel] = weightChannel(weight, theme, channel);
      }
      pixels.data[pixel + 3] = 255;
    }
  }
  context.putImageData(pixels, 0, 0);
}

function describeHead(layer, head, statistics) {
  const name = `layer ${layer + 1}, head ${head + 1}`;
  if (!statistics) return name;
  const [entropy, relative, distance, largest, special] = statistics;
  return `${name}: entropy ${entropy.toFixed(2)} bits, ${(100 * relative).toFixed(0)} % of the most; `
    + `distance ${distance.toFixed(1)}; largest weight ${largest.toFixed(2)}; on special tokens ${special.toFixed(2)}`;
}

export class HeadsView {
  /** selectHead(layer, head) shows a head on its own. */
  constructor(container, selectHead) {
    this.selectHead = selectHead;
    this.box = element("div", "scroll heads");
    container.append(this.box);
  }

  show({ capture, state }) {
    const { kind } = state;
    const theme = currentTheme();
    // By layer and head; none if words were merged before the page was written.
    const statistics = new Map(capture.record.statistics
      .filter((each) => each[0] === kind)
      .map(([, layer, head, ...values]) => [`${layer} ${head}`, values]));
    const table = element("table", "grid");
    for (let layer = 0; layer < capture.layerCount(kind); layer += 1) {
      const row = element("tr");
      row.append(element("th", "", `layer ${layer + 1}`));
      for (let head = 0; head < capture.headCount(kind, layer); head += 1) {
        const cell = element("td");
        cell.append(this.button(capture.headMatrix(kind, layer, head), layer, head, statistics, theme));
        row.append(cell);
      }
      table.append(row);
    }
    const legend = statistics.size ? "Below each head its entropy in bits: 0 attends to one position. " : "";
    this.box.replaceChildren(table, element("p", "muted", `${legend}Choose one to see it large.`));
  }

  button(matrix, layer, head, statistics, theme) {
    const values = statistics.get(`${layer} ${head}`);
    const [entropy, relative] = values || [];
    const description = describeHead(layer, head, values);
    const button = element("button", "head");
    button.type = "button";
    button.setAttribute("aria-label", description);
    button.style.borderColor = values ? weightColor(1 - relative, theme) : theme.line;
    const canvas = element("canvas");
    drawThumbnail(canvas, matrix, theme);
    button.append(canvas, element("span", "", values ? entropy.toFixed(1) : ""));
    for (const name of ["pointerenter", "focus"]) button.addEventListener(name, () => showStatus(description));
    button.addEventListener("click", () => this.selectHead(layer, head));
    return button;
  }
}

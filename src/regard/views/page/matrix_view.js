// A heat map on a canvas. Labels stay in sight while it is scrolled, and only the visible cells are drawn, so that
// long inputs pan smoothly.

import { currentTheme, weightColor } from "./colors.js";
import { element, showStatus, svgElement } from "./dom.js";
import { FONT, hiddenWeightText, isolate, truncate } from "./labels.js";

const MAX_LABEL_WIDTH = 190;
const MAX_IMAGE_SIDE = 12000; // pixels, of a canvas that is saved
const MIN_DRAWN_WEIGHT = 0.004; // in SVG, where each cell is an element

export class MatrixView {
  constructor(container) {
    this.box = element("div", "scroll");
    this.canvas = element("canvas", "matrix");
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "img");
    this.extent = element("div", "scroll-extent");
    this.box.append(this.canvas, this.extent);
    container.append(this.box);
    this.cursor = null; // row and column
    this.box.addEventListener("scroll", () => this.scheduleDraw());
    for (const name of ["pointermove", "pointerdown"]) {
      this.canvas.addEventListener(name, (event) => this.onPointer(event));
    }
    this.canvas.addEventListener("pointerleave", () => this.moveCursor(null));
    this.canvas.addEventListener("keydown", (event) => this.onKey(event));
    new ResizeObserver(() => this.scheduleDraw()).observe(this.box);
  }

  show({ matrix, isMatch }) {
    this.matrix = matrix;
    this.isMatch = isMatch;
    const { rows, columns } = matrix;
    const context = this.canvas.getContext("2d");
    context.font = FONT;
    const labelWidth = (label) => context.measureText(truncate(label)).width;
    const widest = (labels) => Math.min(MAX_LABEL_WIDTH, Math.max(16, ...labels.map(labelWidth)));
    const length = Math.max(rows.length, columns.length);
    this.cell = length > 200 ? 10 : length > 60 ? 14 : 24;
    this.left = widest(rows) + 12;
    this.horizontal = columns.every((label) => labelWidth(label) <= this.cell - 4); // labels of columns
    this.top = this.horizontal ? 24 : widest(columns) + 12;
    this.width = columns.length * this.cell;
    this.height = rows.length * this.cell;
    this.extent.style.width = `${this.left + this.width + 2}px`;
    this.extent.style.height = `${this.top + this.height + 2}px`;
    this.box.style.height = `${this.top + this.height + 18}px`; // the style sheet limits it to the window
    this.cursor = null;
    this.canvas.setAttribute(
      "aria-label",
      `Attention of ${rows.length} positions to ${columns.length}. Arrow keys go from cell to cell; the view Table`
        + " has it as a table.",
    );
    this.draw();
  }

  scheduleDraw() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  draw() {
    if (!this.matrix) return;
    const width = Math.min(this.box.clientWidth, Math.ceil(this.left + this.width + 2));
    const height = Math.min(this.box.clientHeight || 600, Math.ceil(this.top + this.height + 2));
    const scale = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    const context = this.canvas.getContext("2d");
    context.scale(scale, scale);
    this.paint(context, width, height, this.box.scrollLeft, this.box.scrollTop);
  }

  /** Draw the cells and labels that are visible when it is scrolled to x and y. */
  paint(context, width, height, x, y) {
    const { matrix, cell, left, top } = this;
    const theme = currentTheme();
    context.fillStyle = theme.paper;
    context.fillRect(0, 0, width, height);
    context.font = FONT;
    const visible = {
      firstRow: Math.max(0, Math.floor(y / cell)),
      endRow: Math.min(matrix.rows.length, Math.ceil((y + height - top) / cell)),
      firstColumn: Math.max(0, Math.floor(x / cell)),
      endColumn: Math.min(matrix.columns.length, Math.ceil((x + width - left) / cell)),
    };
    const clipped = (clipX, clipY, clipWidth, clipHeight, paint) => {
      context.save();
      context.beginPath();
      context.rect(clipX, clipY, clipWidth, clipHeight);
      context.clip();
      paint();
      context.restore();
    };
    clipped(left, top, width - left, height - top, () => this.paintCells(context, theme, visible, left - x, top - y));
    context.textBaseline = "middle";
    context.textAlign = "right";
    clipped(0, top, left, height - top, () => this.paintRowLabels(context, theme, visible, top - y));
    clipped(left, 0, width - left, top, () => this.paintColumnLabels(context, theme, visible, left - x));
  }

  paintCells(context, theme, { firstRow, endRow, firstColumn, endColumn }, originX, originY) {
    const { matrix, cell } = this;
    const side = cell > 12 ? cell - 1 : cell;
    for (let row = firstRow; row < endRow; row += 1) {
      for (let column = firstColumn; column < endColumn; column += 1) {
        context.fillStyle = weightColor(matrix.data[row * matrix.columns.length + column], theme);
        context.fillRect(originX + column * cell, originY + row * cell, side, side);
      }
    }
    if (!this.cursor) return;
    const [row, column] = this.cursor;
    context.strokeStyle = theme.highlight;
    context.lineWidth = 2;
    context.strokeRect(originX + column * cell, originY + row * cell, side, side);
  }

  paintRowLabels(context, theme, { firstRow, endRow }, originY) {
    for (let row = firstRow; row < endRow; row += 1) {
      const y = originY + (row + 0.5) * this.cell;
      this.paintLabel(context, theme, this.matrix.rows[row], this.left - 6, y, this.cursor?.[0] === row, row);
    }
  }

  paintColumnLabels(context, theme, { firstColumn, endColumn }, originX) {
    for (let column = firstColumn; column < endColumn; column += 1) {
      context.save();
      context.translate(originX + (column + 0.5) * this.cell, this.top - 6);
      if (this.horizontal) {
        context.textAlign = "center";
        context.translate(0, -6);
      } else {
        context.rotate(-Math.PI / 2);
        context.textAlign = "left";
      }
      this.paintLabel(context, theme, this.matrix.columns[column], 0, 0, this.cursor?.[1] === column, column);
      context.restore();
    }
  }

  paintLabel(context, theme, text, x, y, atCursor, index) {
    if (this.cell < 14 && index % 2 && !atCursor) return; // there is room for every other label
    const matches = this.isMatch(text);
    context.fillStyle = matches ? theme.highlight : theme.ink;
    context.font = atCursor || matches ? `bold ${FONT}` : FONT;
    context.fillText(truncate(text), x, y);
  }

  onPointer(event) {
    const { rows, columns } = this.matrix;
    const box = this.canvas.getBoundingClientRect();
    const x = event.clientX - box.left - this.left;
    const y = event.clientY - box.top - this.top;
    const row = Math.floor((y + this.box.scrollTop) / this.cell);
    const column = Math.floor((x + this.box.scrollLeft) / this.cell);
    const inside = x >= 0 && y >= 0 && row < rows.length && column < columns.length;
    this.moveCursor(inside ? [row, column] : null);
  }

  onKey(event) {
    const step = {
      ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
      Home: [-1e9, -1e9], End: [1e9, 1e9], PageUp: [-10, 0], PageDown: [10, 0],
    }[event.key];
    if (!step) return;
    event.preventDefault();
    const { rows, columns } = this.matrix;
    const clamp = (value, length) => Math.min(length - 1, Math.max(0, value));
    const [row, column] = this.cursor ? this.cursor.map((value, axis) => value + step[axis]) : [0, 0];
    this.moveCursor([clamp(row, rows.length), clamp(column, columns.length)]);
    this.scrollToCursor();
  }

  scrollToCursor() {
    const [y, x] = this.cursor.map((index) => index * this.cell);
    const width = this.box.clientWidth - this.left - this.cell;
    const height = this.box.clientHeight - this.top - this.cell;
    this.box.scrollLeft = Math.min(x, Math.max(this.box.scrollLeft, x - width));
    this.box.scrollTop = Math.min(y, Math.max(this.box.scrollTop, y - height));
  }

  moveCursor(cursor) {
    if (String(cursor) === String(this.cursor)) return;
    this.cursor = cursor;
    this.scheduleDraw();
    const { rows, columns, data } = this.matrix;
    if (!cursor || !rows.length) return;
    const [row, column] = cursor;
    const weight = data[row * columns.length + column].toFixed(3);
    const [query, key] = [rows[row], columns[column]].map((label) => isolate(truncate(label)));
    showStatus(`${query} → ${key}: ${weight}${hiddenWeightText(this.matrix, row)}`);
  }

  /** The whole matrix, as large as a canvas may be. */
  toCanvas() {
    const canvas = element("canvas");
    const width = this.left + this.width + 8;
    const height = this.top + this.height + 8;
    const scale = Math.max(0.25, Math.min(2, MAX_IMAGE_SIDE / width, MAX_IMAGE_SIDE / height));
    canvas.width = width * scale;
    canvas.height = height * scale;
    const context = canvas.getContext("2d");
    context.scale(scale, scale);
    this.paint(context, width, height, 0, 0);
    return canvas;
  }

  toSvg() {
    const { matrix, cell, left, top } = this;
    const theme = currentTheme();
    const svg = svgElement("svg", {
      viewBox: `0 0 ${left + this.width + 8} ${top + this.height + 8}`, "font-family": "sans-serif", "font-size": 13,
    });
    const addText = (label, attributes) => {
      const text = svgElement("text", { ...attributes, fill: theme.ink });
      text.textContent = truncate(label);
      svg.append(text);
    };
    svg.append(svgElement("rect", { width: "100%", height: "100%", fill: theme.paper }));
    matrix.rows.forEach((label, row) => {
      addText(label, { x: left - 6, y: top + (row + 0.5) * cell + 4, "text-anchor": "end" });
    });
    matrix.columns.forEach((label, column) => {
      const x = left + (column + 0.5) * cell;
      addText(label, this.horizontal
        ? { x, y: top - 8, "text-anchor": "middle" }
        : { transform: `translate(${x + 4} ${top - 6}) rotate(-90)` });
    });
    matrix.data.forEach((weight, index) => {
      if (weight < MIN_DRAWN_WEIGHT) return;
      const x = left + (index % matrix.columns.length) * cell;
      const y = top + Math.floor(index / matrix.columns.length) * cell;
      svg.append(svgElement("rect", { x, y, width: cell - 1, height: cell - 1, fill: weightColor(weight, theme) }));
    });
    return svg;
  }
}

// A matrix on a canvas: labels stay while it is scrolled, and only what is in sight is drawn, so that long inputs pan.

const LONGEST = 24; // characters of a label

function cut(label) {
  const letters = Array.from(label);
  const text = letters.length > LONGEST ? `${letters.slice(0, LONGEST - 1).join("")}…` : label;
  // What would turn the text around, or is no sign at all, is shown as such.
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g, "�");
}

/** A text among others whose direction may be another: it does not turn them around. */
function apart(text) {
  return `\u2068${text}\u2069`;
}

/** What of a row is not shown, in words. */
function rest(view, row) {
  return view.hidden[row] > 0.0005 ? `; ${view.hidden[row].toFixed(3)} of its row on marks that are hidden` : "";
}

function theme() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(name).trim();
  const parts = (name) => read(name).split(" ").map(Number);
  return { low: parts("--low"), high: parts("--high"), ink: read("--ink"), lit: read("--lit"), line: read("--line"), paper: read("--paper") };
}

function colour(weight, look) {
  const share = Math.min(1, Math.max(0, weight));
  return `rgb(${look.low.map((low, at) => Math.round(low + (look.high[at] - low) * share)).join(" ")})`;
}

const FONT = '13px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';

class MatrixView {
  constructor(panel, tell) {
    this.tell = tell;
    this.box = element("div", "scroll");
    this.canvas = element("canvas", "matrix");
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "img");
    this.room = element("div", "room");
    this.box.append(this.canvas, this.room);
    panel.append(this.box);
    this.at = null;
    this.box.addEventListener("scroll", () => this.soon());
    for (const event of ["pointermove", "pointerdown"]) this.canvas.addEventListener(event, (at) => this.point(at));
    this.canvas.addEventListener("pointerleave", () => this.move(null));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.soon()).observe(this.box);
  }

  show(view, found) {
    this.view = view;
    this.found = found;
    const pen = this.canvas.getContext("2d");
    pen.font = FONT;
    const long = (labels) => Math.min(190, Math.max(16, ...labels.map((label) => pen.measureText(cut(label)).width)));
    const count = Math.max(view.rows.length, view.columns.length);
    this.cell = count > 200 ? 10 : count > 60 ? 14 : 24;
    this.left = long(view.rows) + 12;
    this.flat = view.columns.every((label) => pen.measureText(cut(label)).width <= this.cell - 4);
    this.top = this.flat ? 24 : long(view.columns) + 12;
    this.wide = view.columns.length * this.cell;
    this.high = view.rows.length * this.cell;
    this.room.style.width = `${this.left + this.wide + 2}px`;
    this.room.style.height = `${this.top + this.high + 2}px`;
    this.box.style.height = `${this.top + this.high + 18}px`; // the style keeps it within the window
    this.at = null;
    this.canvas.setAttribute("aria-label",
      `Attention of ${view.rows.length} places to ${view.columns.length}. Arrow keys go from cell to cell; the view Table has it as a table.`);
    this.draw();
  }

  soon() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      this.draw();
    });
  }

  draw() {
    if (!this.view) return;
    const across = Math.min(this.box.clientWidth, Math.ceil(this.left + this.wide + 2));
    const down = Math.min(this.box.clientHeight || 600, Math.ceil(this.top + this.high + 2));
    const sharp = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(across * sharp);
    this.canvas.height = Math.round(down * sharp);
    this.canvas.style.width = `${across}px`;
    this.canvas.style.height = `${down}px`;
    const pen = this.canvas.getContext("2d");
    pen.scale(sharp, sharp);
    this.paint(pen, across, down, this.box.scrollLeft, this.box.scrollTop);
  }

  /** Draw what is seen of it from a place on. */
  paint(pen, across, down, x, y) {
    const { view, cell, left, top } = this;
    const look = theme();
    pen.fillStyle = look.paper;
    pen.fillRect(0, 0, across, down);
    pen.font = FONT;
    const firstRow = Math.max(0, Math.floor(y / cell));
    const lastRow = Math.min(view.rows.length, Math.ceil((y + down - top) / cell));
    const firstColumn = Math.max(0, Math.floor(x / cell));
    const lastColumn = Math.min(view.columns.length, Math.ceil((x + across - left) / cell));
    pen.save();
    pen.beginPath();
    pen.rect(left, top, across - left, down - top);
    pen.clip();
    const gap = cell > 12 ? 1 : 0;
    for (let row = firstRow; row < lastRow; row += 1) {
      for (let column = firstColumn; column < lastColumn; column += 1) {
        pen.fillStyle = colour(view.data[row * view.columns.length + column], look);
        pen.fillRect(left + column * cell - x, top + row * cell - y, cell - gap, cell - gap);
      }
    }
    if (this.at) {
      pen.strokeStyle = look.lit;
      pen.lineWidth = 2;
      pen.strokeRect(left + this.at[1] * cell - x, top + this.at[0] * cell - y, cell - gap, cell - gap);
    }
    pen.restore();
    const dense = cell < 14;
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    pen.save();
    pen.beginPath();
    pen.rect(0, top, left, down - top);
    pen.clip();
    for (let row = firstRow; row < lastRow; row += 1) {
      this.label(pen, look, view.rows[row], left - 6, top + (row + 0.5) * cell - y, this.at && this.at[0] === row, dense, row);
    }
    pen.restore();
    pen.save();
    pen.beginPath();
    pen.rect(left, 0, across - left, top);
    pen.clip();
    for (let column = firstColumn; column < lastColumn; column += 1) {
      pen.save();
      pen.translate(left + (column + 0.5) * cell - x, top - 6);
      if (this.flat) {
        pen.textAlign = "center";
        pen.translate(0, -6);
      } else {
        pen.rotate(-Math.PI / 2);
        pen.textAlign = "left";
      }
      this.label(pen, look, view.columns[column], 0, 0, this.at && this.at[1] === column, dense, column);
      pen.restore();
    }
    pen.restore();
  }

  label(pen, look, text, x, y, here, dense, number) {
    if (dense && number % 2 && !here) return; // there is room for every other one
    const sought = this.found && this.found(text);
    pen.fillStyle = sought ? look.lit : look.ink;
    pen.font = here || sought ? `bold ${FONT}` : FONT;
    pen.fillText(cut(text), x, y);
  }

  point(event) {
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - this.left + this.box.scrollLeft) / this.cell);
    const row = Math.floor((event.clientY - box.top - this.top + this.box.scrollTop) / this.cell);
    const inside = row >= 0 && column >= 0 && row < this.view.rows.length && column < this.view.columns.length;
    const right = event.clientX - box.left >= this.left && event.clientY - box.top >= this.top;
    this.move(inside && right ? [row, column] : null);
  }

  key(event) {
    const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const ends = { Home: [-1e9, -1e9], End: [1e9, 1e9], PageUp: [-10, 0], PageDown: [10, 0] };
    const step = steps[event.key] || ends[event.key];
    if (!step) return;
    event.preventDefault();
    const [row, column] = this.at || [0, 0];
    const within = (value, most) => Math.min(most - 1, Math.max(0, value));
    const first = this.at ? step : [0, 0];
    this.move([within(row + first[0], this.view.rows.length), within(column + first[1], this.view.columns.length)]);
    const x = this.at[1] * this.cell;
    const y = this.at[0] * this.cell;
    const across = this.box.clientWidth - this.left - this.cell;
    const down = this.box.clientHeight - this.top - this.cell;
    this.box.scrollLeft = Math.min(x, Math.max(this.box.scrollLeft, x - across));
    this.box.scrollTop = Math.min(y, Math.max(this.box.scrollTop, y - down));
  }

  move(at) {
    if (String(at) === String(this.at)) return;
    this.at = at;
    this.soon();
    if (!at || !this.view.rows.length) return;
    const { rows, columns, data } = this.view;
    const weight = data[at[0] * columns.length + at[1]];
    this.tell(`${apart(cut(rows[at[0]]))} → ${apart(cut(columns[at[1]]))}: ${weight.toFixed(3)}${rest(this.view, at[0])}`);
  }

  /** The whole of it as a picture, as large as a canvas may be. */
  whole() {
    const canvas = document.createElement("canvas");
    const across = this.left + this.wide + 8;
    const down = this.top + this.high + 8;
    const sharp = Math.max(0.25, Math.min(2, 12000 / across, 12000 / down));
    canvas.width = across * sharp;
    canvas.height = down * sharp;
    const pen = canvas.getContext("2d");
    pen.scale(sharp, sharp);
    this.paint(pen, across, down, 0, 0);
    return canvas;
  }

  /** The same as elements that any program for drawing opens. */
  drawing() {
    const { view, cell, left, top } = this;
    const look = theme();
    const svg = shape("svg", { viewBox: `0 0 ${left + this.wide + 8} ${top + this.high + 8}`, "font-family": "sans-serif", "font-size": 13 });
    svg.append(shape("rect", { width: "100%", height: "100%", fill: look.paper }));
    view.rows.forEach((label, row) => {
      const text = shape("text", { x: left - 6, y: top + (row + 0.5) * cell + 4, "text-anchor": "end", fill: look.ink });
      text.textContent = cut(label);
      svg.append(text);
    });
    view.columns.forEach((label, column) => {
      const x = left + (column + 0.5) * cell;
      const turned = this.flat ? { x, y: top - 8, "text-anchor": "middle" } : { transform: `translate(${x + 4} ${top - 6}) rotate(-90)` };
      const text = shape("text", { ...turned, fill: look.ink });
      text.textContent = cut(label);
      svg.append(text);
    });
    view.data.forEach((weight, at) => {
      if (weight < 0.004) return;
      const row = Math.floor(at / view.columns.length);
      const column = at % view.columns.length;
      svg.append(shape("rect", { x: left + column * cell, y: top + row * cell, width: cell - 1, height: cell - 1, fill: colour(weight, look) }));
    });
    return svg;
  }
}

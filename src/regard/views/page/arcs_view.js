// The other views: arcs between two sentences, all heads at once, step by step, and a table.

const SEEN = 0.04; // weights below this have no arc

function element(name, kind = "", text = "") {
  const made = document.createElement(name);
  if (kind) made.className = kind;
  if (text) made.textContent = text;
  return made;
}

function shape(name, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

/** Two sentences, one above the other, and an arc for every look; a word in hand shows its own alone. */
class ArcsView {
  constructor(panel, tell) {
    this.tell = tell;
    this.box = element("div", "scroll");
    panel.append(this.box);
  }

  show(view, found) {
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = FONT;
    const wide = (label) => Math.max(18, pen.measureText(cut(label)).width + 14);
    const placed = (labels) => {
      let x = 10;
      return labels.map((label) => {
        const at = x + wide(label) / 2;
        x += wide(label);
        return at;
      });
    };
    const above = placed(view.columns);
    const below = placed(view.rows);
    const width = Math.max(200, ...above, ...below) + 60;
    const svg = shape("svg", { viewBox: `0 0 ${width} 240`, width, height: 240, role: "group", "aria-label": "Arcs from what is written, below, to what it looks at, above" });
    const arcs = [];
    view.data.forEach((weight, at) => {
      if (weight < SEEN) return;
      const row = Math.floor(at / view.columns.length);
      const column = at % view.columns.length;
      const path = shape("path", {
        d: `M ${below[row]} 196 C ${below[row]} 120, ${above[column]} 120, ${above[column]} 44`,
        class: "arc", "stroke-width": (1 + 4 * weight).toFixed(2), "stroke-opacity": Math.max(0.08, weight).toFixed(3),
      });
      arcs.push({ row, column, path });
      svg.append(path);
    });
    const light = (side, number) => {
      for (const arc of arcs) arc.path.classList.toggle("off", side !== null && arc[side] !== number);
      if (side === null) return;
      const weights = view.rows.map((row, down) => [row, view.data[down * view.columns.length + number]]);
      const looks = side === "row"
        ? view.columns.map((column, across) => [column, view.data[number * view.columns.length + across]]) : weights;
      const most = looks.sort((one, other) => other[1] - one[1]).slice(0, 4).filter((each) => each[1] >= 0.01);
      const name = side === "row" ? view.rows[number] : view.columns[number];
      const told = most.map(([label, weight]) => `${apart(cut(label))} ${weight.toFixed(3)}`).join(", ") || "nothing";
      this.tell(`${apart(cut(name))} ${side === "row" ? "→" : "←"} ${told}${side === "row" ? rest(view, number) : ""}`);
    };
    const word = (label, x, y, side, number) => {
      const text = shape("text", { x, y, class: found(label) ? "word lit" : "word", "text-anchor": "middle", tabindex: 0 });
      text.textContent = cut(label);
      for (const event of ["pointerenter", "focus"]) text.addEventListener(event, () => light(side, number));
      for (const event of ["pointerleave", "blur"]) text.addEventListener(event, () => light(null));
      svg.append(text);
    };
    view.columns.forEach((label, at) => word(label, above[at], 34, "column", at));
    view.rows.forEach((label, at) => word(label, below[at], 216, "row", at));
    this.box.replaceChildren(svg);
  }

  drawing() {
    const svg = this.box.querySelector("svg").cloneNode(true);
    const look = theme();
    svg.prepend(shape("rect", { width: "100%", height: "100%", fill: look.paper }));
    svg.setAttribute("font-family", "sans-serif");
    svg.setAttribute("font-size", 13);
    for (const arc of svg.querySelectorAll("path")) {
      arc.setAttribute("fill", "none");
      arc.setAttribute("stroke", colour(1, look));
    }
    for (const text of svg.querySelectorAll("text")) text.setAttribute("fill", look.ink);
    return svg;
  }
}

/** Layers by heads, each a small picture, its frame the fuller the wider it looks. */
class HeadsView {
  constructor(panel, tell, choose) {
    this.tell = tell;
    this.choose = choose;
    this.box = element("div", "scroll heads");
    panel.append(this.box);
  }

  show(view, found, capture, state) {
    const table = element("table", "grid");
    const look = theme();
    const about = new Map(capture.record.statistics.filter((each) => each[0] === state.kind).map((each) => [`${each[1]} ${each[2]}`, each]));
    for (let layer = 0; layer < capture.layers(state.kind); layer += 1) {
      const row = element("tr");
      row.append(element("th", "", `layer ${layer + 1}`));
      for (let head = 0; head < capture.heads(state.kind, layer); head += 1) {
        const cell = element("td");
        const button = element("button", "head");
        button.type = "button";
        const canvas = element("canvas");
        this.small(canvas, capture.one(state.kind, layer, head), look);
        const numbers = about.get(`${layer} ${head}`); // none where words were merged before
        const text = `layer ${layer + 1}, head ${head + 1}` + (!numbers ? "" :
          `: entropy ${numbers[3].toFixed(2)} bits, ${(100 * numbers[4]).toFixed(0)} % of the most; ` +
          `distance ${numbers[5].toFixed(1)}; largest weight ${numbers[6].toFixed(2)}; on marks ${numbers[7].toFixed(2)}`);
        button.setAttribute("aria-label", text);
        button.style.borderColor = numbers ? colour(1 - numbers[4], look) : look.line;
        button.append(canvas, element("span", "", numbers ? numbers[3].toFixed(1) : ""));
        for (const event of ["pointerenter", "focus"]) button.addEventListener(event, () => this.tell(text));
        button.addEventListener("click", () => this.choose(layer, head));
        cell.append(button);
        row.append(cell);
      }
      table.append(row);
    }
    const told = about.size ? "Below each head its entropy in bits: 0 looks at one place. " : "";
    this.box.replaceChildren(table, element("p", "quiet", `${told}Choose one to see it large.`));
  }

  small(canvas, matrix, look) {
    const side = 64;
    canvas.width = side;
    canvas.height = side;
    const pen = canvas.getContext("2d");
    const picture = pen.createImageData(side, side);
    // Of a small matrix each place fills some pixels; of a large one a pixel shows the largest of its places.
    const span = (at, count) => [Math.floor(at * count / side), Math.max(Math.floor(at * count / side) + 1, Math.floor((at + 1) * count / side))];
    for (let y = 0; y < side; y += 1) {
      const [top, bottom] = span(y, matrix.rows);
      for (let x = 0; x < side; x += 1) {
        const [left, right] = span(x, matrix.columns);
        let weight = 0;
        for (let row = top; row < bottom; row += 1) {
          for (let column = left; column < right; column += 1) weight = Math.max(weight, matrix.data[row * matrix.columns + column] || 0);
        }
        look.low.forEach((low, part) => {
          picture.data[4 * (y * side + x) + part] = low + (look.high[part] - low) * weight;
        });
        picture.data[4 * (y * side + x) + 3] = 255;
      }
    }
    pen.putImageData(picture, 0, 0);
  }
}

/** Words in a line, in the direction of their own script, broken between them only. */
function sentence() {
  const made = element("p", "sentence");
  made.dir = "auto";
  return made;
}

function spaced(word) {
  return [word, document.createTextNode(" ")];
}

/** One step at a time: what has been written, and where the model looks as it goes on. */
class StepsView {
  constructor(panel, tell) {
    this.tell = tell;
    this.box = element("div", "steps");
    panel.append(this.box);
  }

  /** Stop playing: something else is shown. */
  leave() {
    clearInterval(this.playing);
    this.playing = 0;
    this.looked?.leave();
  }

  show(view, found, capture, state) {
    this.leave();
    this.at = state.step || 0;
    const bar = element("div", "bar");
    const slider = element("input");
    slider.type = "range";
    slider.min = 0;
    slider.max = Math.max(0, view.rows.length - 1);
    this.at = Math.min(this.at, Number(slider.max));
    slider.value = this.at;
    slider.setAttribute("aria-label", "Step");
    const play = element("button", "", "Play");
    play.type = "button";
    this.looked = capture.record.shown && state.kind === "cross" ? new Looked(capture) : null;
    const read = this.looked ? this.looked.node : sentence();
    const written = sentence();
    const draw = () => {
      state.step = this.at;
      const look = theme();
      const weights = view.columns.map((_, column) => view.data[this.at * view.columns.length + column]);
      if (this.looked) this.looked.draw(weights);
      else read.replaceChildren(...view.columns.map((label, column) => {
        const word = element("span", found(label) ? "word lit" : "word", cut(label));
        word.style.backgroundColor = colour(weights[column], look);
        if (weights[column] > 0.5) word.classList.add("strong");
        word.title = weights[column].toFixed(3);
        return word;
      }).flatMap(spaced));
      const said = this.looked ? view.rows : view.rows.slice(0, this.at + 1); // words of a picture can be chosen
      written.replaceChildren(...said.map((label, row) => {
        const word = element(this.looked ? "button" : "span", row === this.at ? "word now" : "word", cut(label));
        if (this.looked) {
          word.type = "button";
          word.addEventListener("click", () => {
            this.at = row;
            slider.value = row;
            draw();
          });
        }
        return word;
      }).flatMap(spaced));
      const best = weights.indexOf(Math.max(...weights));
      if (view.rows.length && best >= 0) this.tell(`${this.at + 1} of ${view.rows.length}: ${apart(cut(view.rows[this.at]))} → ${apart(cut(view.columns[best]))} ${weights[best].toFixed(3)}${rest(view, this.at)}`);
    };
    slider.addEventListener("input", () => {
      this.at = Number(slider.value);
      draw();
    });
    play.addEventListener("click", () => {
      if (this.playing) {
        this.leave();
        play.textContent = "Play";
        return;
      }
      play.textContent = "Stop";
      if (this.at >= view.rows.length - 1) this.at = -1;
      this.playing = setInterval(() => {
        this.at += 1;
        slider.value = this.at;
        draw();
        if (this.at >= view.rows.length - 1) play.click();
      }, 700);
    });
    bar.append(play, slider);
    const parts = [[element("h3", "", "read"), read], [element("h3", "", "written"), written]];
    if (this.looked) parts.reverse(); // words are chosen, and must not lie below a tall picture
    this.box.replaceChildren(bar, ...parts.flat());
    draw();
  }
}

/** Numbers as a table, for those who listen to the page, and for those who want numbers. */
class TableView {
  constructor(panel) {
    this.box = element("div", "scroll");
    panel.append(this.box);
  }

  show(view) {
    const most = 80;
    const table = element("table", "numbers");
    const long = view.rows.length > most || view.columns.length > most;
    table.append(element("caption", "", long ? "The five largest weights of each row" : "Weights; rows look at columns"));
    if (long) {
      view.rows.forEach((label, row) => {
        const line = element("tr");
        const head = element("th", "", cut(label));
        head.scope = "row";
        line.append(head);
        const weights = view.columns.map((column, at) => [column, view.data[row * view.columns.length + at]]);
        for (const [column, weight] of weights.sort((one, other) => other[1] - one[1]).slice(0, 5)) {
          line.append(element("td", "", `${cut(column)} ${weight.toFixed(3)}`));
        }
        table.append(line);
      });
    } else {
      const first = element("tr");
      first.append(element("td"));
      const marks = view.hidden.some((weight) => weight > 0.0005);
      for (const label of [...view.columns.map(cut), ...(marks ? ["(on hidden marks)"] : [])]) {
        const head = element("th", "", label);
        head.scope = "col";
        first.append(head);
      }
      table.append(first);
      view.rows.forEach((label, row) => {
        const line = element("tr");
        const head = element("th", "", cut(label));
        head.scope = "row";
        line.append(head);
        view.columns.forEach((_, column) => line.append(element("td", "", view.data[row * view.columns.length + column].toFixed(3))));
        if (marks) line.append(element("td", "quiet", view.hidden[row].toFixed(3)));
        table.append(line);
      });
    }
    this.box.replaceChildren(table);
  }
}

// One decoding step at a time: the output so far, and the weights of the current step over the source.

import { currentTheme, weightColor } from "./colors.js";
import { element, showStatus } from "./dom.js";
import { hiddenWeightText, isolate, showWords, truncate, wordLine } from "./labels.js";
import { SourceOverlay } from "./source_overlay.js";

const STEP_MILLISECONDS = 700;

export class StepsView {
  constructor(container) {
    this.box = element("div", "steps");
    container.append(this.box);
  }

  /** Stop playing, since something else is shown. */
  dispose() {
    clearInterval(this.timer);
    this.timer = 0;
    this.overlay?.dispose();
  }

  show({ matrix, isMatch, capture, state }) {
    this.dispose();
    Object.assign(this, { matrix, isMatch, state });
    this.slider = element("input");
    this.slider.type = "range";
    this.slider.min = 0;
    this.slider.max = Math.max(0, matrix.rows.length - 1);
    this.slider.setAttribute("aria-label", "Step");
    this.slider.addEventListener("input", () => this.showStep(Number(this.slider.value)));
    this.playButton = element("button", "", "Play");
    this.playButton.type = "button";
    this.playButton.addEventListener("click", () => this.togglePlaying());
    const media = capture.record.source_media;
    const kinds = media?.kind === "series" ? ["cross", "encoder"] : ["cross"];
    const byColumn = capture.record.source.unit === "columns";
    this.overlay = media && kinds.includes(state.kind) ? new SourceOverlay(media, byColumn) : null;
    this.source = this.overlay ? this.overlay.node : wordLine();
    this.target = wordLine();
    const toolbar = element("div", "toolbar");
    toolbar.append(this.playButton, this.slider);
    const columns = [[element("h3", "", "source"), this.source], [element("h3", "", "target"), this.target]];
    if (this.overlay) columns.reverse(); // words, which are clicked, must not be below a tall image
    this.box.replaceChildren(toolbar, ...columns.flat());
    this.showStep(Math.min(state.step || 0, Number(this.slider.max)));
  }

  showStep(step) {
    const { matrix } = this;
    this.state.step = step;
    this.slider.value = step;
    const weights = Array.from(matrix.columns, (_, column) => matrix.data[step * matrix.columns.length + column]);
    if (this.overlay) this.overlay.draw(weights);
    else this.showSource(weights);
    this.showTarget(step);
    const best = weights.indexOf(Math.max(...weights));
    if (!matrix.rows.length || best < 0) return;
    const [query, key] = [matrix.rows[step], matrix.columns[best]].map((label) => isolate(truncate(label)));
    const rest = hiddenWeightText(matrix, step);
    showStatus(`${step + 1} of ${matrix.rows.length}: ${query} → ${key} ${weights[best].toFixed(3)}${rest}`);
  }

  showSource(weights) {
    const theme = currentTheme();
    showWords(this.source, this.matrix.columns.map((label, column) => {
      const word = element("span", this.isMatch(label) ? "word highlighted" : "word", truncate(label));
      word.style.backgroundColor = weightColor(weights[column], theme);
      word.classList.toggle("strong", weights[column] > 0.5);
      word.title = weights[column].toFixed(3);
      return word;
    }));
  }

  showTarget(step) {
    const { rows } = this.matrix;
    const visible = this.overlay ? rows : rows.slice(0, step + 1);
    showWords(this.target, visible.map((label, row) => {
      const word = element(this.overlay ? "button" : "span", row === step ? "word current" : "word", truncate(label));
      if (this.overlay) {
        word.type = "button";
        word.addEventListener("click", () => this.showStep(row));
      }
      return word;
    }));
  }

  togglePlaying() {
    if (this.timer) {
      this.dispose();
      this.playButton.textContent = "Play";
      return;
    }
    this.playButton.textContent = "Stop";
    const last = this.matrix.rows.length - 1;
    let restart = this.state.step >= last;
    this.timer = setInterval(() => {
      this.showStep(restart ? 0 : this.state.step + 1);
      restart = false;
      if (this.state.step >= last) this.togglePlaying();
    }, STEP_MILLISECONDS);
  }
}

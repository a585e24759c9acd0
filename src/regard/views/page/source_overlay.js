// A source that is not text: an image, a spectrogram or series, with the weights of one step drawn over it.

import { decodeBase64 } from "./base64.js";
import { element } from "./dom.js";

const IMAGE_WIDTH = 512; // pixels on the page
const SPECTROGRAM_HEIGHT = 220;
const SERIES_WIDTH = 1200;
const SERIES_COLORS = ["#33475b", "#c2410c", "#3f7d4e", "#7a4fa3", "#8a6d1a", "#a3335c"];
const SMOOTHED_WIDTH = 96; // sources with more pixels are smoothed when they are enlarged
const FOG = { color: [115, 115, 115], opacity: 215 };
const TINT = { color: [11, 98, 163], opacity: 170 };
const FRAME_COLOR = "#ffb26b";
const PLAYHEAD_COLOR = "#c2410c";

/** The source as a canvas, one pixel for each of its values. shape: of an image [channels, height, width], of a
 * spectrogram [frames, bands]. */
function sourceCanvas({ kind, shape, values }) {
  const bytes = decodeBase64(values);
  const [height, width] = kind === "image" ? shape.slice(1) : [shape[1], shape[0]];
  const channels = kind === "image" ? shape[0] : 1;
  const brightness = (x, y, channel) => {
    if (kind === "image") return bytes[((channels === 3 ? channel : 0) * height + y) * width + x];
    return 255 - bytes[x * height + (height - 1 - y)]; // low bands below
  };
  const canvas = element("canvas");
  canvas.width = Math.max(1, width);
  canvas.height = Math.max(1, height);
  const context = canvas.getContext("2d");
  const pixels = context.createImageData(canvas.width, canvas.height);
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const pixel = 4 * (y * width + x);
      for (let channel = 0; channel < 3; channel += 1) pixels.data[pixel + channel] = brightness(x, y, channel);
      pixels.data[pixel + 3] = 255;
    }
  }
  context.putImageData(pixels, 0, 0);
  return canvas;
}

/** A canvas with a line for each column of series, whose shape is [steps, columns]. opacities: of the lines. */
function seriesCanvas({ shape: [steps, columns], values }, opacities) {
  const bytes = decodeBase64(values);
  const canvas = element("canvas");
  canvas.width = SERIES_WIDTH;
  canvas.height = SPECTROGRAM_HEIGHT;
  const context = canvas.getContext("2d");
  context.fillStyle = "#ffffff";
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.lineWidth = 2;
  for (let column = 0; column < columns; column += 1) {
    context.globalAlpha = opacities?.[column] ?? 0.85;
    context.strokeStyle = SERIES_COLORS[column % SERIES_COLORS.length];
    context.beginPath();
    for (let step = 0; step < steps; step += 1) {
      const y = (1 - bytes[step * columns + column] / 255) * (canvas.height - 12) + 6;
      context.lineTo((step + 0.5) * canvas.width / steps, y);
    }
    context.stroke();
  }
  return canvas;
}

export class SourceOverlay {
  /** byColumn: of series, whether its columns are the positions; else some of its steps are. */
  constructor(source, byColumn = false) {
    this.isImage = source.kind === "image";
    this.seconds = source.seconds;
    this.series = source.kind === "series" && byColumn ? source : null;
    this.source = source.kind === "series" ? seriesCanvas(source) : sourceCanvas(source);
    this.weights = [];
    this.node = element("div", "source-overlay");
    this.canvas = element("canvas", this.isImage ? "image" : "spectrogram");
    this.canvas.setAttribute("role", "img");
    const { width, height } = this.source;
    this.canvas.width = this.isImage ? IMAGE_WIDTH : Math.min(1600, Math.max(480, 4 * width));
    this.canvas.height = this.isImage ? IMAGE_WIDTH * height / width : SPECTROGRAM_HEIGHT;
    this.node.append(this.canvas);
    if (source.audio) {
      this.audio = element("audio");
      this.audio.controls = true;
      this.audio.src = `data:audio/wav;base64,${source.audio}`;
      this.audio.addEventListener("timeupdate", () => this.draw(this.weights));
      this.node.append(this.audio);
    }
  }

  dispose() {
    this.audio?.pause();
  }

  draw(weights) {
    this.weights = weights;
    const context = this.canvas.getContext("2d");
    const { width, height } = this.canvas;
    if (this.series) {
      const largest = Math.max(1e-9, ...weights);
      const opacities = weights.map((weight) => 0.12 + 0.88 * Math.sqrt(weight / largest));
      context.drawImage(seriesCanvas(this.series, opacities), 0, 0, width, height);
      return;
    }
    context.imageSmoothingEnabled = this.source.width > SMOOTHED_WIDTH;
    context.drawImage(this.source, 0, 0, width, height);
    if (weights.length) this.drawWeights(context, weights, width, height);
    if (this.audio && this.seconds) {
      context.fillStyle = PLAYHEAD_COLOR;
      context.fillRect(width * this.audio.currentTime / this.seconds - 1, 0, 2, height);
    }
  }

  /** An image is covered by gray fog, on which dark and light are visible alike, the thinner the larger the weight; its
   * largest weight has a frame. A spectrogram is tinted where weights are large. */
  drawWeights(context, weights, width, height) {
    const columns = this.isImage ? Math.round(Math.sqrt(weights.length)) : weights.length;
    const rows = this.isImage ? columns : 1;
    const largest = Math.max(1e-9, ...weights);
    const layer = element("canvas");
    layer.width = columns;
    layer.height = rows;
    const layerContext = layer.getContext("2d");
    const pixels = layerContext.createImageData(columns, rows);
    const { color, opacity } = this.isImage ? FOG : TINT;
    weights.forEach((weight, index) => {
      const fraction = Math.sqrt(weight / largest);
      pixels.data.set([...color, opacity * (this.isImage ? 1 - fraction : fraction)], 4 * index);
    });
    layerContext.putImageData(pixels, 0, 0);
    context.imageSmoothingEnabled = true;
    context.drawImage(layer, 0, 0, width, height);
    if (!this.isImage) return;
    const index = weights.indexOf(largest);
    const [cellWidth, cellHeight] = [width / columns, height / rows];
    context.strokeStyle = FRAME_COLOR;
    context.lineWidth = 2;
    const row = Math.floor(index / columns);
    context.strokeRect((index % columns) * cellWidth, row * cellHeight, cellWidth, cellHeight);
  }
}

// Sources that are no text: a picture or a spectrogram, with the weights of one step laid over it.

const LARGE = 512; // pixels of a picture's side on the page
const TALL = 220; // of a spectrogram's height

function raw(text) {
  const found = atob(text);
  const bytesOf = new Uint8ClampedArray(found.length);
  for (let at = 0; at < found.length; at += 1) bytesOf[at] = found.charCodeAt(at);
  return bytesOf;
}

/** The source as it is, in its own pixels. */
function plain(shown) {
  const picture = shown.kind === "picture";
  const [high, wide] = picture ? shown.shape.slice(1) : [shown.shape[1], shown.shape[0]];
  const values = raw(shown.values);
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, wide);
  canvas.height = Math.max(1, high);
  const pen = canvas.getContext("2d");
  const pixels = pen.createImageData(canvas.width, canvas.height);
  for (let y = 0; y < high; y += 1) {
    for (let x = 0; x < wide; x += 1) {
      const at = 4 * (y * wide + x);
      for (let part = 0; part < 3; part += 1) {
        const channel = shown.shape[0] === 3 ? part : 0;
        // Low bands lie below.
        pixels.data[at + part] = picture ? values[(channel * high + y) * wide + x] : 255 - values[x * high + (high - 1 - y)];
      }
      pixels.data[at + 3] = 255;
    }
  }
  pen.putImageData(pixels, 0, 0);
  return canvas;
}

/** What is read, and where it is looked at; `draw(weights)` shows one step. */
class Looked {
  constructor(capture) {
    this.shown = capture.record.shown;
    this.source = plain(this.shown);
    this.node = document.createElement("div");
    this.node.className = "looked";
    this.canvas = document.createElement("canvas");
    this.canvas.setAttribute("role", "img");
    const picture = this.shown.kind === "picture";
    this.canvas.width = picture ? LARGE : Math.min(1600, Math.max(480, 4 * this.source.width));
    this.canvas.height = picture ? LARGE * this.source.height / this.source.width : TALL;
    this.canvas.className = picture ? "picture" : "spectrogram";
    this.node.append(this.canvas);
    if (this.shown.sound) {
      this.sound = document.createElement("audio");
      this.sound.controls = true;
      this.sound.src = `data:audio/wav;base64,${this.shown.sound}`;
      this.sound.addEventListener("timeupdate", () => this.draw(this.weights || []));
      this.node.append(this.sound);
    }
  }

  leave() {
    this.sound?.pause();
  }

  draw(weights) {
    this.weights = weights;
    const pen = this.canvas.getContext("2d");
    const { width, height } = this.canvas;
    pen.imageSmoothingEnabled = this.source.width > 96;
    pen.drawImage(this.source, 0, 0, width, height);
    if (weights.length) this.over(pen, weights, width, height);
    if (this.sound && this.shown.seconds) {
      const at = width * this.sound.currentTime / this.shown.seconds;
      pen.fillStyle = "#c2410c";
      pen.fillRect(at - 1, 0, 2, height);
    }
  }

  /** Where it does not look lies in a grey fog, on which dark and light are seen alike; the place it looks at most is
   * as it is. */
  over(pen, weights, width, height) {
    const side = this.shown.kind === "picture" ? Math.round(Math.sqrt(weights.length)) : weights.length;
    const rows = this.shown.kind === "picture" ? side : 1;
    const most = Math.max(1e-9, ...weights);
    const veil = document.createElement("canvas");
    veil.width = side;
    veil.height = rows;
    const brush = veil.getContext("2d");
    const pixels = brush.createImageData(side, rows);
    weights.forEach((weight, at) => {
      const share = Math.sqrt(weight / most);
      const colour = this.shown.kind === "picture" ? [115, 115, 115] : [11, 98, 163];
      colour.forEach((value, part) => { pixels.data[4 * at + part] = value; });
      pixels.data[4 * at + 3] = this.shown.kind === "picture" ? 215 * (1 - share) : 170 * share;
    });
    brush.putImageData(pixels, 0, 0);
    pen.imageSmoothingEnabled = true;
    pen.drawImage(veil, 0, 0, width, height);
    if (this.shown.kind !== "picture") return;
    const at = weights.indexOf(most);
    pen.strokeStyle = "#ffb26b";
    pen.lineWidth = 2;
    pen.strokeRect((at % side) * width / side, Math.floor(at / side) * height / rows, width / side, height / rows);
  }
}

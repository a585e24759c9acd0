// Files to save: the attention as JSON, and images of a view.

import { decodeMatrix } from "./capture.js";
import { currentTheme } from "./colors.js";
import { element } from "./dom.js";

const REVOKE_MILLISECONDS = 10000;

export function download(name, blob) {
  const link = element("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), REVOKE_MILLISECONDS);
}

function svgText(svg) {
  svg.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  return new XMLSerializer().serializeToString(svg);
}

export function downloadSvg(name, view) {
  download(name, new Blob([svgText(view.toSvg())], { type: "image/svg+xml" }));
}

export function downloadPng(name, view) {
  if (view.toCanvas) {
    view.toCanvas().toBlob((blob) => download(name, blob));
    return;
  }
  const svg = view.toSvg();
  const image = new Image();
  image.onload = () => {
    const canvas = element("canvas");
    canvas.width = 2 * svg.getAttribute("width");
    canvas.height = 2 * svg.getAttribute("height");
    const context = canvas.getContext("2d");
    context.fillStyle = currentTheme().paper;
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => download(name, blob));
  };
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svgText(svg))}`;
}

/** The schema of docs/seeing.md, without what the page does not have. */
export function attentionRecord({ record }) {
  const axis = ({ unit, labels, special }) => ({ unit, labels, special });
  const rounded = (value) => Math.round(value * 1e6) / 1e6;
  const nested = (encoded) => {
    const { rows, columns, data } = decodeMatrix(encoded);
    return Array.from({ length: rows }, (_, row) =>
      Array.from(data.subarray(row * columns, (row + 1) * columns), rounded));
  };
  const weights = {};
  for (const [kind, layers] of Object.entries(record.weights)) {
    weights[kind] = layers.map((heads) => heads.map(nested));
  }
  const [layer, head, shifted, is_default] = record.alignment_head || [];
  return {
    format: "regard attention 2",
    model: record.name,
    source: axis(record.source),
    target: axis(record.target),
    decoder_input: axis(record.decoder_input),
    alignment_head: record.alignment_head && { layer, head, shifted, is_default },
    weights,
    hidden_weights: {},
    attribution: record.attribution,
    alignment_weights: record.alignment_weights && nested(record.alignment_weights),
    source_media: record.source_media,
  };
}

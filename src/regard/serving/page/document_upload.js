// Documents: a file is uploaded, its progress shown, and the translated file offered for download.

import { decodeBase64 } from "../../views/page/base64.js";
import { byId, showStatus } from "../../views/page/dom.js";
import { send, sizeError } from "./client.js";
import { queryOptions } from "./options_form.js";
import { apiKey, limits, selectedModel } from "./session.js";

/** The lines of a response, as they arrive. */
async function* responseLines(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (buffer + value).split("\n");
    buffer = lines.pop();
    yield* lines;
  }
}

export async function uploadDocument() {
  const [file] = byId("document-file").files;
  byId("document-file").value = "";
  if (!file || !selectedModel()) return;
  byId("document-translation").hidden = false;
  byId("download").hidden = true;
  byId("progress").removeAttribute("value");
  showDocumentStatus(`${file.name}: reading`);
  try {
    const tooLarge = sizeError(file, limits());
    if (tooLarge) throw new Error(`it is ${tooLarge}`);
    const query = [["name", file.name], ["model", selectedModel().name], ...queryOptions()];
    const response = await send("/v1/file", { body: file, key: apiKey(), query });
    for await (const line of responseLines(response)) showProgress(JSON.parse(line), file.name);
  } catch ({ message }) {
    showDocumentStatus(message.startsWith(file.name) ? message : `${file.name}: ${message}`, true);
    byId("progress").value = 0;
  }
}

function showDocumentStatus(text, isError = false) {
  showStatus(text, isError, "document-status");
}

function showProgress({ error, total, done, content, name, failed }, fileName) {
  if (error) throw new Error(error);
  if (total !== undefined) {
    byId("progress").max = Math.max(1, total);
    byId("progress").value = done;
    showDocumentStatus(`${fileName}: ${done.toLocaleString()} of ${total.toLocaleString()} texts`);
  }
  if (content === undefined) return;
  offerDownload(name, content);
  const note = failed ? `, ${failed} ${failed === 1 ? "text" : "texts"} without a translation` : "";
  showDocumentStatus(`${fileName}: done${note}`);
}

function offerDownload(name, content) {
  const link = byId("download");
  if (link.href) URL.revokeObjectURL(link.href);
  link.href = URL.createObjectURL(new Blob([decodeBase64(content)], { type: "application/octet-stream" }));
  link.download = name;
  link.hidden = false;
  link.focus();
}

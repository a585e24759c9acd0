// How files are chosen and shown, for each modality other than text. What a model accepts is in /v1/models.

// Keys are the values of `modality` in /v1/models. preview: the element that shows a file, if there is one.
const INPUTS = {
  image: { title: "Picture", button: "Choose a picture …", preview: "source-image" },
  audio: { title: "Recording", button: "Choose a recording …", preview: "source-audio" },
  series: { title: "Table", button: "Choose a table …" },
};
const OTHER = { title: "File", button: "Choose a file …" };

export const PREVIEWS = Object.values(INPUTS).map(({ preview }) => preview).filter(Boolean);

/** How the files of a model are chosen and shown; null if it reads text. */
export function fileInput(model) {
  if (!model?.accepts?.length) return null;
  return { ...(INPUTS[model.modality] ?? OTHER), accept: model.accepts.join(",") };
}

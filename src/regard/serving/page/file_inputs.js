// How files are chosen and shown, for each modality other than text.

// Keys are the values of `modality` in /v1/models.
export const FILES = {
  image: { accept: "image/*", title: "Picture", button: "Choose a picture …", preview: "source-image" },
  audio: { accept: "audio/*", title: "Recording", button: "Choose a recording …", preview: "source-audio" },
};

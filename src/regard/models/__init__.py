"""Sequence models: any encoder with any decoder.

Letters in the shapes: B batch, T time (Ts source, Tt target), D width, E width of the embeddings, M width of the
memory, V vocabulary, L layers.

    tokens [B, Ts] → Encoder → EncoderOutput → Decoder → features [B, Tt, E] → logits [B, Tt, V]

Every decoder offers two things: `forward(targets, memory)` for training, all steps at once, and `start(memory)` with
`step(tokens, state)` for search. Search needs nothing else.
"""

"""Document formats, one module each, named after the format. `regard.documents.document` finds them."""

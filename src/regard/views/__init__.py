"""Views of captured attention: terminal, images, HTML page, notebook, files."""

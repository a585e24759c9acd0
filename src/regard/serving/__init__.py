"""Trained models over HTTP: our own API, the APIs of LibreTranslate and DeepL, and web pages."""

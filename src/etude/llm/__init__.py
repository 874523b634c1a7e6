"""Asking a language model, over any endpoint that speaks OpenAI's chat protocol."""

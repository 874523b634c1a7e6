"""The author that asks a language model: prompts, contracts, a ledger of what was paid for."""

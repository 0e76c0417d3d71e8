"""Randomness: one seam for entropy, and samplers that are exact given ideal bits. Nothing here knows what privacy is."""

"""The mathematics of privacy loss: adjacency, divergences, losses, their readings, and what they let one claim."""

"""The durable, append-only list of what was spent, and the only judge of what may still be."""

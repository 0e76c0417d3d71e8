"""The façade that lets one question flow from its text to a noisy answer with its error bars and its receipt."""

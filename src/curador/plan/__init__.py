"""From a question to integer measurements with proved sensitivities. A function of the question and the study only."""

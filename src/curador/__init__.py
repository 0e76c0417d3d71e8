"""curador: a differential-privacy curator."""

"""`make play`: a local page on which the room decides which replica moves next."""

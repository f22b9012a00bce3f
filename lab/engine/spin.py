"""Keeps one processor busy until it is stopped: the other programs of a real machine."""

while True:
    pass

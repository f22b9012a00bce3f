"""What the lessons act on: the clock, the community, the push server."""

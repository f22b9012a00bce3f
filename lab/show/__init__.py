"""How a run is shown: terminal, plots, page, notebooks."""
